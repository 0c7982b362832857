/* SPDX-License-Identifier: Apache-2.0 */
/* evil.c - nodens-fetch or nodens-unpack with one compromised process inside its real jail
 *
 * Linked with the program's own main() and library, with one module replaced: EVIL_FETCHER the
 * registry client, EVIL_TAR the reader of archives, EVIL_FINALIZE the code that finalizes a layer,
 * EVIL_DECOMPRESS the decompressor. The replacement tries everything that an attacker's code would
 * try and writes "attempt: WHAT: ERROR" or "attempt: WHAT: worked" to standard error. */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "pull/archive/decompress.h"
#include "pull/archive/tar.h"
#include "pull/fetch/registry.h"
#include "pull/unpack/finalize.h"
#include "pull/unpack/worker.h"

static void attempt(const char *what, long result) {
        char line[256];
        int n = snprintf(line, sizeof line, "attempt: %s: %s\n", what, result < 0 ? strerrorname_np(errno) : "worked");

        (void) !write(STDERR_FILENO, line, (size_t) n);
}

/* Forbidden in every jail: other processes, namespaces and mounts, and influence on other
 * processes. */
static void try_the_kernel(void) {
        static struct io_uring_params parameters;
        char byte;
        struct iovec vector = {.iov_base = &byte, .iov_len = 1};
        long child;

        errno = 0;
        child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0)
                _exit(EXIT_SUCCESS);
        attempt("fork", child);
        attempt("unshare", unshare(CLONE_NEWUSER));
        attempt("mount", mount("tmpfs", "/", "tmpfs", 0, nullptr));
        attempt("open_tree", open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE));
        attempt("chroot", chroot("/"));
        attempt("ptrace", ptrace(PTRACE_ATTACH, 1, nullptr, nullptr));
        attempt("process_vm_readv", process_vm_readv(1, &vector, 1, &vector, 1, 0));
        attempt("kill", kill(1, 0));
        attempt("kill all", kill(-1, 0));
        attempt("execve", execve("/x", (char *[]) {nullptr}, (char *[]) {nullptr}));
        attempt("io_uring", syscall(SYS_io_uring_setup, 1, &parameters));
        attempt("bpf", syscall(SYS_bpf, 0, nullptr, 0));
        attempt("keyctl", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
        attempt("userfaultfd", syscall(SYS_userfaultfd, 0));
        attempt("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, &vector, 0));
        attempt("unix socket", socket(AF_UNIX, SOCK_STREAM, 0));
        attempt("pair of datagram sockets", socketpair(AF_UNIX, SOCK_DGRAM, 0, (int[2]) {}));
}

/* Checks whether a directory's parent is another directory than itself. */
[[maybe_unused]] static void try_parent(const char *what, int fd) {
        struct stat self, parent;
        int up = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (up >= 0 && fstat(fd, &self) == 0 && fstat(up, &parent) == 0 && self.st_ino == parent.st_ino &&
            self.st_dev == parent.st_dev) {
                errno = EXDEV;
                (void) close(up);
                up = -1;
        }
        attempt(what, up);
}

#ifdef EVIL_FETCHER
struct nd_error *pull_registry_pull(struct pull_layers_context *place, [[maybe_unused]] const struct pull_request *request) {
        struct sockaddr_un abstract = {.sun_family = AF_UNIX, .sun_path = "\0nodens-test-abstract"};
        struct sockaddr_in any = {.sin_family = AF_INET};
        int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        try_the_kernel();
        attempt("the channel to another socket", connect(3, (struct sockaddr *) &abstract, sizeof abstract));
        attempt("bind", bind(tcp, (struct sockaddr *) &any, sizeof any));
        attempt("symlink in partial", symlinkat("/", place->partial_fd, "evil"));
        attempt("symlink in blobs", symlinkat("/", place->blobs_fd, "evil"));
        attempt("directory in partial", mkdirat(place->partial_fd, "deep", 0700));
        attempt("hard link in partial", linkat(place->partial_fd, ".", place->partial_fd, "linked", 0));
        attempt("rename in partial", renameat(place->partial_fd, ".", place->partial_fd, "renamed"));
        attempt("time of partial", futimens(place->partial_fd, (struct timespec[2]) {}));
        attempt("FIFO in partial", mknodat(place->partial_fd, "fifo", S_IFIFO | 0600, 0));
        attempt("unpack", open("/unpack", O_RDONLY));
        attempt("layers", open("/layers", O_RDONLY));
        attempt("work beside blobs", openat(place->blobs_fd, "../unpack", O_RDONLY));
        attempt("make a directory beside blobs", mkdirat(place->blobs_fd, "../layers", 0700));
        attempt("proc", open("/proc/self/root", O_RDONLY));
        return nd_error_new(ND_INTERNAL, 0, "the attack is over");
}
#endif

#ifdef EVIL_TAR
struct pull_tar {
        bool tried;
};

struct pull_tar *pull_tar_new([[maybe_unused]] const struct pull_tar_sink *sink) {
        return nd_new(struct pull_tar);
}

void pull_tar_free(struct pull_tar *tar) {
        free(tar);
}

/* Reports another hash and success. */
static void forge_a_report(void) {
        struct pull_worker_report report = {.at_end = 1, .size = 4096, .inodes = 1, .stream = 1};

        memset(report.diff_id, 0xee, sizeof report.diff_id);
        attempt("forged report", write(3, &report, sizeof report));
}

struct nd_error *pull_tar_feed(struct pull_tar *tar, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length) {
        static const char *const ways[] = {"/unpack",         "/layers",         "/../unpack/layers",
                                           "../../../layers", "/proc/self/fd/4", "/empty"};
        int planted;

        if (tar->tried)
                return nullptr;
        tar->tried = true;
        try_the_kernel();
        for (size_t i = 0; i < nd_count_of(ways); i++)
                attempt(ways[i], open(ways[i], O_RDONLY));
        try_parent("parent of the root", 4);
        for (int fd = 5; fd < 1024; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        attempt("another descriptor", fd);
        attempt("block device", mknodat(4, "sda", S_IFBLK | 0600, makedev(8, 0)));
        planted = openat(4, "planted", O_WRONLY | O_CREAT, 0600); /* its own tree is writable */
        (void) !write(planted, "evil", 4);
        forge_a_report();
        return nullptr;
}

struct nd_error *pull_tar_finish([[maybe_unused]] const struct pull_tar *tar) {
        return nullptr;
}
#endif

#ifdef EVIL_FINALIZE
struct nd_error *pull_finalize(int root_fd, [[maybe_unused]] const char *marks, [[maybe_unused]] size_t length,
                               const struct pull_finalize_lower *lower) {
        int below = lower->open(lower->userdata, 0), file = openat(below, "etc/passwd", O_RDONLY | O_CLOEXEC);

        try_the_kernel();
        try_parent("parent of the root", root_fd);
        try_parent("parent of a layer below", below);
        attempt("layer below seen", file);
        errno = 0;
        attempt("create below", openat(below, "planted", O_WRONLY | O_CREAT, 0600));
        attempt("write below", openat(below, "etc/passwd", O_WRONLY));
        attempt("truncate below", openat(below, "etc/passwd", O_RDONLY | O_TRUNC));
        attempt("remove below", unlinkat(below, "etc/passwd", 0));
        attempt("rename below", renameat(below, "etc/passwd", below, "etc/other"));
        attempt("mode below", fchmod(file, 04777));
        attempt("attribute below", fsetxattr(file, "user.evil", "x", 1, 0));
        attempt("owner below", fchown(file, 1, 1));
        attempt("hard link from below", linkat(below, "etc/passwd", root_fd, "linked", 0));
        attempt("hard link by descriptor", linkat(file, "", root_fd, "linked", AT_EMPTY_PATH));
        attempt("move from below", renameat(below, "etc/passwd", root_fd, "moved"));
        attempt("remount below", mount_setattr(below, "", AT_EMPTY_PATH, &(struct mount_attr) {.attr_clr = MOUNT_ATTR_RDONLY},
                                               sizeof(struct mount_attr)));
        return nullptr;
}
#endif

#ifdef EVIL_DECOMPRESS
struct pull_decompressor {
        pull_decompressor_sink sink;
        void *userdata;
        bool tried;
};

struct pull_decompressor *pull_decompressor_new([[maybe_unused]] enum nd_oci_compression compression,
                                                [[maybe_unused]] uint64_t ceiling, pull_decompressor_sink sink,
                                                void *userdata) {
        struct pull_decompressor *s = nd_new(struct pull_decompressor);

        *s = (struct pull_decompressor) {.sink = sink, .userdata = userdata};
        return s;
}

void pull_decompressor_free(struct pull_decompressor *s) {
        free(s);
}

/* Returns its own archive: two blocks of zeros, which is an empty one. */
struct nd_error *pull_decompressor_feed(struct pull_decompressor *s, [[maybe_unused]] const char *bytes,
                                        [[maybe_unused]] size_t length) {
        static const char empty[1024];
        struct pull_worker_report report = {.stream = 1};

        if (s->tried)
                return nullptr;
        s->tried = true;
        try_the_kernel();
        attempt("open", open("/", O_RDONLY));
        attempt("openat", openat(0, ".", O_RDONLY));
        memset(report.diff_id, 0xee, sizeof report.diff_id);
        attempt("forged report", write(3, &report, sizeof report));
        return s->sink(s->userdata, empty, sizeof empty);
}

struct nd_error *pull_decompressor_finish([[maybe_unused]] struct pull_decompressor *s) {
        return nullptr;
}
#endif
