/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/upgrade.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http-head.h"

enum {
        REQUEST_MOST = 4 << 10,
};

void cli_upgrade_done(struct cli_upgrade *upgrade) {
        nd_close_fd(&upgrade->fd);
        free(upgrade->url);
        nd_text_done(&upgrade->request);
        nd_text_done(&upgrade->head);
        *upgrade = UPGRADE_NONE;
}

static struct nd_error *parse_url(const char *url, struct sockaddr_in *ret, const char **ret_path) {
        static const char scheme[] = "http://";
        const char *host = url + sizeof scheme - 1;
        nd_autofree char *address = nullptr, *port = nullptr;
        uint32_t number;
        size_t length;

        if (!nd_has_prefix(url, scheme))
                return nd_error_new(ND_INVALID, 0, "invalid URL from nodens-cri, not http://: '%s'", url);
        length = strcspn(host, ":/");
        address = nd_strndup(host, length);
        *ret_path = strchr(host, '/');
        if (host[length] == ':' && *ret_path)
                port = nd_strndup(host + length + 1, (size_t) (*ret_path - host) - length - 1);
        *ret = (struct sockaddr_in) {.sin_family = AF_INET};
        if (!port || nd_text_parse_u32(port, &number) < 0 || number == 0 || number > UINT16_MAX ||
            inet_pton(AF_INET, address, &ret->sin_addr) != 1)
                return nd_error_new(ND_INVALID, 0, "invalid URL from nodens-cri, not http://ADDRESS:PORT/PATH: '%s'", url);
        ret->sin_port = htons((uint16_t) number);
        return nullptr;
}

struct nd_error *cli_upgrade_begin(const char *url, const char *protocol, struct cli_upgrade *ret) {
        nd_cleanup(cli_upgrade_done) struct cli_upgrade upgrade = {
                .fd = -EBADF, .url = nd_strdup(url), .protocol = protocol, .head = ND_TEXT(ND_HTTP_HEAD + UPGRADE_PIECE)};
        struct sockaddr_in address;
        const char *path = nullptr;

        nd_try(parse_url(url, &address, &path));
        upgrade.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (upgrade.fd < 0 ||
            (connect(upgrade.fd, (const struct sockaddr *) &address, sizeof address) < 0 && errno != EINPROGRESS))
                return nd_error_new(ND_UNAVAILABLE, errno, "connect to nodens-cri at '%s'", url);
        (void) setsockopt(upgrade.fd, IPPROTO_TCP, TCP_NODELAY, &(int) {1}, sizeof(int));
        nd_websocket_key(upgrade.key);
        upgrade.request = ND_TEXT(REQUEST_MOST);
        nd_text_addf(
                &upgrade.request,
                "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
                path, inet_ntoa(address.sin_addr), upgrade.key, protocol);
        *ret = nd_take(upgrade, UPGRADE_NONE);
        return nullptr;
}

/* False when the socket's buffer is full or the connection is closed. */
static bool send_some(int fd, const char *bytes, size_t length, size_t *ret) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);

        *ret = n > 0 ? (size_t) n : 0;
        return n > 0;
}

uint32_t cli_upgrade_flush(struct cli_upgrade *upgrade, struct nd_channel_mux *channels) {
        struct nd_websocket *websocket = channels ? nd_channel_mux_websocket(channels) : nullptr;
        struct nd_text *request = &upgrade->request;
        const char *bytes = nullptr;
        size_t n;

        while (request->length > 0 && send_some(upgrade->fd, request->bytes, request->length, &n)) {
                request->length -= n;
                memmove(request->bytes, request->bytes + n, request->length);
        }
        while (websocket && (n = nd_websocket_queued(websocket, &bytes)) > 0 && send_some(upgrade->fd, bytes, n, &n))
                (void) !nd_websocket_sent(websocket, n);
        return request->length > 0 || (websocket && nd_websocket_queued(websocket, &bytes) > 0) ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

static struct nd_error *check_answer(const struct cli_upgrade *upgrade, const struct nd_http_head *head) {
        const char *accept = nd_http_head_get(head, "Sec-WebSocket-Accept"),
                   *chosen = nd_http_head_get(head, "Sec-WebSocket-Protocol");
        char wanted[ND_WEBSOCKET_ACCEPT];

        if (head->status != 101)
                return nd_error_new(ND_UNAVAILABLE, 0, "nodens-cri rejected the stream with status %u", head->status);
        if (!nd_websocket_accept(upgrade->key, wanted) || !accept || !nd_streq(accept, wanted) || !chosen ||
            !nd_streq(chosen, upgrade->protocol))
                return nd_error_new(ND_UNAVAILABLE, 0, "the server at '%s' is not nodens-cri", upgrade->url);
        return nullptr;
}

struct nd_error *cli_upgrade_take(struct cli_upgrade *upgrade, const char *bytes, size_t length, bool *ret) {
        nd_autohead struct nd_http_head head = {};
        size_t used;

        nd_text_append(&upgrade->head, bytes, length);
        nd_try(nd_http_answer_read(upgrade->head.bytes, upgrade->head.length, &head, &used));
        *ret = used > 0;
        if (used == 0)
                return nullptr;
        nd_try(check_answer(upgrade, &head));
        upgrade->head.length -= used;
        memmove(upgrade->head.bytes, upgrade->head.bytes + used, upgrade->head.length);
        return nullptr;
}
