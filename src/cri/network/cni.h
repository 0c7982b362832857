/* SPDX-License-Identifier: Apache-2.0 */
/* cni.h - CNI plugins, and how they are called: nothing outside knows a plugin
 *
 * A chain is one ADD, DEL or CHECK over all plugins of a configuration, one program after the other, with one deadline for all of them. */
#pragma once

#include <systemd/sd-event.h>

#include "cri/network/cni-config.h"

#define CNI_INTERFACE "eth0"

/* Everything but config is copied or used before the call returns. */
struct cri_cni_plan {
        struct cri_cni_config config;          /* taken */
        const char *directories;               /* where plugins are, written as PATH is */
        const char *id;                        /* the sandbox's */
        const char *netns;                     /* "" when it is gone */
        const struct cri_sandbox_request *pod; /* stays where it is until the end */
        const char *previous;                  /* for DEL and CHECK: what ADD gave; nullptr = it is not known */
        uint64_t deadline_us;
};

struct cri_cni_chain;

/* Runs once, from the loop. result is the last plugin's answer to ADD, nullptr for the others and with an error, which is the callback's to free. */
typedef void (*cri_cni_callback)(struct nd_error *error, const char *result, void *userdata);

/* One plugin's failure ends an ADD; what was made then needs a DEL. */
void cri_cni_add(sd_event *loop, struct cri_cni_plan *plan, cri_cni_callback callback, void *userdata,
                 struct cri_cni_chain **ret);
/* From the last plugin to the first, each whatever the others say. The first failure is told. */
void cri_cni_del(sd_event *loop, struct cri_cni_plan *plan, cri_cni_callback callback, void *userdata,
                 struct cri_cni_chain **ret);

/* In the order of the ADD, each told what that gave. The first plugin that misses something ends it. */
void cri_cni_check(sd_event *loop, struct cri_cni_plan *plan, cri_cni_callback callback, void *userdata,
                   struct cri_cni_chain **ret);

/* Kills the plugin that runs, with all that it started; the chain fails when it has ended. Not for a DEL, which somebody is owed. */
void cri_cni_abort(struct cri_cni_chain *chain);
