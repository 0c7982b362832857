/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/text.h"
#include "cri/core/config.h"
#include "cri/core/paths.h"
#include "cri/stats/stats.h"
#include "sys/cgroup.h"
#include "sys/file.h"

struct fixture {
        char *root;
        sd_event *loop;
        struct cri_config config;
        struct cri_pod_table pods;
        struct cri_stats *stats;
        struct cri_sandbox *sandbox;
        char *cgroup; /* shared by all containers of the test */
        unsigned answers;
        struct cri_stats_result last;
};

static void replace(char **field, char *value) {
        free(*field);
        *field = value;
}

static void set_up(struct fixture *f) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};

        *f = (struct fixture) {.root = scratch_make()};
        cri_config_init(&f->config);
        replace(&f->config.state, nd_format("%s/state", f->root));
        assert_true(sd_event_new(&f->loop) >= 0);
        f->stats = cri_stats_new(f->loop, &f->config, &f->pods);
        expect_ok(nd_cgroup_discover(&cgroup));
        f->cgroup = cgroup.own ? nd_strdup(cgroup.own) : nd_strdup("/none");
        f->sandbox = nd_new(struct cri_sandbox);
        cri_pod_table_new_id(f->sandbox->id);
        f->sandbox->state = SANDBOX_READY;
        f->sandbox->request.cgroup_parent = nd_strdup(f->cgroup);
        f->sandbox->request.network = NAMESPACE_NODE;
        cri_pod_table_add_sandbox(&f->pods, f->sandbox);
}

static struct cri_container *add(struct fixture *f, size_t bytes) {
        struct cri_container *container = nd_new(struct cri_container);
        nd_autofree char *directory = nullptr, *upper = nullptr, *name = nullptr, *zeros = nd_calloc(1, bytes + 1);

        cri_pod_table_new_id(container->id);
        container->sandbox = f->sandbox;
        container->state = CONTAINER_RUNNING;
        container->made = CONTAINER_MADE_DIRECTORY;
        container->cgroup = nd_strdup(f->cgroup);
        cri_pod_table_add_container(&f->pods, container);
        directory = cri_path_of_container(&f->config, container);
        upper = nd_format("%s/upper", directory + strlen(f->root) + 1);
        scratch_mkdir(f->root, upper);
        name = nd_format("%s/file", upper);
        memset(zeros, 'x', bytes);
        scratch_write(f->root, name, zeros, bytes);
        return container;
}

static void answer_done(struct cri_stats_result *answer) {
        nd_vector_done(&answer->containers);
        nd_vector_done(&answer->sandboxes);
}

static void tear_down(struct fixture *f) {
        cri_stats_free(f->stats);
        cri_pod_table_done(&f->pods);
        sd_event_unref(f->loop);
        cri_config_done(&f->config);
        answer_done(&f->last);
        free(f->cgroup);
        scratch_remove(&f->root);
}

static void on_answer(const struct cri_stats_result *answer, void *userdata) {
        struct fixture *f = userdata;

        f->answers++;
        answer_done(&f->last);
        nd_vector_each (item, &answer->containers)
                nd_vector_push(&f->last.containers, *item);
        nd_vector_each (item, &answer->sandboxes)
                nd_vector_push(&f->last.sandboxes, *item);
}

static struct cri_stats_operation *ask(struct fixture *f, bool layers) {
        struct cri_stats_query question = {.parts = USAGE_CPU | USAGE_MEMORY, .layers = layers, .networks = true};
        struct cri_stats_operation *request = nullptr;
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&f->pods.containers, &at));)
                nd_strings_add(&question.containers, slot->key);
        nd_strings_add(&question.containers, "absent");
        nd_strings_add(&question.sandboxes, f->sandbox->id);
        cri_stats_query_start(f->stats, &question, on_answer, f, &request);
        assert_int_equal(question.containers.count, 0);
        return request;
}

static void await_answers(struct fixture *f, unsigned answers) {
        uint64_t end = nd_clock_us() + 60 * ND_SECOND_US;

        while (f->answers < answers && nd_clock_us() < end)
                assert_true(sd_event_run(f->loop, 100 * ND_MS_US) >= 0);
        assert_int_equal(f->answers, answers);
}

/* On a slow host the container's layer may not be measured yet when the response is due: retry. */
static void ask_until_measured(struct fixture *f) {
        uint64_t end = nd_clock_us() + 60 * ND_SECOND_US;

        do {
                (void) ask(f, true);
                await_answers(f, f->answers + 1);
                assert_int_equal(f->last.containers.count, 1); /* the absent one is left out */
        } while (f->last.containers.items[0].layer.at == 0 && nd_clock_us() < end);
}

