/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/target.h"

#include <string.h>

#include "base/text.h"
#include "cli/core/sanitize.h"

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

static bool is_prefix_of_id(const char *word, const char *id) {
        return strlen(word) >= TARGET_ID_PREFIX && nd_has_prefix(id, word);
}

static bool is_pod(const Nodens__V1__PodEntry *pod, const char *namespace, const char *word) {
        if (namespace)
                return nd_streq(pod->namespace_, namespace) && nd_streq(pod->name, word);
        return nd_streq(pod->name, word) || nd_streq(pod->uid, word) || is_prefix_of_id(word, pod->id);
}

static bool fits(const struct words *words, const Nodens__V1__PodEntry *pod, const Nodens__V1__ContainerEntry *container) {
        switch (words->count) {
        case 1:
                return is_pod(pod, nullptr, words->part[0]) || is_prefix_of_id(words->part[0], container->id);
        case 2:
                return is_pod(pod, words->part[0], words->part[1]) ||
                       (is_pod(pod, nullptr, words->part[0]) && nd_streq(container->name, words->part[1]));
        default:
                return is_pod(pod, words->part[0], words->part[1]) && nd_streq(container->name, words->part[2]);
        }
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

static void add_name(struct nd_text *list, size_t number, const char *name) {
        if (number < TARGET_LISTED)
                nd_text_addf(list, "%s%s", number > 0 ? ", " : "", name);
        else if (number == TARGET_LISTED)
                nd_text_add(list, ", and more");
}

/* Checks that all matches belong to one pod. */
static struct nd_error *require_one_pod(const struct cli_target_pods *pods, const char *name) {
        nd_autotext struct nd_text list = ND_TEXT(LIST_TEXT);
        size_t number = 0;

        for (size_t i = 0; i < pods->count; i++) {
                nd_autofree char *text = cli_target_pod_name(pods->items[i]);
                bool listed = false;

                for (size_t j = 0; j < i; j++)
                        listed = listed || same_pod(pods->items[i], pods->items[j]);
                if (!listed)
                        add_name(&list, number++, text);
        }
        if (number == 0)
                return nd_error_new(ND_NOT_FOUND, 0, "no pod named '%s'; see 'nodens pods'", name);
        if (number > 1)
                return nd_error_new(ND_INVALID, 0, "'%s' is ambiguous; it matches several pods: %s", name, nd_text_get(&list));
        return nullptr;
}

struct nd_error *cli_target_pod(const Nodens__V1__PodsAnswer *answer, const char *name, struct cli_target_pods *ret) {
        nd_cleanup(words_done) struct words words = {};
        struct nd_error *error;
        struct cli_target_pods pods = {};

        nd_try(cut(name, &words));
        if (words.count > 2)
                return nd_error_new(ND_INVALID, 0, "invalid pod name '%s': use NAMESPACE/POD", name);
        for (size_t i = 0; i < answer->n_pods; i++)
                if (words.count == 1 ? is_pod(answer->pods[i], nullptr, words.part[0])
                                     : is_pod(answer->pods[i], words.part[0], words.part[1]))
                        nd_vector_push(&pods, answer->pods[i]);
        error = require_one_pod(&pods, name);
        if (error) {
                nd_vector_done(&pods);
                return error;
        }
        if (pods.count > 1)
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
        for (size_t i = 0; i < answer->n_pods; i++) {
                const Nodens__V1__PodEntry *pod = answer->pods[i];

                for (size_t c = 0; c < pod->n_containers; c++)
                        if (fits(words, pod, pod->containers[c]) &&
                            (!container_name || nd_streq(container_name, pod->containers[c]->name)))
                                nd_vector_push(ret, ((struct cli_target) {pod, pod->containers[c]}));
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
                        add_name(&list, number++, text);
        }
        if (number > 1)
                return nd_error_new(ND_INVALID, 0, "'%s' is ambiguous; it matches several containers: %s", name,
                                    nd_text_get(&list));
        return nullptr;
}

/* Explains a name without matches: does the pod not exist, or the container in it? */
static struct nd_error *explain_absence(const Nodens__V1__PodsAnswer *answer, const char *name, const struct words *words) {
        for (size_t i = 0; i < answer->n_pods; i++) {
                const Nodens__V1__PodEntry *pod = answer->pods[i];
                nd_autofree char *text = cli_target_pod_name(pod);
                nd_autotext struct nd_text list = ND_TEXT(LIST_TEXT);

                if (!(words->count == 1 ? is_pod(pod, nullptr, words->part[0])
                      : words->count == 3
                              ? is_pod(pod, words->part[0], words->part[1])
                              : is_pod(pod, nullptr, words->part[0]) || is_pod(pod, words->part[0], words->part[1])))
                        continue;
                for (size_t c = 0; c < pod->n_containers; c++) {
                        nd_autofree char *container = cli_sanitize_text(pod->containers[c]->name);

                        add_name(&list, c, container);
                }
                return nd_error_new(ND_NOT_FOUND, 0, "pod %s has no such container%s%s", text,
                                    list.length > 0 ? "; it has " : "; it has none", nd_text_get(&list));
        }
        return nd_error_new(ND_NOT_FOUND, 0, "no pod or container named '%s'; see 'nodens pods'", name);
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
