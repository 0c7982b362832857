/* SPDX-License-Identifier: Apache-2.0 */
/* transport.h - protocol that carries a connection's streams: SPDY/3.1, where the client opens
 * them, or WebSocket, where the request determines them
 *
 * Sessions see the same streams and events with both. */
#pragma once

#include "cri/stream/connection.h"

struct cri_transport;

/* protocol is one of the session type's list. */
[[nodiscard]] struct nd_error *cri_transport_new_spdy(const struct cri_stream_session_type *type, struct cri_transport **ret);
struct cri_transport *cri_transport_new_websocket(const struct cri_stream_request *request, const char *protocol);
void cri_transport_free(struct cri_transport *transport);

/* Consumes input up to the next event; *ret_any is true if there is one. May modify the bytes in
 * place. An error means a protocol violation. */
[[nodiscard]] struct nd_error *cri_transport_receive(struct cri_transport *transport, char *bytes, size_t length,
                                                     size_t *ret_used, bool *ret_any, struct cri_stream_event *ret);
/* the client has closed the transport */
[[nodiscard]] bool cri_transport_is_over(const struct cri_transport *transport);

void cri_transport_accept(struct cri_transport *transport, uint32_t stream);
void cri_transport_refuse(struct cri_transport *transport, uint32_t stream);
void cri_transport_attach(struct cri_transport *transport, uint32_t stream, void *attachment);
size_t cri_transport_room(const struct cri_transport *transport);
void cri_transport_write(struct cri_transport *transport, uint32_t stream, const char *bytes, size_t length);
void cri_transport_end_stream(struct cri_transport *transport, uint32_t stream);
void cri_transport_goodbye(struct cri_transport *transport);

size_t cri_transport_queued(const struct cri_transport *transport, const char **ret_bytes);
/* true: there is room again */
[[nodiscard]] bool cri_transport_sent(struct cri_transport *transport, size_t length);
