/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - runtime.v1.RuntimeService: version, status and features of the node */
#include <cri.pb-c.h>

#include "base/clock.h"
#include "base/json.h"
#include "cri/core/parts.h"
#include "cri/network/network.h"
#include "cri/oci-runtime/selftest.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/response.h"

#ifndef ND_VERSION
#define ND_VERSION "0"
#endif

static void handle_version(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                           void *userdata) {
        const struct cri_parts *parts = userdata;
        Runtime__V1__VersionResponse answer = RUNTIME__V1__VERSION_RESPONSE__INIT;

        answer.version = (char *) "0.1.0"; /* the only version that the kubelet accepts */
        answer.runtime_name = parts->config.runtime_name;
        answer.runtime_version = (char *) ND_VERSION;
        answer.runtime_api_version = (char *) "v1";
        cri_response_with(call, &answer.base);
}

/* ---- status ---- */

static void fill_ready(const struct cri_parts *parts, Runtime__V1__RuntimeCondition *runtime_ready,
                       Runtime__V1__RuntimeCondition *network) {
        const char *oci_runtime = cri_selftest_reason(parts->selftest, "", SELFTEST_OCI_RUNTIME), *reason = "", *message = "";

        runtime_ready->type = (char *) "RuntimeReady";
        runtime_ready->status = !oci_runtime;
        runtime_ready->reason = (char *) (oci_runtime ? "SelfTestFailed" : "");
        runtime_ready->message = (char *) (oci_runtime ?: "");
        network->type = (char *) "NetworkReady";
        network->status = cri_network_ready(parts->network, &reason, &message);
        network->reason = (char *) (network->status ? "" : reason);
        network->message = (char *) (network->status ? "" : message);
}

/* One entry per handler that a RuntimeClass may name, and "" for pods without one. */
static void fill_handlers(const struct cri_parts *parts, struct nd_arena *memory, Runtime__V1__StatusResponse *answer) {
        enum { HANDLERS = HANDLERS_MOST + 2 };
        const char *name;

        answer->runtime_handlers = nd_arena_alloc(memory, HANDLERS, sizeof *answer->runtime_handlers);
        for (size_t i = 0; i < HANDLERS && (name = cri_selftest_handler(parts->selftest, i)); i++) {
                Runtime__V1__RuntimeHandler *handler =
                        cri_response_new(memory, Runtime__V1__RuntimeHandler, runtime__v1__runtime_handler__descriptor);

                handler->name = (char *) name;
                handler->features = cri_response_new(memory, Runtime__V1__RuntimeHandlerFeatures,
                                                     runtime__v1__runtime_handler_features__descriptor);
                handler->features->user_namespaces = !cri_selftest_reason(parts->selftest, name, SELFTEST_USERNS);
                handler->features->recursive_read_only_mounts =
                        !cri_selftest_reason(parts->selftest, name, SELFTEST_READ_ONLY);
                answer->runtime_handlers[answer->n_runtime_handlers++] = handler;
        }
}

static void add_setting(const char *name, const char *value, void *userdata) {
        nd_json_string(userdata, name, value);
}

static void describe(const struct cri_parts *parts, struct nd_text *ret) {
        nd_autofree char *uids = nd_own_userns_describe(&parts->users.uids),
                         *gids = nd_own_userns_describe(&parts->users.gids);
        struct nd_json_out out = {.text = ret};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "version", ND_VERSION);
        nd_json_string(&out, "state", parts->config.state);
        nd_json_string(&out, "run", parts->config.run);
        nd_json_string(&out, "cgroupDriver", parts->config.systemd_cgroups ? "systemd" : "cgroupfs");
        nd_json_string(&out, "userNamespace", parts->users.initial ? "host" : "rootless node");
        nd_json_string(&out, "userIDs", uids);
        nd_json_string(&out, "groupIDs", gids);
        nd_json_number(&out, "sandboxes", parts->pods.sandboxes.count);
        nd_json_number(&out, "containers", parts->pods.containers.count);
        cri_selftest_describe(parts->selftest, &out);
        nd_json_open(&out, "configuration", '{');
        cri_config_describe(&parts->config, add_setting, &out);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

static void handle_status(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__status_request__descriptor, bytes, length);
        Runtime__V1__StatusResponse answer = RUNTIME__V1__STATUS_RESPONSE__INIT;
        Runtime__V1__StatusResponse__InfoEntry info = RUNTIME__V1__STATUS_RESPONSE__INFO_ENTRY__INIT;
        Runtime__V1__StatusResponse__InfoEntry *infos[] = {&info};
        Runtime__V1__RuntimeStatus status = RUNTIME__V1__RUNTIME_STATUS__INIT;
        Runtime__V1__RuntimeCondition runtime_ready = RUNTIME__V1__RUNTIME_CONDITION__INIT, network = runtime_ready;
        Runtime__V1__RuntimeFeatures features = RUNTIME__V1__RUNTIME_FEATURES__INIT;
        struct cri_parts *parts = userdata;
        nd_autotext struct nd_text text = ND_TEXT(64 << 10);
        nd_autoarena struct nd_arena memory = {};

        if (!request)
                return;
        parts->status_asked = nd_clock_wall_ns();
        fill_ready(parts, &runtime_ready, &network);
        status.n_conditions = 2;
        status.conditions = (Runtime__V1__RuntimeCondition *[]) {&runtime_ready, &network};
        answer.status = &status;
        fill_handlers(parts, &memory, &answer);
        features.supplemental_groups_policy = true;
        features.mount_options = true;
        features.user_namespaces_host_network = !cri_selftest_reason(parts->selftest, "", SELFTEST_HOST_NETWORK);
        answer.features = &features;
        if (((const Runtime__V1__StatusRequest *) request)->verbose) {
                describe(parts, &text);
                info.key = (char *) "info";
                info.value = (char *) nd_text_get(&text);
                answer.n_info = 1;
                answer.info = infos;
        }
        cri_response_with(call, &answer.base);
}

/* ---- configuration ---- */

static void handle_config(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                          void *userdata) {
        Runtime__V1__RuntimeConfigResponse answer = RUNTIME__V1__RUNTIME_CONFIG_RESPONSE__INIT;
        Runtime__V1__LinuxRuntimeConfiguration linux = RUNTIME__V1__LINUX_RUNTIME_CONFIGURATION__INIT;
        const struct cri_parts *parts = userdata;

        linux.cgroup_driver =
                parts->config.systemd_cgroups ? RUNTIME__V1__CGROUP_DRIVER__SYSTEMD : RUNTIME__V1__CGROUP_DRIVER__CGROUPFS;
        answer.linux = &linux;
        cri_response_with(call, &answer.base);
}

/* Ignores the pods' network range, which is part of the CNI configuration. */
static void handle_update_config(struct nd_grpc_call *call, const char *bytes, size_t length,
                                 [[maybe_unused]] void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__update_runtime_config_request__descriptor, bytes, length);
        Runtime__V1__UpdateRuntimeConfigResponse answer = RUNTIME__V1__UPDATE_RUNTIME_CONFIG_RESPONSE__INIT;

        if (request)
                cri_response_with(call, &answer.base);
}

const struct nd_grpc_method cri_rpc_runtime_methods[] = {
        {"/runtime.v1.RuntimeService/Version", handle_version},
        {"/runtime.v1.RuntimeService/Status", handle_status},
        {"/runtime.v1.RuntimeService/RuntimeConfig", handle_config},
        {"/runtime.v1.RuntimeService/UpdateRuntimeConfig", handle_update_config},
        {},
};
