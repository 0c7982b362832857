/* SPDX-License-Identifier: Apache-2.0 */
/* field.h - prints a label and its value */
#pragma once

/* Prints nothing for an empty value. On a terminal a sentence is wrapped beside its label, which
 * has so many columns. A path or an ID is never broken, so that it can be copied. */
void cli_field_print(const char *label, int columns, const char *value);
