/* SPDX-License-Identifier: Apache-2.0 */
/* selftest.h - tests at start which features this kernel, the filesystems and each OCI runtime
 * support
 *
 * Status reports the node's features to the kubelet, which relies on them. So each is tried once at
 * start with a real container, on an overlay in the state directory that is built like every
 * container's. */
#pragma once

#include <systemd/sd-event.h>

#include "base/json.h"

struct cri_config;
struct cri_selftest;

enum cri_selftest_feature {
        SELFTEST_OCI_RUNTIME,  /* crun can run a container */
        SELFTEST_READ_ONLY,    /* recursively read-only mounts */
        SELFTEST_USERNS,       /* a user namespace, on idmapped layers, with an idmapped volume */
        SELFTEST_HOST_NETWORK, /* the same on the host's network */
        SELFTEST_FEATURES,
};

/* Starts the test; done runs once, from the loop, when it has finished. Never fails: an error is
 * recorded as the reason of a feature. */
[[nodiscard]] struct cri_selftest *cri_selftest_new(sd_event *loop, const struct cri_config *config,
                                                    void (*done)(void *userdata), void *userdata);
void cri_selftest_free(struct cri_selftest *selftest);

/* the name in verbose Status and in metrics */
const char *cri_selftest_name(enum cri_selftest_feature feature);

/* nullptr if the feature works with a runtime handler; otherwise the reason. */
const char *cri_selftest_reason(const struct cri_selftest *selftest, const char *handler, enum cri_selftest_feature feature);

/* An error with the reason if the node does not support what a pod needs. */
[[nodiscard]] struct nd_error *cri_selftest_userns(const struct cri_selftest *selftest, const char *handler,
                                                   bool host_network);

/* Enumerates the handlers that a RuntimeClass may name, from 0; nullptr after the last one. The
 * first is "", for pods without one; it is also listed as "crun". */
const char *cri_selftest_handler(const struct cri_selftest *selftest, size_t number);

/* The known flaw of a handler's OCI runtime; nullptr if none was found. */
const char *cri_selftest_flaw(const struct cri_selftest *selftest, const char *handler);

/* For verbose Status. */
void cri_selftest_describe(const struct cri_selftest *selftest, struct nd_json_out *out);
