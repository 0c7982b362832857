/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/pod-names.h"

#include <fcntl.h>
#include <nodens.pb-c.h>
#include <string.h>

#include "base/clock.h"
#include "cli/core/client.h"
#include "net/protobuf.h"
#include "sys/dir.h"

enum {
        DIRECTORIES_MOST = 100000,
};

/* The caller works without an answer. */
static constexpr uint64_t answer_timeout_us = 2 * ND_SECOND_US;

void cli_pod_names_done(struct cli_pod_names *names) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&names->by_uid, &at));) {
                struct cli_pod_name *name = slot->value;

                free(name->namespace);
                free(name->name);
                free(name);
        }
        nd_map_done(&names->by_uid);
}

const struct cli_pod_name *cli_pod_names_get(const struct cli_pod_names *names, const char *uid) {
        return nd_map_get(&names->by_uid, uid);
}

/* The first source that has a pod is used. */
static void add(struct cli_pod_names *names, const char *uid, char *namespace, char *name) {
        struct cli_pod_name *made;

        if (nd_map_has(&names->by_uid, uid)) {
                free(namespace);
                free(name);
                return;
        }
        made = nd_new(struct cli_pod_name);
        *made = (struct cli_pod_name) {.namespace = namespace, .name = name};
        (void) nd_map_put(&names->by_uid, uid, made);
}

static void read_daemon(struct cli_pod_names *names, const char *socket) {
        Nodens__V1__PodsRequest request = NODENS__V1__PODS_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *message = nullptr;
        const Nodens__V1__PodsAnswer *answer;

        error = cli_client_call_within(socket, "/nodens.v1.Node/Pods", &request.base, &nodens__v1__pods_answer__descriptor,
                                       answer_timeout_us, &message);
        if (error)
                return;
        answer = (const Nodens__V1__PodsAnswer *) message;
        for (size_t i = 0; i < answer->n_pods; i++)
                add(names, answer->pods[i]->uid, nd_strdup(answer->pods[i]->namespace_), nd_strdup(answer->pods[i]->name));
        nd_protobuf_free(message);
}

void cli_pod_names_read_logs(struct cli_pod_names *names, const char *directory) {
        nd_cleanup(nd_strings_done) struct nd_strings found = {};
        nd_autoerror struct nd_error *error = nd_dir_list(AT_FDCWD, directory, DIRECTORIES_MOST, &found);

        if (error)
                return;
        nd_vector_each (entry, &found) {
                const char *first = strchr(*entry, '_'), *last = strrchr(*entry, '_');

                if (first && first < last)
                        add(names, last + 1, nd_strndup(*entry, (size_t) (first - *entry)),
                            nd_strndup(first + 1, (size_t) (last - first) - 1));
        }
}

void cli_pod_names_read(struct cli_pod_names *names, const char *socket) {
        read_daemon(names, socket);
        cli_pod_names_read_logs(names, POD_LOGS);
}
