/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/filesystems.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
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

static void check_directory(struct cli_findings *findings, const char *path, bool layers) {
        nd_autofree char *directory = existing(path), *filesystem = nd_probe_filesystem(directory);
        nd_autofree char *subject = nd_format("volumes in %s", path), *layer_subject = nd_format("images in %s", path);
        nd_autofree char *where = nd_streq(directory, path)
                                          ? nd_strdup(filesystem)
                                          : nd_format("%s (as %s; it is not there yet)", filesystem, directory);
        struct nd_error *error = nd_probe_idmap(directory);
        /* The overlay has an idmapped layer: without one, its own advice does not help. */
        const char *advice = error ? idmap_advice(error) : nullptr;

        cli_findings_add_probe(findings, FINDING_FAIL, subject, error, nd_format("idmapped mounts work on %s", where), advice);
        if (layers)
                cli_findings_add_probe(findings, FINDING_FAIL, layer_subject, nd_probe_overlay(directory),
                                       nd_format("overlay on an idmapped layer works on %s", where),
                                       advice
                                               ?: "load the overlay module (modprobe overlay); the layers must not be on an "
                                                  "overlay themselves");
}

void cli_filesystems_check(struct cli_findings *findings) {
        check_directory(findings, "/var/lib/kubelet", false);
        check_directory(findings, "/var/lib/nodens", true);
        cli_findings_add_probe(findings, FINDING_FAIL, "secrets and tokens", nd_probe_idmap_tmpfs(),
                               nd_strdup("idmapped mounts work on tmpfs"),
                               "upgrade to a kernel with idmapped tmpfs mounts (6.3)");
}

struct nd_error *cli_filesystems_check_directory(struct cli_findings *findings, const char *path) {
        nd_autoclose int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open directory '%s'", path);
        check_directory(findings, path, true);
        return nullptr;
}