static void a_query_returns_the_existing_objects([[maybe_unused]] void **state) {
        struct cri_container *container;
        struct fixture f;

        set_up(&f);
        if (nd_streq(f.cgroup, "/none")) {
                tear_down(&f);
                skip_because("no cgroup v2");
        }
        container = add(&f, 100000);
        ask_until_measured(&f);
        assert_string_equal(f.last.containers.items[0].id, container->id);
        assert_true(f.last.containers.items[0].usage.at > 0);
        assert_true(f.last.containers.items[0].layer.at > 0);
        assert_true(f.last.containers.items[0].layer.bytes >= 100000);
        assert_int_equal(f.last.containers.items[0].layer.inodes, 2);
        assert_int_equal(f.last.sandboxes.count, 1);
        assert_true(f.last.sandboxes.items[0].usage.at > 0);
        /* the host's network is not the pod's */
        assert_int_equal(f.last.sandboxes.items[0].network.at, 0);
        tear_down(&f);
}

static void a_recent_measurement_is_not_repeated([[maybe_unused]] void **state) {
        nd_autofree char *directory = nullptr, *name = nullptr;
        struct cri_container *container;
        uint64_t first;
        struct fixture f;

        set_up(&f);
        container = add(&f, 1000);
        ask_until_measured(&f);
        first = f.last.containers.items[0].layer.at;
        directory = cri_path_of_container(&f.config, container);
        name = nd_format("%s/upper/more", directory + strlen(f.root) + 1);
        scratch_write(f.root, name, "x", 1);
        ask_until_measured(&f);
        assert_true(f.last.containers.items[0].layer.at == first);
        assert_int_equal(f.last.containers.items[0].layer.inodes, 2);
        tear_down(&f);
}

static void image_volumes_count_as_disk_usage([[maybe_unused]] void **state) {
        nd_autofree char *directory = nullptr, *volume = nullptr, *name = nullptr;
        struct cri_container *container;
        struct fixture f;

        set_up(&f);
        container = add(&f, 1000);
        directory = cri_path_of_container(&f.config, container);
        volume = nd_format("%s/volumes/0", directory + strlen(f.root) + 1);
        scratch_mkdir(f.root, volume);
        name = nd_format("%s/file", volume);
        scratch_write(f.root, name, "x", 1);
        ask_until_measured(&f);
        /* upper and its file, volumes, 0 and its file */
        assert_int_equal(f.last.containers.items[0].layer.inodes, 5);
        tear_down(&f);
}

static void a_container_removed_meanwhile_is_left_out([[maybe_unused]] void **state) {
        struct cri_container *container;
        struct fixture f;

        set_up(&f);
        container = add(&f, 1000);
        (void) add(&f, 1000);
        (void) ask(&f, true);
        cri_pod_table_drop_container(&f.pods, container);
        await_answers(&f, 1);
        assert_int_equal(f.last.containers.count, 1);
        tear_down(&f);
}

static void a_cancelled_query_calls_no_callback([[maybe_unused]] void **state) {
        size_t descriptors = resources_descriptors();
        struct fixture f;

        set_up(&f);
        (void) add(&f, 1000);
        cri_stats_query_cancel(ask(&f, true));
        (void) ask(&f, false);
        await_answers(&f, 1);
        (void) ask(&f, true); /* not waited for */
        cri_stats_free(nd_take_ptr(f.stats));
        for (uint64_t end = nd_clock_us() + 60 * ND_SECOND_US; resources_has_children() && nd_clock_us() < end;)
                (void) sd_event_run(f.loop, 10 * ND_MS_US); /* reaps killed workers */
        tear_down(&f);
        assert_int_equal(resources_descriptors(), descriptors);
}

static void a_list_of_thousands_does_not_block_the_loop([[maybe_unused]] void **state) {
        enum { CONTAINERS = 2000 };
        uint64_t begin, longest = 0, total;
        unsigned turns = 0;
        struct fixture f;

        set_up(&f);
        for (size_t i = 0; i < CONTAINERS; i++)
                (void) add(&f, 0);
        begin = nd_clock_us();
        (void) ask(&f, false);
        while (f.answers == 0) {
                uint64_t turn = nd_clock_us();

                assert_true(sd_event_run(f.loop, ND_SECOND_US) >= 0);
                turn = nd_clock_us() - turn;
                longest = turn > longest ? turn : longest;
                turns++;
        }
        total = nd_clock_us() - begin;
        assert_int_equal(f.last.containers.count, CONTAINERS);
        print_message("# %d containers in %llu us, the longest turn %llu us\n", CONTAINERS, (unsigned long long) total,
                      (unsigned long long) longest);
        assert_true(turns >= CONTAINERS / 50); /* other events are handled after a few containers */
        expect_figure(longest < ND_SECOND_US / 4);
        begin = nd_clock_us();
        (void) ask(&f, true);
        await_answers(&f, 2);
        print_message("# with layers: %llu us\n", (unsigned long long) (nd_clock_us() - begin));
        tear_down(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_query_returns_the_existing_objects),
                cmocka_unit_test(a_recent_measurement_is_not_repeated),
                cmocka_unit_test(image_volumes_count_as_disk_usage),
                cmocka_unit_test(a_container_removed_meanwhile_is_left_out),
                cmocka_unit_test(a_cancelled_query_calls_no_callback),
                cmocka_unit_test(a_list_of_thousands_does_not_block_the_loop),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
