/* SPDX-License-Identifier: Apache-2.0 */
/* describe.h - what verbose status tells people, as JSON */
#pragma once

#include "base/text.h"
#include "cri/pods.h"

struct daemon;

enum { DESCRIBE_CEILING = 4 << 20 };

void describe_sandbox(const struct daemon *daemon, const struct sandbox *sandbox, struct nd_text *ret);
void describe_container(const struct daemon *daemon, const struct container *container, struct nd_text *ret);
