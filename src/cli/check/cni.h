/* SPDX-License-Identifier: Apache-2.0 */
/* cni.h - finds the CNI configuration that nodens-cri uses: the first valid one, by name */
#pragma once

#include "base/error.h"

enum {
        CNI_CEILING = 1 << 20,
        CNI_PLUGINS_MOST = 64,
};

/* Returns a description of the first configuration of a directory whose plugins are all in one of
 * the directories, which are separated by colons. The error says what is missing. */
[[nodiscard]] struct nd_error *cli_cni_find(const char *directory, const char *plugins, char **ret_text);

/* The same for the text of one configuration, called name. */
[[nodiscard]] struct nd_error *cli_cni_describe(const char *name, const char *text, size_t length, const char *plugins,
                                                char **ret_text);
