/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - nodens.v1.Node: version, conditions, features and settings, for `nodens version` and
 * `nodens info` */
#include <nodens.pb-c.h>

#include "base/assert.h"
#include "cri/core/parts.h"
#include "cri/network/network.h"
#include "cri/oci-runtime/selftest.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/response.h"
#include "oci/store.h"

#ifndef ND_VERSION
#define ND_VERSION "0"
#endif

enum {
        SETTINGS_MOST = 64,
        HANDLERS = HANDLERS_MOST + 2,
};

struct settings {
        struct nd_arena *memory;
        Nodens__V1__InfoAnswer *answer;
};

static void add_setting(const char *name, const char *value, void *userdata) {
        const struct settings *s = userdata;
        Nodens__V1__SettingEntry *m;

        nd_assert(s->answer->n_settings < SETTINGS_MOST);
        m = cri_response_new(s->memory, Nodens__V1__SettingEntry, nodens__v1__setting_entry__descriptor);
        m->name = (char *) name;
        m->value = nd_arena_strdup(s->memory, value);
        s->answer->settings[s->answer->n_settings++] = m;
}

static Nodens__V1__ConditionEntry *response_condition(struct nd_arena *memory, const char *name, bool met, const char *reason,
                                                      const char *message) {
        Nodens__V1__ConditionEntry *m =
                cri_response_new(memory, Nodens__V1__ConditionEntry, nodens__v1__condition_entry__descriptor);

        m->name = (char *) name;
        m->met = met;
        m->reason = nd_arena_strdup(memory, met ? "" : reason);
        m->message = nd_arena_strdup(memory, met ? "" : message);
        return m;
}

static void add_conditions(struct nd_arena *memory, const struct cri_parts *parts, Nodens__V1__InfoAnswer *m) {
        const char *problem = cri_selftest_reason(parts->selftest, "", SELFTEST_OCI_RUNTIME), *reason = "", *message = "";
        bool network = cri_network_ready(parts->network, &reason, &message);

        m->conditions = nd_arena_alloc(memory, 2, sizeof *m->conditions);
        m->conditions[m->n_conditions++] =
                response_condition(memory, "RuntimeReady", !problem, "SelfTestFailed", problem ?: "");
        m->conditions[m->n_conditions++] = response_condition(memory, "NetworkReady", network, reason, message);
}

static Nodens__V1__HandlerEntry *response_handler(struct nd_arena *memory, const struct cri_parts *parts, const char *name) {
        Nodens__V1__HandlerEntry *m =
                cri_response_new(memory, Nodens__V1__HandlerEntry, nodens__v1__handler_entry__descriptor);

        m->name = nd_arena_strdup(memory, name);
        m->flaw = nd_arena_strdup(memory, cri_selftest_flaw(parts->selftest, name) ?: "");
        m->features = nd_arena_alloc(memory, SELFTEST_FEATURES, sizeof *m->features);
        for (enum cri_selftest_feature feature = 0; feature < SELFTEST_FEATURES; feature++) {
                Nodens__V1__FeatureEntry *entry =
                        cri_response_new(memory, Nodens__V1__FeatureEntry, nodens__v1__feature_entry__descriptor);

                entry->name = (char *) cri_selftest_name(feature);
                entry->problem = nd_arena_strdup(memory, cri_selftest_reason(parts->selftest, name, feature) ?: "");
                m->features[m->n_features++] = entry;
        }
        return m;
}

static void add_handlers(struct nd_arena *memory, const struct cri_parts *parts, Nodens__V1__InfoAnswer *m) {
        const char *name;

        m->handlers = nd_arena_alloc(memory, HANDLERS, sizeof *m->handlers);
        for (size_t i = 0; i < HANDLERS && (name = cri_selftest_handler(parts->selftest, i)); i++)
                m->handlers[m->n_handlers++] = response_handler(memory, parts, name);
}

static void add_counts(const struct cri_parts *parts, Nodens__V1__InfoAnswer *m) {
        size_t pods = 0, containers = 0;

        cri_pod_table_count(&parts->pods, &pods, &containers);
        m->pods = pods;
        m->containers = containers;
        for (size_t at = 0; nd_oci_store_next(parts->images, &at);)
                m->images++;
}

static void handle_info(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                        void *userdata) {
        Nodens__V1__InfoAnswer answer = NODENS__V1__INFO_ANSWER__INIT;
        const struct cri_parts *parts = userdata;
        nd_autoarena struct nd_arena memory = {};

        answer.runtime_name = (char *) "nodens";
        answer.runtime_version = (char *) ND_VERSION;
        answer.runtime_api_version = (char *) "v1";
        add_conditions(&memory, parts, &answer);
        add_handlers(&memory, parts, &answer);
        answer.settings = nd_arena_alloc(&memory, SETTINGS_MOST, sizeof *answer.settings);
        cri_config_describe(&parts->config, add_setting, &(struct settings) {&memory, &answer});
        add_counts(parts, &answer);
        answer.status_asked_at = parts->status_asked;
        cri_response_with(call, &answer.base);
}

const struct nd_grpc_method cri_rpc_info_methods[] = {
        {"/nodens.v1.Node/Info", handle_info},
        {},
};
