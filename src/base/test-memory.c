/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <sys/wait.h>

#include <unit/resources.h>

#include "base/memory.h"

static void taking_leaves_the_empty_value_behind([[maybe_unused]] void **state) {
        nd_autofree char *text = nd_strdup("x");
        char *taken = nd_take_ptr(text);
        int fd = 7;

        assert_null(text);
        assert_string_equal(taken, "x");
        free(taken);
        assert_int_equal(nd_take_fd(fd), 7);
        assert_int_equal(fd, -EBADF);
}

static void destructors_keep_errno_and_take_empty_values([[maybe_unused]] void **state) {
        int none = -EBADF, bad = 1 << 20;
        char *nothing = nullptr;

        errno = ENOTTY;
        nd_close_fd(&none);
        nd_close_fd(&bad); /* close() fails here and would set EBADF */
        nd_free_ptr(&nothing);
        assert_int_equal(errno, ENOTTY);
        assert_int_equal(bad, -EBADF);
}

static void a_descriptor_is_closed_where_its_variable_ends([[maybe_unused]] void **state) {
        size_t before = resources_descriptors();

        {
                nd_autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

                assert_true(fd >= 0);
                assert_int_equal(resources_descriptors(), before + 1);
        }
        assert_int_equal(resources_descriptors(), before);
}

static void an_allocation_of_zero_bytes_succeeds([[maybe_unused]] void **state) {
        nd_autofree void *a = nd_malloc(0), *b = nd_calloc(0, 0), *c = nd_realloc_array(nullptr, 0, 8);

        assert_non_null(a);
        assert_non_null(b);
        assert_non_null(c);
}

static void a_copy_ends_at_its_length_or_at_the_terminator([[maybe_unused]] void **state) {
        expect_text(nd_strndup("abcdef", 3), "abc");
        expect_text(nd_strndup("ab", 100), "ab");
        expect_text(nd_strdup(""), "");
        expect_text(nd_format("%s-%d", "a", 5), "a-5");
}

/* Runs an impossible allocation in a child: it must not return. */
static void run_out_of_memory(void (*function)(void)) {
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                (void) dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
                function();
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void array_that_overflows(void) {
        free(nd_realloc_array(nullptr, SIZE_MAX / 2, 3));
}

/* Volatile: the compiler would warn that this cannot succeed. */
static volatile size_t too_much = SIZE_MAX / 4;

static void memory_that_is_not_there(void) {
        free(nd_malloc(too_much));
}

static void an_impossible_allocation_aborts_the_process([[maybe_unused]] void **state) {
        run_out_of_memory(array_that_overflows);
        run_out_of_memory(memory_that_is_not_there);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(taking_leaves_the_empty_value_behind),
                cmocka_unit_test(destructors_keep_errno_and_take_empty_values),
                cmocka_unit_test(a_descriptor_is_closed_where_its_variable_ends),
                cmocka_unit_test(an_allocation_of_zero_bytes_succeeds),
                cmocka_unit_test(a_copy_ends_at_its_length_or_at_the_terminator),
                cmocka_unit_test(an_impossible_allocation_aborts_the_process),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
