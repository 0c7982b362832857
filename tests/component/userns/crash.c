/* SPDX-License-Identifier: Apache-2.0 */
/* crash.c - kills the user namespace manager at any moment
 *
 * Theory of operation
 *   A child works on a manager: it gets and releases blocks and sweeps, and notes in a ledger,
 *   which is memory shared with the parent, what it is about to do and what was acknowledged. The
 *   parent kills it: at a random moment, --kills times, or by a table of system calls that kills
 *   the child before, in or after the n-th call, for every n. Then the parent compares the files
 *   with the ledger:
 *     no torn file     each file is missing or exactly what the manager writes
 *     no block twice   no two files name one block
 *     nothing lost     acknowledged state is in the files; only the one operation in progress may
 *                      have happened or not
 *   and opens the manager itself: no pod is in quarantine, and after a sweep with the acknowledged
 *   pods every other block is free. The next child continues with these files. */
#include <dirent.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "sys/calls.h"
#include "userns/manager.h"
#include "userns/mapping.h"
#include "userns/store.h"

enum {
        PODS = 64,
        BLOCKS = 48, /* fewer than pods, so that they run out */
        FIRST = 3 * ND_IDS_UNIT,
        LONGEST_LIFE_US = 3000,
};

enum work {
        IDLE,
        GETTING,
        RELEASING,
};

/* State that the child leaves behind. A pod's block is the last acknowledged one; 0 = none. */
struct ledger {
        enum work work;
        uint32_t pod;
        uint32_t blocks[PODS];
        uint64_t acknowledged;
        bool finished;
};

static struct ledger *ledger;
static const char *root;
static unsigned leftovers;

[[noreturn, gnu::format(printf, 1, 2)]] static void fail(const char *format, ...) {
        va_list arguments;

        (void) fputs("FAILED: ", stdout);
        va_start(arguments, format);
        (void) vprintf(format, arguments);
        va_end(arguments);
        (void) printf(" (files are in %s)\n", root);
        exit(EXIT_FAILURE);
}

static void must(struct nd_error *error) {
        if (error)
                fail("%s", nd_error_text(error));
}

static void uid_of(uint32_t pod, char ret[16]) {
        (void) snprintf(ret, 16, "pod-%02u", pod);
}

static struct nd_userns_manager *open_manager(void) {
        struct nd_userns_settings settings = {.kubelet_root = root,
                                              .ids_per_pod = ND_IDS_UNIT,
                                              .max_pods = BLOCKS,
                                              .range = {.first = FIRST, .count = BLOCKS * ND_IDS_UNIT}};
        struct nd_userns_manager *manager;

        must(nd_userns_manager_open(&settings, &manager));
        return manager;
}

/* The child: announce, do, acknowledge, in this order. */

static void get(struct nd_userns_manager *manager, uint32_t pod) {
        nd_autoerror struct nd_error *error = nullptr;
        struct nd_userns_range range = {};
        char uid[16];

        uid_of(pod, uid);
        ledger->pod = pod;
        ledger->work = GETTING;
        error = nd_userns_manager_get(manager, uid, &range);
        if (error && nd_error_code(error) != ND_EXHAUSTED)
                fail("get %s: %s", uid, nd_error_text(error));
        if (!error)
                ledger->blocks[pod] = range.first;
        ledger->work = IDLE;
        ledger->acknowledged++;
}

static void release(struct nd_userns_manager *manager, uint32_t pod) {
        char uid[16];

        uid_of(pod, uid);
        ledger->pod = pod;
        ledger->work = RELEASING;
        must(nd_userns_manager_release(manager, uid));
        ledger->blocks[pod] = 0;
        ledger->work = IDLE;
        ledger->acknowledged++;
}

/* All acknowledged pods are alive, so a sweep at any time must not release a block. */
static void sweep(struct nd_userns_manager *manager) {
        nd_cleanup(nd_map_done) struct nd_map alive = {};
        nd_autoerror struct nd_error *error = nullptr;
        char uid[16];

        for (uint32_t pod = 0; pod < PODS; pod++)
                if (ledger->blocks[pod] != 0) {
                        uid_of(pod, uid);
                        (void) nd_map_put(&alive, uid, nullptr);
                }
        error = nd_userns_manager_sweep(manager, &alive);
        /* pods/ does not exist before the first pod */
        if (error && nd_error_code(error) != ND_NOT_FOUND)
                fail("sweep: %s", nd_error_text(error));
        ledger->acknowledged++;
}

[[noreturn]] static void work_until_killed(unsigned seed) {
        struct nd_userns_manager *manager = open_manager();

        srandom(seed);
        for (;;) {
                uint32_t pod = (uint32_t) random() % PODS;

                if (random() % 100 == 0)
                        sweep(manager);
                else if (ledger->blocks[pod] == 0 || random() % 4 == 0)
                        get(manager, pod);
                else
                        release(manager, pod);
        }
}

/* Every kind of change once: first and second pod, a known pod, a release, an existing directory, a
 * sweep. */
