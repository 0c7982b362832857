/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/sysmacros.h>

#include <unit/scratch.h>

#include "cri/bundle/cdi.h"
#include "cri/core/config.h"

static const char vendor[] =
        "{\"cdiVersion\":\"0.6.0\",\"kind\":\"vendor.com/gpu\",\"annotations\":{\"x\":\"y\"},\"devices\":["
        "{\"name\":\"0\",\"containerEdits\":{\"env\":[\"GPU=0\",\"NEW=1\"],"
        "\"deviceNodes\":[{\"path\":\"/dev/gpu0\",\"permissions\":\"rw\"},"
        "{\"path\":\"/dev/ctl\",\"hostPath\":\"/dev/ctl-host\",\"type\":\"c\",\"major\":10,\"minor\":5,\"fileMode\":438,\"gid\":44}],"
        "\"mounts\":[{\"hostPath\":\"/usr/lib/gpu\",\"containerPath\":\"/lib/gpu\",\"options\":[\"ro\",\"nosuid\"]}],"
        "\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/usr/bin/hook\",\"args\":[\"hook\",\"--x\"],\"env\":[\"A=B\"],\"timeout\":5}],"
        "\"additionalGids\":[44]}},"
        "{\"name\":\"bad\",\"containerEdits\":{\"intelRdt\":{\"closID\":\"x\"}}},"
        "{\"name\":\"none\"}],"
        "\"containerEdits\":{\"env\":[\"ALL=yes\"]}}";

static int look_at_device(const char *path, struct stat *ret) {
        if (!nd_streq(path, "/dev/gpu0"))
                return -ENOENT;
        *ret = (struct stat) {.st_mode = S_IFCHR | 0660, .st_rdev = makedev(195, 7)};
        return 0;
}

static struct cri_cdi_file parse(const char *text, bool yaml) {
        struct cri_cdi_file file = {};

        expect_ok(cri_cdi_file_parse(text, strlen(text), yaml, &file));
        return file;
}

static void a_device_gets_all_edits_of_its_file([[maybe_unused]] void **state) {
        nd_cleanup(cri_cdi_file_done) struct cri_cdi_file file = parse(vendor, false);
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        nd_autotext struct nd_text text = ND_TEXT(ND_SPEC_CEILING);

        assert_true(cri_cdi_file_has(&file, "vendor.com/gpu=0"));
        assert_false(cri_cdi_file_has(&file, "vendor.com/gpu=1"));
        assert_false(cri_cdi_file_has(&file, "vendor.com/gpus=0"));
        assert_false(cri_cdi_file_has(&file, "vendor.com/gpu"));
        nd_strings_add(&spec.process.environment, "GPU=all");
        spec.root = nd_strdup("/r");
        expect_ok(cri_cdi_file_edit(&file, nullptr, look_at_device, &spec));
        expect_ok(cri_cdi_file_edit(&file, "vendor.com/gpu=0", look_at_device, &spec));
        assert_int_equal(spec.process.environment.count, 3);
        assert_string_equal(spec.process.environment.items[0], "GPU=0"); /* overridden */
        assert_string_equal(spec.process.environment.items[1], "ALL=yes");
        assert_int_equal(spec.devices.count, 2);
        assert_int_equal(spec.devices.items[0].major, 195);
        assert_int_equal(spec.devices.items[0].mode, 0660);
        assert_int_equal(spec.devices.items[1].minor, 5);
        assert_int_equal(spec.devices.items[1].mode, 0666);
        assert_int_equal(spec.devices.items[1].gid, 44);
        assert_string_equal(spec.resources.devices.items[0].access, "rw");
        assert_string_equal(spec.resources.devices.items[1].access, "rwm");
        assert_string_equal(spec.mounts.items[0].source, "/usr/lib/gpu");
        assert_string_equal(spec.mounts.items[0].options.items[0], "rbind");
        assert_int_equal(spec.process.user.groups.items[0], 44);
        expect_ok(nd_spec_format(&spec, &text));
        expect_contains(nd_text_get(&text),
                        "\"createContainer\": [{\"path\": \"/usr/bin/hook\", \"args\": [\"hook\", \"--x\"], "
                        "\"env\": [\"A=B\"], \"timeout\": 5}]");
}

