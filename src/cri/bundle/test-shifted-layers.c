/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/shifted-layers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unit/expect.h>
#include <unit/scratch.h>

enum { FIRST = 1 << 20 };

struct fixture {
        char *top;
        struct nd_digest chains[2];
        struct cri_shifted_layers plan;
};

static char *path_in(const struct fixture *f, size_t layer, const char *rest) {
        char hex[ND_DIGEST_HEX];

        return nd_format("%s/%s", nd_digest_hex(&f->chains[layer], hex), rest);
}

static void make(struct fixture *f) {
        if (geteuid() != 0)
                skip_because("changing owners needs privilege");
        f->top = scratch_make();
        for (size_t i = 0; i < nd_count_of(f->chains); i++) {
                nd_autofree char *directory = nullptr, *file = nullptr;

                f->chains[i] = nd_digest_of(ND_HASH_SHA256, i ? "upper" : "lower", 5);
                directory = path_in(f, i, "fs/etc");
                file = path_in(f, i, "fs/etc/file");
                scratch_mkdir(f->top, directory);
                scratch_text(f->top, file, i ? "upper" : "lower");
        }
        f->plan = (struct cri_shifted_layers) {.layers = f->top,
                                               .chains = f->chains,
                                               .count = nd_count_of(f->chains),
                                               .shift = {.uid = FIRST, .gid = FIRST, .count = 65536}};
}

static void done(struct fixture *f) {
        scratch_remove(&f->top);
}

static uid_t owner(const struct fixture *f, size_t layer, const char *rest) {
        nd_autofree char *below = path_in(f, layer, rest), *path = nd_format("%s/%s", f->top, below);
        struct stat st;

        return lstat(path, &st) < 0 ? (uid_t) -1 : st.st_uid;
}

static void each_layer_is_copied_once_with_the_pods_ids([[maybe_unused]] void **state) {
        nd_cleanup(done) struct fixture f = {};
        nd_autofree char *below = nullptr;

        make(&f);
        expect_ok(cri_shifted_layers_make(&f.plan));
        for (size_t i = 0; i < nd_count_of(f.chains); i++) {
                nd_autofree char *path = cri_shifted_layers_path(&f.plan, i);
                struct stat st;

                assert_int_equal(lstat(path, &st), 0);
                assert_int_equal(st.st_uid, FIRST);
                assert_int_equal(owner(&f, i, "shifted-1048576-1048576/etc/file"), FIRST);
                assert_int_equal(owner(&f, i, "fs/etc/file"), 0); /* the layer itself stays */
        }
        /* a complete copy is not made again */
        below = path_in(&f, 0, "shifted-1048576-1048576/mark");
        scratch_text(f.top, below, "");
        expect_ok(cri_shifted_layers_make(&f.plan));
        assert_int_equal(owner(&f, 0, "shifted-1048576-1048576/mark"), 0);
}

static void what_a_killed_worker_left_is_replaced([[maybe_unused]] void **state) {
        nd_cleanup(done) struct fixture f = {};
        nd_autofree char *directory = nullptr, *half = nullptr;

        make(&f);
        directory = path_in(&f, 1, "shifting-1048576-1048576/etc");
        half = path_in(&f, 1, "shifting-1048576-1048576/etc/half");
        scratch_mkdir(f.top, directory);
        scratch_text(f.top, half, "");
        expect_ok(cri_shifted_layers_make(&f.plan));
        assert_int_equal(owner(&f, 1, "shifted-1048576-1048576/etc/file"), FIRST);
        assert_int_equal(owner(&f, 1, "shifted-1048576-1048576/etc/half"), (uid_t) -1);
        assert_int_equal(owner(&f, 1, "shifting-1048576-1048576"), (uid_t) -1);
}

static void workers_that_make_the_same_copy_wait_for_each_other([[maybe_unused]] void **state) {
        enum { WORKERS = 8 };
        nd_cleanup(done) struct fixture f = {};
        pid_t pids[WORKERS];

        make(&f);
        for (size_t i = 0; i < WORKERS; i++) {
                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] == 0)
                        _exit(cri_shifted_layers_make(&f.plan) ? EXIT_FAILURE : EXIT_SUCCESS);
        }
        for (size_t i = 0; i < WORKERS; i++) {
                int status;

                assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
                assert_int_equal(status, 0);
        }
        assert_int_equal(owner(&f, 0, "shifted-1048576-1048576/etc/file"), FIRST);
        assert_int_equal(owner(&f, 0, "shifting-1048576-1048576"), (uid_t) -1);
}

static void a_layer_that_was_removed_is_an_error([[maybe_unused]] void **state) {
        nd_cleanup(done) struct fixture f = {};
        nd_autofree char *below = nullptr, *path = nullptr, *away = nullptr;

        make(&f);
        below = path_in(&f, 1, "");
        path = nd_format("%s/%s", f.top, below);
        away = nd_format("%s/away", f.top);
        path[strlen(path) - 1] = '\0';
        assert_int_equal(rename(path, away), 0);
        expect_error(cri_shifted_layers_make(&f.plan), ND_NOT_FOUND, "No such file");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_layer_is_copied_once_with_the_pods_ids),
                cmocka_unit_test(what_a_killed_worker_left_is_replaced),
                cmocka_unit_test(workers_that_make_the_same_copy_wait_for_each_other),
                cmocka_unit_test(a_layer_that_was_removed_is_an_error),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
