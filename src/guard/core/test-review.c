/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/review.h"

#include <unit/expect.h>

#define REVIEW(request) "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":" request "}"

static void a_review_is_read([[maybe_unused]] void **state) {
        static const char text[] = REVIEW(
                "{\"uid\":\"u1\",\"operation\":\"UPDATE\",\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"
                "\"subResource\":\"resize\",\"name\":\"p\",\"namespace\":\"n\",\"dryRun\":true,\"userInfo\":{\"username\":\"alice\","
                "\"uid\":\"7\",\"groups\":[\"a\",\"b\"],\"extra\":{\"k\":[\"v\"]}},\"object\":{\"kind\":\"Pod\",\"spec\":{\"hostPID\":true}},"
                "\"oldObject\":{\"kind\":\"Pod\",\"spec\":{\"hostPID\":true}}}");
        nd_autoarena struct nd_arena arena = {};
        struct guard_review review;

        expect_ok(guard_review_decode(text, strlen(text), &arena, &review));
        assert_string_equal(review.uid, "u1");
        assert_int_equal(review.operation, GUARD_UPDATE);
        assert_string_equal(review.subresource, "resize");
        assert_string_equal(review.user.name, "alice");
        assert_int_equal(review.user.groups.count, 2);
        assert_string_equal(review.user.extra, "{\"k\":[\"v\"]}");
        assert_true(review.dry_run && review.same_spec);
        assert_true(review.pod->spec.host_pid);
}

static void a_change_of_an_unknown_field_changes_the_spec([[maybe_unused]] void **state) {
        static const char text[] =
                REVIEW("{\"uid\":\"u\",\"operation\":\"UPDATE\",\"object\":{\"kind\":\"Pod\",\"spec\":{\"later\":1}},"
                       "\"oldObject\":{\"kind\":\"Pod\",\"spec\":{\"later\":2}}}");
        nd_autoarena struct nd_arena arena = {};
        struct guard_review review;

        expect_ok(guard_review_decode(text, strlen(text), &arena, &review));
        assert_false(review.same_spec);
}

static void other_objects_are_not_decoded_as_pods([[maybe_unused]] void **state) {
        static const char text[] =
                REVIEW("{\"uid\":\"u\",\"operation\":\"CONNECT\",\"object\":{\"kind\":\"PodExecOptions\",\"spec\":5}}");
        nd_autoarena struct nd_arena arena = {};
        struct guard_review review;

        expect_ok(guard_review_decode(text, strlen(text), &arena, &review));
        assert_null(review.pod);
}

static void invalid_reviews_are_rejected([[maybe_unused]] void **state) {
        static const char *const bad[] = {
                "",
                "[]",
                "{}",
                "{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\",\"request\":{}}",
                REVIEW("{}"),
                REVIEW("{\"uid\":\"u\",\"operation\":\"PATCH\"}"),
                REVIEW("{\"uid\":5,\"operation\":\"CREATE\"}"),
                REVIEW("{\"uid\":\"u\",\"operation\":\"CREATE\",\"object\":{\"kind\":\"Pod\",\"spec\":{\"hostPID\":\"yes\"}}}"),
                REVIEW("{\"uid\":\"u\",\"operation\":\"CREATE\",\"userInfo\":{\"extra\":[]}}"),
        };

        for (size_t i = 0; i < nd_count_of(bad); i++) {
                nd_autoarena struct nd_arena arena = {};
                struct guard_review review;

                expect_error(guard_review_decode(bad[i], strlen(bad[i]), &arena, &review), ND_INVALID, "");
        }
}

static void responses_are_written([[maybe_unused]] void **state) {
        struct guard_response response = {.allowed = true, .patch = "[]"};
        nd_autotext struct nd_text allowed = ND_TEXT(4096), refused = ND_TEXT(4096);

        guard_response_warn(&response, "careful");
        guard_response_audit(&response, "constraint", "restricted-v2");
        guard_response_write(&response, "u", &allowed);
        assert_string_equal(
                nd_text_get(&allowed),
                "{\"apiVersion\": \"admission.k8s.io/v1\", \"kind\": \"AdmissionReview\", \"response\": {\"uid\": \"u\", \"allowed\": true, "
                "\"patchType\": \"JSONPatch\", \"patch\": \"W10=\", \"warnings\": [\"careful\"], "
                "\"auditAnnotations\": {\"constraint\": \"restricted-v2\"}}}");
        response = (struct guard_response) {.allowed = true, .patch = "[]"};
        guard_response_deny(&response, 503, "ServiceUnavailable", "later");
        response.retry_s = 1;
        guard_response_write(&response, "u", &refused);
        assert_string_equal(
                nd_text_get(&refused),
                "{\"apiVersion\": \"admission.k8s.io/v1\", \"kind\": \"AdmissionReview\", \"response\": {\"uid\": \"u\", \"allowed\": false, "
                "\"status\": {\"code\": 503, \"reason\": \"ServiceUnavailable\", \"message\": \"later\", \"details\": "
                "{\"retryAfterSeconds\": 1}}}}");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_review_is_read),
                cmocka_unit_test(a_change_of_an_unknown_field_changes_the_spec),
                cmocka_unit_test(other_objects_are_not_decoded_as_pods),
                cmocka_unit_test(invalid_reviews_are_rejected),
                cmocka_unit_test(responses_are_written),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
