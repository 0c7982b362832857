/* SPDX-License-Identifier: Apache-2.0 */
/* selftest.h - what this kernel, this filesystem and each OCI runtime can do together, found out by doing it
 *
 * Status tells the kubelet which features the node has, and the kubelet believes it. So each is tried once at start, with a container of its own that
 * really runs: on an overlay in the state directory, made as every container's is. */
#pragma once

#include <systemd/sd-event.h>

#include "base/json.h"

struct cri_config;
struct selftest;

enum selftest_feature {
        SELFTEST_OCI_RUNTIME,       /* crun runs a container at all */
        SELFTEST_READ_ONLY,    /* a mount that is read-only with all below it */
        SELFTEST_USERNS,        /* a user namespace of its own, on idmapped layers, with an idmapped volume */
        SELFTEST_HOST_NETWORK, /* the same on the host's network */
        SELFTEST_FEATURES,
};

/* Begins the test; done runs once, from the loop, when it has ended. Never fails: what went wrong is a feature's reason. */
[[nodiscard]] struct selftest *selftest_new(sd_event *loop, const struct cri_config *config, void (*done)(void *userdata),
                                            void *userdata);
void selftest_free(struct selftest *selftest);

const char *selftest_name(enum selftest_feature feature); /* as verbose Status and the metrics call it */

/* nullptr when the feature works with a runtime handler; otherwise why not. */
const char *selftest_reason(const struct selftest *selftest, const char *handler, enum selftest_feature feature);

/* An error that a person understands when a pod needs what the node does not have. */
[[nodiscard]] struct nd_error *selftest_users(const struct selftest *selftest, const char *handler, bool host_network);

/* Handlers that a RuntimeClass may name, from 0; nullptr past the last one. The first is "", for pods that name none; it is called "crun" as well. */
const char *selftest_handler(const struct selftest *selftest, size_t number);

/* For verbose Status. */
void selftest_describe(const struct selftest *selftest, struct nd_json_out *out);
