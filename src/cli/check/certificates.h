/* SPDX-License-Identifier: Apache-2.0 */
/* certificates.h - checks the files with which nodens-fetch authenticates registries */
#pragma once

#include "base/error.h"
#include "base/strings.h"

/* Reads the directory of every registry: hosts.toml, certificates and keys. An error names the file
 * that cannot be used. */
[[nodiscard]] struct nd_error *cli_certificates_check(const char *directory, size_t *ret_registries);

/* Collects the strings of a TOML file that name files with certificates or keys, as written
 * there. */
void cli_certificates_named(const char *toml, struct nd_strings *ret);
