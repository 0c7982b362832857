/* SPDX-License-Identifier: Apache-2.0 */
/* nodens-bridge - serves a volume that cannot be idmapped to a pod with its own user namespace
 *
 * nodens-cri starts one per volume and pod. It returns when the filesystem is mounted at TARGET;
 * the processes that serve it stay until it is unmounted. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/option.h"
#include "base/text.h"
#include "bridge/confine.h"
#include "bridge/keepers.h"
#include "bridge/mount.h"
#include "bridge/node.h"
#include "bridge/takeover.h"
#include "sys/calls.h"
#include "sys/limits.h"
#include "sys/mount.h"
#include "sys/userns.h"

enum {
        CACHE_MS = 1000,
        ALL_IDS = 65536,
};

struct arguments {
        const char *userns;
        const char *as;
        const char *owner;
        uint32_t first_id, ids;
        uint32_t cache_ms;
        uint32_t replace;
        bool idmap, no_passthrough, foreground, descriptors;
};

/* With --descriptors. */
enum {
        SOURCE = 3,
        USER_NAMESPACE = 4,
};

static const struct nd_option options[] = {
        {.name = "userns",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct arguments, userns),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "The pod's user namespace, which owns the filesystem"},
        {.name = "idmap",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct arguments, idmap),
         .help = "Make a filesystem of the host, for an idmapped mount (Linux 6.12), instead of --userns"},
        {.name = "as",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct arguments, as),
         .argument = "WHOM",
         .values = ND_VALUES_WORDS,
         .words = "root caller owner",
         .help = "Whose credentials the volume's filesystem sees (default: root)"},
        {.name = "force-owner",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct arguments, owner),
         .argument = "UID:GID",
         .help = "Show this owner for all files, and ignore changes of the owner"},
        {.name = "first-id",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct arguments, first_id),
         .argument = "ID",
         .help = "The ID of the host that is the pod's 0"},
        {.name = "ids",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct arguments, ids),
         .argument = "COUNT",
         .help = "Number of IDs that the pod has (default: 65536)"},
        {.name = "cache-ms",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct arguments, cache_ms),
         .argument = "MS",
         .help = "How long attributes and names may be cached (default: 1000)"},
        {.name = "no-passthrough",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct arguments, no_passthrough),
         .help = "Copy data through this program, also where the kernel could read and write files itself"},
        {.name = "descriptors",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct arguments, descriptors),
         .help = "The source is descriptor 3 and the user namespace descriptor 4; the only operand is TARGET"},
        {.name = "replace",
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct arguments, replace),
         .argument = "PID",
         .help = "Continue the volume that this process serves, and end it; the only operand is TARGET"},
        {.name = "foreground",
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct arguments, foreground),
         .help = "Do not move to the background"},
        {},
};

/* The kernel passes files through for the host's root only. */
static struct nd_error *may_pass_through(const struct arguments *arguments, bool *ret) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {};

        nd_try(nd_userns_maps_own("uid", &maps));
        *ret = !arguments->no_passthrough && nd_userns_maps_identity(&maps);
        return nullptr;
}

static struct nd_error *read_settings(const struct arguments *arguments, struct bridge_settings *ret) {
        static const char *const identities[] = {
                [BRIDGE_AS_ROOT] = "root", [BRIDGE_AS_CALLER] = "caller", [BRIDGE_AS_OWNER] = "owner"};

        *ret = (struct bridge_settings) {.mode = arguments->idmap ? BRIDGE_MODE_IDMAP : BRIDGE_MODE_USERNS,
                                         .first_id = arguments->first_id,
                                         .ids = arguments->ids > 0 ? arguments->ids : ALL_IDS,
                                         .attribute_ms = arguments->cache_ms > 0 ? arguments->cache_ms : CACHE_MS,
                                         .entry_ms = arguments->cache_ms > 0 ? arguments->cache_ms : CACHE_MS};
        if (!arguments->userns + !arguments->idmap + !arguments->descriptors != 2)
                return nd_error_new(ND_INVALID, 0, "one of --userns and --idmap is required");
        for (size_t i = 0; arguments->as && i < nd_count_of(identities); i++)
                if (strcmp(identities[i], arguments->as) == 0)
                        ret->as = (enum bridge_as) i;
        if (arguments->as && strcmp(identities[ret->as], arguments->as) != 0)
                return nd_error_new(ND_INVALID, 0, "invalid value '%s' of --as; use root, caller or owner", arguments->as);
        if (arguments->owner && nd_text_parse_u32_pair(arguments->owner, &ret->owner_uid, &ret->owner_gid) != 0)
                return nd_error_new(ND_INVALID, 0, "invalid value '%s' of --force-owner; use UID:GID", arguments->owner);
        ret->force_owner = arguments->owner;
        return may_pass_through(arguments, &ret->passthrough);
}

