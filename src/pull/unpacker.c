/* SPDX-License-Identifier: Apache-2.0 */
/* unpacker.c - see unpacker.h
 *
 * The bytes of a blob do not travel: the unpacker reads them from the file that the fetching side writes, behind a counter (an eventfd) of
 * what is there. So a slow disk does not stop the network, nothing is copied, and what is on disk is what a later pull resumes from. */
#include "pull/unpacker.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "sys/parcel.h"

enum {
        START_MS = 30000,
        LOOK_MS = 60000, /* a few reads of small files, on a disk that may be busy */
};

struct nd_unpacker {
        int fd;
};

void nd_unpacker_free(struct nd_unpacker *u) {
        free(u);
}

int nd_unpacker_fd(const struct nd_unpacker *u) {
        return u->fd;
}

static struct nd_error *receive(const struct nd_unpacker *u, struct nd_channel_answer *answer, bool *ret_there) {
        ssize_t n = recv(u->fd, answer, sizeof *answer, MSG_DONTWAIT);

        *ret_there = false;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return nullptr;
        if (n != sizeof *answer)
                return nd_error_new(ND_INTERNAL, n < 0 ? errno : 0, "the unpacker ended unexpectedly");
        answer->text[sizeof answer->text - 1] = '\0';
        *ret_there = true;
        return nullptr;
}

static struct nd_error *error_of(const struct nd_channel_answer *answer) {
        if (answer->code == ND_OK)
                return nullptr;
        return nd_error_received((enum nd_code)(answer->code & 15), answer->error_number, answer->text);
}

/* The next answer of a kind; others that come before it belong to jobs that were cancelled. */
static struct nd_error *await(const struct nd_unpacker *u, enum nd_channel_kind kind, int milliseconds,
                              struct nd_channel_answer *answer) {
        bool there;

        do {
                if (poll(&(struct pollfd) {.fd = u->fd, .events = POLLIN}, 1, milliseconds) == 0)
                        return nd_error_new(ND_DEADLINE, ETIMEDOUT, "the unpacker does not answer");
                nd_try(receive(u, answer, &there));
        } while (!there || answer->kind != (uint32_t) kind);
        return nullptr;
}

struct nd_error *nd_unpacker_meet(int channel_fd, struct nd_unpacker **ret) {
        const struct nd_unpacker u = {.fd = channel_fd};
        struct nd_channel_answer ready;

        nd_try(await(&u, ND_CHANNEL_READY, START_MS, &ready));
        nd_try(nd_error_wrap(error_of(&ready), "the unpacker's jail"));
        *ret = nd_new(struct nd_unpacker);
        **ret = u;
        return nullptr;
}

static struct nd_error *send_job(const struct nd_unpacker *u, const struct nd_channel_job *job, const int *fds, size_t count) {
        ssize_t n = nd_parcel_send(u->fd, job, sizeof *job, fds, count, 0);

        return n < 0 ? nd_error_new(ND_INTERNAL, (int) -n, "the unpacker is gone") : nullptr;
}

static void put_chain(struct nd_channel_job *job, const struct nd_digest *chain) {
        job->has_chain = 1;
        memcpy(job->chain, chain->bytes, sizeof job->chain);
}

struct nd_error *nd_unpacker_look(struct nd_unpacker *u, const struct nd_digest *chain, bool *ret_found, uint64_t *ret_size,
                                  uint64_t *ret_inodes) {
        struct nd_channel_job job = {.kind = ND_CHANNEL_LOOK};
        struct nd_channel_answer answer;

        put_chain(&job, chain);
        nd_try(send_job(u, &job, nullptr, 0));
        nd_try(await(u, ND_CHANNEL_LOOK, LOOK_MS, &answer));
        nd_try(error_of(&answer));
        *ret_found = answer.found != 0;
        *ret_size = answer.size;
        *ret_inodes = answer.inodes;
        return nullptr;
}

struct nd_error *nd_unpacker_unpack(struct nd_unpacker *u, const struct nd_unpack_job *job) {
        struct nd_channel_job message = {.kind = ND_CHANNEL_UNPACK,
                                         .id = job->id,
                                         .blob_size = job->blob_size,
                                         .ceiling = job->ceiling,
                                         .compression = job->compression};

        if (job->parent)
                put_chain(&message, job->parent);
        return send_job(u, &message, (const int[]) {job->blob_fd, job->available_fd}, 2);
}

struct nd_error *nd_unpacker_place(struct nd_unpacker *u, uint32_t id) {
        return send_job(u, &(struct nd_channel_job) {.kind = ND_CHANNEL_PLACE, .id = id}, nullptr, 0);
}

void nd_unpacker_cancel(struct nd_unpacker *u, uint32_t id) {
        nd_error_free(send_job(u, &(struct nd_channel_job) {.kind = ND_CHANNEL_CANCEL, .id = id}, nullptr, 0));
}

struct nd_error *nd_unpacker_finish(struct nd_unpacker *u) {
        return send_job(u, &(struct nd_channel_job) {.kind = ND_CHANNEL_FINISH}, nullptr, 0);
}

struct nd_error *nd_unpacker_receive(struct nd_unpacker *u, struct nd_unpack_answer *ret, bool *ret_there) {
        struct nd_channel_answer answer;

        nd_try(receive(u, &answer, ret_there));
        if (!*ret_there)
                return nullptr;
        *ret = (struct nd_unpack_answer) {
                .id = answer.id,
                .placed = answer.kind == ND_CHANNEL_PLACE,
                .error = error_of(&answer),
                .digest = {.kind = ND_HASH_SHA256},
                .stream = answer.stream,
                .size = answer.size,
                .inodes = answer.inodes,
        };
        memcpy(ret->digest.bytes, answer.digest, sizeof answer.digest);
        return nullptr;
}
