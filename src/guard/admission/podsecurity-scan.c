/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/admission/podsecurity-scan.h"

#include <string.h>

struct faulty { /* pods with the same faults */
        char *first;
        size_t count;
};

void guard_podsecurity_scan_done(struct guard_podsecurity_scan *census) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&census->faults, &at));) {
                free(((struct faulty *) slot->value)->first);
                free(slot->value);
        }
        nd_map_done(&census->faults);
}

static void note(struct guard_podsecurity_scan *census, const char *reasons, const char *name) {
        struct faulty *faulty = nd_map_get(&census->faults, reasons);

        if (!faulty) {
                faulty = nd_new(struct faulty);
                (void) nd_map_put(&census->faults, reasons, faulty);
        }
        faulty->count++;
        if (!faulty->first || strcmp(name, faulty->first) < 0)
                nd_strset(&faulty->first, name);
}

static void take_one(struct guard_podsecurity_scan *census, yyjson_val *object) {
        nd_autotext reasons = ND_TEXT(ND_PODSECURITY_TEXT);
        struct nd_podsecurity_findings findings;
        struct nd_pod pod = {};
        nd_autoarena arena = {};
        nd_autoerror struct nd_error *error = nd_shape_decode(&nd_pod_shape, object, &arena, &pod);

        if (error || guard_standards_exempt_class(census->standards, pod.spec.runtime_class))
                return;
        census->total++;
        if (census->checked >= GUARD_SCAN_PODS)
                return;
        census->checked++;
        nd_podsecurity_evaluate(&census->rule, &pod, &arena, &findings);
        nd_podsecurity_reasons(&findings, &reasons);
        if (findings.count > 0)
                note(census, nd_text_get(&reasons), nd_or_empty(pod.metadata.name));
}

void guard_podsecurity_scan_add(struct guard_podsecurity_scan *census, yyjson_val *pods) {
        yyjson_arr_iter items = yyjson_arr_iter_with(pods);
        yyjson_val *item;

        while ((item = yyjson_arr_iter_next(&items)))
                take_one(census, item);
}

void guard_podsecurity_scan_skip(struct guard_podsecurity_scan *census, size_t count) {
        census->total += count;
}

static const char *sentence(const struct nd_map_slot *slot, struct nd_arena *arena) {
        const struct faulty *faulty = slot->value;

        if (faulty->count == 1)
                return nd_arena_format(arena, "%s: %s", faulty->first, slot->key);
        return nd_arena_format(arena, "%s (and %zu other pod%s): %s", faulty->first, faulty->count - 1,
                               faulty->count > 2 ? "s" : "", slot->key);
}

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

void guard_podsecurity_scan_report(const struct guard_podsecurity_scan *census, const char *namespace, struct nd_arena *arena,
                                   struct guard_response *answer) {
        const char **texts = nd_arena_alloc(arena, census->faults.count + 1, sizeof *texts);
        const struct nd_map_slot *slot;
        size_t count = 0;

        if (census->checked < census->total)
                guard_response_warn(answer,
                                    nd_arena_format(arena,
                                                    "new PodSecurity enforce level only checked against the first %zu of "
                                                    "%zu existing pods",
                                                    census->checked, census->total));
        if (census->faults.count > 0)
                guard_response_warn(
                        answer,
                        nd_arena_format(arena,
                                        "existing pods in namespace %s violate the new PodSecurity enforce level \"%s\"",
                                        nd_field_text(arena, namespace), guard_standards_rule(&census->rule, arena)));
        for (size_t at = 0; (slot = nd_map_next(&census->faults, &at));)
                texts[count++] = sentence(slot, arena);
        qsort(texts, count, sizeof *texts, compare_texts);
        for (size_t i = 0; i < count; i++)
                guard_response_warn(answer, texts[i]);
}
