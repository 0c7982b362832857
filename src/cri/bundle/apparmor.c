/* SPDX-License-Identifier: Apache-2.0 */
/* apparmor.c - see apparmor.h
 *
 *      requested                 with AppArmor                 without, or in a rootless node
 *      nothing                   the default, if it is loaded  no profile
 *      RuntimeDefault            the default, or refused       refused
 *      Localhost                 that profile, or refused      refused
 *        in mode unconfined      refused                       refused
 *      Unconfined, privileged    no profile                    no profile
 *
 * If the pod spec has no profile, the kubelet requests none, which means the runtime's default. */
#include "cri/bundle/apparmor.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/core/config.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/own-userns.h"
#include "sys/program.h"

#define ENABLED "/sys/module/apparmor/parameters/enabled"
#define LOADED "/sys/kernel/security/apparmor/profiles"

static constexpr uint64_t deadline_us = 30 * ND_SECOND_US;

enum {
        LIST = 4 << 20, /* bytes of all profiles' names */
        WORDS = 4096,   /* output of apparmor_parser */
};

static bool is_enabled(void) {
        nd_autofree char *enabled = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(ENABLED, 16, &enabled);

        return !error && enabled[0] == 'Y';
}

/* ---- the default profiles ---- */

static struct nd_error *run_parser(const char *file) {
        nd_autofree char *program = nd_program_find("/usr/sbin:/sbin:/usr/bin", "apparmor_parser");
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        if (!program)
                return nd_error_new(ND_UNAVAILABLE, ENOENT, "apparmor_parser not found: install the package apparmor");
        nd_try(nd_child_run(&(struct nd_child_plan) {.argv = (const char *const[]) {program, "--replace", file, nullptr},
                                                     .deadline_us = deadline_us,
                                                     .dies_with_us = true,
                                                     .output_ceiling = WORDS},
                            &result));
        return nd_child_result_error(&result, "apparmor_parser");
}

void cri_apparmor_load(const struct cri_config *config) {
        nd_autoerror struct nd_error *error = nullptr;

        if (!is_enabled())
                return;
        error = run_parser(config->apparmor_profiles);
        if (error)
                nd_log(ND_LOG_WARNING, "cannot load the default AppArmor profiles for containers",
                       nd_field("file", config->apparmor_profiles), nd_field("error", nd_error_text(error)));
}

/* ---- the profile of a container ---- */

/* The mode of a profile: "enforce)" and the rest of the list; nullptr = not loaded. The list has
 * "name (mode)", one per line. */
static const char *mode_of(const char *loaded, const char *name) {
        nd_autofree char *start = nd_format("\n%s (", name);
        const char *found = strstr(loaded, start);

        if (nd_has_prefix(loaded, start + 1))
                return loaded + strlen(start + 1);
        return found ? found + strlen(start) : nullptr;
}

/* Distributions load profiles that only name a program (flags=(unconfined)). A container under
 * one would silently be unconfined. */
static struct nd_error *check_mode(const char *mode, const char *name) {
        if (!nd_has_prefix(mode, "unconfined)"))
                return nullptr;
        return nd_error_new(ND_PRECONDITION, 0,
                            "AppArmor profile '%s' is loaded in mode unconfined, which confines nothing; use type Unconfined "
                            "if that is intended",
                            name);
}

struct nd_error *cri_apparmor_choose_from(const char *loaded, const struct cri_security_profile *wanted, bool mapped,
                                          char **ret) {
        bool local = wanted->kind == PROFILE_LOCALHOST;
        const char *name = local ? wanted->localhost : mapped ? APPARMOR_DEFAULT_MAPPED : APPARMOR_DEFAULT;
        const char *mode = loaded ? mode_of(loaded, name) : nullptr;

        *ret = nullptr;
        if (wanted->kind == PROFILE_UNCONFINED)
                return nullptr;
        if (mode) {
                if (local)
                        nd_try(check_mode(mode, name));
                *ret = nd_strdup(name);
                return nullptr;
        }
        if (wanted->kind == PROFILE_UNSET)
                return nullptr;
        if (!loaded)
                return nd_error_new(ND_PRECONDITION, 0, "AppArmor profile '%s': AppArmor is not enabled on this node", name);
        return nd_error_new(ND_PRECONDITION, 0, "AppArmor profile '%s' is not loaded on this node%s", name,
                            local ? "" : "; see the log of nodens-cri's start for the reason");
}

/* Profiles belong to the host: a node can neither load nor list them. */
static struct nd_error *choose_in_node(const struct cri_security_profile *wanted, char **ret) {
        *ret = nullptr;
        if (wanted->kind == PROFILE_UNCONFINED || wanted->kind == PROFILE_UNSET)
                return nullptr;
        return nd_error_new(ND_PRECONDITION, 0,
                            "AppArmor profile '%s': this is a rootless node, where profiles are not available; remove the "
                            "profile, or schedule the pod to another node",
                            wanted->kind == PROFILE_LOCALHOST ? wanted->localhost : "RuntimeDefault");
}

struct nd_error *cri_apparmor_choose(const struct nd_own_userns *users, const struct cri_security_profile *wanted, bool mapped,
                                     char **ret) {
        nd_autofree char *loaded = nullptr;
        nd_autoerror struct nd_error *error = nullptr;

        if (!users->initial)
                return choose_in_node(wanted, ret);
        if (is_enabled())
                error = nd_file_read_kernel(LOADED, LIST, &loaded);
        /* without securityfs the list is unknown; the OCI runtime will check */
        if (error && wanted->kind == PROFILE_LOCALHOST) {
                *ret = nd_strdup(wanted->localhost);
                return nullptr;
        }
        return cri_apparmor_choose_from(error ? nullptr : loaded, wanted, mapped, ret);
}
