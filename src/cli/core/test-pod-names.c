/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>
#include <unit/scratch.h>

#include <sys/stat.h>

#include "cli/core/pod-names.h"

static void make_directory(const char *parent, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", parent, name);

        assert_int_equal(mkdir(path, 0755), 0);
}

static void names_are_those_of_the_directories_of_logs([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_cleanup(cli_pod_names_done) struct cli_pod_names names = {};
        const struct cli_pod_name *name;

        make_directory(directory, "shop_web-7d9f8-x2k9p_1f1c7c5e-0c5d-4d3c-8a5e-0d9a3f5a7b11");
        /* a static pod */
        make_directory(directory, "kube-system_etcd-one_0123456789abcdef0123456789abcdef");
        make_directory(directory, "one_uid");
        make_directory(directory, "notes");
        make_directory(directory, "_");
        cli_pod_names_read_logs(&names, directory);
        assert_int_equal(names.by_uid.count, 2);
        name = cli_pod_names_get(&names, "1f1c7c5e-0c5d-4d3c-8a5e-0d9a3f5a7b11");
        assert_non_null(name);
        assert_string_equal(name->namespace, "shop");
        assert_string_equal(name->name, "web-7d9f8-x2k9p");
        assert_non_null(cli_pod_names_get(&names, "0123456789abcdef0123456789abcdef"));
        assert_null(cli_pod_names_get(&names, "uid"));
}

static void sources_that_do_not_exist_are_not_an_error([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *absent = nd_format("%s/absent", directory), *uid = nd_strdup("x");
        nd_cleanup(cli_pod_names_done) struct cli_pod_names names = {};

        cli_pod_names_read_logs(&names, absent);
        cli_pod_names_read(&names, absent);
        assert_null(cli_pod_names_get(&names, uid));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_those_of_the_directories_of_logs),
                cmocka_unit_test(sources_that_do_not_exist_are_not_an_error),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
