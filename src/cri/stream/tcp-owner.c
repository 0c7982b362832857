/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/stream/tcp-owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

enum {
        ANSWER = 4096,
        TRIES = 4, /* skips replies to earlier requests */
};

int cri_tcp_owner_open(void) {
        return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
}

struct question {
        struct nlmsghdr head;
        struct inet_diag_req_v2 request;
};

/* The peer's socket, with its addresses as it sees them. */
static bool make_question(int fd, struct question *ret) {
        struct sockaddr_in peer = {}, own = {};
        socklen_t peer_length = sizeof peer, own_length = sizeof own;
        static uint32_t number;

        if (getpeername(fd, (struct sockaddr *) &peer, &peer_length) < 0 ||
            getsockname(fd, (struct sockaddr *) &own, &own_length) < 0 || peer.sin_family != AF_INET)
                return false;
        *ret = (struct question) {.head = {.nlmsg_len = sizeof *ret,
                                           .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                           .nlmsg_flags = NLM_F_REQUEST,
                                           .nlmsg_seq = ++number},
                                  .request = {.sdiag_family = AF_INET,
                                              .sdiag_protocol = IPPROTO_TCP,
                                              .idiag_states = UINT32_MAX,
                                              .id = {.idiag_sport = peer.sin_port,
                                                     .idiag_dport = own.sin_port,
                                                     .idiag_src = {peer.sin_addr.s_addr},
                                                     .idiag_dst = {own.sin_addr.s_addr},
                                                     .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
        return true;
}

/* After the process has closed the socket, older kernels report uid 0. */
static struct cri_tcp_owner read_answer(const struct nlmsghdr *head) {
        const struct inet_diag_msg *message = NLMSG_DATA(head);
        struct cri_tcp_owner owner = {};
        size_t at = NLMSG_LENGTH(sizeof *message);
        const char *bytes = (const char *) head;
        struct rtattr attribute;

        if (head->nlmsg_len < at || message->idiag_state != TCP_ESTABLISHED)
                return owner;
        owner.known = true;
        owner.uid = message->idiag_uid;
        for (; at + sizeof attribute <= head->nlmsg_len; at += RTA_ALIGN(attribute.rta_len)) {
                memcpy(&attribute, bytes + at, sizeof attribute);
                if (attribute.rta_len < sizeof attribute || attribute.rta_len > head->nlmsg_len - at)
                        break;
                if (attribute.rta_type == INET_DIAG_CGROUP_ID && attribute.rta_len == RTA_LENGTH(sizeof owner.cgroup))
                        memcpy(&owner.cgroup, bytes + at + RTA_LENGTH(0), sizeof owner.cgroup);
        }
        return owner;
}

struct cri_tcp_owner cri_tcp_owner_of(int questions, int fd) {
        alignas(struct nlmsghdr) char answer[ANSWER];
        struct question question;

        if (questions < 0 || !make_question(fd, &question) ||
            send(questions, &question, sizeof question, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) sizeof question)
                return (struct cri_tcp_owner) {};
        for (int i = 0; i < TRIES; i++) {
                ssize_t n = recv(questions, answer, sizeof answer, MSG_DONTWAIT);
                const struct nlmsghdr *head = (const struct nlmsghdr *) answer;

                if (n < 0 || !NLMSG_OK(head, (size_t) n))
                        break;
                if (head->nlmsg_seq == question.head.nlmsg_seq)
                        return head->nlmsg_type == SOCK_DIAG_BY_FAMILY ? read_answer(head) : (struct cri_tcp_owner) {};
        }
        return (struct cri_tcp_owner) {};
}
