/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - files of a node's components in the node's directory, outside of the node
 *
 *      components/NAME         how to start it; units test whether it exists
 *      components/NAME.state   the process that runs it, and its state; also of the controller
 *      components/NAME.lock    lock of that process */
#pragma once

#include "base/strings.h"
#include "rootless/core/node.h"

#define COMPONENTS_DIRECTORY "components"

enum {
        COMPONENT_RECORD_BYTES = 256 * 1024,
        COMPONENT_STATUS_BYTES = 512, /* limit of a component's own status text */
};

struct rootless_component_record {
        struct nd_strings argv;
        char *path;      /* PATH */
        char *node_name; /* of the Node object */
        bool notifies;
        bool stops_first;
        bool outside;    /* outside.h */
        char *after;     /* component that must be ready first; "" = none */
        char *publish;   /* port to publish, as of `ports add`; "" = none */
        unsigned offset; /* of the host's ports of Services */
};
void rootless_component_record_done(struct rootless_component_record *record);

[[nodiscard]] struct nd_error *rootless_component_record_parse(const char *text, size_t length,
                                                               struct rootless_component_record *ret);
[[nodiscard]] struct nd_error *rootless_component_record_save(const struct rootless_node *node, const char *name,
                                                              const struct rootless_component_record *record);
/* ND_NOT_FOUND if the node has no such component. */
[[nodiscard]] struct nd_error *rootless_component_record_load(const struct rootless_node *node, const char *name,
                                                              struct rootless_component_record *ret);

/* The names of a node's components, sorted. A node without Kubernetes has none. */
void rootless_component_names(const struct rootless_node *node, struct nd_strings *ret);

struct rootless_component_state {
        pid_t pid; /* of the process outside that runs it */
        uint64_t started;
        const char *state; /* "starting", "ready" or "stopping"; "ended" if the process is gone */
        char *status;      /* the component's own words, "" = none */
};
/* The controller, which runs outside of the node, has a state but no record. */
void rootless_component_state_done(struct rootless_component_state *state);

[[nodiscard]] struct nd_error *rootless_component_state_save(const struct rootless_node *node, const char *name,
                                                             const struct rootless_component_state *state);
/* Never fails: a component without a valid state has ended. */
void rootless_component_state_load(const struct rootless_node *node, const char *name, struct rootless_component_state *ret);
