/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - the command table; each command's options are next to its code */
#pragma once

#include "base/option.h"

extern const struct nd_option_program cli_program;
