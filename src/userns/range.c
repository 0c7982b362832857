/* SPDX-License-Identifier: Apache-2.0 */
#include "userns/range.h"

#include <pwd.h>
#include <string.h>

#include "base/text.h"
#include "sys/program.h"
#include "userns/subid.h"

#define KUBELET_USER "kubelet"

struct nd_error *nd_userns_ids_per_pod_check(int64_t ids_per_pod) {
        if (ids_per_pod < ND_IDS_UNIT)
                return nd_error_new(ND_INVALID, 0, "invalid configuration: userNamespaces.idsPerPod must not be less than %d",
                                    ND_IDS_UNIT);
        if (ids_per_pod % ND_IDS_UNIT != 0)
                return nd_error_new(ND_INVALID, 0, "invalid configuration: userNamespaces.idsPerPod must be a multiple of %d",
                                    ND_IDS_UNIT);
        if (ids_per_pod > UINT32_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid configuration: userNamespaces.idsPerPod must not be more than %u",
                                    UINT32_MAX);
        return nullptr;
}

struct nd_userns_range nd_range_default(uint32_t ids_per_pod) {
        return (struct nd_userns_range) {.first = ids_per_pod, .count = (uint32_t) (ND_ID_SPACE - ids_per_pod)};
}

/* Returns the next space-separated field of the line; nullptr at its end. */
static char *next_word(char **line) {
        static const char blanks[] = " \t\n\v\f\r";
        char *word = *line + strspn(*line, blanks);
        size_t length = strcspn(word, blanks);

        if (length == 0)
                return nullptr;
        *line = word + length + (word[length] != '\0');
        word[length] = '\0';
        return word;
}

static struct nd_error *parse_id(const char *word, const char *output, uint32_t *ret) {
        int r = nd_text_parse_u32(word, ret);
        nd_autofree char *quoted_output = nullptr, *quoted_word = nullptr;

        if (r == 0)
                return nullptr;
        quoted_output = nd_text_quote(output);
        quoted_word = nd_text_quote(word);
        return nd_error_new(ND_INVALID, 0, "error parsing line %s: strconv.ParseUint: parsing %s: %s", quoted_output,
                            quoted_word, r == -ERANGE ? "value out of range" : "invalid syntax");
}

struct nd_error *nd_range_parse(const char *getsubids_output, struct nd_userns_range *ret) {
        const char *start = getsubids_output + strspn(getsubids_output, "\n");
        nd_autofree char *line = nd_strdup(start), *quoted = nd_text_quote(getsubids_output);
        char *words[4], *rest = line;
        struct nd_userns_range range;

        for (size_t n = strlen(line); n > 0 && line[n - 1] == '\n'; n--)
                line[n - 1] = '\0';
        if (strchr(line, '\n'))
                return nd_error_new(ND_INVALID, 0, "error parsing line %s: it must contain only one line", quoted);
        for (size_t i = 0; i < nd_count_of(words); i++) {
                words[i] = next_word(&rest);
                if (!words[i])
                        return nd_error_new(ND_INVALID, 0, "invalid line %s", quoted);
        }
        if (next_word(&rest))
                return nd_error_new(ND_INVALID, 0, "invalid line %s", quoted);
        nd_try(parse_id(words[2], getsubids_output, &range.first));
        nd_try(parse_id(words[3], getsubids_output, &range.count));
        *ret = range;
        return nullptr;
}

static bool program_in_path(const char *name) {
        nd_autofree char *path = nd_program_find(getenv("PATH") ?: "/usr/bin:/bin", name);

        return path;
}

static struct nd_error *find_user(const char *name, bool *ret_found) {
        struct passwd entry, *found = nullptr;
        char buffer[16 * 1024];
        int r = getpwnam_r(name, &entry, buffer, sizeof buffer, &found);

        /* Services differ in their error for an unknown user; POSIX lists these. */
        if (r != 0 && r != ENOENT && r != ESRCH && r != EBADF && r != EPERM)
                return nd_error_new(ND_UNAVAILABLE, r, "look up user '%s'", name);
        *ret_found = found != nullptr;
        return nullptr;
}

struct nd_error *nd_range_of_node(uint32_t ids_per_pod, struct nd_userns_range *ret, enum nd_range_source *ret_source) {
        nd_cleanup(nd_subid_list_done) struct nd_subid_list uids = {}, gids = {};
        nd_autofree char *uid_text = nullptr, *gid_text = nullptr;
        struct nd_error *error;
        bool found;

