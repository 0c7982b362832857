/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>
#include <unit/offers.h>
#include <unit/scratch.h>

#include <dirent.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/text.h"
#include "cri/core/pod-table.h"
#include "cri/image/image-gc.h"

static const struct offer_plan image = {.number = 3, .own = 2, .names = {"example.org/swept:1"}};

struct fixture {
        char *root;
        sd_event *loop;
        struct nd_oci_store *store;
        struct cri_pod_table pods;
        struct cri_image_gc *image_gc;
        unsigned told;
        size_t left; /* entries in the trash when we were notified */
};

static void set_up(struct fixture *f) {
        *f = (struct fixture) {.root = scratch_make()};
        assert_true(sd_event_new(&f->loop) >= 0);
        expect_ok(nd_oci_store_open(f->root, &f->store));
        expect_ok(cri_image_gc_new(f->loop, f->store, &f->pods, &f->image_gc));
        offers_hurry(true);
        expect_ok(offer_commit(f->store, &image));
        offers_hurry(false);
}

static void tear_down(struct fixture *f) {
        cri_image_gc_free(f->image_gc);
        nd_oci_store_free(f->store);
        cri_pod_table_done(&f->pods);
        sd_event_unref(f->loop);
        scratch_remove(&f->root);
}

static size_t entries(const struct fixture *f, const char *name, const char *prefix) {
        nd_autofree char *path = nd_format("%s/%s", f->root, name);
        DIR *directory = opendir(path);
        size_t count = 0;

        assert_non_null(directory);
        for (const struct dirent *entry; (entry = readdir(directory));)
                count += entry->d_name[0] != '.' && nd_has_prefix(entry->d_name, prefix);
        (void) closedir(directory);
        return count;
}

static void on_swept(void *userdata) {
        struct fixture *f = userdata;

        f->told++;
        f->left = entries(f, "staging", "trash-") + entries(f, "layers", "");
}

static void run(struct fixture *f, unsigned told) {
        uint64_t end = nd_clock_us() + 60 * ND_SECOND_US;

        while (f->told < told) {
                assert_true(nd_clock_us() < end);
                assert_true(sd_event_run(f->loop, ND_SECOND_US) >= 0);
        }
}

static void remove_image(struct fixture *f) {
        struct nd_digest id = offer_id(&image);

        expect_ok(nd_oci_store_remove(f->store, &id));
}

static void waiters_are_notified_when_the_space_is_free([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;

        set_up(f);
        assert_int_equal(entries(f, "layers", ""), 2);
        remove_image(f);
        (void) cri_image_gc_wait(f->image_gc, on_swept, f);
        (void) cri_image_gc_wait(f->image_gc, on_swept, f);
        assert_int_equal(f->told, 0); /* never within the call */
        run(f, 2);
        assert_int_equal(f->left, 0);
        (void) cri_image_gc_wait(f->image_gc, on_swept, f); /* nothing to do */
        run(f, 3);
        tear_down(f);
}

static void a_cancelled_wait_is_not_notified([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct cri_image_gc_wait *gone;

        set_up(f);
        remove_image(f);
        gone = cri_image_gc_wait(f->image_gc, on_swept, f);
        (void) cri_image_gc_wait(f->image_gc, on_swept, f);
        cri_image_gc_wait_cancel(gone);
        run(f, 1);
        assert_true(sd_event_run(f->loop, 50 * ND_MS_US) >= 0);
        assert_int_equal(f->told, 1);
        /* the collector may be freed before its waiters */
        (void) cri_image_gc_wait(f->image_gc, on_swept, f);
        tear_down(f);
}

static int unmount([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now_us, void *userdata) {
        assert_int_equal(umount2(userdata, MNT_DETACH), 0);
        return 0;
}

/* A mount stands for a process that is still writing: while it exists, rm fails. */
static void a_failed_removal_is_retried([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        nd_autofree char *name = nullptr, *busy = nullptr;
        nd_autoclose int fd = -EBADF;

        if (geteuid() != 0)
                skip_because("mounting needs privilege");
        set_up(f);
        expect_ok(nd_oci_store_stage(f->store, &name, &fd));
        busy = nd_format("%s/staging/%s/busy", f->root, name);
        assert_int_equal(mkdir(busy, 0700), 0);
        assert_int_equal(mount("none", busy, "tmpfs", 0, nullptr), 0);
        nd_oci_store_unstage(f->store, name);
        (void) cri_image_gc_wait(f->image_gc, on_swept, f);
        assert_true(sd_event_add_time_relative(f->loop, nullptr, CLOCK_MONOTONIC, 300 * ND_MS_US, 0, unmount, busy) >= 0);
        run(f, 1);
        assert_int_equal(entries(f, "staging", name), 0);
        tear_down(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(waiters_are_notified_when_the_space_is_free),
                cmocka_unit_test(a_cancelled_wait_is_not_notified),
                cmocka_unit_test(a_failed_removal_is_retried),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
