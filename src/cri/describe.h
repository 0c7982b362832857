/* SPDX-License-Identifier: Apache-2.0 */
/* describe.h - what verbose status tells people, as JSON */
#pragma once

#include "base/text.h"
#include "cri/pods.h"

struct cri_config;
struct pins;

enum { DESCRIBE_CEILING = 4 << 20 };

void describe_sandbox(const struct cri_config *config, const struct pins *pins, const struct sandbox *sandbox,
                      struct nd_text *ret);
void describe_container(const struct cri_config *config, const struct container *container, struct nd_text *ret);
