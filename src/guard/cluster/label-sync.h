/* SPDX-License-Identifier: Apache-2.0 */
/* label-sync.h - labels of pod security for namespaces that opt in
 *
 * A namespace with the label security.nodens.io/pod-security-labels=sync gets the labels enforce,
 * warn and audit of pod-security.kubernetes.io/, with the strictest level that the constraints need
 * which its service accounts may use (scc-level.h). Labels that another writer owns stay. */
#pragma once

#include "guard/cluster/watches.h"

struct guard_label_sync_settings {
        struct nd_api *api;
        struct guard_watches *watches; /* of the store and the RBAC index; has the leader's Lease */
        const char *namespace;         /* the guard's own, which is left alone */
        bool writes;                   /* false: a dry run, which only reports */
        /* error may be nullptr */
        void (*log)(const char *what, const struct nd_error *error, void *userdata);
        void *userdata;
};

/* Namespaces that opt in, as this guard saw them last. All are 0 while another one leads. */
struct guard_label_sync_counts {
        uint64_t synced;  /* have the labels */
        uint64_t pending; /* do not have them yet; in a dry run they never get them */
        uint64_t foreign; /* have another level, in a label of another writer */
        uint64_t written; /* labels that this guard wrote */
};

struct guard_label_sync;

/* The lists of the watches must have been read. */
struct guard_label_sync *guard_label_sync_new(const struct guard_label_sync_settings *settings);
/* After nd_api_stop(); nullptr is fine. */
void guard_label_sync_free(struct guard_label_sync *sync);

struct guard_label_sync_counts guard_label_sync_count(const struct guard_label_sync *sync);

/* Whether labels of the namespace may be written at all. */
bool guard_label_sync_may_write(const char *namespace, const char *own);