[[noreturn]] static void work_by_script(void) {
        nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *manager = open_manager();

        get(manager, 0);
        get(manager, 1);
        get(manager, 0);
        release(manager, 0);
        get(manager, 2);
        sweep(manager);
        get(manager, 0);
        release(manager, 1);
        release(manager, 2);
        get(manager, 3);
        ledger->finished = true;
        nd_userns_manager_done(&manager);
        _exit(EXIT_SUCCESS);
}

/* The table of system calls that kills the child. */

enum moment {
        BEFORE,
        WITHIN, /* a write that wrote half; otherwise like AFTER */
        AFTER,
        MOMENTS,
};

static long calls_left;
static enum moment moment;

static void die_at(enum moment here) {
        if (here == BEFORE)
                calls_left--;
        if (calls_left == 0 && (here == moment || (here == AFTER && moment == WITHIN)))
                (void) raise(SIGKILL);
}

#define killing(type, name, parameters, arguments)                                                                            \
        static type killing_##name parameters {                                                                               \
                type result;                                                                                                  \
                                                                                                                              \
                die_at(BEFORE);                                                                                               \
                result = nd_calls_real.name arguments;                                                                        \
                die_at(AFTER);                                                                                                \
                return result;                                                                                                \
        }

killing(int, openat, (int dir_fd, const char *path, int flags, mode_t mode), (dir_fd, path, flags, mode))
        killing(int, fsync, (int fd), (fd))
                killing(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
                        killing(int, unlinkat, (int dir_fd, const char *path, int flags), (dir_fd, path, flags))
                                killing(int, mkdirat, (int dir_fd, const char *path, mode_t mode), (dir_fd, path, mode))

                                        static ssize_t killing_write(int fd, const void *bytes, size_t length) {
        ssize_t n;

        die_at(BEFORE);
        n = nd_calls_real.write(fd, bytes, calls_left == 0 && moment == WITHIN ? length / 2 : length);
        die_at(AFTER);
        return n;
}

[[noreturn]] static void work_until_call(long number, enum moment at) {
        struct nd_calls calls = nd_calls_real;

        calls.openat = killing_openat;
        calls.write = killing_write;
        calls.fsync = killing_fsync;
        calls.renameat = killing_renameat;
        calls.unlinkat = killing_unlinkat;
        calls.mkdirat = killing_mkdirat;
        calls_left = number;
        moment = at;
        nd_sys = &calls;
        work_by_script();
}

/* The parent: checks of the files. */

/* Returns the block in a pod's file, 0 if there is none. An incomplete file ends the test. */
static uint32_t block_on_disk(uint32_t pod) {
        nd_autofree char *path = nullptr, *text = nullptr, *whole = nullptr;
        char uid[16];
        unsigned first = 0;
        size_t length = 0;

        uid_of(pod, uid);
        path = nd_format("%s/pods/%s/userns", root, uid);
        if (access(path, F_OK) < 0)
                return 0;
        must(nd_file_read(AT_FDCWD, path, ND_MAPPING_CEILING, &text, &length));
        if (sscanf(text, "{\"uidMappings\":[{\"hostId\":%u,", &first) == 1)
                whole = nd_mapping_format(first, ND_IDS_UNIT);
        if (!whole || strlen(whole) != length || memcmp(whole, text, length) != 0)
                fail("torn file of %s: '%s'", uid, text);
        return first;
}

static void check_pod(uint32_t pod, uint32_t found) {
        uint32_t noted = ledger->blocks[pod];
        bool busy = ledger->work != IDLE && ledger->pod == pod;

        if (found == noted)
                return;
        if (!busy)
                fail("pod %u had block %u, its file has %u", pod, noted, found);
        if (ledger->work == RELEASING && found != 0)
                fail("pod %u was being released from block %u, its file has %u", pod, noted, found);
        if (ledger->work == GETTING && noted != 0)
                fail("pod %u had block %u and requested it again, its file has %u", pod, noted, found);
}

static void check_files(uint32_t found[PODS]) {
        for (uint32_t pod = 0; pod < PODS; pod++) {
                found[pod] = block_on_disk(pod);
                check_pod(pod, found[pod]);
                for (uint32_t other = 0; other < pod; other++)
                        if (found[pod] != 0 && found[pod] == found[other])
                                fail("block %u is in the files of pods %u and %u", found[pod], other, pod);
        }
}

/* A restart as on a node: opens the manager, checks it, and sweeps all pods that are not known to
 * be alive. The operation in progress at the kill was not acknowledged, so its pod is not alive. */
static void check_restart(const uint32_t found[PODS]) {
        nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *manager = open_manager();
        struct nd_userns_count count = nd_userns_manager_count(manager);
        uint32_t files = 0, held = 0;

        for (uint32_t pod = 0; pod < PODS; pod++)
                files += found[pod] != 0;
        if (count.quarantined != 0 || count.pods != files || count.free != BLOCKS - files)
                fail("after the restart %u pods, %u in quarantine, %u blocks free; there are %u files", count.pods,
                     count.quarantined, count.free, files);
        if (ledger->work != IDLE)
                ledger->blocks[ledger->pod] = 0;
        ledger->work = IDLE;
        sweep(manager);
        for (uint32_t pod = 0; pod < PODS; pod++) {
                held += ledger->blocks[pod] != 0;
                if (block_on_disk(pod) != ledger->blocks[pod])
                        fail("after the sweep pod %u has block %u, not %u", pod, block_on_disk(pod), ledger->blocks[pod]);
        }
        count = nd_userns_manager_count(manager);
        if (count.pods != held || count.free != BLOCKS - held)
                fail("after the sweep %u pods hold blocks, and %u blocks are free of %d", count.pods, count.free, BLOCKS);
}

/* A temporary file outlives the killed process; it holds no block. The pod's directory is removed
 * with the pod. */
static void clear_pod(uint32_t pod) {
        nd_autofree char *path = nullptr;
        const struct dirent *entry;
        char uid[16];
        DIR *dir;

        uid_of(pod, uid);
        path = nd_format("%s/pods/%s", root, uid);
        dir = opendir(path);
        while (dir && (entry = readdir(dir))) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                leftovers += nd_has_prefix(entry->d_name, ND_FILE_TEMPORARY);
                if (unlinkat(dirfd(dir), entry->d_name, 0) < 0)
                        fail("cannot remove %s of %s", entry->d_name, uid);
        }
        if (dir) {
                (void) closedir(dir);
                (void) rmdir(path);
        }
        ledger->blocks[pod] = 0;
}

