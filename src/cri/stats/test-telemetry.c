/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cri/bundle/bridge.h"
#include "cri/stats/telemetry.h"

/* cri_telemetry_format() also reads pods and the self-test, which tests/component/cri covers;
 * counters are tested here. */

static char *counted(const struct cri_telemetry *telemetry) {
        struct nd_text text = ND_TEXT(TELEMETRY_CEILING);

        cri_telemetry_format_counts(telemetry, &text);
        assert_false(text.overflow);
        return nd_text_steal(&text);
}

static void a_call_is_in_every_bucket_that_is_long_enough([[maybe_unused]] void **state) {
        struct cri_telemetry *telemetry = cri_telemetry_new();
        nd_autofree char *text = nullptr;

        cri_telemetry_rpc(telemetry, "Version", true, true, ND_OK, 900);
        cri_telemetry_rpc(telemetry, "Version", true, true, ND_OK, 1000);
        cri_telemetry_rpc(telemetry, "Version", true, true, ND_NOT_FOUND, 30 * ND_MS_US);
        cri_telemetry_rpc(telemetry, "Version", true, true, ND_OK, 3600 * ND_SECOND_US);
        text = counted(telemetry);
        expect_contains(text, "nodens_cri_rpc_total{method=\"Version\",code=\"OK\"} 3\n");
        expect_contains(text, "nodens_cri_rpc_total{method=\"Version\",code=\"NotFound\"} 1\n");
        expect_contains(text, "nodens_cri_rpc_duration_seconds_bucket{method=\"Version\",le=\"0.001\"} 2\n");
        expect_contains(text, "nodens_cri_rpc_duration_seconds_bucket{method=\"Version\",le=\"0.025\"} 2\n");
        expect_contains(text, "nodens_cri_rpc_duration_seconds_bucket{method=\"Version\",le=\"0.05\"} 3\n");
        expect_contains(text, "nodens_cri_rpc_duration_seconds_bucket{method=\"Version\",le=\"60\"} 3\n");
        expect_contains(text, "nodens_cri_rpc_duration_seconds_bucket{method=\"Version\",le=\"+Inf\"} 4\n");
        expect_contains(text, "nodens_cri_rpc_duration_seconds_sum{method=\"Version\"} 3600.031900\n");
        expect_contains(text, "nodens_cri_rpc_duration_seconds_count{method=\"Version\"} 4\n");
        cri_telemetry_free(telemetry);
}

static void a_stream_is_counted_and_not_timed([[maybe_unused]] void **state) {
        struct cri_telemetry *telemetry = cri_telemetry_new();
        nd_autofree char *text = nullptr;

        cri_telemetry_rpc(telemetry, "GetContainerEvents", true, false, ND_CANCELLED, 3600 * ND_SECOND_US);
        text = counted(telemetry);
        expect_contains(text, "nodens_cri_rpc_total{method=\"GetContainerEvents\",code=\"Canceled\"} 1\n");
        assert_null(strstr(text, "_bucket{"));
        cri_telemetry_free(telemetry);
}

static void unknown_methods_use_no_memory([[maybe_unused]] void **state) {
        struct cri_telemetry *telemetry = cri_telemetry_new();
        nd_autofree char *text = nullptr;

        for (unsigned i = 0; i < 10000; i++) {
                char name[32];

                (void) snprintf(name, sizeof name, "Name%u", i);
                cri_telemetry_rpc(telemetry, name, false, true, ND_UNIMPLEMENTED, 1);
        }
        text = counted(telemetry);
        expect_contains(text, "nodens_cri_rpc_total{method=\"unknown\",code=\"Unimplemented\"} 10000\n");
        assert_null(strstr(text, "Name"));
        cri_telemetry_free(telemetry);
}

static void the_maximum_number_of_methods_fits([[maybe_unused]] void **state) {
        struct cri_telemetry *telemetry = cri_telemetry_new();
        nd_autofree char *text = nullptr;

        for (unsigned i = 0; i < 2 * TELEMETRY_METHODS; i++) {
                char name[64];

                (void) snprintf(name, sizeof name, "AMethodWithARatherLongNameAsTheyAre%03u", i);
                for (unsigned code = 0; code <= ND_UNAUTHENTICATED; code++)
                        cri_telemetry_rpc(telemetry, name, true, true, (enum nd_error_code) code, ND_SECOND_US);
        }
        text = counted(telemetry);
        expect_contains(text, "method=\"unknown\"");
        cri_telemetry_free(telemetry);
}

static void pods_and_pulls_are_counted_by_result([[maybe_unused]] void **state) {
        struct cri_telemetry *telemetry = cri_telemetry_new();
        struct nd_error *error = nd_error_new(ND_UNAVAILABLE, 0, "no registry");
        nd_autofree char *text = nullptr;

        cri_telemetry_pod(telemetry, true, true);
        cri_telemetry_pod(telemetry, true, true);
        cri_telemetry_pod(telemetry, true, false);
        cri_telemetry_pod(telemetry, false, true);
        cri_telemetry_pull(telemetry, nullptr);
        cri_telemetry_pull(telemetry, error);
        cri_telemetry_pull_abandoned(telemetry);
        cri_telemetry_oom_score_clamped(telemetry);
        cri_telemetry_bridges(telemetry, &(struct cri_bridge_counts) {.tried = 3, .started = 2});
        text = counted(telemetry);
        expect_contains(text, "nodens_cri_pods_started_total{users=\"pod\"} 2\n");
        expect_contains(text, "nodens_cri_pods_failed_total{users=\"pod\"} 1\n");
        expect_contains(text, "nodens_cri_pods_started_total{users=\"host\"} 1\n");
        expect_contains(text, "nodens_cri_pods_failed_total{users=\"host\"} 0\n");
        expect_contains(text, "nodens_cri_pulls_total{result=\"pulled\"} 1\n");
        expect_contains(text, "nodens_cri_pulls_total{result=\"failed\"} 1\n");
        expect_contains(text, "nodens_cri_pulls_total{result=\"abandoned\"} 1\n");
        expect_contains(text, "\nnodens_cri_oom_scores_clamped_total 1\n");
        expect_contains(text, "\nnodens_cri_bridges_started_total 2\n");
        expect_contains(text, "\nnodens_cri_bridges_failed_total 1\n");
        nd_error_free(error);
        cri_telemetry_free(telemetry);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_call_is_in_every_bucket_that_is_long_enough),
                cmocka_unit_test(a_stream_is_counted_and_not_timed),
                cmocka_unit_test(unknown_methods_use_no_memory),
                cmocka_unit_test(the_maximum_number_of_methods_fits),
                cmocka_unit_test(pods_and_pulls_are_counted_by_result),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
