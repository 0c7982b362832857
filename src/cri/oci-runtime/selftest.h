/* SPDX-License-Identifier: Apache-2.0 */
/* selftest.h - what this kernel, this filesystem and each OCI runtime can do together, found out by doing it
 *
 * Status tells the kubelet which features the node has, and the kubelet believes it. So each is tried once at start, with a container of its own that
 * really runs: on an overlay in the state directory, made as every container's is. */
#pragma once

#include <systemd/sd-event.h>

#include "base/json.h"

struct cri_config;
struct cri_selftest;

enum cri_selftest_feature {
        SELFTEST_OCI_RUNTIME,  /* crun runs a container at all */
        SELFTEST_READ_ONLY,    /* a mount that is read-only with all below it */
        SELFTEST_USERNS,       /* a user namespace of its own, on idmapped layers, with an idmapped volume */
        SELFTEST_HOST_NETWORK, /* the same on the host's network */
        SELFTEST_FEATURES,
};

/* Begins the test; done runs once, from the loop, when it has ended. Never fails: what went wrong is a feature's reason. */
[[nodiscard]] struct cri_selftest *cri_selftest_new(sd_event *loop, const struct cri_config *config,
                                                    void (*done)(void *userdata), void *userdata);
void cri_selftest_free(struct cri_selftest *selftest);

const char *cri_selftest_name(enum cri_selftest_feature feature); /* as verbose Status and the metrics call it */

/* nullptr when the feature works with a runtime handler; otherwise why not. */
const char *cri_selftest_reason(const struct cri_selftest *selftest, const char *handler, enum cri_selftest_feature feature);

/* An error that a person understands when a pod needs what the node does not have. */
[[nodiscard]] struct nd_error *cri_selftest_userns(const struct cri_selftest *selftest, const char *handler,
                                                   bool host_network);

/* Handlers that a RuntimeClass may name, from 0; nullptr past the last one. The first is "", for pods that name none; it is called "crun" as well. */
const char *cri_selftest_handler(const struct cri_selftest *selftest, size_t number);

/* For verbose Status. */
void cri_selftest_describe(const struct cri_selftest *selftest, struct nd_json_out *out);
