/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/pod-ids.h"

#include <string.h>

#include "base/text.h"
#include "sys/file.h"

#define USER "kubelet"

enum {
        PODS_LEAST = 10, /* with fewer, a node that runs any pods is worth more */
        FILE_BYTES = 1024 * 1024,
        NOBODY = 65534,
};

static char *choose(const struct rootless_cluster *cluster, uint32_t fit) {
        nd_autofree char *getsubids = nullptr;
        nd_autoerror struct nd_error *missing = rootless_cluster_find(cluster, "getsubids", "uidmap", &getsubids);

        if (cluster->runtime != RUNTIME_NODENS)
                return nd_strdup("the container runtime cannot idmap the host's filesystems in a node; use nodens-cri");
        if (fit == 0)
                return nd_format("the node has no whole block of %d IDs above the first", ND_IDS_UNIT);
        if (missing)
                return nd_strdup(nd_error_text(missing));
        if (cluster->max_pods > fit)
                return nd_format("the node has IDs for %u of the %u pods of --max-pods, and a kubelet requires them for all",
                                 fit, cluster->max_pods);
        if (cluster->max_pods == 0 && fit < PODS_LEAST)
                return nd_format("the node has IDs for %u, and a kubelet requires them for its maximum of pods: --max-pods %u "
                                 "runs so few, with user namespaces",
                                 fit, fit);
        return nullptr;
}

void rootless_pod_ids_choose(struct rootless_cluster *cluster, const struct rootless_ids *ids) {
        uint32_t fit = ids->pods.count / ND_IDS_UNIT;

        cluster->no_pod_ids = choose(cluster, fit);
        if (cluster->no_pod_ids)
                return;
        cluster->pod_ids = ids->pods;
        if (cluster->max_pods == 0 && fit < ND_PODS_DEFAULT)
                cluster->max_pods = fit;
}

char *rootless_pod_ids_summary(const struct rootless_cluster *cluster) {
        if (cluster->no_pod_ids)
                return nd_format("pods with hostUsers: false are refused: %s", cluster->no_pod_ids);
        return nd_format("at most %u pods, each of which may have hostUsers: false",
                         cluster->max_pods ? cluster->max_pods : ND_PODS_DEFAULT);
}

/* ---- files ---- */

/* Adds the lines of a file of the host, except lines that begin with a word. */
static struct nd_error *copy_without(const struct rootless_cluster *cluster, const char *path, const char *word,
                                     struct nd_text *ret, bool *ret_found) {
        nd_autofree char *real = nd_format("%s%s", cluster->machine, path), *text = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read(AT_FDCWD, real, FILE_BYTES, &text, nullptr);
        char *rest = text, *line;

        *ret_found = false;
        if (error)
                return nd_error_errno(error) == ENOENT ? nullptr : nd_take_ptr(error);
        while ((line = strsep(&rest, "\n"))) {
                if (nd_has_prefix(line, word))
                        *ret_found = true;
                else if (*line)
                        nd_text_addf(ret, "%s\n", line);
        }
        return ret->overflow ? nd_error_new(ND_INVALID, E2BIG, "'%s' is too long", path) : nullptr;
}

/* A kubelet that finds its user asks getsubids, and does not start if there are no IDs. */
static struct nd_error *add_user(const struct rootless_cluster *cluster, struct rootless_bindplan *plan) {
        nd_autotext struct nd_text text = ND_TEXT(FILE_BYTES);
        bool found;

        nd_try(copy_without(cluster, "/etc/passwd", USER ":", &text, &found));
        if (cluster->pod_ids.count > 0)
                nd_text_addf(&text, USER ":x:%d:%d:IDs of pods:/nonexistent:/usr/sbin/nologin\n", NOBODY, NOBODY);
        if (found || cluster->pod_ids.count > 0)
                rootless_bindplan_add_text(plan, "/etc/passwd", nd_text_get(&text), 0644);
        return nullptr;
}

/* The node's IDs are files, also where the host asks a directory service for those of users. */
static struct nd_error *add_nsswitch(const struct rootless_cluster *cluster, struct rootless_bindplan *plan) {
        nd_autotext struct nd_text text = ND_TEXT(FILE_BYTES);
        bool found;

        nd_try(copy_without(cluster, "/etc/nsswitch.conf", "subid:", &text, &found));
        if (found)
                rootless_bindplan_add_text(plan, "/etc/nsswitch.conf", nd_text_get(&text), 0644);
        return nullptr;
}

struct nd_error *rootless_pod_ids_files(const struct rootless_cluster *cluster, struct rootless_bindplan *plan) {
        nd_autofree char *line = cluster->pod_ids.count == 0
                                         ? nd_strdup("")
                                         : nd_format(USER ":%u:%u\n", cluster->pod_ids.first, cluster->pod_ids.count);

        nd_try(add_user(cluster, plan));
        nd_try(add_nsswitch(cluster, plan));
        /* the host's are ranges of the host */
        rootless_bindplan_add_text(plan, "/etc/subuid", line, 0644);
        rootless_bindplan_add_text(plan, "/etc/subgid", line, 0644);
        return nullptr;
}
