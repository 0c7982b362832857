/* SPDX-License-Identifier: Apache-2.0 */
/* remedy.h - advice for errors whose cause is the state of the node, for the log
 *
 * The text decides, not an errno: workers and crun report theirs as text. */
#pragma once

/* The advice for the first known cause in an error's text; nullptr = none. */
[[nodiscard]] const char *cri_remedy_of(const char *text);
