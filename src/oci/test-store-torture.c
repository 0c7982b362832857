/* SPDX-License-Identifier: Apache-2.0 */
/* Fault injection into the store: every changing system call fails once, or is the last one of a
 * killed process; and 200 kills at random moments, in the nightly run. After each the store is
 * opened again and checked with offers_check(). Besides: an operation that succeeded has taken
 * effect, and one that failed has taken effect completely or not at all. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include <unit/expect.h>
#include <unit/offers.h>
#include <unit/scratch.h>
#include <unit/torture.h>

#include "base/clock.h"
#include "base/text.h"

/* Two images that share layers; the committed one takes a tag from the first. */
static const struct offer_plan first = {.number = 1, .shared = 1, .own = 1, .index = true, .names = {"app:1", "app:latest"}};
static const struct offer_plan second = {.number = 2, .shared = 1, .own = 1, .names = {"tool:1"}};
static const struct offer_plan coming = {.number = 3, .shared = 1, .own = 2, .index = true, .names = {"app:latest", "app:2"}};

struct world {
        char *root;
        struct nd_oci_store *store; /* open during run(), unless the operation is the opening */
        char *stage;
        struct offer offer;
        bool removed; /* the second image was removed before, so there is garbage */
};

static void world_done(struct world *w) {
        nd_oci_store_done(&w->store);
        offer_done(&w->offer);
        w->offer = (struct offer) {};
        free(w->stage);
        w->stage = nullptr;
        scratch_remove(&w->root);
}

static void prepare_store(void *world) {
        struct world *w = world;

        world_done(w);
        w->root = scratch_make();
        offers_hurry(true);
        expect_ok(nd_oci_store_open(w->root, &w->store));
        expect_ok(offer_commit(w->store, &first));
        expect_ok(offer_commit(w->store, &second));
        offers_empty_trash(w->store);
        offers_hurry(false);
}

static void prepare_commit(void *world) {
        struct world *w = world;
        nd_autoclose int fd = -EBADF;

        prepare_store(world);
        expect_ok(nd_oci_store_stage(w->store, &w->stage, &fd));
        offer_make(w->store, fd, &coming, &w->offer);
        w->offer.offer.names = &w->offer.names;
        w->offer.offer.unpacked = &w->offer.unpacked;
}

static void prepare_garbage(void *world) {
        struct nd_digest id = offer_id(&second);
        struct world *w = world;

        prepare_store(world);
        offers_hurry(true);
        expect_ok(nd_oci_store_remove(w->store, &id));
        offers_hurry(false);
}

static void prepare_closed(void *world) {
        struct world *w = world;

        prepare_garbage(world);
        nd_oci_store_done(&w->store);
}

static struct nd_error *run_commit(void *world) {
        const struct nd_image *image;
        struct world *w = world;

        return nd_oci_store_commit(w->store, w->stage, &w->offer.offer, &image);
}

static struct nd_error *run_remove(void *world) {
        struct nd_digest id = offer_id(&second);

        return nd_oci_store_remove(((struct world *) world)->store, &id);
}

static struct nd_error *run_pin(void *world) {
        struct nd_digest id = offer_id(&second);

        return nd_oci_store_pin(((struct world *) world)->store, &id, true);
}

static struct nd_error *run_collect(void *world) {
        struct nd_oci_store_collected collected;
        struct world *w = world;
        nd_autofree char *path = nullptr;

        nd_try(nd_oci_store_collect(w->store, 0, nullptr, nullptr, &collected));
        return nd_oci_store_trash_take(w->store, &path);
}

/* An error that opening ignores is a problem in the list, and then nothing is collected; the files
 * must stay intact. */
static struct nd_error *run_open(void *world) {
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

        return nd_oci_store_open(((struct world *) world)->root, &store);
}

static struct nd_error *run_stage(void *world) {
        nd_autofree char *id = nullptr;
        struct world *w = world;
        nd_autoclose int fd = -EBADF;

        nd_try(nd_oci_store_stage(w->store, &id, &fd));
        nd_oci_store_unstage(w->store, id);
        return nullptr;
}

