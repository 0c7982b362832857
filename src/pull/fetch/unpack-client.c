/* SPDX-License-Identifier: Apache-2.0 */
/* unpack-client.c - see unpack-client.h
 *
 * The data of a blob is not sent: the unpacker reads the file that the fetcher writes, up to a
 * counter (an eventfd) of available bytes. So a slow disk does not stop the network, nothing is
 * copied, and a later pull can resume from the file. */
#include "pull/fetch/unpack-client.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "sys/fd-passing.h"

static constexpr int start_timeout_ms = 30000;
/* a few reads of small files, on a disk that may be busy */
static constexpr int lookup_timeout_ms = 60000;

struct pull_unpack_client {
        int fd;
};

void pull_unpack_client_free(struct pull_unpack_client *u) {
        free(u);
}

int pull_unpack_client_fd(const struct pull_unpack_client *u) {
        return u->fd;
}

static struct nd_error *receive(const struct pull_unpack_client *u, struct pull_message_reply *reply, bool *ret_there) {
        ssize_t n = recv(u->fd, reply, sizeof *reply, MSG_DONTWAIT);

        *ret_there = false;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return nullptr;
        if (n != sizeof *reply)
                return nd_error_new(ND_INTERNAL, n < 0 ? errno : 0, "nodens-unpack exited unexpectedly");
        reply->text[sizeof reply->text - 1] = '\0';
        *ret_there = true;
        return nullptr;
}

static struct nd_error *error_of(const struct pull_message_reply *reply) {
        if (reply->code == ND_OK)
                return nullptr;
        return nd_error_received((enum nd_error_code)(reply->code & 15), reply->error_number, reply->text);
}

/* Waits for the next reply of a kind; other replies before it belong to cancelled jobs. */
static struct nd_error *await(const struct pull_unpack_client *u, enum pull_message_kind kind, int timeout_ms,
                              struct pull_message_reply *reply) {
        bool there;

        do {
                if (poll(&(struct pollfd) {.fd = u->fd, .events = POLLIN}, 1, timeout_ms) == 0)
                        return nd_error_new(ND_DEADLINE, ETIMEDOUT, "timeout waiting for nodens-unpack");
                nd_try(receive(u, reply, &there));
        } while (!there || reply->kind != (uint32_t) kind);
        return nullptr;
}

struct nd_error *pull_unpack_client_connect(int channel_fd, struct pull_unpack_client **ret) {
        const struct pull_unpack_client u = {.fd = channel_fd};
        struct pull_message_reply ready;

        nd_try(await(&u, MESSAGE_READY, start_timeout_ms, &ready));
        nd_try(nd_error_wrap(error_of(&ready), "set up the jail of nodens-unpack"));
        *ret = nd_new(struct pull_unpack_client);
        **ret = u;
        return nullptr;
}

static struct nd_error *send_job(const struct pull_unpack_client *u, const struct pull_message_job *job, const int *fds,
                                 size_t count) {
        ssize_t n = nd_fd_passing_send(u->fd, job, sizeof *job, fds, count, 0);

        return n < 0 ? nd_error_new(ND_INTERNAL, (int) -n, "send to nodens-unpack") : nullptr;
}

static void put_chain(struct pull_message_job *job, const struct nd_digest *chain) {
        job->has_chain = 1;
        memcpy(job->chain, chain->bytes, sizeof job->chain);
}

struct nd_error *pull_unpack_client_lookup(struct pull_unpack_client *u, const struct nd_digest *chain, bool *ret_found,
                                           uint64_t *ret_size, uint64_t *ret_inodes) {
        struct pull_message_job job = {.kind = MESSAGE_LOOKUP};
        struct pull_message_reply reply;

        put_chain(&job, chain);
        nd_try(send_job(u, &job, nullptr, 0));
        nd_try(await(u, MESSAGE_LOOKUP, lookup_timeout_ms, &reply));
        nd_try(error_of(&reply));
        *ret_found = reply.found != 0;
        *ret_size = reply.size;
        *ret_inodes = reply.inodes;
        return nullptr;
}

struct nd_error *pull_unpack_client_unpack(struct pull_unpack_client *u, const struct pull_unpack_job *job) {
        struct pull_message_job message = {.kind = MESSAGE_UNPACK,
                                           .id = job->id,
                                           .blob_size = job->blob_size,
                                           .ceiling = job->ceiling,
                                           .compression = job->compression};

        if (job->file)
                (void) snprintf(message.file, sizeof message.file, "%s", job->file);
        if (job->parent)
                put_chain(&message, job->parent);
        return send_job(u, &message, (const int[]) {job->blob_fd, job->available_fd}, 2);
}

struct nd_error *pull_unpack_client_place(struct pull_unpack_client *u, uint32_t id) {
        return send_job(u, &(struct pull_message_job) {.kind = MESSAGE_PLACE, .id = id}, nullptr, 0);
}

void pull_unpack_client_cancel(struct pull_unpack_client *u, uint32_t id) {
        /* If nodens-unpack is gone, the next receive reports it. */
        nd_ignore(send_job(u, &(struct pull_message_job) {.kind = MESSAGE_CANCEL, .id = id}, nullptr, 0));
}

struct nd_error *pull_unpack_client_finish(struct pull_unpack_client *u) {
        return send_job(u, &(struct pull_message_job) {.kind = MESSAGE_FINISH}, nullptr, 0);
}

struct nd_error *pull_unpack_client_receive(struct pull_unpack_client *u, struct pull_unpack_reply *ret, bool *ret_there) {
        struct pull_message_reply reply;

        nd_try(receive(u, &reply, ret_there));
        if (!*ret_there)
                return nullptr;
        *ret = (struct pull_unpack_reply) {
                .id = reply.id,
                .placed = reply.kind == MESSAGE_PLACE,
                .error = error_of(&reply),
                .digest = {.kind = ND_HASH_SHA256},
                .stream = reply.stream,
                .size = reply.size,
                .inodes = reply.inodes,
        };
        memcpy(ret->digest.bytes, reply.digest, sizeof reply.digest);
        return nullptr;
}