static void in_a_user_namespace_a_different_host_path_is_a_mount([[maybe_unused]] void **state) {
        nd_cleanup(cri_cdi_file_done) struct cri_cdi_file file = parse(vendor, false);
        nd_cleanup(nd_spec_done) struct nd_spec spec = {.user_namespace = true, .binds_devices = true};

        expect_ok(cri_cdi_file_edit(&file, "vendor.com/gpu=0", look_at_device, &spec));
        assert_int_equal(spec.devices.count, 1);
        assert_string_equal(spec.devices.items[0].path, "/dev/gpu0");
        assert_int_equal(spec.mounts.count, 2);
        assert_string_equal(spec.mounts.items[0].destination, "/dev/ctl");
        assert_string_equal(spec.mounts.items[0].source, "/dev/ctl-host");
        assert_int_equal(spec.resources.devices.count, 2);
}

static void a_node_belongs_to_the_containers_user_unless_the_file_says_otherwise([[maybe_unused]] void **state) {
        static const char text[] = "{\"cdiVersion\":\"1\",\"kind\":\"a/b\",\"containerEdits\":{\"deviceNodes\":["
                                   "{\"path\":\"/dev/gpu0\"},{\"path\":\"/dev/gpu0\",\"uid\":0,\"gid\":7}]}}";
        nd_cleanup(cri_cdi_file_done) struct cri_cdi_file file = parse(text, false);
        nd_cleanup(nd_spec_done) struct nd_spec spec = {
                .binds_devices = true, .makes_devices = true, .process.user = {.uid = 1000, .gid = 2000}};

        expect_ok(cri_cdi_file_edit(&file, nullptr, look_at_device, &spec));
        assert_int_equal(spec.devices.count, 2);
        assert_int_equal(spec.devices.items[0].uid, 1000);
        assert_int_equal(spec.devices.items[0].gid, 2000);
        assert_true(spec.devices.items[0].own);
        assert_int_equal(spec.devices.items[1].uid, 0);
        assert_int_equal(spec.devices.items[1].gid, 7);
}

static void unsupported_edits_are_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_cdi_file_done) struct cri_cdi_file file = parse(vendor, false);
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};

        expect_error(cri_cdi_file_edit(&file, "vendor.com/gpu=bad", look_at_device, &spec), ND_UNIMPLEMENTED, "intelRdt");
        expect_ok(cri_cdi_file_edit(&file, "vendor.com/gpu=none", look_at_device, &spec));
        expect_error(cri_cdi_file_edit(&file, "vendor.com/gpu=1", look_at_device, &spec), ND_NOT_FOUND, "vendor.com/gpu=1");
}

