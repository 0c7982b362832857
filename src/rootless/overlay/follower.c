/* SPDX-License-Identifier: Apache-2.0 */
/* follower.c - see follower.h
 *
 * Theory of operation
 *   Every @poll_us the file is looked at; not by inotify, since it may be on a network filesystem.
 *   A new one is parsed, sent to init, which makes tunnels and rules, and given to the port
 *   controller as the filter of the VXLAN port. Both take the whole list and change what differs,
 *   so that repeating is harmless: what fails is tried again at the next poll.
 *   A file that is not valid changes nothing: the last valid list stays in force. Neither the
 *   network of this node's pods nor the MTU can change while it runs, as pods have them.
 * Invariant  @filter belongs to the list that init has. */
#include "rootless/overlay/follower.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "rootless/core/control.h"
#include "rootless/network/overlay.h"
#include "rootless/network/vxlan-filter.h"
#include "rootless/node/overlay-plan.h"
#include "rootless/ports/api-call.h"
#include "rootless/ports/ports.h"

#define OWNER "overlay"

enum { BODY_BYTES = 2 * VXLAN_FILTER_BYTES };

static constexpr uint64_t poll_us = 2 * ND_SECOND_US;
static constexpr uint64_t first_poll_us = 20 * ND_MS_US; /* the port controller starts beside us */
static constexpr uint64_t retry_us = 500 * ND_MS_US;
static constexpr uint64_t repeat_us = 30 * ND_SECOND_US;
static constexpr uint64_t call_timeout_us = 5 * ND_SECOND_US;

struct rootless_overlay_follower {
        sd_event *loop;
        sd_event_source *timer;
        const struct rootless_node *node;
        struct rootless_overlay_plan plan;
        struct stat seen; /* the file as it was read last */
        char *filter;     /* of the VXLAN port */
        struct rootless_port_spec spec;
        struct rootless_api_call *call;
        uint64_t published_us; /* when the port controller had the list; 0 = it does not have it */
        char *file_trouble;    /* as logged last */
        char *port_trouble;
};

/* ---- the file ---- */

