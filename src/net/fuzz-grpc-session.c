/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-grpc-session.c - the fuzzer is the peer
 *
 * The first byte of each piece selects what follows: bytes for the session, or an action of a
 * handler (answer, stream, cancel look, finish) on the oldest call. Property: for any input, queued
 * bytes stay within the limits, and everything is freed at the end. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/vector.h"
#include "net/grpc-session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct owner {
        nd_vector(struct nd_grpc_call *) calls;
};

static void on_request(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        struct owner *owner = userdata;

        assert(nd_grpc_call_path(call));
        if (length > 0 && bytes[0] == 'n') { /* now */
                nd_grpc_call_send(call, bytes, length);
                nd_grpc_call_finish(call, nullptr);
                return;
        }
        nd_vector_push(&owner->calls, call);
}

static void on_output([[maybe_unused]] void *userdata) {
}

static void drain(struct nd_grpc_session *session) {
        const char *bytes;

        for (int i = 0; i < 1000 && nd_grpc_session_output(session, &bytes) > 0; i++)
                ;
}

static void move(struct owner *owner, uint8_t what) {
        struct nd_grpc_call *call;

        if (owner->calls.count == 0)
                return;
        call = owner->calls.items[0];
        if (what & 1) {
                static const char answer[3000];

                nd_grpc_call_send(call, answer, sizeof answer);
                assert(nd_grpc_call_queued(call) <= ND_GRPC_OUTPUT);
        } else if (what & 2) {
                nd_grpc_call_expire(call);
        } else {
                memmove(owner->calls.items, owner->calls.items + 1, (owner->calls.count - 1) * sizeof *owner->calls.items);
                owner->calls.count--;
                nd_grpc_call_finish(call, what & 4 ? nd_error_new(ND_NOT_FOUND, 0, "no \xff such") : nullptr);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const struct nd_grpc_events events = {.request = on_request, .output = on_output};
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        struct nd_grpc_session *session = nullptr;
        struct owner owner = {};

        assert(!nd_grpc_session_new(&events, &owner, &session));
        if (size > 0 && *data & 1)
                nd_ignore(nd_grpc_session_receive(session, preface, sizeof preface - 1));
        for (size_t i = 1; i + 2 < size;) {
                size_t n = (size_t) data[i + 1] << 8 | data[i + 2];
                nd_autoerror struct nd_error *error = nullptr;

                n = n < size - i - 3 ? n : size - i - 3;
                if (data[i] & 0x80)
                        move(&owner, data[i]);
                else
                        error = nd_grpc_session_receive(session, (const char *) data + i + 3, n);
                if (data[i] & 0x40)
                        drain(session);
                i += data[i] & 0x80 ? 3 : n + 3;
                if (error)
                        break;
        }
        nd_grpc_session_free(session);
        nd_vector_each (call, &owner.calls) {
                nd_grpc_call_finish(*call, nullptr);
        }
        nd_vector_done(&owner.calls);
        return 0;
}