static void clear_all(void) {
        nd_autofree char *pods = nd_format("%s/pods", root);

        for (uint32_t pod = 0; pod < PODS; pod++)
                clear_pod(pod);
        (void) rmdir(pods);
}

static void reap(pid_t pid, bool killed) {
        int status;

        if (waitpid(pid, &status, 0) != pid)
                fail("waitpid: %s", strerror(errno));
        if (WIFEXITED(status) && (killed || WEXITSTATUS(status) != 0))
                fail("the child ended with %d before it was killed", WEXITSTATUS(status));
        if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
                fail("the child died of signal %d", WTERMSIG(status));
}

static void kill_at_random(unsigned kills, unsigned seed) {
        uint32_t found[PODS];
        unsigned busy = 0;

        printf("seed %u\n", seed);
        srandom(seed);
        for (unsigned i = 0; i < kills; i++) {
                struct timespec life = {.tv_nsec = random() % (LONGEST_LIFE_US * 1000L)};
                unsigned child_seed = (unsigned) random();
                pid_t pid = fork();

                if (pid == 0)
                        work_until_killed(child_seed);
                (void) nanosleep(&life, nullptr);
                (void) kill(pid, SIGKILL);
                reap(pid, true);
                busy += ledger->work != IDLE;
                check_files(found);
                check_restart(found);
        }
        printf("killed %u times at random (seed %u), %u of them amid a change, after %llu acknowledged ones\n", kills, seed,
               busy, (unsigned long long) ledger->acknowledged);
        if (kills >= 50 && (busy == 0 || ledger->acknowledged < kills))
                fail("no kill interrupted a change; the run proves nothing");
        clear_all();
}

/* After each kill the checks run, from an empty state; ends when the script survives. */
static void kill_at_every_call(enum moment at, const char *name) {
        uint32_t found[PODS];
        long number;

        for (number = 1;; number++) {
                pid_t pid;

                *ledger = (struct ledger) {};
                pid = fork();
                if (pid == 0)
                        work_until_call(number, at);
                reap(pid, false);
                check_files(found);
                if (ledger->finished)
                        break;
                check_restart(found);
                clear_all();
        }
        clear_all();
        printf("killed %s each of %ld system calls of a script\n", name, number - 1);
        if (number < 20)
                fail("the script makes fewer calls than expected");
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                {"kills", required_argument, nullptr, 'k'}, {"seed", required_argument, nullptr, 's'}, {}};
        static const char *const moments[MOMENTS] = {"before", "within", "after"};
        unsigned kills = 1000, seed = (unsigned) time(nullptr);
        char template[4096];
        int c;

        while ((c = getopt_long(argc, argv, "", options, nullptr)) >= 0)
                if (c == 'k')
                        kills = (unsigned) atoi(optarg);
                else if (c == 's')
                        seed = (unsigned) atoi(optarg);
                else
                        return EXIT_FAILURE;
        (void) snprintf(template, sizeof template, "%s/crash-XXXXXX", optind < argc ? argv[optind] : "/tmp");
        root = mkdtemp(template);
        ledger = mmap(nullptr, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (!root || ledger == MAP_FAILED)
                return EXIT_FAILURE;
        setvbuf(stdout, nullptr, _IOLBF, 0);

        if (kills > 0)
                kill_at_random(kills, seed);
        for (enum moment at = BEFORE; at < MOMENTS; at++)
                kill_at_every_call(at, moments[at]);
        printf("%u temporary files were left by killed processes and removed with their pods\n", leftovers);
        if (rmdir(root) < 0)
                fail("unexpected files are left");
        puts("passed: no torn file, no block held twice, no block lost after the sweep");
        return EXIT_SUCCESS;
}
