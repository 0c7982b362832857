/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - the process outside of a node that runs one of its components */
#pragma once

#include "rootless/components/record.h"

/* Starts the component in the node and waits until it ends. Returns its exit status, or 128 plus
 * the signal that killed it. */
[[nodiscard]] struct nd_error *rootless_component_run(const struct rootless_node *node, const char *name,
                                                      const struct rootless_component_record *record, int init_pidfd,
                                                      int *ret_code);
