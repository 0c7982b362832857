/* SPDX-License-Identifier: Apache-2.0 */
/* describe.h - the JSON of verbose status */
#pragma once

#include "base/text.h"
#include "cri/core/pod-table.h"

struct cri_config;
struct cri_pins;

enum { DESCRIBE_CEILING = 4 << 20 };

void cri_describe_sandbox(const struct cri_config *config, const struct cri_pins *pins, const struct cri_sandbox *sandbox,
                          struct nd_text *ret);
void cri_describe_container(const struct cri_config *config, const struct cri_container *container, struct nd_text *ret);
