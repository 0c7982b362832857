/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/user.h"

#include <string.h>

#include "oci/config.h"
#include "sys/file.h"
#include "sys/own-userns.h"

void cri_container_user_done(struct cri_container_user *user) {
        nd_vector_done(&user->groups);
        *user = (struct cri_container_user) {};
}

/* A line of /etc/passwd or /etc/group, the fields that we use. Points into the text. */
struct entry {
        char *name;
        uint32_t id;    /* uid of a user, gid of a group */
        uint32_t group; /* of a user */
        char *members;  /* of a group */
};

static bool parse_id(const char *text, uint32_t *ret) {
        uint64_t number;

        if (!text || nd_text_parse_u64(text, INT32_MAX, &number) < 0)
                return false;
        *ret = (uint32_t) number;
        return true;
}

/* The next valid line; *cursor is nullptr at the end. name:password:id:group-or-members:... */
static bool next_entry(char **cursor, bool users, struct entry *ret) {
        char *line;

        while ((line = strsep(cursor, "\n"))) {
                char *name = strsep(&line, ":");
                char *id, *fourth;

                (void) strsep(&line, ":");
                id = strsep(&line, ":");
                fourth = strsep(&line, ":");
                *ret = (struct entry) {.name = name, .members = users ? nullptr : fourth};
                if (*name == '\0' || !parse_id(id, &ret->id))
                        continue;
                if (!users || parse_id(fourth, &ret->group))
                        return true;
        }
        return false;
}

static bool is_member(char *members, const char *name) {
        char *member;

        while ((member = strsep(&members, ",")))
                if (nd_streq(member, name))
                        return true;
        return false;
}

/* State of the lookup. */
struct search {
        struct cri_user_files *files;
        struct nd_oci_user wanted; /* numbers or names */
        char *name;                /* for memberships; nullptr = unknown */
        struct cri_container_user *user;
};

static void search_done(struct search *search) {
        nd_oci_user_done(&search->wanted);
        free(search->name);
}

static struct nd_error *not_found(const char *what, const char *name, const char *file) {
        nd_autofree char *quoted = nd_text_quote(name);

        return nd_error_new(ND_INVALID, 0, "unknown %s %s: not in the image's %s", what, quoted, file);
}

/* Finds the user's number and, if the file has them, name and group. If two users have one
 * number, the first is used, as in getpwuid(). */
static struct nd_error *find_user(struct search *search) {
        const struct nd_oci_user *wanted = &search->wanted;
        char *cursor = search->files->passwd;
        struct entry entry;

        search->user->uid = wanted->has_uid ? wanted->uid : 0;
        while (cursor && next_entry(&cursor, true, &entry)) {
                if (wanted->user ? !nd_streq(entry.name, wanted->user) : entry.id != search->user->uid)
                        continue;
                search->user->uid = entry.id;
                search->user->gid = entry.group;
                search->name = nd_strdup(entry.name);
                return nullptr;
        }
        return wanted->user ? not_found("user", wanted->user, "/etc/passwd") : nullptr;
}

static struct nd_error *add_group(struct cri_container_user *user, uint32_t group) {
        nd_vector_each (known, &user->groups) {
                if (*known == group)
                        return nullptr;
        }
        if (user->groups.count == USER_GROUPS_MOST)
                return nd_error_new(ND_INVALID, 0, "the process would be in more than %d groups", USER_GROUPS_MOST);
        nd_vector_push(&user->groups, group);
        return nullptr;
}

/* Reads /etc/group once: finds the group by its name, and the groups that have the user as a
 * member. */
static struct nd_error *find_groups(struct search *search, bool memberships) {
        const struct nd_oci_user *wanted = &search->wanted;
        nd_cleanup(cri_container_user_done) struct cri_container_user found = {};
        char *cursor = search->files->group;
        bool named = !wanted->group;
        struct entry entry;

        if (wanted->has_gid)
                search->user->gid = wanted->gid;
        while (cursor && next_entry(&cursor, false, &entry)) {
                if (!named && nd_streq(entry.name, wanted->group)) {
                        search->user->gid = entry.id;
                        named = true;
                }
                if (memberships && search->name && is_member(entry.members, search->name))
                        nd_try(add_group(&found, entry.id));
        }
        if (!named)
                return not_found("group", wanted->group, "/etc/group");
        nd_try(add_group(search->user, search->user->gid)); /* always first: CVE-2022-2995 */
        nd_vector_each (group, &found.groups) {
                nd_try(add_group(search->user, *group));
        }
        return nullptr;
}

