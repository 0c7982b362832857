/* SPDX-License-Identifier: Apache-2.0 */
/* oci-runtime.h - crun, or whatever the pod's runtime handler names, and how it is called: nothing outside knows its command line
 *
 * Arguments come as strings with a nullptr at the end, ready for exec. Calls run on the loop with a deadline; their callback gets an error that says
 * what the OCI runtime said. A handler that has gone from the configuration while pods of it are there is an error of every call. */
#pragma once

#include <systemd/sd-event.h>

#include "base/strings.h"
#include "cri/core/config.h"

/* The variables that crun and whoever calls it may see. Nothing else of ours is for them, above all not the socket that tells systemd of our
 * readiness: crun would hand it on to the container. */
const char *const *cri_oci_runtime_environment(void);

struct cri_oci_runtime_call;
typedef void (*cri_oci_runtime_callback)(struct nd_error *error, void *userdata); /* the error is the callback's to free */

/* `crun create`: for the monitor, which adds nothing. pid_file is where crun writes the container's first process; console is the path of the socket that
 * gets the terminal, nullptr for pipes. */
[[nodiscard]] struct nd_error *cri_oci_runtime_create_argv(const struct cri_config *config, const char *handler,
                                                           const char *id, const char *bundle, const char *pid_file,
                                                           const char *console, struct nd_strings *ret);

/* `crun exec`: process is the file with the OCI process; cgroup is a cgroup below the container's, nullptr = its own; console and pid_file may be nullptr.
 * Runs in the foreground unless detach. What crun itself has to say is also in the file log, nullptr = none. */
[[nodiscard]] struct nd_error *cri_oci_runtime_exec_argv(const struct cri_config *config, const char *handler, const char *id,
                                                         const char *process, const char *cgroup, const char *pid_file,
                                                         const char *console, bool detach, const char *log,
                                                         struct nd_strings *ret);

[[nodiscard]] struct nd_error *cri_oci_runtime_start(sd_event *loop, const struct cri_config *config, const char *handler,
                                                     const char *id, cri_oci_runtime_callback callback, void *userdata,
                                                     struct cri_oci_runtime_call **ret);

/* Whether a container that crun has created was let go, whatever the start said of itself: crun may have been killed, or have failed, after that. */
[[nodiscard]] bool cri_oci_runtime_has_started(const struct cri_config *config, const char *handler, const char *id);

/* Kills whatever lives and removes crun's state and the cgroup; a container that crun does not know is gone already. */
[[nodiscard]] struct nd_error *cri_oci_runtime_delete(sd_event *loop, const struct cri_config *config, const char *handler,
                                                      const char *id, cri_oci_runtime_callback callback, void *userdata,
                                                      struct cri_oci_runtime_call **ret);

/* resources is the JSON of OCI's linux.resources. */
[[nodiscard]] struct nd_error *cri_oci_runtime_update(sd_event *loop, const struct cri_config *config, const char *handler,
                                                      const char *id, const char *resources, cri_oci_runtime_callback callback,
                                                      void *userdata, struct cri_oci_runtime_call **ret);

/* The callback will not run; crun is killed. nullptr is fine. */
void cri_oci_runtime_cancel(struct cri_oci_runtime_call *call);
