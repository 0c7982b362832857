/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/resources.h"

#include <linux/capability.h>
#include <unit/expect.h>

static struct nd_error *cgroup_of(bool systemd, const char *parent, char **ret) {
        struct cri_config config = {.systemd_cgroups = systemd, .cgroup_prefix = (char *) "cri-containerd"};

        return cri_resources_cgroup(&config, parent, "id", ret);
}

static void expect_cgroup(bool systemd, const char *parent, const char *expected) {
        char *path = nullptr;

        expect_ok(cgroup_of(systemd, parent, &path));
        expect_text(path, expected);
}

static void expect_path(const char *given, const char *expected) {
        nd_autofree char *path = nullptr;

        expect_ok(cri_resources_cgroup_path(given, &path));
        assert_string_equal(path, expected);
}

static void the_cgroup_path_is_known_for_both_drivers([[maybe_unused]] void **state) {
        nd_autofree char *path = nullptr;

        expect_path("/kubepods/burstable/podX/id", "/kubepods/burstable/podX/id");
        expect_path("kubepods-burstable-podX.slice:cri-containerd:id",
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podX.slice/cri-containerd-id.scope");
        expect_path("system.slice:nodens:id", "/system.slice/nodens-id.scope");
        expect_error(cri_resources_cgroup_path("/kubepods/podX:a:id", &path), ND_INVALID, "invalid cgroup");
        expect_error(cri_resources_cgroup_path("system.slice:a", &path), ND_INVALID, "invalid cgroup");
}

static void both_cgroup_drivers_get_the_kubelets_parent_in_their_format([[maybe_unused]] void **state) {
        expect_cgroup(false, "/kubepods/burstable/podX", "/kubepods/burstable/podX/id");
        expect_cgroup(false, "", "/nodens/id");
        expect_cgroup(true, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podX.slice",
                      "kubepods-burstable-podX.slice:cri-containerd:id");
        expect_cgroup(true, "", "system.slice:cri-containerd:id");
}

static void a_parent_that_does_not_fit_the_driver_is_refused([[maybe_unused]] void **state) {
        nd_autofree char *path = nullptr;

        expect_error(cgroup_of(true, "/kubepods/podX", &path), ND_INVALID, "is not a slice, but the cgroup driver is systemd");
        expect_error(cgroup_of(false, "/kubepods/../../x", &path), ND_INVALID, "contains '..' or ':'");
        expect_error(cgroup_of(true, "/a:b.slice", &path), ND_INVALID, "contains '..' or ':'");
}

static void limits_are_passed_on_unchanged([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_resources_done) struct nd_spec_resources resources = {};
        struct cri_resource_request request = {.cpu_shares = 2,
                                               .cpu_quota = 1000,
                                               .cpu_period = 100000,
                                               .memory_limit = 4096,
                                               .memory_swap_limit = 8192,
                                               .cpuset_cpus = (char *) "",
                                               .cpuset_mems = (char *) "0"};

        nd_vector_push(&request.unified, ((struct cri_pair) {(char *) "memory.oom.group", (char *) "1"}));
        cri_resources_describe(&request, "", &resources);
        assert_int_equal(resources.cpu_shares, 2);
        assert_int_equal(resources.memory_swap, 8192);
        assert_null(resources.cpus);
        assert_string_equal(resources.memories, "0");
        assert_string_equal(resources.unified.items[0].key, "memory.oom.group");
        nd_vector_done(&request.unified);
}

static void cgroups_that_a_container_creates_are_bounded([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_resources_done) struct nd_spec_resources resources = {};

        cri_resources_bound_cgroups(&resources);
        assert_int_equal(resources.unified.count, 2);
        assert_string_equal(resources.unified.items[0].key, "cgroup.max.descendants");
        assert_string_equal(resources.unified.items[0].value, "1024");
        assert_string_equal(resources.unified.items[1].key, "cgroup.max.depth");
        assert_string_equal(resources.unified.items[1].value, "16");
}

static void an_oom_score_is_limited_to_what_the_kernel_accepts([[maybe_unused]] void **state) {
        uint64_t may = UINT64_C(1) << CAP_SYS_RESOURCE;

        assert_int_equal(cri_resources_oom_score(-998, may), -998);
        assert_int_equal(cri_resources_oom_score(-5000, may), -1000);
        assert_int_equal(cri_resources_oom_score(5000, 0), 1000);
        assert_true(cri_resources_oom_score(-1000, 0) > -1000 || geteuid() == 0);
        assert_int_equal(cri_resources_oom_score(1000, 0), 1000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(both_cgroup_drivers_get_the_kubelets_parent_in_their_format),
                cmocka_unit_test(the_cgroup_path_is_known_for_both_drivers),
                cmocka_unit_test(a_parent_that_does_not_fit_the_driver_is_refused),
                cmocka_unit_test(limits_are_passed_on_unchanged),
                cmocka_unit_test(cgroups_that_a_container_creates_are_bounded),
                cmocka_unit_test(an_oom_score_is_limited_to_what_the_kernel_accepts),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
