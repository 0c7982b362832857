/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - nodens' user namespace manager behind JSON lines
 *
 * Uses the protocol of tests/peers/oracle/main.go, which sends the same queries to the kubelet's
 * own code; tests/component/userns/oracle.py compares the answers. One object per line in, one out;
 * "error" is a refusal by the code under test, an invalid query ends the program. Two answers have
 * more than the oracle's: "state" also has the pods in quarantine, the reasons, and their blocks;
 * and "range" the source of the range. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "userns/manager.h"

enum { ANSWER_CEILING = 16 << 20 };

static struct nd_userns_manager *manager;

[[noreturn]] static void die(const char *what) {
        fprintf(stderr, "driver: %s\n", what);
        exit(EXIT_FAILURE);
}

static const char *text_of(yyjson_val *question, const char *key) {
        const char *text = yyjson_get_str(yyjson_obj_get(question, key));

        if (!text)
                die(key);
        return text;
}

static int64_t number_of(yyjson_val *question, const char *key) {
        yyjson_val *value = yyjson_obj_get(question, key);

        if (!yyjson_is_int(value))
                die(key);
        return yyjson_get_sint(value);
}

static struct nd_error *answer_range(struct nd_error *error, struct nd_userns_range range, struct nd_json_out *out) {
        if (error)
                return error;
        nd_json_number(out, "first", range.first);
        nd_json_number(out, "count", range.count);
        return nullptr;
}

static struct nd_error *op_open(yyjson_val *question, struct nd_json_out *) {
        struct nd_userns_settings settings = {
                .kubelet_root = text_of(question, "root"),
                .ids_per_pod = (uint32_t) number_of(question, "idsPerPod"),
                .max_pods = (uint32_t) number_of(question, "maxPods"),
                .range = {.first = (uint32_t) number_of(question, "first"), .count = (uint32_t) number_of(question, "count")},
        };

        nd_userns_manager_done(&manager);
        return nd_userns_manager_open(&settings, &manager);
}

static struct nd_error *op_get(yyjson_val *question, struct nd_json_out *out) {
        struct nd_userns_range range = {};
        struct nd_error *error = nd_userns_manager_get(manager, text_of(question, "pod"), &range);

        return answer_range(error, range, out);
}

static struct nd_error *op_release(yyjson_val *question, struct nd_json_out *) {
        return nd_userns_manager_release(manager, text_of(question, "pod"));
}

static struct nd_error *op_sweep(yyjson_val *question, struct nd_json_out *) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        yyjson_arr_iter uids = yyjson_arr_iter_with(yyjson_obj_get(question, "alive"));
        yyjson_val *uid;

        while ((uid = yyjson_arr_iter_next(&uids)))
                (void) nd_map_put(&alive, yyjson_get_str(uid), nullptr);
        return nd_userns_manager_sweep(manager, &alive);
}

static void write_good(const struct nd_userns_pod *pod, void *userdata) {
        if (!pod->problem)
                nd_json_number(userdata, pod->uid, pod->extents[0].first);
}

static void write_quarantined(const struct nd_userns_pod *pod, void *userdata) {
        struct nd_json_out *out = userdata;

        if (!pod->problem)
                return;
        nd_json_open(out, pod->uid, '{');
        nd_json_string(out, "problem", pod->problem);
        nd_json_open(out, "claims", '[');
        for (size_t i = 0; i < pod->extent_count; i++) {
                nd_json_open(out, nullptr, '[');
                nd_json_number(out, nullptr, pod->extents[i].first);
                nd_json_number(out, nullptr, pod->extents[i].count);
                nd_json_close(out, ']');
        }
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static struct nd_error *op_state(yyjson_val *, struct nd_json_out *out) {
        nd_json_open(out, "pods", '{');
        nd_userns_manager_each(manager, write_good, out);
        nd_json_close(out, '}');
        nd_json_open(out, "quarantine", '{');
        nd_userns_manager_each(manager, write_quarantined, out);
        nd_json_close(out, '}');
        nd_json_number(out, "free", nd_userns_manager_count(manager).free);
        nd_json_number(out, "usable", nd_userns_manager_count(manager).usable);
        return nullptr;
}

static struct nd_error *op_subids(yyjson_val *question, struct nd_json_out *out) {
        const char *hex = text_of(question, "hex");
        nd_autofree char *bytes = nd_calloc(strlen(hex) / 2 + 1, 1);
        struct nd_userns_range range = {};

        for (size_t i = 0; hex[2 * i] != '\0'; i++) {
                unsigned byte;

                if (sscanf(hex + 2 * i, "%2x", &byte) != 1 || byte == 0)
                        die("hex");
                bytes[i] = (char) byte;
        }
        return answer_range(nd_range_parse(bytes, &range), range, out);
}

static struct nd_error *op_ids_per_pod(yyjson_val *question, struct nd_json_out *) {
        return nd_userns_ids_per_pod_check(number_of(question, "value"));
}

static struct nd_error *op_range(yyjson_val *question, struct nd_json_out *out) {
        static const char *const names[] = {
                [ND_RANGE_DEFAULT] = "default", [ND_RANGE_SUBIDS] = "subids", [ND_RANGE_NO_GETSUBIDS] = "no getsubids"};
        enum nd_range_source source;
        struct nd_userns_range range = {};

        nd_try(nd_range_of_node((uint32_t) number_of(question, "idsPerPod"), &range, &source));
        nd_json_string(out, "source", names[source]);
        return answer_range(nullptr, range, out);
}

static const struct {
        const char *name;
        struct nd_error *(*function)(yyjson_val *question, struct nd_json_out *out);
        bool on_manager;
} operations[] = {
        {"open", op_open, false},
        {"get", op_get, true},
        {"release", op_release, true},
        {"sweep", op_sweep, true},
        {"state", op_state, true},
        {"subids", op_subids, false},
        {"idsPerPod", op_ids_per_pod, false},
        {"range", op_range, false},
};

static void answer(const char *line, size_t length) {
        nd_autojson yyjson_doc *doc = yyjson_read(line, length, YYJSON_READ_NOFLAG);
        nd_autoerror struct nd_error *error = nullptr;
        nd_autotext struct nd_text text = ND_TEXT(ANSWER_CEILING);
        struct nd_json_out out = {.text = &text, .first = true};
        yyjson_val *question = yyjson_doc_get_root(doc);
        const char *name = text_of(question, "op");
        size_t i = 0;

        while (i < nd_count_of(operations) && !nd_streq(operations[i].name, name))
                i++;
        if (i == nd_count_of(operations) || (operations[i].on_manager && !manager))
                die(name);
        nd_json_open(&out, nullptr, '{');
        error = operations[i].function(question, &out);
        if (error)
                nd_json_string(&out, "error", nd_error_text(error));
        nd_json_close(&out, '}');
        puts(nd_text_get(&text));
        fflush(stdout);
}

int main(void) {
        char *line = nullptr;
        size_t capacity = 0;
        ssize_t length;

        while ((length = getline(&line, &capacity, stdin)) > 0)
                answer(line, (size_t) length);
        free(line);
        nd_userns_manager_done(&manager);
        return EXIT_SUCCESS;
}
