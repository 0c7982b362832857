/* SPDX-License-Identifier: Apache-2.0 */
/* transport.h - the protocol that carries a connection's streams: SPDY/3.1, whose client opens them, or WebSocket, where they follow from the request
 *
 * Sessions see the same streams and events with both. */
#pragma once

#include "cri/stream/connection.h"

struct carrier;

/* The protocol's name in the session type's list. */
[[nodiscard]] struct nd_error *carrier_new_spdy(const struct session_type *type, struct carrier **ret);
struct carrier *carrier_new_websocket(const struct stream_request *request, const char *protocol);
void carrier_free(struct carrier *transport);

/* Takes bytes up to the next event, which is told by true; they may be changed where they are. An error: the client breaks the protocol. */
[[nodiscard]] struct nd_error *carrier_receive(struct carrier *transport, char *bytes, size_t length, size_t *ret_used,
                                               bool *ret_any, struct stream_event *ret);
[[nodiscard]] bool carrier_is_over(const struct carrier *transport); /* the client has said goodbye */

void carrier_accept(struct carrier *transport, uint32_t stream);
void carrier_refuse(struct carrier *transport, uint32_t stream);
void carrier_attach(struct carrier *transport, uint32_t stream, void *attachment);
size_t carrier_room(const struct carrier *transport);
void carrier_write(struct carrier *transport, uint32_t stream, const char *bytes, size_t length);
void carrier_end_stream(struct carrier *transport, uint32_t stream);
void carrier_goodbye(struct carrier *transport);

size_t carrier_queued(const struct carrier *transport, const char **ret_bytes);
[[nodiscard]] bool carrier_sent(struct carrier *transport, size_t length); /* true: there is room again */
