/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/attach.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

static constexpr uint64_t patience_us = ATTACH_PATIENCE_MS * ND_MS_US;

void attach_begin(struct attach *attach, struct control *control) {
        attach->control = control;
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                attach->clients[i] = (struct client) {.in = -EBADF, .outputs = {-EBADF, -EBADF}};
}

void attach_forget(struct attach *attach, size_t connection) {
        struct client *client = attach->clients + connection;

        if (client->in >= 0)
                attach->input_over = true;
        nd_close_fd(&client->in);
        for (size_t i = 0; i < ATTACH_OUTPUTS; i++)
                nd_close_fd(&client->outputs[i]);
        *client = (struct client) {.in = -EBADF, .outputs = {-EBADF, -EBADF}};
}

static void drop(struct attach *attach, size_t connection) {
        control_answer(attach->control, connection, &(struct nd_monitor_message) {.letter = ND_MONITOR_DROPPED});
        attach_forget(attach, connection);
}

static void move(struct control_gift *gift, size_t which, int *ret_fd) {
        *ret_fd = nd_take_fd(gift->fds[which]);
}

void attach_take(struct attach *attach, size_t connection, unsigned streams, struct control_gift *gift) {
        static const char many[] = "too many clients are attached to the container";
        struct nd_monitor_message answer = {.letter = ND_MONITOR_ATTACHED};
        struct client *client = attach->clients + connection;
        size_t clients = 0;

        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                clients += attach->clients[i].here ? 1 : 0;
        if (clients >= ATTACH_CLIENTS || client->here) {
                answer.error_number = EBUSY;
                answer.words = many;
                answer.length = sizeof many - 1;
                control_answer(attach->control, connection, &answer);
                return;
        }
        client->here = true;
        for (size_t i = 0, next = 0; i < ND_MONITOR_STREAMS; i++)
                if ((streams & 1U << i) != 0)
                        move(gift, next++, i == 0 ? &client->in : &client->outputs[i - 1]);
        control_answer(attach->control, connection, &answer);
}

/* ---- output ---- */

static void hold(struct client *client, size_t output, uint64_t now_us) {
        client->held[output] = true;
        if (client->since_us == 0)
                client->since_us = now_us;
}

size_t attach_room(struct attach *attach, size_t output, size_t most, uint64_t now_us) {
        struct pollfd polls[CONTROL_CONNECTIONS];
        bool somebody = false, held = false;

        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                polls[i] = (struct pollfd) {.fd = attach->clients[i].outputs[output], .events = POLLOUT};
                somebody = somebody || polls[i].fd >= 0;
        }
        if (!somebody)
                return most;
        (void) poll(polls, CONTROL_CONNECTIONS, 0);
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                if (polls[i].fd < 0 || polls[i].revents != 0)
                        continue;
                hold(attach->clients + i, output, now_us);
                held = true;
        }
        if (held)
                return 0;
        return most < ATTACH_PIECE ? most : ATTACH_PIECE;
}

void attach_give(struct attach *attach, size_t output, const char *bytes, size_t length) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                struct client *client = attach->clients + i;
                uint64_t earned_us = length * ND_SECOND_US / ATTACH_RATE;

                if (client->outputs[output] < 0)
                        continue;
                client->late_us -= client->late_us < earned_us ? client->late_us : earned_us;
                if (send(client->outputs[output], bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t) length)
                        continue;
                if (errno == EPIPE || errno == ECONNRESET)
                        nd_close_fd(&client->outputs[output]); /* he has had enough of this one */
                else
                        drop(attach, i);
        }
}

void attach_end_output(struct attach *attach, size_t output) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                nd_close_fd(&attach->clients[i].outputs[output]);
                attach->clients[i].held[output] = false;
        }
}

int attach_held(const struct attach *attach, size_t connection, size_t output) {
        const struct client *client = attach->clients + connection;

        return client->held[output] ? client->outputs[output] : -EBADF;
}

void attach_release(struct attach *attach, size_t connection, uint64_t now_us) {
        struct client *client = attach->clients + connection;

        if (client->since_us != 0)
                client->late_us += now_us - client->since_us;
        client->since_us = 0;
        for (size_t i = 0; i < ATTACH_OUTPUTS; i++)
                client->held[i] = false;
}

static uint64_t deadline_of(const struct client *client) {
        uint64_t late_us = client->late_us < patience_us ? client->late_us : patience_us;

        return client->since_us == 0 ? 0 : client->since_us + patience_us - late_us;
}

uint64_t attach_deadline(const struct attach *attach) {
        uint64_t first = 0;

        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                uint64_t deadline = deadline_of(attach->clients + i);

                if (deadline != 0 && (first == 0 || deadline < first))
                        first = deadline;
        }
        return first;
}

void attach_pass_deadline(struct attach *attach, uint64_t now_us) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                uint64_t deadline = deadline_of(attach->clients + i);

                if (deadline != 0 && deadline <= now_us)
                        drop(attach, i);
        }
}

/* ---- input ---- */

void attach_read_input(struct attach *attach, size_t connection) {
        struct client *client = attach->clients + connection;
        ssize_t n;

        if (client->in < 0)
                return; /* he went in this turn */
        n = recv(client->in, attach->input, sizeof attach->input, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        attach->first = 0;
        attach->length = n > 0 ? (size_t) n : 0;
        if (n > 0)
                return;
        nd_close_fd(&client->in);
        attach->input_over = true;
}

bool attach_write_input(struct attach *attach, int in) {
        ssize_t n = 0;

        while (attach->length > 0 && (n = write(in, attach->input + attach->first, attach->length)) > 0) {
                attach->first += (size_t) n;
                attach->length -= (size_t) n;
        }
        return n >= 0 || errno == EAGAIN || errno == EINTR;
}

void attach_end_input(struct attach *attach) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++)
                nd_close_fd(&attach->clients[i].in);
        attach->length = 0;
}
