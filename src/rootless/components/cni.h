/* SPDX-License-Identifier: Apache-2.0 */
/* cni.h - the pods' network inside a node: a bridge with NAT, or what --cni gives */
#pragma once

#include "rootless/components/cluster.h"
#include "rootless/node/bindplan.h"

[[nodiscard]] struct nd_error *rootless_cni_files(const struct rootless_cluster *cluster, struct rootless_bindplan *plan);
