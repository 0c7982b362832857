/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - the commands of nodens-guard */
#pragma once

#include "base/option.h"

extern const struct nd_option_program guard_program;
