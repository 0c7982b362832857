/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/reference.h"

#include <unit/expect.h>

#define HEX "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN

static void names_become_canonical_as_in_containerd([[maybe_unused]] void **state) {
        static const struct {
                const char *text, *canonical;
        } cases[] = {
                {"busybox", "docker.io/library/busybox:latest"},
                {"busybox:1.37", "docker.io/library/busybox:1.37"},
                {"busybox@sha256:" HEX, "docker.io/library/busybox@sha256:" HEX},
                {"busybox:1.37@sha256:" HEX, "docker.io/library/busybox@sha256:" HEX},
                {"user/app", "docker.io/user/app:latest"},
                {"a/b/c:x", "docker.io/a/b/c:x"},
                {"docker.io/busybox", "docker.io/library/busybox:latest"},
                {"index.docker.io/busybox:2", "docker.io/library/busybox:2"},
                {"docker.io/library/busybox:2", "docker.io/library/busybox:2"},
                {"localhost/app", "localhost/app:latest"},
                {"localhost:5000/app:v1", "localhost:5000/app:v1"},
                {"localhost", "docker.io/library/localhost:latest"},
                {"registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"},
                {"127.0.0.1:5000/a/b:t", "127.0.0.1:5000/a/b:t"},
                {"[::1]:5000/a:t", "[::1]:5000/a:t"},
                {"[2001:db8::1]/a", "[2001:db8::1]/a:latest"},
                {"Registry/app", "Registry/app:latest"},
                {"UPPER.example/app", "UPPER.example/app:latest"},
                {"registry:5000", "docker.io/library/registry:5000"},
                {"x/f_g:T.A_g-1", "docker.io/x/f_g:T.A_g-1"},
                {"x/a.b__c-d--e", "docker.io/x/a.b__c-d--e:latest"},
                {"x:_tag", "docker.io/library/x:_tag"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(nd_reference_done) struct nd_reference reference = {}, again = {};

                expect_ok(nd_reference_parse(cases[i].text, &reference));
                expect_text(nd_reference_text(&reference), cases[i].canonical);
                expect_ok(nd_reference_parse(cases[i].canonical, &again));
                expect_text(nd_reference_text(&again), cases[i].canonical);
        }
}

static void invalid_references_are_refused([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "",
                ":",
                "@",
                "/",
                "a/",
                "/a",
                "a//b",
                "a/../b",
                "..",
                "../../etc/passwd",
                "example.com/../other.example/a",
                "example.com/a/../../v2/b",
                "example.com/./a",
                "example.com/a/.",
                "example.com/.hidden",
                "example.com/a..b",
                "example.com/a___b",
                "example.com/a-",
                "example.com/-a",
                "example.com/a._b",
                "example..com/a",
                ".example.com/a",
                "example.com./a",
                "-example.com/a",
                "example-.com/a",
                "exa_mple.com/a",
                "example.com:/a",
                "example.com:0/a",
                "example.com:65536/a",
                "example.com:123456/a",
                "example.com:5x/a",
                "user@example.com/a",
                "https://example.com/a",
                "example.com/a?b=c",
                "example.com/a#b",
                "example.com/a%2e%2e",
                "example.com/a b",
                "example.com/a\n",
                "example.com/A",
                "Busybox",
                "a:",
                "a:.x",
                "a:-x",
                "a:b:c",
                "a:t\xc3\xa9",
                "a:" FIFTY FIFTY TEN TEN "012345678",
                "a@",
                "a@sha256:",
                "a@sha256:xyz",
                "a@md5:900150983cd24fb0d6963f7d28e17f72",
                "a@sha256:" HEX "@sha256:" HEX,
                "a:@sha256:" HEX,
                "a:..@sha256:" HEX,
                "[::1/a",
                "[::1]x/a",
                "[fe80::1%eth0]/a",
                "[::ffff:1.2.3.4]/a",
                "[]/a",
                "::1/a",
                HEX,
                "\xff/a",
                "example.com/" FIFTY FIFTY FIFTY FIFTY FIFTY "abcdef",
        };

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                struct nd_reference reference = {};
                struct nd_error *error = nd_reference_parse(bad[i], &reference);

                if (!error)
                        fail_msg("'%s' was taken", bad[i]);
                expect_error(error, ND_INVALID, "invalid image reference");
        }
}

static void lengths_are_bounded([[maybe_unused]] void **state) {
        nd_cleanup(nd_reference_done) struct nd_reference reference = {};
        nd_autofree char *longest = nd_format("example.com/%0255d", 0), *endless = nd_format("example.com/%02000d", 0),
                         *host = nd_format("%0250d.example.com/a", 0);

        expect_ok(nd_reference_parse(longest, &reference));
        expect_error(nd_reference_parse(endless, &reference), ND_INVALID, "longer than 1024");
        expect_error(nd_reference_parse(host, &reference), ND_INVALID, "host name");
}

static void a_repository_digest_leaves_the_tag_out([[maybe_unused]] void **state) {
        nd_cleanup(nd_reference_done) struct nd_reference reference = {};
        struct nd_digest digest;

        expect_ok(nd_digest_parse("sha256:" HEX, &digest));
        expect_ok(nd_reference_parse("busybox:1.37", &reference));
        expect_text(nd_reference_with_digest(&reference, &digest), "docker.io/library/busybox@sha256:" HEX);
}

static void an_id_may_be_abbreviated_to_a_minimum([[maybe_unused]] void **state) {
        const char *hex;

        assert_true(nd_reference_is_id(HEX, &hex));
        assert_string_equal(hex, HEX);
        assert_true(nd_reference_is_id("sha256:" HEX, &hex));
        assert_string_equal(hex, HEX);
        assert_true(nd_reference_is_id("sha256:ba78", &hex));
        assert_true(nd_reference_is_id("ba78", &hex));
        assert_false(nd_reference_is_id("ba7", &hex));
        assert_false(nd_reference_is_id("", &hex));
        assert_false(nd_reference_is_id("sha256:", &hex));
        assert_false(nd_reference_is_id("BA78", &hex));
        assert_false(nd_reference_is_id("ba78g", &hex));
        assert_false(nd_reference_is_id(HEX "0", &hex));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_become_canonical_as_in_containerd),
                cmocka_unit_test(invalid_references_are_refused),
                cmocka_unit_test(lengths_are_bounded),
                cmocka_unit_test(a_repository_digest_leaves_the_tag_out),
                cmocka_unit_test(an_id_may_be_abbreviated_to_a_minimum),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
