/* SPDX-License-Identifier: Apache-2.0 */
/* Whiteouts, opaque directories and file capabilities can be made in an identity-mapped user
 * namespace.
 *
 * What the kernel does: in a user namespace that maps every ID to itself, root without any power
 * outside may make a character device 0:0 and no other device, set user.overlay.* and
 * security.capability (stored as version 3 with root's ID, which any namespace of that root reads
 * as version 2), and give files any owner. overlayfs with `userxattr` takes the device for a
 * whiteout and user.overlay.opaque for an opaque directory. A whiteout in a directory that only one
 * layer has is not interpreted: it is listed, as a name that cannot be looked up.
 *
 * Why nodens needs it: nodens-unpack unpacks layers in such a namespace, so that a hostile layer
 * meets no privilege; and its settling removes whiteouts that hide nothing, since a container would
 * stumble over the listed name. */
#include <dirent.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "evidence.h"
#include "sys/mount.h"

/* Version 2, CAP_NET_RAW, effective and permitted. */
static const unsigned char capability[20] = {0x01, 0x00, 0x00, 0x02, 0x00, 0x20};

static int unpack(void *argument) {
        const int *userns = argument;

        enter_userns(*userns);
        expect(mknod("upper/both/gone", S_IFCHR | 0600, makedev(0, 0)) == 0, "a character device 0:0 can be made");
        expect(mknod("upper/alone/stray", S_IFCHR | 0600, makedev(0, 0)) == 0, "and in a directory that only this layer has");
        expect(mknod("upper/null", S_IFCHR | 0600, makedev(1, 3)) < 0 && errno == EPERM, "another device cannot");
        expect(setxattr("upper/opaque", "user.overlay.opaque", "y", 1, 0) == 0, "user.overlay.opaque can be set");
        expect(setxattr("upper/opaque", "trusted.overlay.opaque", "y", 1, 0) < 0, "trusted.overlay.opaque cannot");
        write_file("upper/tool", "x");
        expect(chown("upper/tool", 4000000000, 70000) == 0, "a file can be given to any ID");
        expect(setxattr("upper/tool", "security.capability", capability, sizeof capability, 0) == 0,
               "file capabilities can be set");
        return 0;
}

static bool listed(const char *directory, const char *name) {
        DIR *dir = opendir(directory);
        const struct dirent *entry;
        bool found = false;

        step(dir);
        while ((entry = readdir(dir)))
                found = found || strcmp(entry->d_name, name) == 0;
        step(closedir(dir) == 0);
        return found;
}

int main(void) {
        static const char *const directories[] = {"lower",      "lower/both",  "lower/opaque", "upper",
                                                  "upper/both", "upper/alone", "upper/opaque", "merged"};
        struct nd_userns_map map = {.inside = 0, .outside = 0, .count = UINT32_MAX};
        struct nd_userns_plan plan = {.uids = &map, .uid_count = 1, .gids = &map, .gid_count = 1};
        char *base = scratch_directory("/var/tmp"), *command = nd_format("rm -rf '%s'", base);
        unsigned char value[64];
        int userns = -EBADF;
        struct stat st;

        need_root();
        done(nd_mount_namespace_private());
        done(nd_userns_make(&plan, &userns));
        step(chdir(base) == 0);
        for (size_t i = 0; i < nd_count_of(directories); i++)
                step(mkdir(directories[i], 0755) == 0);
        write_file("lower/both/gone", "x");
        write_file("lower/both/stays", "x");
        write_file("lower/opaque/hidden", "x");

        saw("in an identity-mapped user namespace");
        step(in_child(unpack, &userns) == 0);
        step(stat("upper/tool", &st) == 0);
        expect(st.st_uid == 4000000000 && st.st_gid == 70000, "outside, the file has the same owner");
        expect(getxattr("upper/tool", "security.capability", value, sizeof value) == sizeof capability &&
                       memcmp(value, capability, sizeof capability) == 0,
               "outside, the capabilities read as version 2");

        saw("overlay of both layers with userxattr");
        step(mount("overlay", "merged", "overlay", 0, "lowerdir=upper:lower,userxattr") == 0);
        expect(access("merged/both/gone", F_OK) < 0 && errno == ENOENT && !listed("merged/both", "gone"),
               "the whiteout hides its name");
        expect(access("merged/both/stays", F_OK) == 0, "and no other");
        expect(access("merged/opaque", F_OK) == 0 && !listed("merged/opaque", "hidden"),
               "the opaque directory hides what is below");
        expect(access("merged/alone/stray", F_OK) < 0, "a whiteout where nothing is below cannot be looked up");
        expect(listed("merged/alone", "stray"), "but it is listed");

        step(umount2("merged", MNT_DETACH) == 0 && chdir("/") == 0);
        step(system(command) == 0);
        return EXIT_SUCCESS;
}
