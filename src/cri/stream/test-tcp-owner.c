/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/stream/tcp-owner.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unit/expect.h>

#include "base/memory.h"

enum { STRANGER = 65534 };

static int listen_somewhere(struct sockaddr_in *ret) {
        socklen_t length = sizeof *ret;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        *ret = (struct sockaddr_in) {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        assert_int_equal(bind(fd, (struct sockaddr *) ret, sizeof *ret), 0);
        assert_int_equal(listen(fd, 8), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) ret, &length), 0);
        return fd;
}

static int connect_to(const struct sockaddr_in *address) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(connect(fd, (const struct sockaddr *) address, sizeof *address), 0);
        return fd;
}

/* Makes one connection as a user. The client exits at the end of file on the pipe. */
static pid_t connect_as(uid_t uid, const struct sockaddr_in *address, int until[2]) {
        pid_t child = fork();

        if (child == 0) {
                char byte;

                nd_close_fd(&until[1]); /* or the end of file would never come */
                if (syscall(SYS_setresuid, uid, uid, uid) == 0) {
                        (void) connect_to(address);
                        _exit(read(until[0], &byte, 1) != 0);
                }
                _exit(1);
        }
        return child;
}

static void a_connection_belongs_to_the_user_who_made_it([[maybe_unused]] void **state) {
        nd_autoclose int questions = cri_tcp_owner_open(), listener = -EBADF, own = -EBADF, ours = -EBADF, theirs = -EBADF;
        struct sockaddr_in address;
        struct cri_tcp_owner owner;
        int until[2];
        pid_t child;

        if (geteuid() != 0)
                skip_because("it becomes another user");
        listener = listen_somewhere(&address);
        own = connect_to(&address);
        ours = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        owner = cri_tcp_owner_of(questions, ours);
        if (!owner.known)
                skip_because("this kernel has no tcp_diag");
        assert_int_equal(owner.uid, 0);
        assert_int_equal(pipe(until), 0);
        child = connect_as(STRANGER, &address, until);
        theirs = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        owner = cri_tcp_owner_of(questions, theirs);
        assert_true(owner.known);
        assert_int_equal(owner.uid, STRANGER);
        assert_true(cri_tcp_owner_of(questions, ours).known); /* in any order */
        nd_close_fd(&until[1]);
        nd_close_fd(&until[0]);
        assert_int_equal(waitpid(child, nullptr, 0), child);
        /* unknown, though the kernel reports root */
        assert_false(cri_tcp_owner_of(questions, theirs).known);
}

static void without_netlink_the_owner_is_unknown([[maybe_unused]] void **state) {
        nd_autoclose int questions = cri_tcp_owner_open(), pair = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_false(cri_tcp_owner_of(-EBADF, pair).known);
        assert_false(cri_tcp_owner_of(questions, pair).known);
        assert_false(cri_tcp_owner_of(questions, -EBADF).known);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_connection_belongs_to_the_user_who_made_it),
                cmocka_unit_test(without_netlink_the_owner_is_unknown),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