        nd_try(find_user(KUBELET_USER, &found));
        if (!found) {
                *ret = nd_range_default(ids_per_pod);
                *ret_source = ND_RANGE_DEFAULT;
                return nullptr;
        }
        error = nd_subid_list_of(KUBELET_USER, ND_SUBUID, &uids);
        if (error && !program_in_path("getsubids")) {
                nd_error_free(error);
                *ret = nd_range_default(ids_per_pod);
                *ret_source = ND_RANGE_NO_GETSUBIDS;
                return nullptr;
        }
        if (error)
                return nd_error_wrap(error, "error retrieving additional uids for user \"%s\"", KUBELET_USER);
        error = nd_subid_list_of(KUBELET_USER, ND_SUBGID, &gids);
        if (error)
                return nd_error_wrap(error, "error retrieving additional gids for user \"%s\"", KUBELET_USER);
        uid_text = nd_subid_list_text(KUBELET_USER, &uids);
        gid_text = nd_subid_list_text(KUBELET_USER, &gids);
        if (!nd_streq(uid_text, gid_text))
                return nd_error_new(ND_INVALID, 0, "mismatched subuids and subgids for user \"%s\"", KUBELET_USER);
        nd_try(nd_range_parse(uid_text, ret));
        *ret_source = ND_RANGE_SUBIDS;
        return nullptr;
}

struct nd_error *nd_range_check(struct nd_userns_range range, uint32_t ids_per_pod, uint32_t max_pods) {
        if (ids_per_pod == 0 || ids_per_pod % ND_IDS_UNIT != 0)
                return nd_error_new(ND_INVALID, 0, "kubelet user namespace length %u is not a multiple of %d", ids_per_pod,
                                    ND_IDS_UNIT);
        if (range.first % ids_per_pod != 0)
                return nd_error_new(ND_INVALID, 0, "kubelet user assigned ID %u is not a multiple of %u", range.first,
                                    ids_per_pod);
        if (range.first < ids_per_pod)
                return nd_error_new(ND_INVALID, 0, "kubelet user assigned ID %u must be greater or equal to %u", range.first,
                                    ids_per_pod);
        if (range.count % ids_per_pod != 0)
                return nd_error_new(ND_INVALID, 0, "kubelet user assigned IDs length %u is not a multiple of %u", range.count,
                                    ids_per_pod);
        if (range.count / ids_per_pod < max_pods)
                return nd_error_new(ND_INVALID, 0, "kubelet user assigned IDs are not enough to support %u pods", max_pods);
        return nullptr;
}

static int compare_extents(const void *a, const void *b) {
        const struct nd_userns_extent *x = a, *y = b;

        return x->first < y->first ? -1 : x->first > y->first;
}

void nd_userns_extents_of_maps(const struct nd_userns_maps *uids, const struct nd_userns_maps *gids,
                               struct nd_userns_extents *ret) {
        *ret = (struct nd_userns_extents) {};
        nd_vector_each (u, uids) {
                nd_vector_each (g, gids) {
                        uint64_t first = u->inside > g->inside ? u->inside : g->inside;
                        uint64_t u_end = (uint64_t) u->inside + u->count, g_end = (uint64_t) g->inside + g->count;
                        uint64_t end = u_end < g_end ? u_end : g_end;

                        if (first < end)
                                nd_vector_push(ret, ((struct nd_userns_extent) {.first = first, .count = end - first}));
                }
        }
        if (ret->count > 0)
                qsort(ret->items, ret->count, sizeof *ret->items, compare_extents);
}

struct nd_error *nd_userns_extents_own(struct nd_userns_extents *ret) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps uids = {}, gids = {};

        nd_try(nd_userns_maps_own("uid", &uids));
        nd_try(nd_userns_maps_own("gid", &gids));
        nd_userns_extents_of_maps(&uids, &gids, ret);
        return nullptr;
}

bool nd_userns_extents_hold(const struct nd_userns_extents *extents, uint64_t first, uint64_t count) {
        nd_vector_each (e, extents) {
                if (first >= e->first && first + count <= e->first + e->count)
                        return true;
        }
        return false;
}
