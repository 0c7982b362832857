/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/bridge.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/core/client.h"
#include "net/protobuf.h"

static constexpr uint64_t daemon_timeout_us = 5 * ND_SECOND_US;

struct nd_error *cli_bridge_settings(const char *socket, struct cli_runtime_settings *ret) {
        Nodens__V1__InfoRequest request = NODENS__V1__INFO_REQUEST__INIT;
        nd_autoerror struct nd_error *unread = cli_runtime_settings_read(RUNTIME_CONFIG, ret), *error = nullptr;
        ProtobufCMessage *answer = nullptr;

        error = cli_client_call_within(socket ?: ret->socket, "/nodens.v1.Node/Info", &request.base,
                                       &nodens__v1__info_answer__descriptor, daemon_timeout_us, &answer);
        if (error)
                return nd_take_ptr(unread);
        cli_runtime_settings_take((const Nodens__V1__InfoAnswer *) answer, ret);
        nd_protobuf_free(answer);
        return nullptr;
}

void cli_bridge_verdict_done(struct cli_bridge_verdict *verdict) {
        free(nd_take_ptr(verdict->found));
        free(nd_take_ptr(verdict->advice));
}

/* The value of a name in "bridge=auto,nfs4=caller"; nullptr = it is not there. */
static char *find(const char *list, const char *name) {
        size_t length = strlen(name);

        for (const char *at = list; *at; at += strspn(at, ",")) {
                size_t item = strcspn(at, ",");

                if (item > length && memcmp(at, name, length) == 0 && at[length] == '=')
                        return nd_strndup(at + length + 1, item - length - 1);
                at += item;
        }
        return nullptr;
}

/* How the rule for a filesystem is applied; nullptr = there is none. */
static char *describe_rule(const struct cli_runtime_settings *settings, const char *filesystem) {
        nd_autofree char *rule = find(settings->volumes, filesystem);

        if (!rule)
                return nullptr;
        return strchr(rule, ':') ? nd_format("all files belong to %s", rule) : nd_format("as %s", rule);
}

static bool opens(const char *device, int *ret_error) {
        nd_autoclose int fd = open(device, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        *ret_error = errno;
        return fd >= 0;
}

void cli_bridge_judge(const struct cli_runtime_settings *settings, const char *device, const char *filesystem,
                      struct cli_bridge_verdict *ret) {
        nd_autofree char *bridge = find(settings->volumes, "bridge"), *rule = describe_rule(settings, filesystem);
        int error;

        *ret = (struct cli_bridge_verdict) {};
        if (!bridge || !nd_streq(bridge, "auto")) {
                ret->found = nd_strdup("nodens-bridge is off");
                ret->advice =
                        nd_strdup("set volumes: {bridge: auto} in " RUNTIME_CONFIG
                                  " and restart nodens-cri: nodens-bridge then serves it; or use a filesystem with idmapped "
                                  "mounts: ext4, xfs, btrfs, tmpfs");
        } else if (access(settings->bridge_helper, X_OK) < 0) {
                ret->found = nd_format("nodens-bridge cannot be run: %s: %s", settings->bridge_helper, strerror(errno));
                ret->advice = nd_strdup("install the package nodens-cri again, or correct bridgeHelper in " RUNTIME_CONFIG);
        } else if (!opens(device, &error)) {
                ret->found = nd_format("nodens-bridge needs %s: %s", device, strerror(error));
                ret->advice = nd_strdup("load the module: modprobe fuse; and put fuse into a file in /etc/modules-load.d");
        } else {
                ret->serves = true;
                ret->found = rule ? nd_format("nodens-bridge serves it, %s (a rule for %s)", rule, filesystem)
                                  : nd_strdup("nodens-bridge serves it");
                ret->advice = nd_strdup("no action is required; nodens inspect shows which volumes of a pod are bridged");
        }
}
