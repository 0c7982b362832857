/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/node/ids.h"

#include <pwd.h>
#include <unistd.h>

#include "base/text.h"
#include "rootless/node/inside.h"
#include "sys/file.h"
#include "sys/own-userns.h"
#include "userns/delegation.h"
#include "userns/subid.h"

enum { MAP_BYTES = 64 * 1024 };

void rootless_ids_done(struct rootless_ids *ids) {
        nd_userns_maps_done(&ids->uids);
        nd_userns_maps_done(&ids->gids);
        free(ids->advice);
        *ids = (struct rootless_ids) {};
}

/* ---- of the calling user ---- */

/* A user without ranges is not an error here; a directory that does not answer is. */
static struct nd_error *find_ranges(const char *user, enum nd_subid_kind kind, struct nd_subid_list *ret) {
        struct nd_error *error = nd_subid_list_of(user, kind, ret);

        if (nd_error_code(error) != ND_NOT_FOUND)
                return error;
        nd_error_free(error);
        return nullptr;
}

static struct nd_error *find_subordinate(struct rootless_ids *ret) {
        nd_cleanup(nd_subid_list_done) struct nd_subid_list uids = {}, gids = {}, none = {};
        struct passwd entry, *found = nullptr;
        char buffer[16 * 1024];
        bool both;

        if (geteuid() == 0)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "nodens-rootless must not run as root; run it as the user that owns the node, or with "
                                    "--inside in a container or pod that has a user namespace");
        /* A user without a name, as in some batch systems, has no subordinate IDs. */
        if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found) {
                nd_try(find_ranges(entry.pw_name, ND_SUBUID, &uids));
                nd_try(find_ranges(entry.pw_name, ND_SUBGID, &gids));
                ret->advice = nd_delegation_advice(entry.pw_name);
        }
        both = uids.count > 0 && gids.count > 0;
        nd_delegation_maps(geteuid(), both ? &uids : &none, &ret->uids);
        nd_delegation_maps(getegid(), both ? &gids : &none, &ret->gids);
        return nullptr;
}

struct nd_error *rootless_ids_find(bool inside, struct rootless_ids *ret) {
        nd_try(inside ? rootless_inside_maps(&ret->uids, &ret->gids) : find_subordinate(ret));
        ret->pods = nd_delegation_pods(&ret->uids, &ret->gids);
        return nullptr;
}

/* ---- of a running node ---- */

static struct nd_error *read_map(pid_t pid, const char *file, struct nd_userns_maps *ret) {
        nd_autofree char *path = nd_format("/proc/%d/%s", (int) pid, file), *text = nullptr;

        nd_try(nd_file_read_kernel(path, MAP_BYTES, &text));
        return nd_userns_maps_parse(text, ret);
}

struct nd_error *rootless_ids_of_process(pid_t pid, struct rootless_ids *ret) {
        nd_try(read_map(pid, "uid_map", &ret->uids));
        nd_try(read_map(pid, "gid_map", &ret->gids));
        ret->pods = nd_delegation_pods(&ret->uids, &ret->gids);
        return nullptr;
}

/* ---- what they allow ---- */

bool rootless_ids_single(const struct nd_userns_maps *uids, const struct nd_userns_maps *gids) {
        return nd_delegation_count(uids) == 1 && nd_delegation_count(gids) == 1;
}

char *rootless_ids_summary(const struct rootless_ids *ids) {
        unsigned long long count = nd_delegation_count(&ids->uids);
        unsigned pods = ids->pods.count / ND_IDS_UNIT;

        if (pods == 0)
                return nd_format("%llu ID%s, not enough for pods with hostUsers: false (%d for each, and %d for the node)",
                                 count, count == 1 ? "" : "s", ND_IDS_UNIT, ND_IDS_UNIT);
        return nd_format("%llu IDs, enough for %u pod%s with hostUsers: false", count, pods, pods == 1 ? "" : "s");
}

void rootless_ids_limits(const struct rootless_ids *ids, struct nd_strings *ret) {
        nd_autofree char *uids = nd_own_userns_describe(&ids->uids), *gids = nd_own_userns_describe(&ids->gids);

        if (nd_delegation_count(&ids->uids) >= ND_IDS_UNIT && nd_delegation_count(&ids->gids) >= ND_IDS_UNIT)
                return;
        nd_strings_addf(ret, "runAsUser, runAsGroup, fsGroup and supplementalGroups: only users %s and groups %s exist", uids,
                        gids);
        nd_strings_add(ret, "files of images with other owners belong to root, without set-user-ID and set-group-ID bits");
        if (!rootless_ids_single(&ids->uids, &ids->gids))
                return;
        nd_strings_add(ret, "changes of users, groups and owners of files in containers succeed without an effect");
        nd_strings_add(ret, "processes keep the user's supplementary groups");
}
