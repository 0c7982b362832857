/* SPDX-License-Identifier: Apache-2.0 */
/* scale.c - allocates and releases every block
 *
 * Allocates all 65,534 blocks with their files, opens the manager again and finds each pod with its
 * block, releases all in a shuffled order, the same in every run, and checks that nothing is lost
 * and nothing left. Prints the cost of an allocation, in memory and with its file, and the time
 * that a manager takes to start; with --figures as the first argument a slow allocation is a
 * failure. Works in directories that it creates under the other arguments, one round in each: the
 * first is meant to be on tmpfs (on a disk it gets fewer pods too, and the test counts as skipped),
 * a second on the disk that a node would use, with fewer pods since each costs two fsyncs. */
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/map.h"
#include "userns/blocks.h"
#include "userns/manager.h"
#include "userns/store.h"

enum {
        ALL = 65534, /* 2^32 / 65536, without the host's block and the block that ends at 2^32 */
        NODE = 1000, /* pods of the largest node that we test */
        EXIT_SKIPPED = 77,
};

static uint64_t now_ns(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

[[noreturn]] static void fail(const char *what, uint64_t n) {
        fprintf(stderr, "FAILED: %s (%" PRIu64 ")\n", what, n);
        exit(EXIT_FAILURE);
}

static void must(struct nd_error *error) {
        if (!error)
                return;
        fprintf(stderr, "FAILED: %s\n", nd_error_text(error));
        exit(EXIT_FAILURE);
}

static int compare_u64(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

static void print_spread(const char *what, uint64_t *samples, size_t count) {
        qsort(samples, count, sizeof *samples, compare_u64);
        printf("%s, %zu times: p50 %.2f us, p99 %.2f us, longest %.2f us\n", what, count, (double) samples[count / 2] / 1000,
               (double) samples[count * 99 / 100] / 1000, (double) samples[count - 1] / 1000);
}

static uint32_t random_below(uint32_t bound) {
        return (uint32_t) random() % bound;
}

static void uid_of(uint32_t number, char ret[37]) {
        (void) snprintf(ret, 37, "%08x-0000-4000-8000-%012x", number * 2654435761u, number);
}

static struct nd_userns_manager *open_manager(const char *root) {
        struct nd_userns_settings settings = {
                .kubelet_root = root, .ids_per_pod = ND_IDS_UNIT, .max_pods = ALL, .range = nd_range_default(ND_IDS_UNIT)};
        struct nd_userns_manager *manager;

        must(nd_userns_manager_open(&settings, &manager));
        return manager;
}

/* The path in memory: find a free block, take it, and add the pod to the index. reserve() is the
 * manager's allocation without the search and the file; the search runs on a second set of blocks,
 * so that this measures a little too much rather than too little. */
static void time_memory(const char *root, bool figures) {
        nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *manager = open_manager(root);
        nd_cleanup(nd_blocks_done) struct nd_blocks blocks = {};
        nd_autofree uint64_t *samples = nd_calloc(ALL, sizeof *samples);

        nd_blocks_init(ND_BLOCKS_MOST, &blocks);
        for (uint32_t block = 1; block <= ALL; block++)
                nd_blocks_give(&blocks, block);
        for (uint32_t i = 0; i < ALL; i++) {
                uint32_t block = 0;
                uint64_t started;
                char uid[37];

                uid_of(i, uid);
                started = now_ns();
                if (!nd_blocks_find(&blocks, &block) || !nd_blocks_take(&blocks, block))
                        fail("no block free in memory", i);
                nd_userns_manager_reserve(manager, uid, (struct nd_userns_range) {block * ND_IDS_UNIT, ND_IDS_UNIT});
                samples[i] = now_ns() - started;
        }
        if (nd_userns_manager_count(manager).free != 0)
                fail("blocks free in memory after all were taken", nd_userns_manager_count(manager).free);
        print_spread("allocation in memory", samples, ALL);
        if (figures && samples[ALL * 99 / 100] >= 50000)
                fail("p99 of an allocation in memory is not below 50 us, in ns", samples[ALL * 99 / 100]);
}

static void allocate_all(const char *root, uint32_t pods, uint32_t *firsts) {
        nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *manager = open_manager(root);
        nd_autofree uint64_t *samples = nd_calloc(pods, sizeof *samples);
        nd_autofree bool *seen = nd_calloc(ND_BLOCKS_MOST, sizeof *seen);
        struct nd_userns_range range;

        for (uint32_t i = 0; i < pods; i++) {
                uint64_t started;
                char uid[37];

                uid_of(i, uid);
                started = now_ns();
                must(nd_userns_manager_get(manager, uid, &range));
                samples[i] = now_ns() - started;
                if (range.count != ND_IDS_UNIT || range.first % ND_IDS_UNIT != 0 || seen[range.first / ND_IDS_UNIT] ||
                    range.first < ND_IDS_UNIT || range.first == UINT32_MAX - ND_IDS_UNIT + 1)
                        fail("allocated a reserved block", range.first);
                seen[range.first / ND_IDS_UNIT] = true;
                firsts[i] = range.first;
        }
        print_spread("allocation with its file", samples, pods);
        if (pods == ALL) {
                nd_autoerror struct nd_error *error = nd_userns_manager_get(manager, "one-too-many", &range);

                if (nd_error_code(error) != ND_EXHAUSTED)
                        fail("allocated more blocks than exist", range.first);
        }
}

struct recovery {
        const uint32_t *firsts;
        uint32_t seen;
};

static void check_pod(const struct nd_userns_pod *pod, void *userdata) {
        struct recovery *recovery = userdata;
        unsigned number;

        if (pod->problem || sscanf(pod->uid, "%*8x-0000-4000-8000-%12x", &number) != 1 ||
            pod->extents[0].first != recovery->firsts[number])
                fail("recovered a pod with another block", recovery->seen);
        recovery->seen++;
}

static struct nd_userns_manager *recover(const char *root, uint32_t pods, const uint32_t *firsts) {
        uint64_t started = now_ns();
        struct nd_userns_manager *manager = open_manager(root);
        struct recovery recovery = {.firsts = firsts};

        printf("recovery of %u pods: %.1f ms\n", pods, (double) (now_ns() - started) / 1e6);
        nd_userns_manager_each(manager, check_pod, &recovery);
        if (recovery.seen != pods || nd_userns_manager_count(manager).free != ALL - pods)
                fail("pods recovered", recovery.seen);
        return manager;
}

/* Releases in a shuffled order; then all blocks must be free again, in memory and after another
 * start. */
static void release_all(const char *root, struct nd_userns_manager *manager, uint32_t pods) {
        nd_autofree uint32_t *order = nd_calloc(pods, sizeof *order);
        nd_autofree uint64_t *samples = nd_calloc(pods, sizeof *samples);
        nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *again = nullptr;

        for (uint32_t i = 0; i < pods; i++) {
                uint32_t j = random_below(i + 1);

                order[i] = order[j];
                order[j] = i;
        }
        for (uint32_t i = 0; i < pods; i++) {
                uint64_t started;
                char uid[37];

                uid_of(order[i], uid);
                started = now_ns();
                must(nd_userns_manager_release(manager, uid));
                samples[i] = now_ns() - started;
        }
        print_spread("release with its file, in a shuffled order", samples, pods);
        if (nd_userns_manager_count(manager).free != ALL)
                fail("blocks free after all were released", nd_userns_manager_count(manager).free);
        again = open_manager(root);
        if (nd_userns_manager_count(again).free != ALL || nd_userns_manager_count(again).quarantined != 0)
                fail("blocks free after a restart", nd_userns_manager_count(again).free);
}

static void remove_tree(const char *root) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_autofree char *pods = nd_format("%s/pods", root);

        must(nd_dir_list(AT_FDCWD, pods, ND_STORE_PODS, &names));
        nd_vector_each (name, &names) {
                nd_autofree char *path = nd_format("%s/%s", pods, *name);

                if (rmdir(path) < 0)
                        fail("something is left in a pod's directory", 0);
        }
        if (rmdir(pods) < 0 || rmdir(root) < 0)
                fail("something is left", 0);
}

static void round_in(const char *directory, uint32_t pods, bool memory, bool figures) {
        nd_autofree char *root = nd_format("%s/scale-XXXXXX", directory);
        nd_autofree uint32_t *firsts = nd_calloc(pods, sizeof *firsts);

        if (!mkdtemp(root))
                fail(directory, 0);
        printf("in %s: %u pods\n", directory, pods);
        if (memory)
                time_memory(root, figures);
        allocate_all(root, pods, firsts);
        {
                nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *manager = recover(root, pods, firsts);

                release_all(root, manager, pods);
        }
        remove_tree(root);
}

static bool is_in_memory(const char *directory) {
        struct statfs s;

        return statfs(directory, &s) == 0 && s.f_type == TMPFS_MAGIC;
}

int main(int argc, char **argv) {
        bool figures = argc > 1 && nd_streq(argv[1], "--figures");
        int first = figures ? 2 : 1;
        const char *memory = argc > first ? argv[first] : "/tmp";
        bool whole;

        whole = is_in_memory(memory);
        if (whole)
                round_in(memory, ALL, true, figures);
        round_in(memory, NODE, false, figures);
        if (argc > first + 1)
                round_in(argv[first + 1], NODE, false, figures);
        if (!whole) {
                printf("skipped: '%s' is not a tmpfs, on which all %d blocks take minutes; %d were tested\n", memory, ALL,
                       NODE);
                return EXIT_SKIPPED;
        }
        puts("passed: all blocks were allocated, recorded, recovered and released; none was lost or allocated twice");
        return EXIT_SUCCESS;
}
