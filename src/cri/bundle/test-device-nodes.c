/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/device-nodes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <unit/expect.h>
#include <unit/scratch.h>

#include "sys/dir.h"

enum {
        OUTSIDE = 3000000,
};

static void add(struct nd_spec *spec, const char *path, char type, uint32_t major, uint32_t minor, uint32_t uid) {
        nd_vector_push(&spec->devices, ((struct nd_spec_device) {.path = nd_strdup(path),
                                                                 .type = type,
                                                                 .major = major,
                                                                 .minor = minor,
                                                                 .mode = 0660,
                                                                 .uid = uid,
                                                                 .gid = 7,
                                                                 .own = uid != 0}));
}

static struct nd_spec mapped_spec(void) {
        const struct nd_userns_map map = {.outside = OUTSIDE, .count = 65536};

        return (struct nd_spec) {
                .user_namespace = true, .binds_devices = true, .makes_devices = true, .uids = map, .gids = map};
}

/* A mount namespace of our own and a container's directory with its place for mounts. */
static struct cri_volume_attachment begin(const char *root) {
        struct cri_volume_attachment attachment = ATTACHMENT_NONE;
        nd_autofree char *place = nd_format("%s/mounts", root);

        scratch_private_mounts();
        scratch_mkdir(root, "mounts");
        attachment.directory = nd_strdup(root);
        expect_ok(nd_dir_open(AT_FDCWD, place, &attachment.place));
        return attachment;
}

static void named_devices_get_nodes_that_belong_to_the_pod([[maybe_unused]] void **state) {
        scratch_directory root = nullptr;
        nd_cleanup(cri_volume_attachment_done) struct cri_volume_attachment attachment = ATTACHMENT_NONE;
        nd_cleanup(nd_spec_done) struct nd_spec spec = mapped_spec();
        struct stat st;

        if (geteuid() != 0)
                skip_because("device nodes need privilege");
        root = scratch_make();
        attachment = begin(root);
        add(&spec, "/dev/kept", 'c', 1, 5, 0);
        add(&spec, "/dev/fuse", 'c', 10, 229, 1000);
        add(&spec, "/dev/disk", 'b', 7, 0, 1001);
        expect_ok(cri_device_nodes_make(&attachment, &spec));
        assert_int_equal(spec.devices.count, 1);
        assert_string_equal(spec.devices.items[0].path, "/dev/kept");
        assert_int_equal(spec.mounts.count, 2);
        assert_string_equal(spec.mounts.items[0].destination, "/dev/fuse");
        assert_false(nd_strings_have(&spec.mounts.items[0].options, "nodev"));
        assert_int_equal(stat(spec.mounts.items[0].source, &st), 0);
        assert_true(S_ISCHR(st.st_mode));
        assert_int_equal(st.st_mode & 07777, 0660);
        assert_int_equal(st.st_uid, OUTSIDE + 1000);
        assert_int_equal(st.st_gid, OUTSIDE + 7);
        assert_int_equal(st.st_rdev, makedev(10, 229));
        assert_int_equal(stat(spec.mounts.items[1].source, &st), 0);
        assert_true(S_ISBLK(st.st_mode));
}

static void an_owner_that_the_pod_does_not_have_is_an_error([[maybe_unused]] void **state) {
        scratch_directory root = nullptr;
        nd_cleanup(cri_volume_attachment_done) struct cri_volume_attachment attachment = ATTACHMENT_NONE;
        nd_cleanup(nd_spec_done) struct nd_spec spec = mapped_spec();

        if (geteuid() != 0)
                skip_because("device nodes need privilege");
        root = scratch_make();
        attachment = begin(root);
        add(&spec, "/dev/fuse", 'c', 10, 229, 65536);
        expect_error(cri_device_nodes_make(&attachment, &spec), ND_INVALID, "device '/dev/fuse' belongs to user 65536");
        assert_int_equal(spec.devices.count, 1);
}

static void without_such_a_device_nothing_is_made([[maybe_unused]] void **state) {
        const struct cri_volume_attachment attachment = ATTACHMENT_NONE;
        nd_cleanup(nd_spec_done) struct nd_spec spec = mapped_spec();

        add(&spec, "/dev/kept", 'c', 1, 5, 0);
        expect_ok(cri_device_nodes_make(&attachment, &spec));
        assert_int_equal(spec.devices.count, 1);
        assert_int_equal(spec.mounts.count, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(named_devices_get_nodes_that_belong_to_the_pod),
                cmocka_unit_test(an_owner_that_the_pod_does_not_have_is_an_error),
                cmocka_unit_test(without_such_a_device_nothing_is_made),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
