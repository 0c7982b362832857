/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - see stats.h
 *
 * Theory of operation
 *   A request goes @WAIT -> @READ and completes. It waits for a sweep of the writable layers, if
 *   the cached figures are too old and for at most @patience_us, and for the visit to its pods'
 *   networks. Then it reads cgroups, @AT_ONCE of them per iteration of the loop, so that a list of
 *   thousands does not delay other requests.
 *   Sweep and visit are workers. They write their results into shared memory, so that results found
 *   before a worker's deadline are kept. A tree that cannot be counted in @tree_deadline_us is
 *   partial: the partial sum is reported, unless an earlier figure was higher. From then on a
 *   second worker handles such trees one by one, with @slow_deadline_us for each: a large tree
 *   neither delays the figures of the others nor stays uncounted.
 * Owns       requests, workers, and the cache of layers. Refers to pods by ID. */
#include "cri/stats/stats.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/core/paths.h"
#include "sys/calls.h"
#include "sys/file.h"
#include "sys/worker.h"

enum {
        AT_ONCE = 32,
        NICE = 10,
        NETWORK_TEXT = 64 * 1024,
};

static constexpr uint64_t patience_us = 1500 * ND_MS_US;
/* minimum interval between two walks of one layer */
static constexpr uint64_t refresh_us = 10 * ND_SECOND_US;
/* a request waits for a sweep if a figure is older */
static constexpr uint64_t old_us = 25 * ND_SECOND_US;
static constexpr uint64_t sweep_deadline_us = 25 * ND_SECOND_US;
static constexpr uint64_t tree_deadline_us = 5 * ND_SECOND_US;
static constexpr uint64_t slow_deadline_us = 120 * ND_SECOND_US; /* for a tree that exceeded it */
static constexpr uint64_t visit_deadline_us = 5 * ND_SECOND_US;

/* One tree of a sweep. The worker inherits the paths; results come back through shared memory. */
struct tree {
        char id[POD_ID + 1];
        char *path;
};

struct sweep {
        nd_vector(struct tree) trees;
        uint64_t tree_us;             /* time limit per tree */
        struct cri_tree_usage *found; /* shared memory */
        struct nd_worker *worker;     /* nullptr = not running */
};

struct visit {
        struct nd_strings networks;        /* of the sandboxes, in their order; "" = host network */
        struct nd_strings cgroups;         /* of the containers; "" = none */
        struct cri_network_usage *traffic; /* shared memory, one per network */
        struct cri_process_usage *crowds;  /* shared memory, one per cgroup */
        struct nd_worker *worker;
};

struct cri_stats_operation {
        struct cri_stats *stats;
        struct cri_stats_operation *next;
        struct cri_stats_query question;
        struct cri_stats_result answer;
        enum { WAIT, READ } step;
        bool layers_awaited;
        struct visit visit;
        size_t containers_read, sandboxes_read;
        sd_event_source *turn;     /* while reading cgroups */
        sd_event_source *patience; /* while waiting for workers */
        cri_stats_callback callback;
        void *userdata;
};

/* Cached usage of a container's writable layer. */
struct layer {
        struct cri_tree_usage usage;
        bool reported; /* logged that the figure is partial */
};

struct cri_stats {
        sd_event *loop;
        const struct cri_config *config;
        const struct cri_pod_table *pods;
        struct nd_map layers; /* container id -> struct layer * */
        struct sweep sweep;
        struct sweep slow; /* one partial tree */
        struct cri_stats_operation *requests;
};

/* ---- shared memory ---- */

