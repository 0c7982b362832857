/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include <unit/expect.h>
#include <unit/offers.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"
#include "oci/layer.h"
#include "sys/calls.h"
#include "sys/worker.h"

static const struct offer_plan apple = {
        .number = 1, .shared = 2, .own = 2, .index = true, .names = {"apple:1", "docker.io/library/apple:latest"}};
static const struct offer_plan pear = {.number = 2, .shared = 2, .own = 1, .names = {"pear:1"}};
static const struct offer_plan other_apple = {.number = 3, .shared = 2, .own = 1, .names = {"apple:1", "apple:2"}};

static const struct nd_image *find(const struct nd_oci_store *store, const char *text) {
        const struct nd_image *image;

        expect_ok(nd_oci_store_find(store, text, &image));
        return image;
}

static const struct nd_image *image_of(const struct nd_oci_store *store, const struct offer_plan *plan) {
        struct nd_digest id = offer_id(plan);

        return nd_oci_store_get(store, &id);
}

static void an_image_is_found_by_all_its_names_and_ids([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        char text[ND_DIGEST_TEXT], part[ND_DIGEST_TEXT];
        const struct nd_image *image;

        expect_ok(nd_oci_store_open(root, &store));
        assert_null(find(store, "apple:1"));
        expect_ok(offer_commit(store, &apple));
        expect_ok(offer_commit(store, &pear));
        image = image_of(store, &apple);
        assert_non_null(image);
        assert_int_equal(image->layer_count, 4);
        assert_string_equal(image->user, "1001");
        assert_true(image->size > 4000);

        assert_ptr_equal(find(store, "apple:1"), image);
        assert_ptr_equal(find(store, "apple"), image);
        assert_ptr_equal(find(store, "docker.io/library/apple:1"), image);
        assert_ptr_equal(find(store, "index.docker.io/apple:1"), image);
        (void) nd_digest_text(&image->id, text);
        assert_ptr_equal(find(store, text), image);
        assert_ptr_equal(find(store, text + strlen("sha256:")), image);
        (void) snprintf(part, sizeof part, "%.19s", text);
        assert_ptr_equal(find(store, part), image);
        assert_ptr_equal(find(store, part + strlen("sha256:")), image);
        assert_null(find(store, "apple:3"));
        assert_null(find(store, "example.com/apple:1"));
        assert_null(find(store, "../../etc/passwd"));
        assert_null(find(store, ""));
        assert_null(find(store, "0000000000"));
}

static void an_image_is_there_after_a_restart([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_oci_store_usage before, after;
        const struct nd_image *image;

        for (int i = 0; i < 2; i++) {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                if (i == 0) {
                        struct nd_digest id = offer_id(&apple);

                        expect_ok(offer_commit(store, &apple));
                        expect_ok(offer_commit(store, &pear));
                        expect_ok(nd_oci_store_pin(store, &id, true));
                        offers_empty_trash(store);
                        before = nd_oci_store_usage(store);
                        continue;
                }
                after = nd_oci_store_usage(store);
                assert_int_equal(before.bytes, after.bytes);
                assert_int_equal(before.inodes, after.inodes);
                image = find(store, "apple:1");
                assert_non_null(image);
                assert_true(image->pinned);
                assert_int_equal(image->tags.count, 2);
                assert_string_equal(image->user, "1001");
                assert_int_equal(image->pulled_at, 1);
                assert_false(find(store, "pear:1")->pinned);
        }
        assert_int_equal(offers_check(root), 2);
}

static void a_tag_moves_to_the_image_that_has_it_now([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                expect_ok(offer_commit(store, &other_apple));
                assert_ptr_equal(find(store, "apple:1"), image_of(store, &other_apple));
                assert_ptr_equal(find(store, "apple:latest"), image_of(store, &apple));
                assert_int_equal(image_of(store, &apple)->tags.count, 1);
        }
        assert_int_equal(offers_check(root), 2);
}

static void an_image_that_lost_its_last_tag_to_another_stays([[maybe_unused]] void **state) {
        static const struct offer_plan thief = {.number = 9, .own = 1, .names = {"pear:1"}};
        scratch_directory root = scratch_make();
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                expect_ok(offer_commit(store, &pear));
                expect_ok(offer_commit(store, &thief));
                assert_non_null(image_of(store, &pear));
                assert_int_equal(image_of(store, &pear)->tags.count, 0);
        }
        assert_int_equal(offers_check(root), 2);
}

static void a_name_that_moved_does_not_come_back_when_its_new_owner_goes([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();

        for (int restart = 0; restart < 2; restart++) {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
                struct nd_digest id = offer_id(&other_apple);

                expect_ok(nd_oci_store_open(root, &store));
                if (restart == 0) {
                        expect_ok(offer_commit(store, &apple));
                        expect_ok(offer_commit(store, &other_apple));
                        expect_ok(nd_oci_store_remove(store, &id));
                }
                assert_null(find(store, "apple:1"));
                assert_non_null(find(store, "apple:latest"));
        }
}

static void the_same_image_under_another_name_is_one_image([[maybe_unused]] void **state) {
        struct offer_plan again = apple;
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

        again.names[0] = "registry.example:5000/team/apple:7";
        again.names[1] = nullptr;
        expect_ok(nd_oci_store_open(root, &store));
        expect_ok(offer_commit(store, &apple));
        expect_ok(offer_commit(store, &again));
        assert_ptr_equal(find(store, "registry.example:5000/team/apple:7"), find(store, "apple:1"));
        assert_int_equal(find(store, "apple:1")->tags.count, 3);
}

static void the_last_name_takes_the_image_with_it([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
                struct offer_plan again = pear;
                struct nd_digest id = offer_id(&pear);

                again.names[0] = "pear:2";
                again.names[1] = nullptr;
                expect_ok(nd_oci_store_open(root, &store));
                expect_ok(offer_commit(store, &pear));
                expect_ok(offer_commit(store, &again));
                expect_ok(nd_oci_store_untag(store, "pear:1"));
                assert_null(find(store, "pear:1"));
                assert_non_null(find(store, "pear:2"));
                expect_error(nd_oci_store_untag(store, "pear:1"), ND_NOT_FOUND, "pear:1");
                expect_ok(nd_oci_store_untag(store, "docker.io/library/pear:2"));
                assert_null(nd_oci_store_get(store, &id));
        }
        assert_int_equal(offers_check(root), 0);
}

static void changes_of_an_unknown_image_are_errors([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct nd_digest id = offer_id(&pear);

        expect_ok(nd_oci_store_open(root, &store));
        expect_error(nd_oci_store_pin(store, &id, true), ND_NOT_FOUND, "there is no image \"sha256:");
        expect_error(nd_oci_store_remove(store, &id), ND_NOT_FOUND, "there is no image \"sha256:");
}

static struct nd_error *open_second(void *root, [[maybe_unused]] int *ret_fd) {
        struct nd_oci_store *second = nullptr;

        return nd_oci_store_open(root, &second);
}

static struct nd_error *lives_on(void *argument, [[maybe_unused]] int *ret_fd) {
        (void) argument;
        (void) usleep(300 * 1000);
        return nullptr;
}

static void on_lived([[maybe_unused]] struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        *(bool *) userdata = true;
}

/* A copy of the process does not have the lock. */
static void a_child_does_not_hold_the_lock([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_oci_store *store = nullptr;
        struct nd_worker *worker;
        bool over = false;
        sd_event *loop;

        assert_true(sd_event_new(&loop) >= 0);
        expect_ok(nd_oci_store_open(root, &store));
        expect_ok(nd_worker_start(loop, "live on", lives_on, nullptr, 60 * ND_SECOND_US, on_lived, &over, &worker));
        nd_oci_store_free(store);
        expect_ok(nd_oci_store_open(root, &store));
        while (!over)
                assert_true(sd_event_run(loop, ND_SECOND_US) >= 0);
        nd_oci_store_free(store);
        sd_event_unref(loop);
}

static void only_one_process_has_a_store([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct stat st;

        assert_int_equal(chmod(root, 0755), 0);
        expect_ok(nd_oci_store_open(root, &store));
        expect_error(nd_worker_run("open", open_second, root, 60 * ND_SECOND_US, nullptr), ND_PRECONDITION,
                     "another process uses");
        assert_int_equal(stat(root, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
}

static void a_damaged_record_costs_one_image([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        char file[sizeof "images/.json" + ND_DIGEST_HEX], hex[ND_DIGEST_HEX];
        struct nd_digest id = offer_id(&apple);

        (void) snprintf(file, sizeof file, "images/%s.json", nd_digest_hex(&id, hex));
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                expect_ok(offer_commit(store, &pear));
        }
        scratch_text(root, file, "{\"version\":1,");
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                assert_int_equal(nd_oci_store_problems(store)->count, 1);
                expect_contains(nd_oci_store_problems(store)->items[0], "must be pulled again");
                assert_null(find(store, "apple:1"));
                assert_non_null(find(store, "pear:1"));
        }
        assert_int_equal(offers_check(root), 1);
}

static void a_record_without_its_layer_is_removed([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_digest chains[3];
        char *layer, hex[ND_DIGEST_HEX];
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                expect_ok(offer_commit(store, &pear));
                nd_image_chains(image_of(store, &pear), chains);
        }
        layer = nd_format("%s/layers/%s", root, nd_digest_hex(&chains[2], hex));
        scratch_remove(&layer);
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                assert_int_equal(nd_oci_store_problems(store)->count, 1);
                expect_contains(nd_oci_store_problems(store)->items[0], "is missing");
        }
        assert_int_equal(offers_check(root), 1);
}

static void a_newer_versions_record_is_left_alone_and_stops_collection([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct nd_oci_store_collected collected;

        scratch_mkdir(root, "images");
        scratch_text(root, "images/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.json", "{\"version\":2}");
        expect_ok(nd_oci_store_open(root, &store));
        assert_int_equal(nd_oci_store_problems(store)->count, 1);
        expect_error(nd_oci_store_collect(store, 0, nullptr, nullptr, &collected), ND_PRECONDITION, "nothing is collected");
        assert_int_equal(scratch_entries(root, "images"), 1);
}

static void a_name_in_two_records_belongs_to_the_younger([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        char file[sizeof "images/.json" + ND_DIGEST_HEX], hex[ND_DIGEST_HEX];
        struct nd_digest id = offer_id(&apple);
        nd_autofree char *before = nullptr;

        (void) snprintf(file, sizeof file, "images/%s.json", nd_digest_hex(&id, hex));
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                before = scratch_read(root, file);
                expect_ok(offer_commit(store, &other_apple));
        }
        /* As if the process had been killed between the two writes. */
        scratch_text(root, file, before);
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                assert_ptr_equal(find(store, "apple:1"), image_of(store, &other_apple));
                assert_int_equal(image_of(store, &apple)->tags.count, 1);
        }
        assert_int_equal(offers_check(root), 2);
}

static void a_short_id_of_several_images_is_ambiguous([[maybe_unused]] void **state) {
        enum { IMAGES = 700 }; /* among 65,536 prefixes: two are equal, by the birthday paradox */
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct offer_plan plan = {}, pair[2] = {};
        static unsigned char seen[1 << 16];
        const struct nd_image *image;
        char part[5] = {}, hex[ND_DIGEST_HEX];

        for (plan.number = 1; plan.number < IMAGES * 10 && pair[0].number == 0; plan.number++) {
                struct nd_digest id = offer_id(&plan);
                unsigned first = (unsigned) id.bytes[0] << 8 | id.bytes[1];

                if (seen[first]++ == 0)
                        continue;
                pair[1] = plan;
                (void) strncpy(part, nd_digest_hex(&id, hex), 4);
                for (pair[0].number = 1;; pair[0].number++) {
                        struct nd_digest other = offer_id(&pair[0]);

                        if (other.bytes[0] == id.bytes[0] && other.bytes[1] == id.bytes[1])
                                break;
                }
        }
        assert_int_not_equal(pair[0].number, 0);
        expect_ok(nd_oci_store_open(root, &store));
        expect_ok(offer_commit(store, &pair[0]));
        assert_non_null(find(store, part));
        expect_ok(offer_commit(store, &pair[1]));
        expect_error(nd_oci_store_find(store, part, &image), ND_INVALID, "several images");
}

/* A power cut can undo only what was not synced: so this checks the order of syncs and renames. An
 * event is a letter for the call and the last two components of the directory. */
static struct nd_text events;

static void note(char what, int fd) {
        char link[64], path[PATH_MAX] = {};
        const char *tail;

        (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        assert_true(readlink(link, path, sizeof path - 1) > 0);
        tail = strrchr(path, '/');
        if (nd_has_prefix(tail, "/sha"))
                tail = "/blobs";
        nd_text_addf(&events, "%c%s ", what, tail);
}
static int noting_fsync(int fd) {
        struct stat st;

        assert_int_equal(fstat(fd, &st), 0);
        if (S_ISDIR(st.st_mode))
                note('s', fd);
        return nd_calls_real.fsync(fd);
}
static int noting_renameat(int old_fd, const char *old_path, int new_fd, const char *new_path) {
        note('r', new_fd);
        return nd_calls_real.renameat(old_fd, old_path, new_fd, new_path);
}

/* The last position of an event; it must have happened. */
static const char *last(const char *event) {
        const char *found = nullptr;

        for (const char *at = nd_text_get(&events); (at = strstr(at, event)); at++)
                found = at;
        if (!found)
                fail_msg("'%s' is not among: %s", event, nd_text_get(&events));
        return found;
}

static void layers_are_synced_before_their_record_and_trash_before_it_is_emptied([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct nd_calls table = nd_calls_real;
        struct nd_digest id = offer_id(&apple);
        nd_autofree char *path = nullptr, *staged = nullptr;

        table.fsync = noting_fsync;
        table.renameat = noting_renameat;
        expect_ok(nd_oci_store_open(root, &store));
        events = ND_TEXT(1 << 16);
        nd_sys = &table;
        expect_ok(offer_commit(store, &apple));
        assert_true(last("r/layers") < last("s/layers"));
        assert_true(last("r/blobs") < last("s/blobs"));
        assert_true(last("s/layers") < last("r/images"));
        assert_true(last("s/blobs") < last("r/images"));
        assert_true(last("r/images") < last("s/images"));
        nd_text_done(&events);

        events = ND_TEXT(1 << 16);
        expect_ok(nd_oci_store_remove(store, &id));
        (void) last("s/images");
        assert_int_equal(offers_collect(store, nullptr, nullptr), 4);
        expect_ok(nd_oci_store_trash_take(store, &staged));
        expect_ok(nd_oci_store_trash_take(store, &path));
        nd_sys = &nd_calls_real;
        assert_non_null(path);
        assert_true(last("r/trash-") < last("s/layers"));
        nd_text_done(&events);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_image_is_found_by_all_its_names_and_ids),
                cmocka_unit_test(an_image_is_there_after_a_restart),
                cmocka_unit_test(a_tag_moves_to_the_image_that_has_it_now),
                cmocka_unit_test(an_image_that_lost_its_last_tag_to_another_stays),
                cmocka_unit_test(a_name_that_moved_does_not_come_back_when_its_new_owner_goes),
                cmocka_unit_test(the_same_image_under_another_name_is_one_image),
                cmocka_unit_test(the_last_name_takes_the_image_with_it),
                cmocka_unit_test(changes_of_an_unknown_image_are_errors),
                cmocka_unit_test(only_one_process_has_a_store),
                cmocka_unit_test(a_child_does_not_hold_the_lock),
                cmocka_unit_test(a_damaged_record_costs_one_image),
                cmocka_unit_test(a_record_without_its_layer_is_removed),
                cmocka_unit_test(a_newer_versions_record_is_left_alone_and_stops_collection),
                cmocka_unit_test(a_name_in_two_records_belongs_to_the_younger),
                cmocka_unit_test(layers_are_synced_before_their_record_and_trash_before_it_is_emptied),
                cmocka_unit_test(a_short_id_of_several_images_is_ambiguous),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
