/* SPDX-License-Identifier: Apache-2.0 */
/* transport.h - the protocol that carries a connection's streams: SPDY/3.1, whose client opens them, or WebSocket, where they follow from the request
 *
 * Sessions see the same streams and events with both. */
#pragma once

#include "cri/stream/connection.h"

struct cri_transport;

/* The protocol's name in the session type's list. */
[[nodiscard]] struct nd_error *cri_transport_new_spdy(const struct cri_stream_session_type *type, struct cri_transport **ret);
struct cri_transport *cri_transport_new_websocket(const struct cri_stream_request *request, const char *protocol);
void cri_transport_free(struct cri_transport *transport);

/* Takes bytes up to the next event, which is told by true; they may be changed where they are. An error: the client breaks the protocol. */
[[nodiscard]] struct nd_error *cri_transport_receive(struct cri_transport *transport, char *bytes, size_t length,
                                                     size_t *ret_used, bool *ret_any, struct cri_stream_event *ret);
[[nodiscard]] bool cri_transport_is_over(const struct cri_transport *transport); /* the client has said goodbye */

void cri_transport_accept(struct cri_transport *transport, uint32_t stream);
void cri_transport_refuse(struct cri_transport *transport, uint32_t stream);
void cri_transport_attach(struct cri_transport *transport, uint32_t stream, void *attachment);
size_t cri_transport_room(const struct cri_transport *transport);
void cri_transport_write(struct cri_transport *transport, uint32_t stream, const char *bytes, size_t length);
void cri_transport_end_stream(struct cri_transport *transport, uint32_t stream);
void cri_transport_goodbye(struct cri_transport *transport);

size_t cri_transport_queued(const struct cri_transport *transport, const char **ret_bytes);
[[nodiscard]] bool cri_transport_sent(struct cri_transport *transport, size_t length); /* true: there is room again */
