/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>
#include <unit/expect.h>
#include <unit/scratch.h>

#include "cli/check/cni.h"

#define LIST(types) "{\"cniVersion\":\"1.0.0\",\"name\":\"pods\",\"plugins\":[" types "]}"

/* A directory with configurations in etc and the plugin "bridge" in bin. */
static char *make_node(void) {
        char *root = scratch_make();
        nd_autofree char *bridge = nd_format("%s/bin/bridge", root);

        scratch_mkdir(root, "etc");
        scratch_mkdir(root, "bin");
        scratch_text(root, "bin/bridge", "#!/bin/sh\n");
        assert_return_code(chmod(bridge, 0755), errno);
        return root;
}

static struct nd_error *find(const char *root, char **ret) {
        nd_autofree char *etc = nd_format("%s/etc", root), *bin = nd_format("/nonexistent:%s/bin", root);

        return cli_cni_find(etc, bin, ret);
}

static void the_first_valid_configuration_by_name_is_described([[maybe_unused]] void **state) {
        scratch_directory root = make_node();
        nd_autofree char *text = nullptr, *expected = nd_format("%s/etc/20-b.conflist: network pods with bridge", root);

        scratch_text(root, "etc/10-a.conflist", "{");
        scratch_text(root, "etc/30-c.conf", "{\"name\":\"other\",\"type\":\"bridge\"}");
        scratch_text(root, "etc/20-b.conflist", LIST("{\"type\":\"bridge\"}"));
        scratch_text(root, "etc/00-readme", "not a configuration");
        expect_ok(find(root, &text));
        assert_string_equal(text, expected);
}

static void a_missing_plugin_is_named([[maybe_unused]] void **state) {
        scratch_directory root = make_node();
        char *text = nullptr;

        scratch_text(root, "etc/20-b.conflist", LIST("{\"type\":\"bridge\"},{\"type\":\"portmap\"}"));
        scratch_text(root, "etc/30-c.conf", "{\"name\":\"other\",\"type\":\"bridge\"}");
        expect_error(find(root, &text), ND_PRECONDITION, "needs the CNI plugin 'portmap', which is not in ");
        assert_null(text);
}

static void a_directory_without_configurations_is_an_error([[maybe_unused]] void **state) {
        scratch_directory root = make_node();
        char *text = nullptr;

        expect_error(find(root, &text), ND_NOT_FOUND, "no configuration in ");
        expect_error(cli_cni_find("/nonexistent", "/", &text), ND_NOT_FOUND, "open directory '/nonexistent'");
        scratch_mkdir(root, "etc/10-directory.conf");
        expect_error(find(root, &text), ND_INVALID, "not a regular file");
}

static void hostile_configurations_are_refused([[maybe_unused]] void **state) {
        static const char *const texts[] = {"",
                                            "[]",
                                            "{}",
                                            "{\"name\":7}",
                                            LIST(""),
                                            LIST("{}"),
                                            LIST("null"),
                                            LIST("{\"type\":\"../bin/bridge\"}"),
                                            "{\"name\":\"x\",\"plugins\":{}}",
                                            "{\"name\":\"x\",\"type\":\"\"}"};
        scratch_directory root = make_node();
        nd_autofree char *bin = nd_format("%s/bin", root);

        for (size_t i = 0; i < nd_count_of(texts); i++) {
                char *text = nullptr;

                expect_error(cli_cni_describe("a", texts[i], strlen(texts[i]), bin, &text), ND_INVALID, "");
                assert_null(text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_first_valid_configuration_by_name_is_described),
                cmocka_unit_test(a_missing_plugin_is_named),
                cmocka_unit_test(a_directory_without_configurations_is_an_error),
                cmocka_unit_test(hostile_configurations_are_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
