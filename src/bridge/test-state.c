/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "bridge/state.h"

static struct bridge_state made;

static int make(void **state) {
        expect_ok(bridge_state_make(&made));
        *state = &made;
        return 0;
}

static int drop(void **state) {
        struct bridge_state *s = *state;

        (void) munmap(s->shared, s->shared->size);
        return close(s->fd);
}

static struct bridge_node *add(struct bridge_state *s, uint64_t inode, const char *name) {
        struct bridge_node *node = bridge_state_node_new(s);

        assert_non_null(node);
        node->device = 1;
        node->inode = inode;
        node->lookups = 1;
        node->fd = open("/dev/null", O_PATH | O_CLOEXEC);
        s->open_nodes++;
        assert_true(bridge_state_cell_set(s, &node->name, name, strlen(name)));
        bridge_state_node_publish(s, node);
        return node;
}

static void expect_name(const struct bridge_state *s, const struct bridge_node *node, const char *name) {
        assert_int_equal(node->name.length, strlen(name));
        assert_memory_equal(bridge_state_cell_get(s, &node->name), name, strlen(name));
}

/* A record that is freed gives its descriptor away, open, and has none itself. */
static void close_freed(int fd) {
        assert_true(fcntl(fd, F_GETFD) >= 0);
        assert_int_equal(close(fd), 0);
}

static void nodes_are_found_by_inode_until_they_are_freed(void **state) {
        struct bridge_state *s = *state;
        struct bridge_node *first = add(s, 5, "five"), *second = add(s, 6, "six");

        assert_int_equal(bridge_state_node_id(s, first), FUSE_ROOT_ID);
        assert_ptr_equal(bridge_state_node_find(s, 1, 6, nullptr), second);
        assert_null(bridge_state_node_find(s, 2, 6, nullptr));
        close_freed(bridge_state_node_free(s, second));
        assert_int_equal(second->fd, -EBADF);
        assert_null(bridge_state_node_find(s, 1, 6, nullptr));
        assert_ptr_equal(add(s, 7, "seven"), second); /* the place is used again */
}

static void names_of_all_lengths_are_kept(void **state) {
        struct bridge_state *s = *state;
        char name[256] = "";
        struct bridge_node *nodes[255];

        for (size_t i = 0; i < nd_count_of(nodes); i++) {
                name[i] = 'x';
                nodes[i] = add(s, 100 + i, name);
        }
        for (size_t i = nd_count_of(nodes); i > 0; i--) {
                expect_name(s, nodes[i - 1], name);
                name[i - 1] = '\0';
        }
        assert_true(bridge_state_cell_set(s, &nodes[254]->name, "short", 5));
        expect_name(s, nodes[254], "short");
        assert_false(bridge_state_cell_set(s, &nodes[254]->name, name, 256));
}

static void file_handles_of_closed_files_are_not_valid_again(void **state) {
        struct bridge_state *s = *state;
        struct bridge_node *node = add(s, 5, "five");
        uint64_t first = bridge_state_file_new(s, open("/dev/null", O_RDONLY | O_CLOEXEC), node), second;

        assert_non_null(bridge_state_file_get(s, first));
        close_freed(bridge_state_file_free(s, bridge_state_file_get(s, first)));
        second = bridge_state_file_new(s, open("/dev/null", O_RDONLY | O_CLOEXEC), node);
        assert_int_equal((uint32_t) first, (uint32_t) second);
        assert_null(bridge_state_file_get(s, first));
        assert_null(bridge_state_file_get(s, 0));
        assert_null(bridge_state_file_get(s, UINT64_MAX));
        close_freed(bridge_state_file_free(s, bridge_state_file_get(s, second)));
}

/* Everything that is derived is wrong, as after a death in the middle of a change. */
static void damage(struct bridge_state *s) {
        memset(s->shared->buckets, 0xff, sizeof s->shared->buckets);
        s->free_node = s->free_file = UINT32_MAX;
        s->open_nodes = s->held_locks = 12345;
        for (size_t i = 0; i < BRIDGE_CELL_KINDS; i++)
                s->free_cell[i] = UINT32_MAX;
}

static void recovery_derives_the_rest_from_the_records(void **state) {
        struct bridge_state *s = *state;
        struct bridge_node *root = add(s, 1, "root"), *kept = add(s, 5, "kept"), *busy = add(s, 6, "busy"),
                           *open_one = add(s, 7, "open");
        struct bridge_node *half = bridge_state_node_new(s);
        uint64_t file = bridge_state_file_new(s, open("/dev/null", O_RDONLY | O_CLOEXEC), open_one);

        busy->busy = 3;
        busy->lookups = 0;
        open_one->lookups = 0;
        half->inode = 99; /* never published */
        damage(s);
        bridge_state_recover(s);
        assert_true(root->used && kept->used && open_one->used);
        assert_false(busy->used); /* only the dead server used it */
        assert_int_equal(busy->fd, -EBADF);
        assert_ptr_equal(bridge_state_node_find(s, 1, 5, nullptr), kept);
        assert_null(bridge_state_node_find(s, 1, 6, nullptr));
        expect_name(s, kept, "kept");
        assert_int_equal(open_one->opens, 1);
        assert_non_null(bridge_state_file_get(s, file));
        assert_int_equal(s->open_nodes, 3);
        for (int i = 0; i < 10; i++) /* free places and cells are used, and no used one */
                (void) add(s, 200 + (uint64_t) i, "another");
        expect_name(s, kept, "kept");
        expect_name(s, open_one, "open");
}

static void descriptors_that_no_record_has_are_closed(void **state) {
        struct bridge_state *s = *state;
        struct bridge_node *node = add(s, 5, "five");
        int lost = open("/dev/null", O_RDONLY | O_CLOEXEC), process = open("/dev/null", O_RDONLY | O_CLOEXEC);

        s->shared->processes[BRIDGE_KEEPER] = process;
        bridge_state_recover(s);
        bridge_state_close_unknown(s);
        assert_int_equal(fcntl(lost, F_GETFD), -1);
        assert_true(fcntl(node->fd, F_GETFD) >= 0 && fcntl(process, F_GETFD) >= 0 && fcntl(s->fd, F_GETFD) >= 0);
}

static void a_state_of_another_size_is_refused([[maybe_unused]] void **state) {
        nd_autoclose int fd = memfd_create("other", MFD_CLOEXEC);
        struct bridge_state other;

        expect_error(bridge_state_map(fd, &other), ND_PRECONDITION, "another version");
}

static void a_state_of_another_version_is_refused(void **state) {
        struct bridge_state *s = *state, other;

        s->shared->version++;
        expect_error(bridge_state_map(s->fd, &other), ND_PRECONDITION, "this program needs");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(nodes_are_found_by_inode_until_they_are_freed, make, drop),
                cmocka_unit_test_setup_teardown(names_of_all_lengths_are_kept, make, drop),
                cmocka_unit_test_setup_teardown(file_handles_of_closed_files_are_not_valid_again, make, drop),
                cmocka_unit_test_setup_teardown(recovery_derives_the_rest_from_the_records, make, drop),
                cmocka_unit_test_setup_teardown(descriptors_that_no_record_has_are_closed, make, drop),
                cmocka_unit_test(a_state_of_another_size_is_refused),
                cmocka_unit_test_setup_teardown(a_state_of_another_version_is_refused, make, drop),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
