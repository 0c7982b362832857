/* SPDX-License-Identifier: Apache-2.0 */
/* oci-runtime.h - command lines of crun, or of the program that the pod's runtime handler names; no
 * other module knows them
 *
 * Argument vectors end with a nullptr, ready for exec. Calls run on the loop with a timeout; the
 * error that their callback gets contains the OCI runtime's own message. If a handler is removed
 * from the configuration while pods use it, every call fails. */
#pragma once

#include <systemd/sd-event.h>

#include "base/strings.h"
#include "cri/core/config.h"

/* The environment of crun and the monitor. Nothing else of ours is passed on, above all not
 * systemd's notification socket, which crun would pass on to the container. */
const char *const *cri_oci_runtime_environment(void);

struct cri_oci_runtime_call;
/* the callback frees the error */
typedef void (*cri_oci_runtime_callback)(struct nd_error *error, void *userdata);

/* `crun create`, executed unchanged by the monitor. crun writes the pid of the container's init
 * process to pid_file; console is the path of the socket that receives the terminal, nullptr for
 * pipes. */
[[nodiscard]] struct nd_error *cri_oci_runtime_create_argv(const struct cri_config *config, const char *handler,
                                                           const char *id, const char *bundle, const char *pid_file,
                                                           const char *console, struct nd_strings *ret);

/* `crun exec`: process is the file with the OCI process; cgroup is a cgroup below the container's,
 * nullptr = the container's; console and pid_file may be nullptr. Runs in the foreground unless
 * detach. crun also writes its own messages to the file log, nullptr = none. */
[[nodiscard]] struct nd_error *cri_oci_runtime_exec_argv(const struct cri_config *config, const char *handler, const char *id,
                                                         const char *process, const char *cgroup, const char *pid_file,
                                                         const char *console, bool detach, const char *log,
                                                         struct nd_strings *ret);

[[nodiscard]] struct nd_error *cri_oci_runtime_start(sd_event *loop, const struct cri_config *config, const char *handler,
                                                     const char *id, cri_oci_runtime_callback callback, void *userdata,
                                                     struct cri_oci_runtime_call **ret);

/* Whether a created container was started, regardless of the result of `start`: crun may have
 * failed or been killed after that. */
[[nodiscard]] bool cri_oci_runtime_has_started(const struct cri_config *config, const char *handler, const char *id);

/* Kills all processes of the container and removes crun's state and the cgroup. Succeeds if crun
 * does not know the container. */
[[nodiscard]] struct nd_error *cri_oci_runtime_delete(sd_event *loop, const struct cri_config *config, const char *handler,
                                                      const char *id, cri_oci_runtime_callback callback, void *userdata,
                                                      struct cri_oci_runtime_call **ret);

/* resources: the JSON of OCI's linux.resources. */
[[nodiscard]] struct nd_error *cri_oci_runtime_update(sd_event *loop, const struct cri_config *config, const char *handler,
                                                      const char *id, const char *resources, cri_oci_runtime_callback callback,
                                                      void *userdata, struct cri_oci_runtime_call **ret);

/* Kills crun; the callback is not called. nullptr is allowed. */
void cri_oci_runtime_cancel(struct cri_oci_runtime_call *call);
