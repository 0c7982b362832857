/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/devices.h"

#include <unit/expect.h>
#include <unit/scratch.h>

static struct nd_error *describe(const char *host, const char *container, const char *permissions, struct nd_spec *ret) {
        struct cri_container_request request = {};
        struct nd_error *error;

        nd_vector_push(&request.devices, ((struct cri_device_request) {.host_path = (char *) host,
                                                                       .container_path = (char *) container,
                                                                       .permissions = (char *) permissions}));
        error = cri_devices_describe(&request, false, ret);
        nd_vector_done(&request.devices);
        return error;
}

static void a_device_is_added_with_its_numbers_and_permissions([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};

        expect_ok(describe("/dev/null", "/dev/nothing", "rw", &spec));
        assert_int_equal(spec.devices.count, 1);
        assert_string_equal(spec.devices.items[0].path, "/dev/nothing");
        assert_int_equal(spec.devices.items[0].type, 'c');
        assert_int_equal(spec.devices.items[0].major, 1);
        assert_int_equal(spec.devices.items[0].minor, 3);
        assert_int_equal(spec.devices.items[0].mode, 0666);
        assert_int_equal(spec.resources.devices.count, 2);
        assert_false(spec.resources.devices.items[0].allow); /* all others are denied */
        assert_string_equal(spec.resources.devices.items[1].access, "rw");
}

static void without_host_root_a_device_with_another_name_is_a_mount([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {.binds_devices = true};

        expect_ok(describe("/dev/null", "/dev/nothing", "rw", &spec));
        expect_ok(describe("/dev/zero", "/dev/zero", "r", &spec));
        assert_int_equal(spec.mounts.count, 1);
        assert_string_equal(spec.mounts.items[0].source, "/dev/null");
        assert_string_equal(spec.mounts.items[0].destination, "/dev/nothing");
        assert_int_equal(spec.devices.count, 1);
        assert_string_equal(spec.devices.items[0].path, "/dev/zero");
        /* each call begins with a rule that denies all */
        assert_int_equal(spec.resources.devices.count, 4);
}

/* By the request's user and group, and by the settings of pod and node. */
static void owner(struct cri_container_request request, bool owned, struct nd_spec *spec, const char *wanted) {
        struct cri_device_request zero = {
                .host_path = (char *) "/dev/zero", .container_path = (char *) "/dev/zero", .permissions = (char *) "rw"};
        nd_autofree char *found = nullptr;

        nd_vector_push(&request.devices, zero);
        expect_ok(cri_devices_describe(&request, owned, spec));
        nd_vector_done(&request.devices);
        found = nd_format("%u:%u %s", spec->devices.items[0].uid, spec->devices.items[0].gid,
                          spec->devices.items[0].own ? "own" : "");
        assert_string_equal(found, wanted);
        nd_spec_done(spec);
}

static void owners_are_the_hosts_the_requests_or_the_processs([[maybe_unused]] void **state) {
        const struct cri_container_request user = {.has_user = true, .user = 1000, .has_group = true, .group = 2000};
        const struct cri_container_request root = {.has_user = true, .has_group = true};
        struct nd_spec spec = {};

        owner(user, false, &spec, "0:0 ");
        owner(user, true, &spec, "1000:2000 ");
        owner(root, true, &spec, "0:0 ");
        owner((struct cri_container_request) {.user = 1000, .group = 2000}, true, &spec, "0:0 ");
        spec = (struct nd_spec) {.binds_devices = true, .makes_devices = true, .process.user = {.uid = 33, .gid = 44}};
        owner(user, false, &spec, "33:44 own");
}

static void links_are_followed_and_directories_walked([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        nd_autofree char *link = nd_format("%s/link", root), *directory = nd_format("%s/links", root);

        assert_int_equal(symlink("/dev/zero", link), 0);
        expect_ok(describe(link, "/dev/zero", "rwm", &spec));
        assert_int_equal(spec.devices.items[0].minor, 5);
        scratch_mkdir(root, "links");
        scratch_text(root, "links/file", "no device");
        expect_error(describe(directory, "/dev/x", "rwm", &spec), ND_INVALID, "is not a device");
}

static void a_path_that_is_not_a_device_is_an_error([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};

        expect_error(describe("/etc/passwd", "/dev/x", "rwm", &spec), ND_INVALID, "'/etc/passwd' is not a device");
        expect_error(describe("/dev/no/such", "/dev/x", "rwm", &spec), ND_NOT_FOUND, "device '/dev/no/such'");
}

static void privileged_has_the_nodes_devices_but_not_its_terminals([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        bool null = false;

        expect_ok(cri_devices_describe(&(struct cri_container_request) {.privileged = true}, false, &spec));
        nd_vector_each (device, &spec.devices) {
                null = null || nd_streq(device->path, "/dev/null");
                assert_false(nd_has_prefix(device->path, "/dev/pts/"));
                assert_false(nd_streq(device->path, "/dev/console"));
        }
        assert_true(null);
        assert_int_equal(spec.resources.devices.count, 1);
        assert_true(spec.resources.devices.items[0].allow);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_device_is_added_with_its_numbers_and_permissions),
                cmocka_unit_test(without_host_root_a_device_with_another_name_is_a_mount),
                cmocka_unit_test(owners_are_the_hosts_the_requests_or_the_processs),
                cmocka_unit_test(links_are_followed_and_directories_walked),
                cmocka_unit_test(a_path_that_is_not_a_device_is_an_error),
                cmocka_unit_test(privileged_has_the_nodes_devices_but_not_its_terminals),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
