/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - the pods' network: selects the CNI configuration, reports readiness, and connects
 * and disconnects pods */
#pragma once

#include <systemd/sd-event.h>

#include "cri/core/pod-table.h"

struct cri_config;
struct cri_network;
struct cri_network_call;

[[nodiscard]] struct cri_network *cri_network_new(sd_event *loop, const struct cri_config *config);
void cri_network_free(struct cri_network *network);

/* Whether pods can get a network now; otherwise reason is one word for the NetworkReady
 * condition and message explains it. Checks the configuration directory, so a file that a
 * DaemonSet has just installed counts. A change is logged, with the remedy. */
[[nodiscard]] bool cri_network_ready(struct cri_network *network, const char **ret_reason, const char **ret_message);

/* The name of the active configuration's file as of the last cri_network_ready(); nullptr if the
 * network was not ready. */
[[nodiscard]] const char *cri_network_configuration(const struct cri_network *network);

/* Stores in sandbox->network_result which configuration the pod will use; refuses an invalid
 * bandwidth. The caller then records the sandbox with SANDBOX_MADE_NETWORK, and only then adds
 * it: so DEL uses the same configuration as ADD even if the daemon crashes or the file changes. */
[[nodiscard]] struct nd_error *cri_network_choose(struct cri_network *network, struct cri_sandbox *sandbox);

/* The callback frees the error. It runs once, from the loop, never before the call has returned. */
typedef void (*cri_network_callback)(struct nd_error *error, void *userdata);

/* Sets addresses and network_result. After an error the caller must still remove the network. */
void cri_network_add(struct cri_network *network, struct cri_sandbox *sandbox, cri_network_callback callback, void *userdata,
                     struct cri_network_call **ret);
/* Runs DEL of all plugins even if one fails; reports the first error. Clears network_result on
 * success. If the record was damaged and has no note, uses the current configuration; without
 * one there is nothing to call. */
void cri_network_remove(struct cri_network *network, struct cri_sandbox *sandbox, cri_network_callback callback,
                        void *userdata, struct cri_network_call **ret);

/* Runs CHECK: the error says what is missing. If the configuration does not support CHECK (too
 * old, or disabled) *ret is nullptr and the callback never runs. */
void cri_network_check(struct cri_network *network, struct cri_sandbox *sandbox, cri_network_callback callback, void *userdata,
                       struct cri_network_call **ret);

/* Kills the running plugin; the call fails when it has exited. */
void cri_network_abort(struct cri_network_call *call);
