/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - nodens-guard certificate */
#pragma once

#include "base/option.h"

struct guard_certificate_settings {
        const char *address, *directory;
        uint32_t days;
};

extern const struct nd_option guard_certificate_options[];
int guard_certificate_run(void *settings, int operand_count, char **operands);
