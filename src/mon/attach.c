/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/attach.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

void mon_attach_init(struct mon_attach *attach, struct mon_control *control) {
        attach->control = control;
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                attach->clients[i] = (struct mon_client) {.in = -EBADF, .outputs = {-EBADF, -EBADF}};
}

void mon_attach_remove(struct mon_attach *attach, size_t connection) {
        struct mon_client *client = attach->clients + connection;

        if (client->in >= 0)
                attach->input_ended = true;
        nd_close_fd(&client->in);
        for (size_t i = 0; i < ATTACH_OUTPUTS; i++)
                nd_close_fd(&client->outputs[i]);
        *client = (struct mon_client) {.in = -EBADF, .outputs = {-EBADF, -EBADF}};
}

static void disconnect(struct mon_attach *attach, size_t connection) {
        mon_control_reply(attach->control, connection, &(struct nd_monitor_message) {.letter = ND_MONITOR_DROPPED});
        mon_attach_remove(attach, connection);
}

static void move(struct mon_control_fds *passed, size_t which, int *ret_fd) {
        *ret_fd = nd_take_fd(passed->fds[which]);
}

void mon_attach_add(struct mon_attach *attach, size_t connection, unsigned streams, struct mon_control_fds *passed) {
        static const char many[] = "too many clients attached to the container";
        struct nd_monitor_message answer = {.letter = ND_MONITOR_ATTACHED};
        struct mon_client *client = attach->clients + connection;
        size_t clients = 0;

        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                clients += attach->clients[i].attached ? 1 : 0;
        if (clients >= ATTACH_CLIENTS || client->attached) {
                answer.error_number = EBUSY;
                answer.words = many;
                answer.length = sizeof many - 1;
                mon_control_reply(attach->control, connection, &answer);
                return;
        }
        client->attached = true;
        for (size_t i = 0, next = 0; i < ND_MONITOR_STREAMS; i++)
                if ((streams & 1U << i) != 0)
                        move(passed, next++, i == 0 ? &client->in : &client->outputs[i - 1]);
        mon_control_reply(attach->control, connection, &answer);
}

/* ---- output ---- */

static void set_stalled(struct mon_client *client, size_t output, uint64_t now_us) {
        client->stalled[output] = true;
        if (client->stalled_since_us == 0)
                client->stalled_since_us = now_us;
}

size_t mon_attach_room(struct mon_attach *attach, size_t output, size_t most, uint64_t now_us) {
        struct pollfd polls[CONTROL_CONNECTIONS];
        bool any = false, stalled = false;

        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                polls[i] = (struct pollfd) {.fd = attach->clients[i].outputs[output], .events = POLLOUT};
                any = any || polls[i].fd >= 0;
        }
        if (!any)
                return most;
        (void) poll(polls, CONTROL_CONNECTIONS, 0);
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                if (polls[i].fd < 0 || polls[i].revents != 0)
                        continue;
                set_stalled(attach->clients + i, output, now_us);
                stalled = true;
        }
        if (stalled)
                return 0;
        return most < ATTACH_PIECE ? most : ATTACH_PIECE;
}

void mon_attach_write_output(struct mon_attach *attach, size_t output, const char *bytes, size_t length) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                struct mon_client *client = attach->clients + i;
                uint64_t earned_us = length * ND_SECOND_US / ATTACH_RATE;

                if (client->outputs[output] < 0)
                        continue;
                client->stalled_us -= client->stalled_us < earned_us ? client->stalled_us : earned_us;
                if (send(client->outputs[output], bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t) length)
                        continue;
                if (errno == EPIPE || errno == ECONNRESET)
                        /* the client has closed this stream */
                        nd_close_fd(&client->outputs[output]);
                else
                        disconnect(attach, i);
        }
}

void mon_attach_close_output(struct mon_attach *attach, size_t output) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                nd_close_fd(&attach->clients[i].outputs[output]);
                attach->clients[i].stalled[output] = false;
        }
}

int mon_attach_stalled_fd(const struct mon_attach *attach, size_t connection, size_t output) {
        const struct mon_client *client = attach->clients + connection;

        return client->stalled[output] ? client->outputs[output] : -EBADF;
}

void mon_attach_resume(struct mon_attach *attach, size_t connection, uint64_t now_us) {
        struct mon_client *client = attach->clients + connection;

        if (client->stalled_since_us != 0)
                client->stalled_us += now_us - client->stalled_since_us;
        client->stalled_since_us = 0;
        for (size_t i = 0; i < ATTACH_OUTPUTS; i++)
                client->stalled[i] = false;
}

static uint64_t deadline_of(const struct mon_client *client) {
        uint64_t stalled_us =
                client->stalled_us < mon_attach_stall_timeout_us ? client->stalled_us : mon_attach_stall_timeout_us;

        return client->stalled_since_us == 0 ? 0 : client->stalled_since_us + mon_attach_stall_timeout_us - stalled_us;
}

uint64_t mon_attach_deadline(const struct mon_attach *attach) {
        uint64_t first = 0;

        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                uint64_t deadline = deadline_of(attach->clients + i);

                if (deadline != 0 && (first == 0 || deadline < first))
                        first = deadline;
        }
        return first;
}

void mon_attach_drop_late(struct mon_attach *attach, uint64_t now_us) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                uint64_t deadline = deadline_of(attach->clients + i);

                if (deadline != 0 && deadline <= now_us)
                        disconnect(attach, i);
        }
}

/* ---- input ---- */

void mon_attach_read_input(struct mon_attach *attach, size_t connection) {
        struct mon_client *client = attach->clients + connection;
        ssize_t n;

        if (client->in < 0)
                return; /* closed earlier in this iteration */
        n = recv(client->in, attach->input, sizeof attach->input, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        attach->first = 0;
        attach->length = n > 0 ? (size_t) n : 0;
        if (n > 0)
                return;
        nd_close_fd(&client->in);
        attach->input_ended = true;
}

bool mon_attach_write_input(struct mon_attach *attach, int in) {
        ssize_t n = 0;

        while (attach->length > 0 && (n = write(in, attach->input + attach->first, attach->length)) > 0) {
                attach->first += (size_t) n;
                attach->length -= (size_t) n;
        }
        return n >= 0 || errno == EAGAIN || errno == EINTR;
}

void mon_attach_close_input(struct mon_attach *attach) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                nd_close_fd(&attach->clients[i].in);
        attach->length = 0;
}