/* The parent's exit reports that the filesystem is mounted and served. ND_DEADLINE if there is a
 * child, and it is too slow. */
static struct nd_error *go_to_background(const struct bridge_state *state) {
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        nd_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        pid_t pid = nd_sys->clone3(&arguments, sizeof arguments);

        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "move to the background");
        if (pid > 0) {
                if (bridge_state_wait_mounted(state))
                        _exit(EXIT_SUCCESS);
                return nd_error_new(ND_DEADLINE, 0, "the filesystem is not served in time");
        }
        (void) setsid();
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                (void) dup2(null, fd);
        return nullptr;
}

static struct nd_error *open_userns(const struct arguments *arguments, int *ret_fd) {
        if (arguments->descriptors)
                *ret_fd = USER_NAMESPACE;
        if (!arguments->userns)
                return nullptr;
        *ret_fd = open(arguments->userns, O_RDONLY | O_CLOEXEC);
        return *ret_fd < 0 ? nd_error_new(nd_error_code_of(errno), errno, "open '%s'", arguments->userns) : nullptr;
}

/* @source: nullptr with --descriptors. */
static struct nd_error *serve(const struct arguments *arguments, const char *source, const char *target) {
        static struct bridge_state state;
        nd_autoclose int userns = -EBADF, tree = -EBADF;

        (void) close_range(arguments->descriptors ? USER_NAMESPACE + 1 : STDERR_FILENO + 1, UINT32_MAX, 0);
        nd_try(bridge_state_make(&state));
        nd_try(read_settings(arguments, &state.shared->settings));
        nd_try(open_userns(arguments, &userns));
        nd_try(source ? bridge_mount_open(&state, AT_FDCWD, source) : bridge_mount_open(&state, SOURCE, ""));
        nd_try(bridge_node_root(&state));
        nd_try(bridge_mount_make(&state, userns, &tree));
        nd_try(nd_mount_attach(tree, AT_FDCWD, target));
        if (!arguments->foreground)
                nd_try(go_to_background(&state));
        nd_close_fd(&userns);
        nd_close_fd(&tree);
        nd_try(bridge_confine(&state.shared->settings, "/proc"));
        bridge_keepers_run(&state);
        return nullptr;
}

/* Runs in the process that goes on; it does not depend on its parent. */
static struct nd_error *continue_volume(const struct arguments *arguments, struct bridge_state *state,
                                        struct bridge_takeover *takeover) {
        bool passthrough;

        nd_try(may_pass_through(arguments, &passthrough));
        /* What the state says cannot give more rights than a new volume has. */
        nd_try(bridge_confine(&(struct bridge_settings) {.passthrough = passthrough && state->shared->settings.passthrough},
                              "/proc"));
        bridge_takeover_end(takeover, SIGKILL);
        bridge_state_set_mounted(state);
        bridge_keepers_run(state);
        return nullptr;
}

static struct nd_error *replace(const struct arguments *arguments) {
        static struct bridge_state state;
        static struct bridge_takeover takeover;
        struct nd_error *error;

        (void) close_range(STDERR_FILENO + 1, UINT32_MAX, 0);
        nd_try(bridge_takeover_begin((pid_t) arguments->replace, &state, &takeover));
        bridge_state_set_waiting(&state);
        error = arguments->foreground ? nullptr : go_to_background(&state);
        if (nd_error_code(error) == ND_DEADLINE)
                return error; /* the other process has it */
        error = error ?: continue_volume(arguments, &state, &takeover);
        if (error)
                bridge_takeover_end(&takeover, SIGCONT);
        return error;
}

static int run(void *argument, int count, char **operands) {
        const struct arguments *arguments = argument;
        nd_autoerror struct nd_error *error = nullptr;

        if (count != (arguments->descriptors || arguments->replace > 0 ? 1 : 2)) {
                (void) fprintf(stderr, "nodens-bridge: SOURCE and TARGET are required\n");
                return ND_EXIT_USAGE;
        }
        nd_ignore(nd_limits_raise());
        error = arguments->replace > 0 ? replace(arguments)
                                       : serve(arguments, arguments->descriptors ? nullptr : operands[0], operands[count - 1]);
        if (!error)
                return EXIT_SUCCESS;
        (void) fprintf(stderr, "nodens-bridge: %s\n", nd_error_text(error));
        return EXIT_FAILURE;
}

static const struct nd_option_command commands[] = {
        {.name = "",
         .summary = "serve a volume that cannot be idmapped to a pod with its own user namespace",
         .operands = "SOURCE TARGET",
         .options = options,
         .settings_size = sizeof(struct arguments),
         .run = run},
        {},
};

int main(int argc, char **argv) {
        static const struct nd_option_program program = {
                .name = "nodens-bridge",
                .summary = "volumes for pods with user namespaces, started by nodens-cri",
                .commands = commands};

        return nd_option_run(&program, argc, argv);
}
