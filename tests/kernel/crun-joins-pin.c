/* SPDX-License-Identifier: Apache-2.0 */
/* crun runs a container in a pinned user namespace, on a root filesystem with idmapped layers.
 *
 * What crun and the kernel do: a runtime spec may name a user namespace by path and carry
 * uidMappings and gidMappings as well; crun joins the namespace, takes the mappings for what they
 * are there, and runs the program as root of it. The image's files, owned by root on disk, belong
 * to the container's root; what it writes lands in the upper directory with the pod's IDs.
 *
 * Why nodens needs it: this is CreateContainer in small: everything that the tests beside this one
 * show, together, with the engine that nodens drives. */
#include "overlay.h"
#include "sys/child.h"
#include "sys/worker.h"

static void write_spec(const char *bundle, const char *userns) {
        nd_autofree char *path = nd_format("%s/config.json", bundle), *text = nullptr, *map = nullptr;

        map = nd_format("[{\"containerID\":0,\"hostID\":%d,\"size\":%d}]", POD_ROOT, BLOCK);
        text = nd_format(
                "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"rootfs\"},\"hostname\":\"test\","
                "\"process\":{\"args\":[\"/program\"],\"cwd\":\"/\",\"user\":{\"uid\":0,\"gid\":0},\"env\":[]},"
                "\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
                "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\",\"mode=755\"]}],"
                "\"linux\":{\"uidMappings\":%s,\"gidMappings\":%s,\"namespaces\":[{\"type\":\"user\",\"path\":\"%s\"},"
                "{\"type\":\"mount\"},{\"type\":\"pid\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"network\"}]}}",
                map, map, userns);
        write_file(path, text);
}

/* The image: one program and the mount points that its spec wants. */
static void unpack_image(const char *program, const char *layer) {
        nd_autofree char *command =
                nd_format("install -m 755 '%s' '%s/program' && mkdir '%s/proc' '%s/dev'", program, layer, layer, layer);

        step(system(command) == 0);
}

int main(int argc, char **argv) {
        struct nd_child_result result = {};
        struct rootfs r;
        char *pin, *id, *state;
        int userns, tree = -EBADF;
        struct stat st;

        if (argc != 2)
                skip("wants the path of container-program");
        need_root();
        if (system("command -v crun >/dev/null") != 0)
                skip("there is no crun");
        done(nd_mount_namespace_private());
        userns = make_pod_userns(POD_ROOT, true);
        r = rootfs_make(userns);
        unpack_image(argv[1], r.layer);
        done(nd_worker_run("build a root filesystem", rootfs_build, &r, 60 * SECOND_US, &tree));
        done(nd_mount_attach(tree, AT_FDCWD, r.target));

        pin = nd_format("%s/user", r.base);
        write_file(pin, "");
        step(mount(nd_format("/proc/self/fd/%d", userns), pin, nullptr, MS_BIND, nullptr) == 0 && close(userns) == 0);
        write_spec(r.base, pin);
        id = nd_format("kernel-test-%d", (int) getpid());
        state = nd_format("%s/crun", r.base);

        const char *command[] = {"crun", "--root", state, "--cgroup-manager=disabled", "run", "--bundle", r.base, id, nullptr};
        struct nd_child_plan plan = {.argv = command, .deadline_us = 60 * SECOND_US, .output_ceiling = 64 * 1024};

        saw("crun runs a container with the user namespace %s", pin);
        done(nd_child_run(&plan, &result));
        saw("%s%s", result.output, result.errors);
        expect(result.code == 0, "crun ended with %d", result.code);
        expect(strstr(result.output, "user 0, uid_map          0    1310720      65536"),
               "the program is root of the pinned namespace");
        expect(strstr(result.output, "/program belongs to 0"), "the image's file belongs to the container's root");
        step(stat(nd_format("%s/program", r.layer), &st) == 0 && st.st_uid == 0);
        step(stat(nd_format("%s/written", r.upper), &st) == 0);
        expect(st.st_uid == POD_ROOT && st.st_gid == POD_ROOT, "what it wrote is in the upper directory and belongs to %u",
               st.st_uid);

        nd_child_result_done(&result);
        step(umount2(pin, MNT_DETACH) == 0);
        rootfs_remove(&r);
        return EXIT_SUCCESS;
}