/* Which image has a name after a restart; 0 = none. */
static unsigned owner(const char *root, const char *name) {
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        const struct offer_plan *const plans[] = {&first, &second, &coming};
        const struct nd_image *image;

        expect_ok(nd_oci_store_open(root, &store));
        assert_int_equal(nd_oci_store_problems(store)->count, 0);
        expect_ok(nd_oci_store_find(store, name, &image));
        for (size_t i = 0; image && i < nd_count_of(plans); i++) {
                struct nd_digest id = offer_id(plans[i]);

                if (nd_digest_equal(&id, &image->id))
                        return plans[i]->number;
        }
        return 0;
}

/* Memory must agree with the state after a restart, unless the operation failed. */
static unsigned owner_in_memory(const struct world *w, const char *name) {
        const struct nd_image *image;
        unsigned uid = 1000;

        expect_ok(nd_oci_store_find(w->store, name, &image));
        if (image)
                assert_int_equal(sscanf(image->user, "%u", &uid), 1);
        return uid - 1000;
}

static void close_store(struct world *w) {
        nd_oci_store_done(&w->store);
}

static void check_commit(void *world, bool failed) {
        struct world *w = world;
        unsigned in_memory = owner_in_memory(w, "app:latest"), on_disk;

        assert_int_equal(in_memory, failed ? 1 : 3);
        if (failed) { /* unreferenced layers are collected; no record may depend on them */
                struct nd_oci_store_collected collected;

                nd_oci_store_unstage(w->store, w->stage);
                expect_ok(nd_oci_store_collect(w->store, 0, nullptr, nullptr, &collected));
                assert_false(collected.deferred);
        }
        close_store(w);
        on_disk = owner(w->root, "app:latest");
        if (!failed)
                assert_int_equal(on_disk, 3);
        assert_true(on_disk == 1 || on_disk == 3);
        assert_int_equal(owner(w->root, "app:1"), 1);
        assert_int_equal(owner(w->root, "app:2"), on_disk == 3 ? 3 : 0);
        assert_int_equal(offers_check(w->root), on_disk == 3 ? 3 : 2);
}

static void check_remove(void *world, bool failed) {
        struct nd_digest id = offer_id(&second);
        struct world *w = world;
        bool in_memory = nd_oci_store_get(w->store, &id) != nullptr;
        size_t count;

        close_store(w);
        assert_int_equal(owner(w->root, "app:1"), 1);
        count = offers_check(w->root);
        if (!failed)
                assert_int_equal(count, 1);
        assert_int_equal(count, in_memory ? 2 : 1);
}

static bool is_pinned(const struct nd_oci_store *store) {
        struct nd_digest id = offer_id(&second);

        return nd_oci_store_get(store, &id)->pinned;
}

static void check_pin(void *world, bool failed) {
        struct world *w = world;

        assert_int_equal(is_pinned(w->store), !failed);
        close_store(w);
        expect_ok(nd_oci_store_open(w->root, &w->store));
        if (!failed)
                assert_true(is_pinned(w->store));
        close_store(w);
        assert_int_equal(owner(w->root, "tool:1"), 2);
        assert_int_equal(offers_check(w->root), 2);
}

static void check_one_left(void *world, [[maybe_unused]] bool failed) {
        struct world *w = world;

        close_store(w);
        assert_int_equal(owner(w->root, "app:1"), 1);
        assert_int_equal(offers_check(w->root), 1);
}

static void check_two_left(void *world, [[maybe_unused]] bool failed) {
        struct world *w = world;

        close_store(w);
        assert_int_equal(offers_check(w->root), 2);
}

#define BIT(call) (1u << (call))
static const struct torture operations[] = {
        {.name = "commit",
         .noun = "",
         .calls = BIT(FAULT_OPENAT) | BIT(FAULT_WRITE) | BIT(FAULT_FSYNC) | BIT(FAULT_RENAMEAT),
         .prepare = prepare_commit,
         .run = run_commit,
         .check = check_commit,
         .silent = true},
        {.name = "remove",
         .noun = "",
         .calls = BIT(FAULT_UNLINKAT) | BIT(FAULT_FSYNC),
         .prepare = prepare_store,
         .run = run_remove,
         .check = check_remove},
        {.name = "pin",
         .noun = "",
         .calls = BIT(FAULT_OPENAT) | BIT(FAULT_WRITE) | BIT(FAULT_FSYNC) | BIT(FAULT_RENAMEAT),
         .prepare = prepare_store,
         .run = run_pin,
         .check = check_pin},
        {.name = "collect",
         .noun = "",
         .calls = BIT(FAULT_OPENAT) | BIT(FAULT_MKDIRAT) | BIT(FAULT_RENAMEAT) | BIT(FAULT_UNLINKAT) | BIT(FAULT_FSYNC),
         .prepare = prepare_garbage,
         .run = run_collect,
         .check = check_one_left},
        {.name = "open",
         .noun = "",
         .calls = BIT(FAULT_OPENAT) | BIT(FAULT_MKDIRAT) | BIT(FAULT_FSYNC),
         .prepare = prepare_closed,
         .run = run_open,
         .check = check_one_left,
         .silent = true},
        {.name = "stage",
         .noun = "staging",
         .calls = BIT(FAULT_MKDIRAT),
         .prepare = prepare_store,
         .run = run_stage,
         .check = check_two_left},
};

