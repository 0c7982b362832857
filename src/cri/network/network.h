/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - the pods' network: which CNI configuration serves, whether the node is ready, and each pod's way on and off it */
#pragma once

#include <systemd/sd-event.h>

#include "cri/core/pod-table.h"

struct cri_config;
struct cri_network;
struct cri_network_call;

[[nodiscard]] struct cri_network *cri_network_new(sd_event *loop, const struct cri_config *config);
void cri_network_free(struct cri_network *network);

/* Whether a pod could be given a network now; otherwise reason is one word for the NetworkReady condition and message is for people. Looks at the
 * configuration's directory: what a DaemonSet has just put there counts. */
[[nodiscard]] bool cri_network_ready(struct cri_network *network, const char **ret_reason, const char **ret_message);

/* Writes into sandbox->network_result which configuration the pod is about to get; refuses a bandwidth that cannot be kept. The caller then records the sandbox with SANDBOX_MADE_NETWORK, and
 * only then adds it: so a DEL can be done with the very configuration of the ADD, whatever becomes of us or of the file. */
[[nodiscard]] struct nd_error *cri_network_choose(struct cri_network *network, struct cri_sandbox *sandbox);

/* The error is the callback's to free. The callback runs once, from the loop, never before the call has returned. */
typedef void (*cri_network_callback)(struct nd_error *error, void *userdata);

/* Sets addresses and network_result. After an error the network is still to be removed. */
void cri_network_add(struct cri_network *network, struct cri_sandbox *sandbox, cri_network_callback callback, void *userdata,
                     struct cri_network_call **ret);
/* All plugins get their DEL, whatever one of them says; the first error is told. Forgets network_result when all went well. Without one, since the record
 * was damaged, the present configuration serves; where there is none either, there is nobody to ask. */
void cri_network_remove(struct cri_network *network, struct cri_sandbox *sandbox, cri_network_callback callback,
                        void *userdata, struct cri_network_call **ret);

/* Asks the plugins whether what they made for the pod is still there; the error says what is not. Where they cannot be asked (the configuration is older than
 * CHECK, or its author does not want it) *ret is nullptr and there will be no callback. */
void cri_network_check(struct cri_network *network, struct cri_sandbox *sandbox, cri_network_callback callback, void *userdata,
                       struct cri_network_call **ret);

/* Kills the plugin that runs; the call fails when that has ended. */
void cri_network_abort(struct cri_network_call *call);
