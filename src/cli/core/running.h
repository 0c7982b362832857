/* SPDX-License-Identifier: Apache-2.0 */
/* running.h - finds a running container by name, for exec and attach */
#pragma once

#include "base/error.h"

/* Returns the ID of the container, which the caller frees. container_name as in
 * cli_target_container(). An error says why it does not run. */
[[nodiscard]] struct nd_error *cli_running_container(const char *socket, const char *name, const char *container_name,
                                                     char **ret);