static void an_invalid_file_has_a_specific_error([[maybe_unused]] void **state) {
        static const struct {
                const char *text, *words;
        } cases[] = {
                {"[]", "not an object"},
                {"{\"kind\":\"a/b\"}", "no cdiVersion"},
                {"{\"cdiVersion\":\"1\",\"kind\":\"a\"}", "vendor.com/class"},
                {"{\"cdiVersion\":\"1\",\"kind\":\"a/b/c\"}", "vendor.com/class"},
                {"{\"cdiVersion\":\"1\",\"kind\":\"a/b\",\"devices\":[1]}", "not an object"},
                {"{\"cdiVersion\":\"1\",\"kind\":\"a/b\",\"devices\":[{}]}", "no name"},
                {"{\"cdiVersion\":\"1\",\"kind\":\"a/b\",\"kind\":\"c/d\"}", "kind"},
        };
        static const struct {
                const char *edits, *words;
        } edits[] = {
                {"{\"env\":[\"X\"]}", "NAME=VALUE"},
                {"{\"env\":{}}", "env"},
                {"{\"deviceNodes\":[{}]}", "no path"},
                {"{\"deviceNodes\":[{\"path\":\"dev/x\"}]}", "not an absolute path"},
                {"{\"deviceNodes\":[{\"path\":\"/dev/x\"}]}", "device '/dev/x'"},
                {"{\"deviceNodes\":[{\"path\":\"/dev/gpu0\",\"permissions\":\"rx\"}]}", "only r, w and m are allowed"},
                {"{\"deviceNodes\":[{\"path\":\"/dev/gpu0\",\"type\":\"z\"}]}", "invalid device type"},
                {"{\"mounts\":[{\"hostPath\":\"/a\"}]}", "lacks"},
                {"{\"hooks\":[{\"hookName\":\"preStop\",\"path\":\"/a\"}]}", "invalid hookName"},
                {"{\"hooks\":[{\"hookName\":\"poststop\",\"path\":\"a\"}]}", "not an absolute path"},
                {"{\"additionalGids\":[-1]}", "additionalGids"},
                {"{\"hooks\":[1]}", "not an object"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                struct cri_cdi_file file = {};

                expect_error(cri_cdi_file_parse(cases[i].text, strlen(cases[i].text), false, &file), ND_INVALID,
                             cases[i].words);
        }
        for (size_t i = 0; i < nd_count_of(edits); i++) {
                nd_autofree char *text =
                        nd_format("{\"cdiVersion\":\"1\",\"kind\":\"a/b\",\"containerEdits\":%s}", edits[i].edits);
                nd_cleanup(cri_cdi_file_done) struct cri_cdi_file file = parse(text, false);
                nd_cleanup(nd_spec_done) struct nd_spec spec = {};
                nd_autoerror struct nd_error *error = cri_cdi_file_edit(&file, nullptr, look_at_device, &spec);

                assert_non_null(error);
                expect_contains(nd_error_text(error), edits[i].words);
        }
}

/* Two directories, as in the configuration. */
struct fixture {
        char *root;
        struct cri_config config;
        struct nd_spec spec;
};

static void set_up(struct fixture *f) {
        *f = (struct fixture) {.root = scratch_make()};
        scratch_mkdir(f->root, "etc");
        scratch_mkdir(f->root, "run");
        cri_config_init(&f->config);
        free(f->config.cdi);
        f->config.cdi = nd_format("%s/etc:%s/run:%s/missing", f->root, f->root, f->root);
}

static void tear_down(struct fixture *f) {
        nd_spec_done(&f->spec);
        cri_config_done(&f->config);
        scratch_remove(&f->root);
}

static struct nd_error *ask(struct fixture *f, const char *device) {
        nd_cleanup(nd_strings_done) struct nd_strings devices = {};

        nd_strings_add(&devices, device);
        return cri_cdi_describe(&f->config, &devices, &f->spec);
}

static void a_later_directory_takes_precedence_and_duplicates_are_refused([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f);
        scratch_text(f.root, "etc/a.yaml",
                     "cdiVersion: 0.5.0\nkind: a/b\ndevices:\n- name: x\n  containerEdits:\n    env: [FROM=etc]\n");
        scratch_text(f.root, "etc/ignored.txt", "no CDI file");
        expect_ok(ask(&f, "a/b=x"));
        assert_string_equal(f.spec.process.environment.items[0], "FROM=etc");
        scratch_text(
                f.root, "run/a.json",
                "{\"cdiVersion\":\"1\",\"kind\":\"a/b\",\"devices\":[{\"name\":\"x\",\"containerEdits\":{\"env\":[\"FROM=run\"]}}]}");
        expect_ok(ask(&f, "a/b=x"));
        assert_string_equal(f.spec.process.environment.items[0], "FROM=run");
        scratch_text(f.root, "run/b.json", "{\"cdiVersion\":\"1\",\"kind\":\"a/b\",\"devices\":[{\"name\":\"x\"}]}");
        expect_error(ask(&f, "a/b=x"), ND_PRECONDITION, "CDI device 'a/b=x': defined by two files of one directory");
        tear_down(&f);
}

static void the_error_of_a_missing_device_names_invalid_files([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f);
        scratch_text(f.root, "etc/broken.json", "{");
        scratch_text(f.root, "run/good.json", "{\"cdiVersion\":\"1\",\"kind\":\"a/b\",\"devices\":[{\"name\":\"x\"}]}");
        expect_ok(ask(&f, "a/b=x"));
        expect_error(ask(&f, "a/b=y"), ND_PRECONDITION, "broken.json");
        tear_down(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_device_gets_all_edits_of_its_file),
                cmocka_unit_test(in_a_user_namespace_a_different_host_path_is_a_mount),
                cmocka_unit_test(a_node_belongs_to_the_containers_user_unless_the_file_says_otherwise),
                cmocka_unit_test(unsupported_edits_are_refused),
                cmocka_unit_test(an_invalid_file_has_a_specific_error),
                cmocka_unit_test(a_later_directory_takes_precedence_and_duplicates_are_refused),
                cmocka_unit_test(the_error_of_a_missing_device_names_invalid_files),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
