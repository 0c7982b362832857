/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/cluster/credentials.h"

#include "base/log.h"

static void on_problem(enum nd_api_problem problem, const char *text, bool at_once, void *userdata) {
        guard_health_set(userdata, problem == ND_API_PROBLEM_CREDENTIALS ? GUARD_PROBLEM_CREDENTIALS : GUARD_PROBLEM_CONTACT,
                         text, at_once);
}

static void on_changed(const struct nd_error *error, [[maybe_unused]] void *userdata) {
        nd_autofree char *text = nullptr;

        if (!error) {
                nd_log(ND_LOG_INFO, "loaded new credentials for the API server");
                return;
        }
        text = nd_format("cannot use the changed credentials for the API server; keeping the current ones: %s",
                         nd_error_text(error));
        nd_log(ND_LOG_WARNING, text);
}

struct nd_error *guard_credentials_start(struct nd_api_credentials *credentials, const char *kubeconfig, sd_event *loop,
                                         struct guard_health *health, struct nd_api **ret) {
        return nd_api_credentials_start(
                credentials, loop,
                &(struct nd_api_credentials_settings) {
                        .path = kubeconfig,
                        .owner = "the guard's",
                        .advice = "`nodens-guard manifest guard-kubeconfig` prints one with a token file",
                        .report = on_problem,
                        .changed = on_changed,
                        .userdata = health},
                ret);
}
