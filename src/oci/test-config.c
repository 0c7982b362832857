/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config.h"

#include <unit/expect.h>

#include "base/text.h"

#define DIFF "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define ROOTFS "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"" DIFF "\"]}"
#define CONFIG(members) "{\"os\":\"linux\",\"architecture\":\"amd64\"," ROOTFS ",\"config\":{" members "}}"

static struct nd_error *parse(const char *text, struct nd_oci_config *ret) {
        return nd_oci_config_parse(text, strlen(text), ret);
}

static void refused(const char *text, const char *words) {
        struct nd_oci_config config = {};

        expect_error(parse(text, &config), ND_INVALID, words);
}

static void a_config_gives_the_command_and_its_settings([[maybe_unused]] void **state) {
        nd_cleanup(nd_oci_config_done) struct nd_oci_config config = {};

        expect_ok(parse(CONFIG("\"User\":\"1000:app\",\"Env\":[\"PATH=/bin\",\"odd\",\"=x\",\"EMPTY=\"],"
                               "\"Entrypoint\":[\"/init\"],\"Cmd\":[\"a\",\"b c\"],\"WorkingDir\":\"/srv\","
                               "\"Volumes\":{\"/data\":{}},\"ExposedPorts\":{\"80/tcp\":{}},\"StopSignal\":\"SIGQUIT\","
                               "\"Labels\":{\"a\":\"b\",\"containerd.io/gc.root\":\"evil\"}"),
                        &config));
        assert_string_equal(config.platform.architecture, "amd64");
        assert_int_equal(config.diff_ids.count, 1);
        assert_string_equal(config.user, "1000:app");
        assert_int_equal(config.environment.count, 2);
        assert_string_equal(config.environment.items[1], "EMPTY=");
        assert_string_equal(config.entrypoint.items[0], "/init");
        assert_string_equal(config.command.items[1], "b c");
        assert_string_equal(config.working_directory, "/srv");
        assert_string_equal(config.volumes.items[0], "/data");
        assert_string_equal(config.ports.items[0], "80/tcp");
        assert_string_equal(config.stop_signal, "SIGQUIT");
        assert_int_equal(config.labels.count, 2);
        assert_string_equal(config.labels.items[0].value, "b");
}

static void a_config_may_be_nearly_empty([[maybe_unused]] void **state) {
        nd_cleanup(nd_oci_config_done) struct nd_oci_config config = {}, nulls = {};

        expect_ok(parse("{" ROOTFS "}", &config));
        assert_string_equal(config.user, "");
        assert_string_equal(config.working_directory, "");
        assert_int_equal(config.environment.count, 0);
        expect_ok(parse(CONFIG("\"User\":null,\"Env\":null,\"Cmd\":null,\"Volumes\":null,\"Labels\":null"), &nulls));
        assert_int_equal(nulls.command.count, 0);
}

static void a_config_must_list_its_layers([[maybe_unused]] void **state) {
        refused("{}", "no 'rootfs'");
        refused("[]", "not a JSON object");
        refused("", "image config");
        refused("{\"rootfs\":{\"diff_ids\":[\"x\"]}}", "invalid digest");
        refused("{\"rootfs\":{\"diff_ids\":[7]}}", "'diff_ids' is");
        refused("{\"rootfs\":{\"type\":\"other\",\"diff_ids\":[]}}", "of the type");
        refused("{" ROOTFS "," ROOTFS "}", "given twice");
}

static void hostile_members_are_refused([[maybe_unused]] void **state) {
        nd_autotext struct nd_text many = ND_TEXT(1 << 20), huge = ND_TEXT(1 << 20);

        refused(CONFIG("\"User\":\"root\\nevil:x:0:0\""), "control characters");
        refused(CONFIG("\"WorkingDir\":\"/a\\u0000b\""), "null byte");
        refused(CONFIG("\"Env\":[\"A=b\\u0000c\"]"), "null byte");
        refused(CONFIG("\"Env\":\"A=b\""), "not an array");
        refused(CONFIG("\"Cmd\":[1]"), "not a string");
        refused(CONFIG("\"Volumes\":[\"/a\"]"), "not an object");
        refused(CONFIG("\"Labels\":{\"a\":1}"), "not a string");
        refused("{\"os\":\"li nux\"," ROOTFS "}", "plain text");
        refused(CONFIG("\"StopSignal\":\"0123456789012345678901234567890123456789012345678901234567890123456789\""), "longer");
        refused(CONFIG("\"Cmd\":[\"\xff\"]"), "");

        nd_text_add(&many, "{" ROOTFS ",\"config\":{\"Env\":[\"A=1\"");
        for (int i = 0; i < ND_CONFIG_STRINGS; i++)
                nd_text_add(&many, ",\"A=1\"");
        nd_text_add(&many, "]}}");
        refused(nd_text_get(&many), "at most 10000");
        nd_text_addf(&huge, "{" ROOTFS ",\"config\":{\"Cmd\":[\"%0*d\"]}}", ND_CONFIG_STRING + 1, 0);
        refused(nd_text_get(&huge), "longer than 131072");
}

static void a_layer_identified_by_another_hash_is_refused([[maybe_unused]] void **state) {
        struct nd_oci_config config = {};
        nd_autofree char *text = nd_format("{\"rootfs\":{\"diff_ids\":[\"sha512:%0128d\"]}}", 0);

        expect_error(parse(text, &config), ND_UNIMPLEMENTED, "sha256 only");
}

static void users_are_numbers_below_2_31_or_names([[maybe_unused]] void **state) {
        nd_cleanup(nd_oci_user_done) struct nd_oci_user a = {}, b = {}, c = {}, d = {}, e = {};

        expect_ok(nd_oci_user_parse("", &a));
        assert_false(a.has_uid);
        assert_null(a.user);
        expect_ok(nd_oci_user_parse("1000", &b));
        assert_true(b.has_uid);
        assert_int_equal(b.uid, 1000);
        assert_false(b.has_gid);
        expect_ok(nd_oci_user_parse("2147483647:0", &c));
        assert_int_equal(c.uid, 2147483647);
        assert_true(c.has_gid);
        expect_ok(nd_oci_user_parse("app:staff", &d));
        assert_string_equal(d.user, "app");
        assert_string_equal(d.group, "staff");
        assert_false(d.has_uid);
        expect_ok(nd_oci_user_parse("0000:", &e));
        assert_true(e.has_uid);
        assert_int_equal(e.uid, 0);
        assert_null(e.group);
}

static void users_that_would_wrap_or_forge_are_refused([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "-1",   "+0",   "2147483648",   "4294967295", "4294967296", "18446744073709551616",
                "a\nb", "0:-1", "1:4294967296", "a/b",        "a:b:c",      "99999999999999999999999"};

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                struct nd_oci_user user = {};

                expect_error(nd_oci_user_parse(bad[i], &user), ND_INVALID, "the image's");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_config_gives_the_command_and_its_settings),
                cmocka_unit_test(a_config_may_be_nearly_empty),
                cmocka_unit_test(a_config_must_list_its_layers),
                cmocka_unit_test(hostile_members_are_refused),
                cmocka_unit_test(a_layer_identified_by_another_hash_is_refused),
                cmocka_unit_test(users_are_numbers_below_2_31_or_names),
                cmocka_unit_test(users_that_would_wrap_or_forge_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
