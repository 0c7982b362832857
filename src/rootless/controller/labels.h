/* SPDX-License-Identifier: Apache-2.0 */
/* labels.h - the label kubernetes.io/running-in-user-namespace of Nodes
 *
 * The own node gets "true". Other nodes that have no label get what their kubelet reports
 * (nodeInfo.runningInUserNamespace), or "false": kubelets may not set the label themselves. */
#pragma once

#include "net/api-client.h"
#include "rootless/controller/objects.h"
#include "rootless/controller/settings.h"

struct rootless_labels {
        struct nd_api *api;
        const char *own; /* name of the own node */
        enum rootless_label_scope scope;
        struct nd_map pending; /* name of a Node: body of the patch */
        struct nd_api_call *call;
        char *current; /* the Node of the call */
        sd_event_source *timer;
        uint64_t pause_us;
        uint64_t forbidden_us; /* until when other nodes are not tried; 0: they may be labelled */
};

[[nodiscard]] struct nd_error *rootless_labels_start(struct rootless_labels *labels, struct nd_api *api, const char *own,
                                                     enum rootless_label_scope scope);
void rootless_labels_done(struct rootless_labels *labels);

/* A Node is new or has changed. */
void rootless_labels_update(struct rootless_labels *labels, const struct rootless_node_info *node);

/* The label that a node lacks; nullptr: none. Pure. */
const char *rootless_labels_wanted(const struct rootless_node_info *node, const char *own, enum rootless_label_scope scope);
