/* SPDX-License-Identifier: Apache-2.0 */
/* authorize.h - nodens-guard authorize */
#pragma once

#include "base/option.h"

extern const struct nd_option guard_authorize_options[];
int guard_authorize_run(void *settings, int operand_count, char **operands);
