/* SPDX-License-Identifier: Apache-2.0 */
/* cni.h - runs CNI plugins; no other module starts one
 *
 * A chain is one ADD, DEL or CHECK over all plugins of a configuration, one program after the
 * other, with one deadline for all of them. */
#pragma once

#include <systemd/sd-event.h>

#include "cri/network/cni-config.h"

#define CNI_INTERFACE "eth0"

/* Everything but config is copied or used before the call returns. */
struct cri_cni_plan {
        struct cri_cni_config config;          /* taken over by the chain */
        const char *directories;               /* directories with plugins, separated by colons */
        const char *id;                        /* sandbox id */
        const char *netns;                     /* "" if the namespace is gone */
        const struct cri_sandbox_request *pod; /* borrowed until the chain ends */
        /* for DEL and CHECK: the result of ADD; nullptr = unknown */
        const char *previous;
        uint64_t deadline_us;
};

struct cri_cni_chain;

/* Runs once, from the loop. result is the last plugin's result of ADD, nullptr otherwise and on
 * error. The callback frees the error. */
typedef void (*cri_cni_callback)(struct nd_error *error, const char *result, void *userdata);

/* The first failure ends an ADD; the caller must then run DEL. */
void cri_cni_add(sd_event *loop, struct cri_cni_plan *plan, cri_cni_callback callback, void *userdata,
                 struct cri_cni_chain **ret);
/* From the last plugin to the first; all of them run even if one fails. Reports the first
 * failure. */
void cri_cni_del(sd_event *loop, struct cri_cni_plan *plan, cri_cni_callback callback, void *userdata,
                 struct cri_cni_chain **ret);

/* In the order of ADD, each with the result of ADD. The first failure ends it. */
void cri_cni_check(sd_event *loop, struct cri_cni_plan *plan, cri_cni_callback callback, void *userdata,
                   struct cri_cni_chain **ret);

/* Kills the running plugin with all its descendants in its process group; the chain fails when
 * it has exited. Not for a DEL, which must complete. */
void cri_cni_abort(struct cri_cni_chain *chain);
