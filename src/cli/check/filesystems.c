/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/filesystems.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/check/bridge.h"
#include "userns/probe.h"

/* The number of the first user namespace of a kernel (PROC_USER_INIT_INO). */
static constexpr ino_t first_userns = 0xeffffffd;

/* Returns the directory itself or, if it does not exist, its nearest existing parent. */
static char *existing(const char *path) {
        char *copy = nd_strdup(path), *slash;

        while (access(copy, F_OK) < 0 && (slash = strrchr(copy, '/')) && slash != copy)
                *slash = '\0';
        if (access(copy, F_OK) < 0) {
                free(copy); /* it may be empty, without room for "/" */
                return nd_strdup("/");
        }
        return copy;
}

static bool in_first_userns(void) {
        struct stat st;

        return stat("/proc/self/ns/user", &st) < 0 || st.st_ino == first_userns;
}

/* A mount can be idmapped only by root of the user namespace that the filesystem was mounted in, so
 * another filesystem of the host would not help in a rootless node. */
static const char *idmap_advice(const struct nd_error *error) {
        if (nd_error_code(error) == ND_DENIED && !in_first_userns())
                return "in a user namespace, such as a rootless node, only filesystems that were mounted in it can be idmapped "
                       "(tmpfs); pods that share the node's users work, and nodens check on the host shows what works there";
        return "use a filesystem with idmapped mounts: ext4, xfs, btrfs, tmpfs, or others on newer kernels";
}

static void check_layers(struct cli_findings *findings, const char *path, const char *directory, const char *where,
                         enum cli_finding_level when_bad, const char *advice) {
        nd_autofree char *subject = nd_format("images in %s", path);

        cli_findings_add_probe(findings, when_bad, subject, nd_probe_overlay(directory),
                               nd_format("overlay on an idmapped layer works on %s", where),
                               advice
                                       ?: "load the overlay module (modprobe overlay); the layers must not be on an "
                                          "overlay themselves");
}

static void check_node_directory(struct cli_findings *findings, const char *path, bool layers) {
        nd_autofree char *directory = existing(path), *filesystem = nd_probe_filesystem(directory);
        nd_autofree char *subject = nd_format("volumes in %s", path);
        nd_autofree char *where = nd_streq(directory, path)
                                          ? nd_strdup(filesystem)
                                          : nd_format("%s (as %s; it is not there yet)", filesystem, directory);
        struct nd_error *error = nd_probe_idmap(directory);
        /* The overlay has an idmapped layer: without one, its own advice does not help. */
        const char *advice = error ? idmap_advice(error) : nullptr;

        cli_findings_add_probe(findings, FINDING_FAIL, subject, error, nd_format("idmapped mounts work on %s", where), advice);
        if (layers)
                check_layers(findings, path, directory, where, FINDING_FAIL, advice);
}

void cli_filesystems_check(struct cli_findings *findings) {
        check_node_directory(findings, "/var/lib/kubelet", false);
        check_node_directory(findings, "/var/lib/nodens", true);
        cli_findings_add_probe(findings, FINDING_FAIL, "secrets and tokens", nd_probe_idmap_tmpfs(),
                               nd_strdup("idmapped mounts work on tmpfs"),
                               "upgrade to a kernel with idmapped tmpfs mounts (6.3)");
}

/* ---- one directory ---- */

/* Adds the finding for a directory that cannot be idmapped. Returns whether nodens-bridge serves
 * it. */
static bool add_bridge(struct cli_findings *findings, const char *subject, const char *filesystem, const char *socket) {
        nd_cleanup(cli_runtime_settings_done) struct cli_runtime_settings settings = {};
        nd_autoerror struct nd_error *error = cli_bridge_settings(socket, &settings);
        nd_cleanup(cli_bridge_verdict_done) struct cli_bridge_verdict verdict = {};

        if (error) {
                cli_findings_add(findings, FINDING_FAIL, subject,
                                 nd_format("%s cannot be idmapped; whether nodens-bridge serves it is not known: %s",
                                           filesystem, nd_error_text(error)),
                                 nd_strdup("correct the configuration of nodens-cri"));
                return false;
        }
        cli_bridge_judge(&settings, "/dev/fuse", filesystem, &verdict);
        cli_findings_add(findings, verdict.serves ? FINDING_NOTE : FINDING_FAIL, subject,
                         nd_format("%s cannot be idmapped; %s", filesystem, verdict.found), nd_take_ptr(verdict.advice));
        return verdict.serves;
}

static void check_volume(struct cli_findings *findings, const char *path, const char *socket) {
        nd_autofree char *filesystem = nd_probe_filesystem(path), *subject = nd_format("volumes in %s", path);
        enum cli_finding_level no_layers = FINDING_FAIL;
        struct nd_error *error = nd_probe_idmap(path);
        const char *advice = error ? idmap_advice(error) : nullptr;

        if (nd_error_errno(error) == EINVAL) {
                nd_error_free(nd_take_ptr(error));
                if (add_bridge(findings, subject, filesystem, socket))
                        no_layers = FINDING_NOTE;
        } else {
                cli_findings_add_probe(findings, FINDING_FAIL, subject, error,
                                       nd_format("idmapped mounts work on %s", filesystem), advice);
        }
        check_layers(findings, path, path, filesystem, no_layers, advice);
}

struct nd_error *cli_filesystems_check_directory(struct cli_findings *findings, const char *path, const char *socket) {
        nd_autoerror struct nd_error *error = nd_probe_directory(path);
        nd_autofree char *subject = nullptr, *filesystem = nullptr;

        if (error && nd_error_code(error) != ND_DEADLINE)
                return nd_take_ptr(error);
        if (!error) {
                check_volume(findings, path, socket);
                return nullptr;
        }
        subject = nd_format("volumes in %s", path);
        filesystem = nd_probe_filesystem(path);
        cli_findings_add(findings, FINDING_FAIL, subject,
                         nd_format("%s does not respond within %d seconds", filesystem, ND_PROBE_S),
                         nd_strdup("check the server of this filesystem and the network to it"));
        return nullptr;
}