static bool is_same(const struct stat *a, const struct stat *b) {
        return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
               a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Logs a trouble once; nullptr when there is none any more. */
static void set_trouble(const struct rootless_overlay_follower *f, char **trouble, const char *message, const char *text) {
        if (text && (!*trouble || !nd_streq(*trouble, text)))
                nd_log(ND_LOG_ERROR, message, nd_field("node", f->node->name), nd_field("error", text));
        free(*trouble);
        *trouble = text ? nd_strdup(text) : nullptr;
}

static struct nd_error *check_own(const struct rootless_overlay_follower *f, const struct rootless_peers *peers,
                                  const struct rootless_peer **ret) {
        nd_try(rootless_peers_find(peers, f->plan.name, ret));
        if (!nd_netlink_address_equal(&(*ret)->pods, &f->plan.pods))
                return nd_error_new(ND_PRECONDITION, 0,
                                    "the network of pods of '%s' cannot change while the node runs; it has %s", f->plan.name,
                                    f->plan.pods_text);
        if (peers->mtu && peers->mtu != f->plan.mtu)
                return nd_error_new(ND_PRECONDITION, 0, "the mtu cannot change while the node runs; it is %u", f->plan.mtu);
        return nullptr;
}

static struct nd_error *send_overlay(const struct rootless_overlay_follower *f, const struct rootless_peers *peers,
                                     const struct rootless_peer *own) {
        nd_cleanup(rootless_overlay_done) struct rootless_overlay overlay = rootless_overlay_make(peers, own, f->plan.mtu);
        nd_autotext struct nd_text text = CONTROL_TEXT;
        nd_autoclose int fd = -EBADF;

        rootless_overlay_format(&text, &overlay);
        nd_try(rootless_node_connect(f->node, &fd));
        return rootless_control_call(fd, &text, nullptr, 0, call_timeout_us, nullptr);
}

static struct nd_error *apply(struct rootless_overlay_follower *f) {
        nd_cleanup(rootless_peers_done) struct rootless_peers peers = {};
        const struct rootless_peer *own = nullptr;
        nd_autofree char *number = nullptr;

        nd_try(rootless_peers_read(f->plan.file, &peers));
        nd_try(nd_error_wrap(check_own(f, &peers, &own), "%s", f->plan.file));
        nd_try(send_overlay(f, &peers, own));
        nd_try(rootless_overlay_list_save(f->node, &peers));
        free(f->filter);
        f->filter = rootless_vxlan_filter_format(&peers, own, OVERLAY_VNI);
        f->spec = (struct rootless_port_spec) {.only = own->host.family, .parent_port = own->port, .child_port = PEERS_PORT};
        f->published_us = 0;
        rootless_api_call_cancel(nd_take_ptr(f->call)); /* it has the old filter */
        number = nd_format("%zu", peers.count - 1);
        nd_log(ND_LOG_NOTICE, "applied the list of nodes", nd_field("node", f->node->name), nd_field("peers", number));
        return nullptr;
}

/* ---- the port ---- */

static void arm(struct rootless_overlay_follower *f, uint64_t after_us) {
        (void) sd_event_source_set_time_relative(f->timer, after_us);
        (void) sd_event_source_set_enabled(f->timer, SD_EVENT_ONESHOT);
}

static void on_reply(const struct nd_error *error, yyjson_val *reply, void *userdata) {
        struct rootless_overlay_follower *f = userdata;
        yyjson_val *port = yyjson_arr_get_first(yyjson_obj_get(reply, "ports"));
        const char *refused = error ? nd_error_text(error) : yyjson_get_str(yyjson_obj_get(port, "error"));

        f->call = nullptr;
        f->published_us = error ? 0 : nd_clock_us();
        set_trouble(f, &f->port_trouble, "cannot publish the VXLAN port; pods of other nodes do not reach this one", refused);
        arm(f, error ? retry_us : poll_us);
}

static char *format(const struct rootless_overlay_follower *f) {
        nd_autotext struct nd_text text = ND_TEXT(BODY_BYTES);
        struct nd_json_out out = {.text = &text};

        nd_json_open(&out, nullptr, '{');
        nd_json_open(&out, "ports", '[');
        nd_json_open(&out, nullptr, '{');
        rootless_port_write_json(&out, "spec", &f->spec);
        nd_json_string(&out, "object", "VXLAN");
        nd_json_string(&out, "filter", f->filter);
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        return nd_text_steal(&text);
}

static void publish(struct rootless_overlay_follower *f) {
        nd_autofree char *body = nullptr;

        if (f->call || (f->published_us && nd_clock_us() - f->published_us < repeat_us))
                return;
        body = format(f);
        f->call = rootless_api_call_start(f->loop, f->node, "PUT", "/v1/owners/" OWNER "/ports", body, on_reply, f);
}

/* ---- the loop ---- */

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        struct rootless_overlay_follower *f = userdata;
        nd_autoerror struct nd_error *error = nullptr;
        struct stat found = {};

        if (stat(f->plan.file, &found) < 0)
                error = nd_error_new(nd_error_code_of(errno), errno, "list of nodes '%s'", f->plan.file);
        else if (!is_same(&found, &f->seen))
                error = apply(f);
        if (!error)
                f->seen = found;
        set_trouble(f, &f->file_trouble, "cannot apply the list of nodes; the previous one stays in force",
                    error ? nd_error_text(error) : nullptr);
        publish(f);
        arm(f, poll_us);
        return 0;
}

static void follower_cleanup(struct rootless_overlay_follower **f) {
        rootless_overlay_follower_free(*f);
}

struct nd_error *rootless_overlay_follower_start(sd_event *loop, const struct rootless_node *node,
                                                 struct rootless_overlay_follower **ret) {
        nd_cleanup(follower_cleanup) struct rootless_overlay_follower *f = nd_new(struct rootless_overlay_follower);
        struct nd_error *error;
        int r;

        *f = (struct rootless_overlay_follower) {.loop = sd_event_ref(loop), .node = node};
        error = rootless_overlay_plan_load(node, &f->plan);
        if (nd_error_errno(error) == ENOENT) {
                nd_error_free(error);
                *ret = nullptr;
                return nullptr;
        }
        nd_try(error);
        (void) stat(f->plan.file, &f->seen); /* before it is read: a later change is seen */
        nd_try(nd_error_wrap(apply(f), "network of the pods"));
        r = sd_event_add_time_relative(loop, &f->timer, CLOCK_MONOTONIC, first_poll_us, ND_MS_US, on_timer, f);
        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "follow the list of nodes");
        *ret = nd_take_ptr(f);
        return nullptr;
}

void rootless_overlay_follower_free(struct rootless_overlay_follower *f) {
        if (!f)
                return;
        rootless_api_call_cancel(f->call);
        sd_event_source_disable_unref(f->timer);
        sd_event_unref(f->loop);
        rootless_overlay_plan_done(&f->plan);
        free(f->filter);
        free(f->file_trouble);
        free(f->port_trouble);
        free(f);
}
