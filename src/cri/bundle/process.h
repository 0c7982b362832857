/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - a container's process: arguments, variables and working directory
 *
 *      arguments   the request's command and args over the image's ENTRYPOINT and CMD, as in
 *                  Kubernetes: a command replaces both
 *      variables   PATH (unless the image has one), the image's, TERM for a terminal, HOSTNAME,
 *                  then the request's; the last one of a name wins
 *      directory   the request's, the image's, or "/" */
#pragma once

#include "cri/core/request.h"
#include "oci/config.h"
#include "oci/spec.h"

/* Fills arguments, environment, directory and terminal. hostname "" = the node's own. */
[[nodiscard]] struct nd_error *cri_process_describe(const struct cri_container_request *request,
                                                    const struct nd_oci_config *image, const char *hostname,
                                                    struct nd_spec_process *ret);

/* The signal that stops it: the request's, the image's ("SIGQUIT", "QUIT", "3", "RTMIN+3"), or
 * SIGTERM. An invalid one in the image means SIGTERM, too. */
int cri_process_stop_signal(const struct cri_container_request *request, const struct nd_oci_config *image);