static void *share(size_t size) {
        void *memory = mmap(nullptr, size ?: 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        return memory == MAP_FAILED ? nullptr : memory;
}

static void unshare_memory(void *memory, size_t size) {
        if (memory)
                (void) munmap(memory, size ?: 1);
}

/* ---- requests ---- */

void cri_stats_query_done(struct cri_stats_query *question) {
        nd_strings_done(&question->containers);
        nd_strings_done(&question->sandboxes);
        *question = (struct cri_stats_query) {};
}

static void visit_done(struct visit *visit) {
        nd_worker_cancel(visit->worker);
        unshare_memory(visit->traffic, visit->networks.count * sizeof *visit->traffic);
        unshare_memory(visit->crowds, visit->cgroups.count * sizeof *visit->crowds);
        nd_strings_done(&visit->networks);
        nd_strings_done(&visit->cgroups);
        *visit = (struct visit) {};
}

static void request_free(struct cri_stats_operation *request) {
        struct cri_stats_operation **at = &request->stats->requests;

        for (; *at && *at != request; at = &(*at)->next)
                ;
        if (*at)
                *at = request->next;
        visit_done(&request->visit);
        sd_event_source_disable_unref(request->turn);
        sd_event_source_disable_unref(request->patience);
        cri_stats_query_done(&request->question);
        nd_vector_done(&request->answer.containers);
        nd_vector_done(&request->answer.sandboxes);
        free(request);
}

void cri_stats_query_cancel(struct cri_stats_operation *request) {
        if (request)
                request_free(request);
}

static void answer(struct cri_stats_operation *request) {
        request->callback(&request->answer, request->userdata);
        request_free(request);
}

/* ---- reading cgroups ---- */

static void read_container(struct cri_stats_operation *request, size_t index) {
        struct cri_stats *stats = request->stats;
        const char *id = request->question.containers.items[index];
        const struct cri_container *container = nd_map_get(&stats->pods->containers, id);
        const struct layer *layer = nd_map_get(&stats->layers, id);
        struct cri_container_stats found = {};

        if (!container)
                return;
        memcpy(found.id, container->id, sizeof found.id);
        if (container->state == CONTAINER_RUNNING && *container->cgroup)
                nd_ignore(cri_usage_of_cgroup(container->cgroup, request->question.parts, &found.usage));
        if (layer)
                found.layer = layer->usage;
        if (request->visit.crowds)
                found.processes = request->visit.crowds[index];
        nd_vector_push(&request->answer.containers, found);
}

static void read_sandbox(struct cri_stats_operation *request, size_t index) {
        const char *id = request->question.sandboxes.items[index];
        const struct cri_sandbox *sandbox = nd_map_get(&request->stats->pods->sandboxes, id);
        struct cri_sandbox_stats found = {};

        if (!sandbox)
                return;
        memcpy(found.id, sandbox->id, sizeof found.id);
        if (*sandbox->request.cgroup_parent && sandbox->state == SANDBOX_READY)
                nd_ignore(cri_usage_of_cgroup(sandbox->request.cgroup_parent, request->question.parts, &found.usage));
        if (request->visit.traffic)
                found.network = request->visit.traffic[index];
        nd_vector_push(&request->answer.sandboxes, found);
}

static int on_turn([[maybe_unused]] sd_event_source *source, void *userdata) {
        struct cri_stats_operation *request = userdata;
        const struct cri_stats_query *question = &request->question;

        for (unsigned i = 0; i < AT_ONCE; i++) {
                if (request->containers_read < question->containers.count) {
                        read_container(request, request->containers_read++);
                } else if (request->sandboxes_read < question->sandboxes.count) {
                        read_sandbox(request, request->sandboxes_read++);
                } else {
                        answer(request);
                        return 0;
                }
        }
        return 0;
}

/* Continues once nothing is pending any more. */
static void advance(struct cri_stats_operation *request) {
        if (request->step == READ || request->layers_awaited || request->visit.worker)
                return;
        request->step = READ;
        request->patience = sd_event_source_disable_unref(request->patience);
        if (sd_event_add_defer(request->stats->loop, &request->turn, on_turn, request) < 0 ||
            sd_event_source_set_enabled(request->turn, SD_EVENT_ON) < 0)
                answer(request);
}

static int on_impatience([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct cri_stats_operation *request = userdata;

        request->layers_awaited = false;
        nd_worker_cancel(nd_take_ptr(request->visit.worker)); /* its results so far are used */
        advance(request);
        return 0;
}

/* ---- writable layers ---- */

static void sweep_done(struct sweep *sweep) {
        nd_worker_cancel(nd_take_ptr(sweep->worker));
        unshare_memory(sweep->found, sweep->trees.count * sizeof *sweep->found);
        sweep->found = nullptr;
        nd_vector_each (tree, &sweep->trees)
                free(tree->path);
        nd_vector_done(&sweep->trees);
}

/* The writable layer and the volumes that the image declares: limits on ephemeral storage cover
 * both. */
static void measure(const char *directory, uint64_t tree_us, struct cri_tree_usage *ret) {
        nd_autofree char *upper = nd_format("%s/upper", directory), *volumes = nd_format("%s/volumes", directory);
        nd_autoerror struct nd_error *error = nullptr, *none = nullptr;
        struct cri_tree_usage layer = {}, more = {};

        error = cri_usage_of_tree(AT_FDCWD, upper, tree_us, &layer);
        if (error)
                return;
        none = cri_usage_of_tree(AT_FDCWD, volumes, tree_us, &more);
        layer.bytes += more.bytes;
        layer.inodes += more.inodes;
        layer.partial = layer.partial || more.partial || (none && nd_error_errno(none) != ENOENT);
        *ret = layer;
}

/* In the worker: walks one tree after the other, with the lowest CPU and I/O priority. */
static struct nd_error *walk_trees(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct sweep *sweep = argument;

        (void) setpriority(PRIO_PROCESS, 0, NICE);
        for (size_t i = 0; i < sweep->trees.count; i++)
                measure(sweep->trees.items[i].path, sweep->tree_us, sweep->found + i);
        return nullptr;
}

/* Logged once per container, because it may stay partial for its lifetime. */
static void report_partial(const char *id, struct layer *layer) {
        nd_autofree char *bytes = nullptr;

        if (layer->reported)
                return;
        layer->reported = true;
        bytes = nd_format("%llu", (unsigned long long) layer->usage.bytes);
        nd_log(ND_LOG_WARNING, "measuring the writable layer timed out; the reported usage is too low",
               nd_field("container", id), nd_field("bytes", bytes));
}

/* A partial figure never lowers a cached one. */
static void remember(struct cri_stats *stats, const char *id, const struct cri_tree_usage *found) {
        struct cri_tree_usage before;
        struct layer *layer;

        if (found->at == 0 || !nd_map_has(&stats->pods->containers, id))
                return;
        layer = nd_map_get(&stats->layers, id);
        if (!layer) {
                layer = nd_new(struct layer);
                (void) nd_map_put(&stats->layers, id, layer);
        }
        before = layer->usage;
        layer->usage = *found;
        if (!found->partial)
                return;
        layer->usage.bytes = found->bytes > before.bytes ? found->bytes : before.bytes;
        layer->usage.inodes = found->inodes > before.inodes ? found->inodes : before.inodes;
        report_partial(id, layer);
}

static void take_figures(struct cri_stats *stats, struct sweep *sweep) {
        sweep->worker = nullptr;
        for (size_t i = 0; i < sweep->trees.count; i++)
                remember(stats, sweep->trees.items[i].id, sweep->found + i);
        sweep_done(sweep);
}

/* Drops the figures of removed containers. */
static void forget_the_gone(struct cri_stats *stats) {
        const struct nd_map_slot *slot;
        struct nd_strings gone = {};

        for (size_t at = 0; (slot = nd_map_next(&stats->layers, &at));)
                if (!nd_map_has(&stats->pods->containers, slot->key))
                        nd_strings_add(&gone, slot->key);
        nd_vector_each (id, &gone)
                free(nd_map_remove(&stats->layers, *id));
        nd_strings_done(&gone);
}

static void on_swept(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct cri_stats *stats = userdata;
        struct cri_stats_operation *next;

        nd_error_free(error); /* at the deadline: results found until then are used */
        take_figures(stats, &stats->sweep);
        forget_the_gone(stats);
        for (struct cri_stats_operation *request = stats->requests; request; request = next) {
                next = request->next;
                request->layers_awaited = false;
                advance(request);
        }
}

/* Seconds since the last walk; a very large number if there was none. The layer of an exited
 * container does not change any more. */
static uint64_t age_of(const struct cri_stats *stats, const struct cri_container *container) {
        const struct layer *layer = nd_map_get(&stats->layers, container->id);
        uint64_t time = nd_clock_wall_ns();

        if (!layer)
                return UINT64_MAX;
        if (container->state == CONTAINER_EXITED && layer->usage.at > container->finished_at && !layer->usage.partial)
                return 0;
        return time > layer->usage.at ? (time - layer->usage.at) / 1000 : 0;
}

static bool is_slow(const struct cri_stats *stats, const struct cri_container *container) {
        const struct layer *layer = nd_map_get(&stats->layers, container->id);

        return layer && layer->usage.partial;
}

static bool has_layer(const struct cri_container *container) {
        return !container->internal && (container->made & CONTAINER_MADE_DIRECTORY) != 0 &&
               (container->state == CONTAINER_CREATED || container->state == CONTAINER_RUNNING ||
                container->state == CONTAINER_EXITED);
}

static void sweep_add(struct cri_stats *stats, struct sweep *sweep, const struct cri_container *container) {
        struct tree tree = {.path = cri_path_of_container(stats->config, container)};

        memcpy(tree.id, container->id, sizeof tree.id);
        nd_vector_push(&sweep->trees, tree);
}

static void sweep_start(struct cri_stats *stats, struct sweep *sweep, uint64_t deadline_us, nd_worker_callback callback) {
        sweep->found = sweep->trees.count > 0 ? share(sweep->trees.count * sizeof *sweep->found) : nullptr;
        if (sweep->found)
                nd_ignore(nd_worker_start(stats->loop, "measure writable layers", walk_trees, sweep, deadline_us, callback,
                                          stats, &sweep->worker));
        if (!sweep->worker)
                sweep_done(sweep);
}

static void on_slow([[maybe_unused]] struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct cri_stats *stats = userdata;

        nd_error_free(error);
        take_figures(stats, &stats->slow);
}

/* The oldest partial figure. */
static void start_slow(struct cri_stats *stats) {
        const struct cri_container *oldest = nullptr;
        const struct nd_map_slot *slot;

        if (stats->slow.worker)
                return;
        for (size_t at = 0; (slot = nd_map_next(&stats->pods->containers, &at));) {
                const struct cri_container *container = slot->value;

                if (has_layer(container) && is_slow(stats, container) &&
                    (!oldest || age_of(stats, container) > age_of(stats, oldest)))
                        oldest = container;
        }
        if (!oldest)
                return;
        stats->slow.tree_us = slow_deadline_us;
        sweep_add(stats, &stats->slow, oldest);
        sweep_start(stats, &stats->slow, 2 * slow_deadline_us + sweep_deadline_us, on_slow);
}

static void start_sweep(struct cri_stats *stats) {
        const struct nd_map_slot *slot;

        if (stats->sweep.worker)
                return;
        stats->sweep.tree_us = tree_deadline_us;
        for (size_t at = 0; (slot = nd_map_next(&stats->pods->containers, &at));) {
                const struct cri_container *container = slot->value;

                if (has_layer(container) && !is_slow(stats, container) && age_of(stats, container) >= refresh_us)
                        sweep_add(stats, &stats->sweep, container);
        }
        sweep_start(stats, &stats->sweep, sweep_deadline_us, on_swept);
}

/* Starts a sweep if any figure is due; true if the request must wait for it. */
static bool want_layers(struct cri_stats_operation *request) {
        struct cri_stats *stats = request->stats;
        uint64_t oldest = 0;

        if (!request->question.layers)
                return false;
        nd_vector_each (id, &request->question.containers) {
                const struct cri_container *container = nd_map_get(&stats->pods->containers, *id);
                uint64_t age = container && has_layer(container) ? age_of(stats, container) : 0;

                oldest = age > oldest ? age : oldest;
        }
        if (oldest >= refresh_us) {
                start_sweep(stats);
                start_slow(stats);
        }
        return oldest >= old_us && stats->sweep.worker;
}

/* ---- networks and processes ---- */

static void visit_network(const char *path, struct cri_network_usage *ret) {
        nd_autofree char *text = nullptr;
        nd_autoclose int fd = -EBADF;

        if (*path == '\0')
                return;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || nd_sys->setns(fd, CLONE_NEWNET) < 0)
                return;
        nd_ignore(nd_file_read_kernel("/proc/thread-self/net/dev", NETWORK_TEXT, &text));
        if (text)
                cri_usage_parse_network(text, ret);
}

/* In the worker. */
static struct nd_error *visit_all(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct visit *visit = argument;

        for (size_t i = 0; visit->traffic && i < visit->networks.count; i++)
                visit_network(visit->networks.items[i], visit->traffic + i);
        for (size_t i = 0; visit->crowds && i < visit->cgroups.count; i++)
                if (*visit->cgroups.items[i])
                        nd_ignore(cri_usage_of_processes(visit->cgroups.items[i], visit->crowds + i));
        return nullptr;
}

static void on_visited(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct cri_stats_operation *request = userdata;

        nd_error_free(error);
        request->visit.worker = nullptr;
        advance(request);
}

static void list_networks(struct cri_stats_operation *request) {
        const struct cri_stats *stats = request->stats;
        struct visit *visit = &request->visit;

        nd_vector_each (id, &request->question.sandboxes) {
                const struct cri_sandbox *sandbox = nd_map_get(&stats->pods->sandboxes, *id);
                bool own = sandbox && sandbox->state == SANDBOX_READY && sandbox->request.network == NAMESPACE_POD;
                nd_autofree char *path = own ? cri_path_of_netns(stats->config, sandbox->id) : nd_strdup("");

                nd_strings_add(&visit->networks, path);
        }
        if (visit->networks.count > 0)
                visit->traffic = share(visit->networks.count * sizeof *visit->traffic);
}

static void list_cgroups(struct cri_stats_operation *request) {
        struct visit *visit = &request->visit;

        nd_vector_each (id, &request->question.containers) {
                const struct cri_container *container = nd_map_get(&request->stats->pods->containers, *id);

                nd_strings_add(&visit->cgroups, container && container->state == CONTAINER_RUNNING ? container->cgroup : "");
        }
        if (visit->cgroups.count > 0)
                visit->crowds = share(visit->cgroups.count * sizeof *visit->crowds);
}

static void start_visit(struct cri_stats_operation *request) {
        struct visit *visit = &request->visit;

        if (request->question.networks)
                list_networks(request);
        if (request->question.processes)
                list_cgroups(request);
        if (visit->traffic || visit->crowds)
                nd_ignore(nd_worker_start(request->stats->loop, "read network counters and processes of pods", visit_all,
                                          visit, visit_deadline_us, on_visited, request, &visit->worker));
}

/* ---- module ---- */

void cri_stats_query_start(struct cri_stats *stats, struct cri_stats_query *question, cri_stats_callback callback,
                           void *userdata, struct cri_stats_operation **ret) {
        struct cri_stats_operation *request = nd_new(struct cri_stats_operation);

        *request = (struct cri_stats_operation) {.stats = stats,
                                                 .next = stats->requests,
                                                 .question = nd_take(*question, (struct cri_stats_query) {}),
                                                 .callback = callback,
                                                 .userdata = userdata};
        stats->requests = request;
        request->layers_awaited = want_layers(request);
        start_visit(request);
        if (request->layers_awaited || request->visit.worker)
                (void) sd_event_add_time_relative(stats->loop, &request->patience, CLOCK_MONOTONIC, patience_us, ND_MS_US,
                                                  on_impatience, request);
        if (ret)
                *ret = request;
        advance(request);
}

struct cri_stats *cri_stats_new(sd_event *loop, const struct cri_config *config, const struct cri_pod_table *pods) {
        struct cri_stats *stats = nd_new(struct cri_stats);

        *stats = (struct cri_stats) {.loop = loop, .config = config, .pods = pods};
        return stats;
}

void cri_stats_free(struct cri_stats *stats) {
        const struct nd_map_slot *slot;
        struct cri_stats_operation *next;

        if (!stats)
                return;
        for (struct cri_stats_operation *request = stats->requests; request; request = next) {
                next = request->next;
                request_free(request);
        }
        sweep_done(&stats->sweep);
        sweep_done(&stats->slow);
        for (size_t at = 0; (slot = nd_map_next(&stats->layers, &at));)
                free(slot->value);
        nd_map_done(&stats->layers);
        free(stats);
}
