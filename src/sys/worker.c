/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - see worker.h
 *
 * Theory of operation
 *   One socket pair. The child sends a single packet: code, errno and text of its error, or code ND_OK, with at most one
 *   descriptor beside it; then it ends. The parent waits for the packet or the end of file on the socket, whichever comes first,
 *   and reaps the child before it returns. A child that a deadline killed but that the kernel cannot end within @REAP_MS (a
 *   dead disk) is left to be reaped by the process's exit, since waiting for it is what the deadline forbids. */
#include "sys/worker.h"

#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/calls.h"

enum {
        TEXT_CEILING = 8 * 1024,
        REAP_MS = 200,
};

struct packet {
        int code;
        int error_number;
        char text[TEXT_CEILING];
};

static ssize_t send_packet(int fd, const struct packet *packet, size_t length, int passed_fd) {
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = {};
        struct iovec vector = {.iov_base = (void *) packet, .iov_len = length};
        struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

        if (passed_fd >= 0) {
                message.msg_control = &control;
                message.msg_controllen = sizeof control;
                control.header = (struct cmsghdr) {
                        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
                memcpy(CMSG_DATA(&control.header), &passed_fd, sizeof passed_fd);
        }
        return sendmsg(fd, &message, MSG_NOSIGNAL);
}

[[noreturn]] static void child_main(int fd, nd_worker_function function, void *argument) {
        nd_autoerror struct nd_error *error = nullptr;
        struct packet packet = {};
        int passed_fd = -EBADF;
        size_t length;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        error = function(argument, &passed_fd);
        packet.code = (int) nd_error_code(error);
        packet.error_number = nd_error_errno(error);
        length = strnlen(nd_error_text(error), sizeof packet.text - 1);
        memcpy(packet.text, nd_error_text(error), length);
        (void) send_packet(fd, &packet, offsetof(struct packet, text) + length + 1, error ? -EBADF : passed_fd);
        _exit(EXIT_SUCCESS);
}

/* Receives the packet and the descriptor. Returns the packet's length, 0 at the end of file, -errno. */
static ssize_t receive_packet(int fd, struct packet *ret, int *ret_fd) {
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = {};
        struct iovec vector = {.iov_base = ret, .iov_len = sizeof *ret};
        struct msghdr message = {
                .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        struct cmsghdr *header;

        if (n < 0)
                return -errno;
        header = CMSG_FIRSTHDR(&message);
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
                memcpy(ret_fd, CMSG_DATA(header), sizeof *ret_fd);
        return n;
}

static struct nd_error *await(const char *what, int fd, uint64_t deadline_us, struct packet *packet, int *ret_fd) {
        uint64_t end = nd_clock_us() + deadline_us;

        for (;;) {
                uint64_t now = nd_clock_us();
                struct pollfd wait = {.fd = fd, .events = POLLIN};
                struct timespec left = {};
                ssize_t n;

                if (now < end) {
                        left.tv_sec = (time_t) ((end - now) / ND_SECOND_US);
                        left.tv_nsec = (long) ((end - now) % ND_SECOND_US * 1000);
                }
                n = ppoll(&wait, 1, &left, nullptr);
                if (n < 0 && errno != EINTR)
                        return nd_error_new(ND_INTERNAL, errno, "%s: wait for the child", what);
                if (n == 0)
                        return nd_error_new(ND_DEADLINE, ETIMEDOUT, "%s: no answer within %llu ms", what,
                                            (unsigned long long) (deadline_us / ND_MS_US));
                if (n < 0)
                        continue;
                n = receive_packet(fd, packet, ret_fd);
                if (n == 0)
                        return nd_error_new(ND_INTERNAL, 0, "%s: the child ended without an answer", what);
                if (n < (ssize_t) offsetof(struct packet, text) + 1 && n != -EAGAIN)
                        return nd_error_new(ND_INTERNAL, n < 0 ? (int) -n : EPROTO, "%s: read the child's answer", what);
                if (n > 0)
                        return nullptr;
        }
}

/* Ends a child that gave no answer, and reaps it unless it hangs in the kernel. */
static void put_down(int pidfd) {
        struct pollfd wait = {.fd = pidfd, .events = POLLIN};
        siginfo_t end;

        (void) nd_calls_real.pidfd_send_signal(pidfd, SIGKILL, 0);
        (void) poll(&wait, 1, REAP_MS);
        (void) waitid(P_PIDFD, (id_t) pidfd, &end, WEXITED | WNOHANG);
}

struct nd_error *nd_worker_run(const char *what, nd_worker_function function, void *argument, uint64_t deadline_us,
                               int *ret_fd) {
        nd_autoclose int ours = -EBADF, theirs = -EBADF, pidfd = -EBADF, passed = -EBADF;
        struct clone_args arguments = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uintptr_t) &pidfd};
        struct packet packet = {};
        struct nd_error *error;
        siginfo_t end;
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "%s: make a socket pair", what);
        ours = pair[0];
        theirs = pair[1];

        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "%s: start a child", what);
        if (pid == 0)
                child_main(theirs, function, argument);
        nd_close_fd(&theirs);

        error = await(what, ours, deadline_us, &packet, &passed);
        if (error) {
                put_down(pidfd);
                return error;
        }
        (void) waitid(P_PIDFD, (id_t) pidfd, &end, WEXITED);

        packet.text[sizeof packet.text - 1] = '\0';
        if (packet.code != ND_OK)
                return nd_error_received((enum nd_code) packet.code, packet.error_number, packet.text);
        if (ret_fd)
                *ret_fd = nd_take_fd(passed);
        return nullptr;
}
