/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - the program's table of commands; each command's options stand beside its code */
#pragma once

#include "base/option.h"

extern const struct nd_option_program cli_program;