static struct nd_error *take_id(const char *what, int64_t value, bool *ret_has, uint32_t *ret) {
        if (value < 0 || value > INT32_MAX)
                return nd_error_new(ND_INVALID, ERANGE, "%s %lld is not between 0 and 2147483647", what, (long long) value);
        *ret_has = true;
        *ret = (uint32_t) value;
        return nullptr;
}

/* A user in the request replaces the image's user and group: the image's group belongs to the
 * image's user. */
static struct nd_error *take_wishes(const struct cri_container_request *request, const char *image_user,
                                    struct nd_oci_user *ret) {
        bool given = request->has_user || *request->user_name;

        if (request->has_group && !given)
                return nd_error_new(ND_INVALID, 0, "group %lld needs a user", (long long) request->group);
        if (*request->user_name)
                nd_try(nd_error_recode(nd_oci_user_parse(request->user_name, ret), ND_INVALID));
        else if (request->has_user)
                nd_try(take_id("user", request->user, &ret->has_uid, &ret->uid));
        else
                nd_try(nd_oci_user_parse(image_user, ret));
        if (!request->has_group)
                return nullptr;
        free(nd_take_ptr(ret->group));
        return take_id("group", request->group, &ret->has_gid, &ret->gid);
}

static struct nd_error *take_asked_groups(const struct cri_container_request *request, struct cri_container_user *user) {
        nd_vector_each (group, &request->groups) {
                uint32_t id = 0;
                bool has;

                nd_try(take_id("supplemental group", *group, &has, &id));
                nd_try(add_group(user, id));
        }
        return nullptr;
}

static struct nd_error *check_range(const struct cri_container_user *user, uint32_t ids) {
        uint32_t most = user->uid;
        const char *what = "user";

        nd_vector_each (group, &user->groups) {
                if (*group > most) {
                        most = *group;
                        what = "group";
                }
        }
        if (most < ids)
                return nullptr;
        return nd_error_new(ND_INVALID, ERANGE,
                            "%s %u does not exist in the pod's user namespace, which has IDs 0 to %u: use a lower one, or "
                            "hostUsers: true",
                            what, most, ids - 1);
}

static struct nd_error *not_on_node(const char *what, uint32_t id, const struct nd_userns_maps *maps) {
        nd_autofree char *found = nd_own_userns_describe(maps);

        return nd_error_new(ND_INVALID, ERANGE,
                            "%s %u does not exist on this rootless node, which has IDs %s: use one of these, or give the "
                            "node's user more subordinate IDs",
                            what, id, found);
}

/* A pod with the node's users, where those are not the host's. */
static struct nd_error *check_node(const struct cri_container_user *user, const struct nd_own_userns *node) {
        if (!nd_own_userns_has_uid(node, user->uid))
                return not_on_node("user", user->uid, &node->uids);
        nd_vector_each (group, &user->groups) {
                if (!nd_own_userns_has_gid(node, *group))
                        return not_on_node("group", *group, &node->gids);
        }
        return nullptr;
}

struct nd_error *cri_user_resolve_in(struct cri_user_files *files, const struct cri_container_request *request,
                                     const char *image_user, const struct cri_user_scope *scope,
                                     struct cri_container_user *ret) {
        nd_cleanup(cri_container_user_done) struct cri_container_user user = {};
        nd_cleanup(search_done) struct search search = {.files = files, .user = &user};

        nd_try(take_wishes(request, image_user, &search.wanted));
        nd_try(find_user(&search));
        nd_try(find_groups(&search, !request->strict_groups));
        nd_try(take_asked_groups(request, &user));
        nd_try(scope->ids > 0 ? check_range(&user, scope->ids) : check_node(&user, scope->node));
        *ret = nd_take(user, (struct cri_container_user) {});
        return nullptr;
}

/* A missing file counts as empty. A null byte ends the file. */
static struct nd_error *read_file(int root_fd, const char *path, char **ret) {
        nd_autoerror struct nd_error *error = nullptr;
        size_t length;

        error = nd_file_read_inside(root_fd, path, USER_FILE_CEILING, ret, &length);
        if (error && (nd_error_errno(error) == ENOENT || nd_error_errno(error) == ENOTDIR))
                return nullptr;
        return nd_error_wrap(nd_error_recode(nd_take_ptr(error), ND_INVALID), "in the image");
}

static void user_files_done(struct cri_user_files *files) {
        free(files->passwd);
        free(files->group);
}

struct nd_error *cri_user_resolve(int root_fd, const struct cri_container_request *request, const char *image_user,
                                  const struct cri_user_scope *scope, struct cri_container_user *ret) {
        nd_cleanup(user_files_done) struct cri_user_files files = {};

        nd_try(read_file(root_fd, "etc/passwd", &files.passwd));
        nd_try(read_file(root_fd, "etc/group", &files.group));
        return cri_user_resolve_in(&files, request, image_user, scope, ret);
}