static void every_call_that_fails_leaves_the_store_whole([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world = {};

        for (size_t i = 0; i < nd_count_of(operations); i++)
                torture(&operations[i], &world);
}

/* Runs one operation in a child that dies before its n-th changing call; false if it completed. The
 * child is a copy: its memory is lost, and the parent closes the store without using it. */
static bool killed_at(const struct torture *operation, struct world *w, unsigned nth) {
        pid_t child;
        int status;

        operation->prepare(w);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                struct nd_error *error;

                faults_kill_at(nth);
                error = operation->run(w);
                _exit(error ? 1 : 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
                fail_msg("%s failed without a fault", operation->name);
        return WIFSIGNALED(status);
}

static void a_kill_before_any_call_leaves_the_store_whole([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world = {};
        unsigned kills = 0;

        for (size_t i = 0; i < nd_count_of(operations); i++)
                for (unsigned nth = 1;; nth++) {
                        bool killed = killed_at(&operations[i], &world, nth);

                        close_store(&world);
                        assert_true(offers_check(world.root) >= 1);
                        assert_int_not_equal(owner(world.root, "app:1"), 0);
                        kills += killed;
                        if (!killed)
                                break;
                }
        print_message("# killed %u times\n", kills);
        assert_true(kills > 50);
}

/* Runs two operations in a row with a disk that is full from some call on, as a real full disk
 * is. */
static void a_disk_that_stays_full_loses_nothing_and_images_can_be_removed([[maybe_unused]] void **state) {
        nd_cleanup(world_done) struct world world = {};

        for (unsigned nth = 1; nth < 40; nth++) {
                nd_autoerror struct nd_error *error = nullptr, *removed = nullptr;
                struct nd_digest id = offer_id(&second);

                prepare_commit(&world);
                faults_arm(FAULT_WRITE, nth, ENOSPC, true);
                error = run_commit(&world);
                removed = nd_oci_store_remove(world.store, &id);
                (void) faults_disarm();
                assert_null(removed);
                close_store(&world);
                assert_int_equal(offers_check(world.root), error ? 1 : 2);
                if (!error && nth > 20)
                        break;
        }
}

/* A small private filesystem. */
static void mount_small(const char *path) {
        if (unshare(CLONE_NEWNS) < 0)
                skip_because("this user may not make a mount namespace: %s", strerror(errno));
        if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0 ||
            mount("none", path, "tmpfs", 0, "size=1m,mode=0700") < 0)
                skip_because("no tmpfs can be mounted: %s", strerror(errno));
}

/* Fills the disk except for some pages. */
static void fill(const char *path, unsigned pages_left) {
        enum { PAGE = 4096 };
        nd_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        char page[PAGE] = {};
        off_t length = 0;

        while (write(fd, page, sizeof page) == sizeof page)
                length += PAGE;
        assert_int_equal(errno, ENOSPC);
        assert_true(length > (off_t) pages_left * PAGE);
        assert_int_equal(ftruncate(fd, length - (off_t) pages_left * PAGE), 0);
}

static void a_real_disk_that_is_full_at_any_point_of_a_commit_loses_nothing([[maybe_unused]] void **state) {
        nd_autofree char *base = nullptr;
        scratch_directory mountpoint = scratch_make();
        unsigned failed = 0, passed = 0;

        mount_small(mountpoint);
        base = nd_format("%s/filler", mountpoint);
        for (unsigned pages = 0; passed == 0; pages++) {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
                nd_cleanup(offer_done) struct offer offer = {};
                nd_autofree char *stage = nullptr;
                char *root = nd_format("%s/store", mountpoint);
                nd_autoerror struct nd_error *error = nullptr, *removed = nullptr;
                struct nd_digest id = offer_id(&second);
                const struct nd_image *image;
                nd_autoclose int fd = -EBADF;

                expect_ok(nd_oci_store_open(root, &store));
                expect_ok(offer_commit(store, &first));
                expect_ok(offer_commit(store, &second));
                expect_ok(nd_oci_store_stage(store, &stage, &fd));
                offer_make(store, fd, &coming, &offer);
                offer.offer.names = &offer.names;
                offer.offer.unpacked = &offer.unpacked;
                fill(base, pages);
                error = nd_oci_store_commit(store, stage, &offer.offer, &image);
                removed = nd_oci_store_remove(store, &id); /* frees space, and needs none */
                if (error)
                        assert_int_equal(nd_error_errno(error), ENOSPC);
                assert_null(removed);
                failed += error != nullptr;
                passed += error == nullptr;
                assert_int_equal(unlink(base), 0);
                nd_oci_store_done(&store);
                assert_int_equal(offers_check(root), error ? 1 : 2);
                scratch_remove(&root);
        }
        print_message("# full at %u points of a commit\n", failed);
        assert_true(failed > 2);
        assert_int_equal(umount(mountpoint), 0);
}

/* A process that runs random operations until it is killed. */
[[noreturn]] static void live(const char *root, unsigned seed) {
        static const char *const names[] = {"app:1", "app:2", "app:latest", "tool:1", "other.example/x:1"};
        struct nd_oci_store *store;

        srand(seed);
        if (nd_oci_store_open(root, &store))
                _exit(1);
        for (;;) {
                unsigned number = (unsigned) rand() % 6 + 1;
                struct offer_plan plan = {.number = number,
                                          .shared = number % 3,
                                          .own = number % 4,
                                          .index = number % 2 == 0,
                                          .names = {names[rand() % (int) nd_count_of(names)]}};
                struct nd_oci_store_collected collected;
                struct nd_digest id = offer_id(&plan);
                struct nd_error *error = nullptr;

                switch (rand() % 6) {
                case 0:
                case 1:
                case 2:
                        error = offer_commit(store, &plan);
                        break;
                case 3:
                        error = nd_oci_store_remove(store, &id);
                        break;
                case 4:
                        error = nd_oci_store_pin(store, &id, rand() % 2 == 0);
                        break;
                case 5:
                        error = nd_oci_store_collect(store, 0, nullptr, nullptr, &collected);
                        offers_empty_trash(store);
                        break;
                }
                if (error && nd_error_code(error) != ND_NOT_FOUND)
                        _exit(2);
                nd_error_free(error);
        }
}

static void two_hundred_kills_at_random_leave_the_store_whole([[maybe_unused]] void **state) {
        enum { ROUNDS = 200, LONGEST_US = 40000 };
        scratch_directory root = scratch_make();
        unsigned seed = (unsigned) nd_clock_ns();
        size_t most = 0;

        print_message("# seed %u\n", seed);
        srand(seed);
        for (int i = 0; i < ROUNDS; i++) {
                struct timespec pause = {.tv_nsec = (rand() % LONGEST_US) * 1000L};
                unsigned child_seed = (unsigned) rand();
                size_t count;
                pid_t child = fork();
                int status;

                assert_true(child >= 0);
                if (child == 0)
                        live(root, child_seed);
                (void) nanosleep(&pause, nullptr);
                (void) kill(child, SIGKILL);
                assert_int_equal(waitpid(child, &status, 0), child);
                if (!WIFSIGNALED(status))
                        fail_msg("round %d: the process ended with %d by itself", i, WEXITSTATUS(status));
                count = offers_check(root);
                most = count > most ? count : most;
        }
        assert_true(most >= 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_call_that_fails_leaves_the_store_whole),
                cmocka_unit_test(a_kill_before_any_call_leaves_the_store_whole),
                cmocka_unit_test(a_disk_that_stays_full_loses_nothing_and_images_can_be_removed),
                cmocka_unit_test(a_real_disk_that_is_full_at_any_point_of_a_commit_loses_nothing),
        };
        const struct CMUnitTest random[] = {
                cmocka_unit_test(two_hundred_kills_at_random_leave_the_store_whole),
        };

        return nightly() ? cmocka_run_group_tests(random, nullptr, nullptr) : cmocka_run_group_tests(tests, nullptr, nullptr);
}
