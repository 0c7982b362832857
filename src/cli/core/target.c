/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/target.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "cli/core/similar.h"
#include "cli/output/sanitize.h"

enum {
        PARTS = 3,
        LIST_TEXT = 8 << 10,
};

/* A name, split at its slashes. */
struct words {
        char *text;
        const char *part[PARTS];
        size_t count;
};

static void words_done(struct words *words) {
        free(words->text);
}

static struct nd_error *cut(const char *name, struct words *ret) {
        char *at = nd_strdup(name), *slash;

        ret->text = at;
        do {
                slash = strchr(at, '/');
                if (slash)
                        *slash++ = '\0';
                if (ret->count == PARTS || *at == '\0')
                        return nd_error_new(ND_INVALID, 0, "invalid name '%s': use [NAMESPACE/]POD[/CONTAINER]", name);
                ret->part[ret->count++] = at;
                at = slash;
        } while (at);
        return nullptr;
}

/* ---- matching ---- */

enum fit {
        FIT_NONE,
        FIT_PREFIX, /* the beginning of a name or ID */
        FIT_WHOLE,
};

/* How well a container matches a name. */
enum rank {
        RANK_NONE,
        RANK_POD_PREFIX,
        RANK_CONTAINER_PREFIX, /* of a pod that is named in full */
        RANK_WHOLE,
};

static enum fit best(enum fit a, enum fit b) {
        if (a > b)
                return a;
        return b;
}

static enum fit fit_name(const char *word, const char *name) {
        if (nd_streq(word, name))
                return FIT_WHOLE;
        return *word && nd_has_prefix(name, word) ? FIT_PREFIX : FIT_NONE;
}

static enum fit fit_id(const char *word, const char *id) {
        return strlen(word) < TARGET_ID_PREFIX ? FIT_NONE : fit_name(word, id);
}

static enum fit fit_pod(const Nodens__V1__PodEntry *pod, const char *namespace, const char *word) {
        if (namespace)
                return nd_streq(pod->namespace_, namespace) ? fit_name(word, pod->name) : FIT_NONE;
        return best(fit_name(word, pod->name), best(fit_id(word, pod->uid), fit_id(word, pod->id)));
}

static enum rank rank_of(enum fit pod, enum fit container) {
        if (pod == FIT_NONE || container == FIT_NONE)
                return RANK_NONE;
        if (pod == FIT_PREFIX)
                return RANK_POD_PREFIX;
        return container == FIT_PREFIX ? RANK_CONTAINER_PREFIX : RANK_WHOLE;
}

/* option is the name of the container if it was given separately. */
static enum rank rank_container(const struct words *words, const char *option, const Nodens__V1__PodEntry *pod,
                                const Nodens__V1__ContainerEntry *container) {
        const char *const *part = words->part;
        enum fit wanted = option ? fit_name(option, container->name) : FIT_WHOLE, named;
        enum rank by_pod, by_container;

        if (wanted == FIT_NONE)
                return RANK_NONE;
        if (words->count == 1) {
                by_pod = rank_of(fit_pod(pod, nullptr, part[0]), wanted);
                by_container = rank_of(fit_id(part[0], container->id), wanted);
                return by_pod > by_container ? by_pod : by_container;
        }
        named = fit_name(part[words->count - 1], container->name);
        named = named < wanted ? named : wanted;
        if (words->count == 3)
                return rank_of(fit_pod(pod, part[0], part[1]), named);
        by_pod = rank_of(fit_pod(pod, part[0], part[1]), wanted);
        by_container = rank_of(fit_pod(pod, nullptr, part[0]), named);
        return by_pod > by_container ? by_pod : by_container;
}

/* ---- pods ---- */

static bool same_pod(const Nodens__V1__PodEntry *a, const Nodens__V1__PodEntry *b) {
        return nd_streq(a->namespace_, b->namespace_) && nd_streq(a->name, b->name);
}

char *cli_target_pod_name(const Nodens__V1__PodEntry *pod) {
        nd_autofree char *namespace = cli_sanitize_text(pod->namespace_), *name = cli_sanitize_text(pod->name);

        return nd_format("%s/%s", namespace, name);
}

static int newest_first(const void *a, const void *b) {
        const Nodens__V1__PodEntry *const *left = a, *const *right = b;

        return (int) ((*left)->created_at < (*right)->created_at) - (int) ((*left)->created_at > (*right)->created_at);
}

static void add_name(struct nd_text *list, size_t number, size_t most, const char *name) {
        if (number < most)
                nd_text_addf(list, "%s%s", number > 0 ? ", " : "", name);
        else if (number == most)
                nd_text_add(list, ", and more");
}

