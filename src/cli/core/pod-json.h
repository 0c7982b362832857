/* SPDX-License-Identifier: Apache-2.0 */
/* pod-json.h - pods and containers as members of JSON objects, the same in every command */
#pragma once

#include <nodens.pb-c.h>

#include "base/json.h"

/* Both write members into an object that is open; a pod's containers are the caller's to write. */
void cli_pod_json(struct nd_json_out *out, const Nodens__V1__PodEntry *pod);
void cli_pod_json_container(struct nd_json_out *out, const Nodens__V1__ContainerEntry *container);
