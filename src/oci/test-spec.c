/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/spec.h"

#include <unit/expect.h>

#include "base/json.h"

static yyjson_val *parse(const struct nd_text *text, yyjson_doc **doc) {
        expect_ok(nd_json_parse(nd_text_get(text), text->length, ND_SPEC_CEILING, doc));
        return yyjson_doc_get_root(*doc);
}

static const char *text_at(yyjson_val *root, const char *pointer) {
        return yyjson_get_str(yyjson_ptr_get(root, pointer));
}

static int64_t number_at(yyjson_val *root, const char *pointer) {
        yyjson_val *value = yyjson_ptr_get(root, pointer);

        assert_true(yyjson_is_int(value));
        return yyjson_get_sint(value);
}

static void a_spec_reads_back_as_it_was_filled([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {.root = nd_strdup("/r"), .read_only_root = true};
        nd_autotext struct nd_text text = ND_TEXT(ND_SPEC_CEILING);
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_spec_mount *mount;
        yyjson_val *root;

        nd_strings_add(&spec.process.arguments, "sh");
        nd_strings_add(&spec.process.environment, "A=\"quoted\"\n");
        nd_vector_push(&spec.process.user.groups, 7);
        spec.process.user.uid = 1000;
        spec.process.capabilities.bounding = 1 | UINT64_C(1) << 40;
        spec.process.has_oom_score = true;
        spec.process.oom_score = -998;
        nd_vector_push(&spec.process.limits,
                       ((struct nd_spec_limit) {.type = "RLIMIT_NOFILE", .hard = UINT64_MAX, .soft = 1024}));
        mount = nd_spec_add_mount(&spec, "/data", nullptr, "/host");
        nd_spec_mount_option(mount, "rbind");
        mount->idmapped = true;
        mount->uids = mount->gids = (struct nd_userns_map) {.outside = 65536, .count = 65536};
        nd_spec_add_namespace(&spec, "pid", nullptr);
        nd_spec_add_namespace(&spec, "user", "/pin");
        spec.user_namespace = true;
        spec.uids = spec.gids = mount->uids;
        spec.seccomp = nd_strdup("{\"defaultAction\": \"SCMP_ACT_ALLOW\"}");
        spec.propagation = "rslave";
        expect_ok(nd_spec_format(&spec, &text));

        root = parse(&text, &doc);
        assert_string_equal(text_at(root, "/process/args/0"), "sh");
        assert_string_equal(text_at(root, "/process/env/0"), "A=\"quoted\"\n");
        assert_string_equal(text_at(root, "/process/cwd"), "/");
        assert_int_equal(number_at(root, "/process/user/uid"), 1000);
        assert_int_equal(number_at(root, "/process/user/additionalGids/0"), 7);
        assert_int_equal(number_at(root, "/process/oomScoreAdj"), -998);
        assert_true(yyjson_get_uint(yyjson_ptr_get(root, "/process/rlimits/0/hard")) == UINT64_MAX);
        assert_string_equal(text_at(root, "/process/capabilities/bounding/0"), "CAP_CHOWN");
        assert_string_equal(text_at(root, "/process/capabilities/bounding/1"), "CAP_CHECKPOINT_RESTORE");
        assert_int_equal(yyjson_arr_size(yyjson_ptr_get(root, "/process/capabilities/inheritable")), 0);
        assert_string_equal(text_at(root, "/mounts/0/type"), "bind");
        assert_int_equal(number_at(root, "/mounts/0/uidMappings/0/hostID"), 65536);
        assert_null(yyjson_ptr_get(root, "/linux/namespaces/0/path"));
        assert_string_equal(text_at(root, "/linux/namespaces/1/path"), "/pin");
        assert_int_equal(number_at(root, "/linux/gidMappings/0/size"), 65536);
        assert_string_equal(text_at(root, "/linux/seccomp/defaultAction"), "SCMP_ACT_ALLOW");
        assert_string_equal(text_at(root, "/linux/rootfsPropagation"), "rslave");
}

static void resources_that_are_not_set_are_left_out([[maybe_unused]] void **state) {
        nd_autotext struct nd_text text = ND_TEXT(ND_SPEC_CEILING);
        struct nd_spec_resources none = {};

        expect_ok(nd_spec_resources_format(&none, &text));
        assert_string_equal(nd_text_get(&text), "{}");
}

static void resources_have_the_names_of_oci([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_resources_done) struct nd_spec_resources resources = {
                .cpu_shares = 102, .cpu_quota = -1, .cpus = nd_strdup("0-1"), .memory_limit = 1 << 20, .memory_swap = -1};
        nd_autotext struct nd_text text = ND_TEXT(ND_SPEC_CEILING);
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root;

        nd_vector_push(&resources.pages, ((struct nd_spec_page_limit) {.size = nd_strdup("2MB"), .limit = 4}));
        nd_vector_push(&resources.unified,
                       ((struct nd_spec_setting) {.key = nd_strdup("memory.oom.group"), .value = nd_strdup("1")}));
        nd_vector_push(&resources.devices,
                       ((struct nd_spec_device_rule) {.type = 'a', .major = -1, .minor = -1, .access = "rwm"}));
        nd_vector_push(&resources.devices,
                       ((struct nd_spec_device_rule) {.allow = true, .type = 'c', .major = 10, .minor = 229, .access = "rw"}));
        expect_ok(nd_spec_resources_format(&resources, &text));
        root = parse(&text, &doc);
        assert_int_equal(number_at(root, "/cpu/shares"), 102);
        assert_int_equal(number_at(root, "/cpu/quota"), -1);
        assert_null(yyjson_ptr_get(root, "/cpu/period"));
        assert_string_equal(text_at(root, "/cpu/cpus"), "0-1");
        assert_int_equal(number_at(root, "/memory/swap"), -1);
        assert_string_equal(text_at(root, "/hugepageLimits/0/pageSize"), "2MB");
        assert_string_equal(text_at(root, "/unified/memory.oom.group"), "1");
        assert_null(yyjson_ptr_get(root, "/devices/0/type"));
        assert_null(yyjson_ptr_get(root, "/devices/0/major"));
        assert_int_equal(number_at(root, "/devices/1/minor"), 229);
}

static void only_a_container_with_a_leaf_cgroup_asks_the_engine_for_one([[maybe_unused]] void **state) {
        nd_autotext struct nd_text plain = ND_TEXT(ND_SPEC_CEILING), text = ND_TEXT(ND_SPEC_CEILING);
        nd_cleanup(nd_spec_done) struct nd_spec spec = {.root = nd_strdup("/r")};
        nd_autojson yyjson_doc *first = nullptr, *doc = nullptr;
        yyjson_val *root;

        expect_ok(nd_spec_format(&spec, &plain));
        assert_null(yyjson_ptr_get(parse(&plain, &first), "/annotations"));
        spec.leaf_cgroup = nd_strdup("leaf");
        expect_ok(nd_spec_format(&spec, &text));
        root = parse(&text, &doc);
        assert_string_equal(text_at(root, "/annotations/run.oci.delegate-cgroup"), "leaf");
        assert_int_equal(yyjson_obj_size(yyjson_ptr_get(root, "/annotations")), 1);
}

static void a_spec_that_is_too_long_is_an_error([[maybe_unused]] void **state) {
        nd_cleanup(nd_spec_done) struct nd_spec spec = {};
        nd_autotext struct nd_text text = ND_TEXT(1000);

        for (int i = 0; i < 200; i++)
                nd_strings_add(&spec.process.arguments, "argument");
        expect_error(nd_spec_format(&spec, &text), ND_EXHAUSTED, "more than 1000 bytes");
}

static void capabilities_are_found_by_any_of_their_names([[maybe_unused]] void **state) {
        assert_int_equal(nd_spec_capability_parse("CAP_CHOWN"), 0);
        assert_int_equal(nd_spec_capability_parse("net_admin"), 12);
        assert_int_equal(nd_spec_capability_parse("cap_checkpoint_restore"), 40);
        assert_int_equal(nd_spec_capability_parse(""), -1);
        assert_int_equal(nd_spec_capability_parse("CAP_"), -1);
        assert_int_equal(nd_spec_capability_parse("CAP_CAP_CHOWN"), -1);
        for (unsigned i = 0; nd_spec_capability_name(i); i++)
                assert_int_equal(nd_spec_capability_parse(nd_spec_capability_name(i)), i);
        assert_null(nd_spec_capability_name(64));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_spec_reads_back_as_it_was_filled),
                cmocka_unit_test(resources_that_are_not_set_are_left_out),
                cmocka_unit_test(resources_have_the_names_of_oci),
                cmocka_unit_test(only_a_container_with_a_leaf_cgroup_asks_the_engine_for_one),
                cmocka_unit_test(a_spec_that_is_too_long_is_an_error),
                cmocka_unit_test(capabilities_are_found_by_any_of_their_names),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