static bool is_similar(const struct words *words, const Nodens__V1__PodEntry *pod) {
        for (size_t i = 0; i < words->count; i++)
                if (cli_similar(words->part[i], pod->name))
                        return true;
        return false;
}

/* Whether an earlier entry is another sandbox of the same pod. */
static bool is_repeated(const Nodens__V1__PodEntry *const *pods, size_t number) {
        for (size_t i = 0; i < number; i++)
                if (same_pod(pods[number], pods[i]))
                        return true;
        return false;
}

/* No object has the name; lists pods with similar names. */
static struct nd_error *not_found(const Nodens__V1__PodsAnswer *answer, const char *kind, const char *name,
                                  const struct words *words) {
        nd_autotext struct nd_text list = ND_TEXT(LIST_TEXT);
        size_t number = 0;

        for (size_t i = 0; i < answer->n_pods; i++) {
                nd_autofree char *text = cli_target_pod_name(answer->pods[i]);

                if (!is_repeated((const Nodens__V1__PodEntry *const *) answer->pods, i) && is_similar(words, answer->pods[i]))
                        add_name(&list, number++, TARGET_SIMILAR, text);
        }
        return nd_error_new(ND_NOT_FOUND, 0, "no %s named '%s'%s%s; see 'nodens pods'", kind, name,
                            number > 0 ? "; similar: " : "", nd_text_get(&list));
}

/* Checks that the matches, at least one, belong to one pod. */
static struct nd_error *require_one_pod(const struct cli_target_pods *pods, const char *name) {
        nd_autotext struct nd_text list = ND_TEXT(LIST_TEXT);
        size_t number = 0;

        for (size_t i = 0; i < pods->count; i++) {
                nd_autofree char *text = cli_target_pod_name(pods->items[i]);

                if (!is_repeated(pods->items, i))
                        add_name(&list, number++, TARGET_LISTED, text);
        }
        if (number > 1)
                return nd_error_new(ND_INVALID, 0, "'%s' is ambiguous; it matches several pods: %s", name, nd_text_get(&list));
        return nullptr;
}

static enum fit fit_words(const struct words *words, const Nodens__V1__PodEntry *pod) {
        return words->count == 1 ? fit_pod(pod, nullptr, words->part[0]) : fit_pod(pod, words->part[0], words->part[1]);
}

/* Pods that are named in full or, if there are none, by the beginning of their names. */
static void collect_pods(const Nodens__V1__PodsAnswer *answer, const struct words *words, enum cli_target_names names,
                         struct cli_target_pods *ret) {
        enum fit found = FIT_NONE;

        for (size_t i = 0; i < answer->n_pods; i++)
                found = best(found, fit_words(words, answer->pods[i]));
        for (size_t i = 0; found != FIT_NONE && i < answer->n_pods; i++) {
                const Nodens__V1__PodEntry *pod = answer->pods[i];
                bool by_id = words->count == 1 && best(fit_id(words->part[0], pod->uid), fit_id(words->part[0], pod->id));

                if (fit_words(words, pod) == found && (found == FIT_WHOLE || names == TARGET_NAMES_PREFIX || by_id))
                        nd_vector_push(ret, pod);
        }
}

struct nd_error *cli_target_pod(const Nodens__V1__PodsAnswer *answer, const char *name, enum cli_target_names names,
                                struct cli_target_pods *ret) {
        nd_cleanup(words_done) struct words words = {};
        struct nd_error *error;
        struct cli_target_pods pods = {};

        nd_try(cut(name, &words));
        if (words.count > 2)
                return nd_error_new(ND_INVALID, 0, "invalid pod name '%s': use NAMESPACE/POD", name);
        collect_pods(answer, &words, names, &pods);
        error = pods.count > 0 ? require_one_pod(&pods, name) : not_found(answer, "pod", name, &words);
        if (error) {
                nd_vector_done(&pods);
                return error;
        }
        nd_assert(pods.items);
        qsort(pods.items, pods.count, sizeof *pods.items, newest_first);
        *ret = pods;
        return nullptr;
}

/* ---- containers ---- */

struct targets { /* see base/vector.h */
        struct cli_target *items;
        size_t count, capacity;
};

static int newest_container_first(const void *a, const void *b) {
        const struct cli_target *left = a, *right = b;
        uint64_t l = left->container->created_at, r = right->container->created_at;

        return (int) (l < r) - (int) (l > r);
}

