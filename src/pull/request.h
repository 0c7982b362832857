/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - what the daemon wants: one JSON object on standard input */
#pragma once

#include "oci/platform.h"
#include "oci/reference.h"
#include "pull/auth.h"

enum nd_operation {
        ND_PULL,
        ND_IMPORT,
};

enum {
        ND_REQUEST_BYTES = 1024 * 1024,
        ND_PARALLEL = 16, /* most downloads at once */
};

struct nd_request {
        enum nd_operation operation;
        struct nd_reference reference; /* of a pull */
        struct nd_platform platform;
        bool has_credentials;
        struct nd_credentials credentials;
        char *hosts_directory; /* "" = none */
        unsigned parallel;
        unsigned no_progress_seconds;
        uint64_t total_bytes; /* most bytes of a pull, compressed and unpacked each */
        unsigned layers;
};

void nd_request_done(struct nd_request *request);
[[nodiscard]] struct nd_error *nd_request_parse(const char *bytes, size_t length, struct nd_request *ret);
