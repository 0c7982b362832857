/* SPDX-License-Identifier: Apache-2.0 */
/* cri-node.h - the parts of nodens-cri that containers need, with the real crun, the real monitor
 * and real namespaces
 *
 * The image is one layer with one static program (container-program.c), which does what its
 * arguments say. */
#pragma once

#include "cri/core/parts.h"
#include "cri/pod/container.h"

/* The mapping of pods with a user namespace. */
enum { CRI_NODE_HOST = 1 << 20, CRI_NODE_COUNT = 65536 };

struct cri_node {
        char *root;
        struct cri_parts parts;
        bool called; /* by the operation that was waited for last */
        struct nd_error *error;
        struct cri_sandbox *sandbox;
        struct cri_container *container;
};

/* To be called before anything is made: skipping jumps past the cleanup. */
void cri_node_needs_oci_runtime(void);

void cri_node_make(struct cri_node *ret);
void cri_node_done(struct cri_node *node);

/* An OCI runtime that does its work, but for one verb, which is done as the given words of a shell
 * do it. */
void cri_node_use_oci_runtime(struct cri_node *node, const char *verb, const char *words);

/* ---- operations, waited for ---- */

struct nd_error *cri_node_wait(struct cri_node *node);
void cri_node_on_container(struct nd_error *error, struct cri_container *container, void *userdata);

struct nd_error *cri_node_try_pod(struct cri_node *node, bool mapped, enum cri_namespace_mode pid);
void cri_node_run_pod(struct cri_node *node, bool mapped, enum cri_namespace_mode pid);
void cri_node_remove_pod(struct cri_node *node);

/* A request for the pod; arguments are for the program and end with nullptr. */
#define ARGUMENTS(...) ((const char *const[]) {__VA_ARGS__, nullptr})
struct cri_container_request cri_node_request(const struct cri_node *node, const char *const *arguments);

struct nd_error *cri_node_create(struct cri_node *node, struct cri_container_request *request);
struct nd_error *cri_node_start(struct cri_node *node, struct cri_container *container);
struct nd_error *cri_node_stop(struct cri_node *node, struct cri_container *container, int64_t timeout_s);
struct nd_error *cri_node_remove(struct cri_node *node, struct cri_container *container);
void cri_node_wait_for_exit(struct cri_node *node, const struct cri_container *container);

/* The process of a container's monitor. */
pid_t cri_node_monitor(const struct cri_container *container);

/* ---- several operations at once ---- */

struct cri_node_answer {
        bool called;
        enum nd_error_code code;
};

void cri_node_on_answer(struct nd_error *error, struct cri_container *container, void *userdata);
void cri_node_wait_for_answers(struct cri_node *node, const struct cri_node_answer *answers, size_t count);