static void collect(const Nodens__V1__PodsAnswer *answer, const struct words *words, const char *container_name,
                    struct targets *ret) {
        enum rank best_rank = RANK_NONE, rank;

        for (size_t i = 0; i < answer->n_pods; i++) {
                const Nodens__V1__PodEntry *pod = answer->pods[i];

                for (size_t c = 0; c < pod->n_containers; c++) {
                        rank = rank_container(words, container_name, pod, pod->containers[c]);
                        if (rank > best_rank)
                                ret->count = 0;
                        if (rank == RANK_NONE || rank < best_rank)
                                continue;
                        best_rank = rank;
                        nd_vector_push(ret, ((struct cli_target) {pod, pod->containers[c]}));
                }
        }
        if (ret->count > 1)
                qsort(ret->items, ret->count, sizeof *ret->items, newest_container_first);
}

static bool same_container(const struct cli_target *a, const struct cli_target *b) {
        return same_pod(a->pod, b->pod) && nd_streq(a->container->name, b->container->name);
}

static struct nd_error *require_one_container(const struct targets *found, const char *name) {
        nd_autotext struct nd_text list = ND_TEXT(LIST_TEXT);
        size_t number = 0;

        for (size_t i = 0; i < found->count; i++) {
                nd_autofree char *pod = cli_target_pod_name(found->items[i].pod),
                                 *container = cli_sanitize_text(found->items[i].container->name),
                                 *text = nd_format("%s/%s", pod, container);
                bool listed = false;

                for (size_t j = 0; j < i; j++)
                        listed = listed || same_container(&found->items[i], &found->items[j]);
                if (!listed)
                        add_name(&list, number++, TARGET_LISTED, text);
        }
        if (number > 1)
                return nd_error_new(ND_INVALID, 0, "'%s' is ambiguous; it matches several containers: %s", name,
                                    nd_text_get(&list));
        return nullptr;
}

/* How well a pod matches a name in which a container may follow. */
static enum fit fit_pod_of(const struct words *words, const Nodens__V1__PodEntry *pod) {
        const char *const *part = words->part;

        if (words->count == 1)
                return fit_pod(pod, nullptr, part[0]);
        return best(fit_pod(pod, part[0], part[1]), words->count == 2 ? fit_pod(pod, nullptr, part[0]) : FIT_NONE);
}

static struct nd_error *no_container(const Nodens__V1__PodEntry *pod) {
        nd_autotext struct nd_text list = ND_TEXT(LIST_TEXT);
        nd_autofree char *text = cli_target_pod_name(pod), *name = cli_sanitize_text(pod->name);
        size_t number = 0;

        for (size_t c = 0; c < pod->n_containers; c++) {
                nd_autofree char *container = cli_sanitize_text(pod->containers[c]->name);
                bool listed = false;

                for (size_t j = 0; j < c; j++)
                        listed = listed || nd_streq(pod->containers[c]->name, pod->containers[j]->name);
                if (!listed)
                        add_name(&list, number++, TARGET_LISTED, container);
        }
        if (list.length == 0)
                return nd_error_new(ND_NOT_FOUND, 0,
                                    "pod %s has no containers; 'journalctl -u nodens-cri POD=%s' shows requests that failed",
                                    text, name);
        return nd_error_new(ND_NOT_FOUND, 0, "pod %s has no such container; it has %s", text, nd_text_get(&list));
}

/* Explains a name without matches: does the pod not exist, or the container in it? */
static struct nd_error *explain_absence(const Nodens__V1__PodsAnswer *answer, const char *name, const struct words *words) {
        for (enum fit wanted = FIT_WHOLE; wanted > FIT_NONE; wanted--)
                for (size_t i = 0; i < answer->n_pods; i++)
                        if (fit_pod_of(words, answer->pods[i]) == wanted)
                                return no_container(answer->pods[i]);
        return not_found(answer, "pod or container", name, words);
}

static struct nd_error *choose(const struct targets *found, const char *name, bool previous, struct cli_target *ret) {
        nd_try(require_one_container(found, name));
        if (previous && found->count < 2)
                return nd_error_new(ND_NOT_FOUND, 0,
                                    "'%s' has no previous container: it was not restarted, "
                                    "or the previous one was removed",
                                    name);
        *ret = found->items[previous ? 1 : 0];
        return nullptr;
}

struct nd_error *cli_target_container(const Nodens__V1__PodsAnswer *answer, const char *name, const char *container_name,
                                      bool previous, struct cli_target *ret) {
        nd_cleanup(words_done) struct words words = {};
        struct nd_error *error;
        struct targets found = {};

        nd_try(cut(name, &words));
        collect(answer, &words, container_name, &found);
        error = found.count > 0 ? choose(&found, name, previous, ret) : explain_absence(answer, name, &words);
        nd_vector_done(&found);
        return error;
}
