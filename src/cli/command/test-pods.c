/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cli/command/pods.h"

#define CONTAINER(container_name, number, text, failures)                                                                     \
        (&(Nodens__V1__ContainerEntry) {.base = PROTOBUF_C_MESSAGE_INIT(&nodens__v1__container_entry__descriptor),            \
                                        .name = (char *) (container_name),                                                    \
                                        .attempt = (number),                                                                  \
                                        .state = (char *) (text),                                                             \
                                        .checks_failed = (failures)})

static void expect_running(Nodens__V1__ContainerEntry **containers, size_t count, const char *expected) {
        Nodens__V1__PodEntry pod = NODENS__V1__POD_ENTRY__INIT;

        pod.containers = containers;
        pod.n_containers = count;
        expect_text(cli_pods_running(&pod), expected);
}

static void only_the_newest_attempt_of_a_container_counts([[maybe_unused]] void **state) {
        Nodens__V1__ContainerEntry *restarted[] = {CONTAINER("web", 0, "exited", 1), CONTAINER("web", 2, "running", 0),
                                                   CONTAINER("web", 1, "exited", 0)};
        Nodens__V1__ContainerEntry *two[] = {CONTAINER("web", 1, "running", 0), CONTAINER("web", 0, "exited", 0),
                                             CONTAINER("side", 0, "exited", 0)};
        Nodens__V1__ContainerEntry *bad[] = {CONTAINER("web", 0, "running", 2)};

        expect_running(nullptr, 0, "0/0");
        expect_running(restarted, 3, "1/1");
        expect_running(two, 3, "1/2");
        expect_running(bad, 1, "1/1, 1 failed a check");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_newest_attempt_of_a_container_counts),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
