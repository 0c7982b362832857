/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - the daemon's request: one JSON object on standard input */
#pragma once

#include "oci/platform.h"
#include "oci/reference.h"
#include "pull/fetch/auth.h"

enum pull_operation {
        OPERATION_PULL,
        OPERATION_IMPORT,
};

enum {
        REQUEST_BYTES = 1024 * 1024,
        REQUEST_PARALLEL = 16, /* limit of concurrent downloads */
};

struct pull_request {
        enum pull_operation operation;
        struct nd_reference reference; /* for a pull */
        struct nd_platform platform;
        bool has_credentials;
        struct pull_credentials credentials;
        char *hosts_directory; /* "" = none */
        unsigned parallel;
        unsigned no_progress_seconds;
        uint64_t total_bytes; /* limit of a pull, for compressed and unpacked data each */
        unsigned layers;
};

void pull_request_done(struct pull_request *request);
[[nodiscard]] struct nd_error *pull_request_parse(const char *bytes, size_t length, struct pull_request *ret);
