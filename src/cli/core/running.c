/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/running.h"

#include <string.h>

#include "base/clock.h"
#include "cli/core/client.h"
#include "cli/core/target.h"
#include "cli/output/format.h"
#include "cli/output/sanitize.h"
#include "net/protobuf.h"

static struct nd_error *require_running(const struct cli_target *target) {
        const Nodens__V1__ContainerEntry *container = target->container;
        nd_autofree char *pod = cli_target_pod_name(target->pod), *name = cli_sanitize_text(container->name);
        char age[FORMAT_AGE];

        if (strcmp(container->state, "running") == 0)
                return nullptr;
        if (strcmp(container->state, "exited") != 0)
                return nd_error_new(ND_PRECONDITION, 0, "container %s/%s is not running: its state is %s", pod, name,
                                    container->state);
        return nd_error_new(ND_PRECONDITION, 0, "container %s/%s exited %s ago with status %d; see 'nodens logs %s/%s'", pod,
                            name, cli_format_age(container->finished_at, nd_clock_wall_ns(), age), container->exit_code, pod,
                            name);
}

struct nd_error *cli_running_container(const char *socket, const char *name, const char *container_name, char **ret) {
        ProtobufCMessage *answer = nullptr;
        struct cli_target target = {};
        struct nd_error *error;

        nd_try(cli_client_pods(socket, &answer));
        error = cli_target_container((const Nodens__V1__PodsAnswer *) answer, name, container_name, false, &target);
        if (!error)
                error = require_running(&target);
        if (!error)
                *ret = nd_strdup(target.container->id);
        nd_protobuf_free(answer);
        return error;
}
