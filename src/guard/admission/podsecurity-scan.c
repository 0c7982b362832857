/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/admission/podsecurity-scan.h"

#include <string.h>

/* Pods with the same violations. */
struct violators {
        char *first;
        size_t count;
};

void guard_podsecurity_scan_done(struct guard_podsecurity_scan *scan) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&scan->violations, &at));) {
                free(((struct violators *) slot->value)->first);
                free(slot->value);
        }
        nd_map_done(&scan->violations);
}

static void note(struct guard_podsecurity_scan *scan, const char *reasons, const char *name) {
        struct violators *violators = nd_map_get(&scan->violations, reasons);

        if (!violators) {
                violators = nd_new(struct violators);
                (void) nd_map_put(&scan->violations, reasons, violators);
        }
        violators->count++;
        if (!violators->first || strcmp(name, violators->first) < 0)
                nd_strset(&violators->first, name);
}

static void add_pod(struct guard_podsecurity_scan *scan, yyjson_val *object) {
        nd_autotext struct nd_text reasons = ND_TEXT(ND_PODSECURITY_TEXT);
        struct nd_podsecurity_findings findings;
        struct nd_pod pod = {};
        nd_autoarena struct nd_arena arena = {};
        nd_autoerror struct nd_error *error = nd_shape_decode(&nd_pod_shape, object, &arena, &pod);

        if (error || guard_standards_exempt_class(scan->standards, pod.spec.runtime_class))
                return;
        scan->total++;
        if (scan->checked >= GUARD_SCAN_PODS)
                return;
        scan->checked++;
        nd_podsecurity_evaluate(&scan->rule, &pod, &arena, &findings);
        nd_podsecurity_reasons(&findings, &reasons);
        if (findings.count > 0)
                note(scan, nd_text_get(&reasons), nd_kube_or_empty(pod.metadata.name));
}

void guard_podsecurity_scan_add(struct guard_podsecurity_scan *scan, yyjson_val *pods) {
        yyjson_arr_iter items = yyjson_arr_iter_with(pods);
        yyjson_val *item;

        while ((item = yyjson_arr_iter_next(&items)))
                add_pod(scan, item);
}

void guard_podsecurity_scan_skip(struct guard_podsecurity_scan *scan, size_t count) {
        scan->total += count;
}

static const char *sentence(const struct nd_map_slot *slot, struct nd_arena *arena) {
        const struct violators *violators = slot->value;

        if (violators->count == 1)
                return nd_arena_format(arena, "%s: %s", violators->first, slot->key);
        return nd_arena_format(arena, "%s (and %zu other pod%s): %s", violators->first, violators->count - 1,
                               violators->count > 2 ? "s" : "", slot->key);
}

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

void guard_podsecurity_scan_report(const struct guard_podsecurity_scan *scan, const char *namespace, struct nd_arena *arena,
                                   struct guard_response *response) {
        const char **texts = nd_arena_alloc(arena, scan->violations.count + 1, sizeof *texts);
        const struct nd_map_slot *slot;
        size_t count = 0;

        if (scan->checked < scan->total)
                guard_response_warn(response,
                                    nd_arena_format(arena,
                                                    "new PodSecurity enforce level only checked against the first %zu of "
                                                    "%zu existing pods",
                                                    scan->checked, scan->total));
        if (scan->violations.count > 0)
                guard_response_warn(
                        response,
                        nd_arena_format(arena,
                                        "existing pods in namespace %s violate the new PodSecurity enforce level \"%s\"",
                                        nd_field_text(arena, namespace), guard_standards_rule(&scan->rule, arena)));
        for (size_t at = 0; (slot = nd_map_next(&scan->violations, &at));)
                texts[count++] = sentence(slot, arena);
        qsort(texts, count, sizeof *texts, compare_texts);
        for (size_t i = 0; i < count; i++)
                guard_response_warn(response, texts[i]);
}
