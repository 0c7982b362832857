/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/plane/certificates.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "rootless/components/control-plane.h"
#include "rootless/plane/certificate.h"
#include "rootless/plane/directory.h"
#include "rootless/plane/kubeconfig.h"

#define INSIDE "https://127.0.0.1:" CONTROL_PLANE_PORT /* for clients on the node's network */
#define NODE_USER "system:node:"

enum {
        DAY_S = 24 * 60 * 60,
        AUTHORITY_S = 3650 * DAY_S,
        LEAF_S = 365 * DAY_S,
        NAME_BYTES = 300,
};

/* Which requests need no credential: health, and the object that discovery by a bootstrap token
 * reads. */
static const char authentication[] = "apiVersion: apiserver.config.k8s.io/v1\n"
                                     "kind: AuthenticationConfiguration\n"
                                     "anonymous:\n"
                                     "  enabled: true\n"
                                     "  conditions:\n"
                                     "  - path: /livez\n"
                                     "  - path: /readyz\n"
                                     "  - path: /healthz\n"
                                     "  - path: /api/v1/namespaces/kube-public/configmaps/cluster-info\n";

enum leaf {
        LEAF_APISERVER,
        LEAF_KUBELET_CLIENT,
        LEAF_FRONT_PROXY,
        LEAF_ADMIN,
        LEAF_CONTROLLER_MANAGER,
        LEAF_SCHEDULER,
        LEAF_KUBELET,
        LEAF_KUBE_PROXY,
        LEAF_CONTROLLER,
        LEAVES,
};

static const struct leaf_row {
        const char *file; /* .crt and .key */
        const char *name; /* nullptr: that of the node */
        const char *organization;
} leaves[] = {
        [LEAF_APISERVER] = {"apiserver", "kube-apiserver", nullptr},
        [LEAF_KUBELET_CLIENT] = {"apiserver-kubelet-client", "kube-apiserver-kubelet-client", nullptr},
        [LEAF_FRONT_PROXY] = {"front-proxy-client", "front-proxy-client", nullptr},
        [LEAF_ADMIN] = {"admin", "kubernetes-admin", "system:masters"},
        [LEAF_CONTROLLER_MANAGER] = {"controller-manager", "system:kube-controller-manager", nullptr},
        [LEAF_SCHEDULER] = {"scheduler", "system:kube-scheduler", nullptr},
        [LEAF_KUBELET] = {"kubelet", nullptr, "system:nodes"},
        [LEAF_KUBE_PROXY] = {"kube-proxy", "system:kube-proxy", nullptr},
        [LEAF_CONTROLLER] = {"controller", "nodens-rootless-controller", nullptr},
};
static_assert(nd_count_of(leaves) == LEAVES);

/* Certificate and key of a client, as PEM. */
struct texts {
        char *certificate, *key;
};

struct job {
        const struct rootless_certificates_settings *settings;
        int fd;
        struct rootless_certificate authority, front_proxy;
        char *authority_text;
        struct texts leaves[LEAVES];
};

static void job_done(struct job *job) {
        rootless_certificate_done(&job->authority);
        rootless_certificate_done(&job->front_proxy);
        free(job->authority_text);
        for (size_t i = 0; i < LEAVES; i++) {
                free(job->leaves[i].certificate);
                rootless_plane_wipe(job->leaves[i].key);
        }
        nd_close_fd(&job->fd);
}

/* ---- files ---- */

/* Reads the key of a name, or makes one. A certificate without its key cannot be renewed, and is
 * not replaced: other hosts do not know a new one. */
static struct nd_error *ensure_key(int fd, const char *name, const char *certificate, gnutls_x509_privkey_t *ret) {
        nd_autofree char *file = nd_format("%s.key", name);
        struct nd_error *error;
        char *text = nullptr;

        nd_try(rootless_plane_read(fd, file, &text));
        if (text) {
                error = nd_error_wrap(rootless_certificate_key_parse(text, ret), "'%s'", file);
                rootless_plane_wipe(text);
                return error;
        }
        if (certificate)
                return nd_error_new(ND_DATA_LOSS, ENOENT, "'%s.crt' is there and '%s' is not; restore it, or remove both",
                                    name, file);
        nd_try(rootless_certificate_key_make(ret));
        nd_try(rootless_certificate_key_format(*ret, &text));
        error = rootless_plane_write(fd, file, text);
        rootless_plane_wipe(text);
        return error;
}

static struct nd_error *ensure(int fd, const char *name, const struct rootless_certificate_plan *plan,
                               const struct rootless_certificate *issuer, struct rootless_certificate *ret) {
        nd_cleanup(rootless_certificate_done) struct rootless_certificate c = {};
        nd_autofree char *file = nd_format("%s.crt", name), *before = nullptr, *text = nullptr;

        nd_try(rootless_plane_read(fd, file, &before));
        nd_try(ensure_key(fd, name, before, &c.key));
        if (before)
                nd_try(nd_error_wrap(rootless_certificate_parse(before, &c.certificate), "'%s'", file));
        if (!before || !rootless_certificate_fits(plan, &c, issuer, time(nullptr))) {
                if (c.certificate)
                        gnutls_x509_crt_deinit(nd_take(c.certificate, nullptr));
                nd_try(rootless_certificate_sign(plan, c.key, issuer, &c.certificate));
                nd_try(rootless_certificate_format(c.certificate, &text));
                nd_try(rootless_plane_write(fd, file, text));
        }
        *ret = nd_take(c, (struct rootless_certificate) {});
        return nullptr;
}

/* ---- certificates ---- */

static struct nd_error *ensure_authorities(struct job *job) {
        struct rootless_certificate_plan plan = {.name = "kubernetes", .authority = true, .seconds = AUTHORITY_S};

        nd_try(ensure(job->fd, "ca", &plan, nullptr, &job->authority));
        plan.name = "front-proxy-ca";
        nd_try(ensure(job->fd, "front-proxy-ca", &plan, nullptr, &job->front_proxy));
        return rootless_certificate_format(job->authority.certificate, &job->authority_text);
}

static struct nd_error *ensure_leaf(struct job *job, enum leaf which) {
        nd_cleanup(rootless_certificate_done) struct rootless_certificate made = {};
        nd_autofree char *node = nd_format(NODE_USER "%s", job->settings->node_name);
        char host[NAME_BYTES] = "localhost";
        const char *const names[] = {"kubernetes",
                                     "kubernetes.default",
                                     "kubernetes.default.svc",
                                     "kubernetes.default.svc.cluster.local",
                                     "localhost",
                                     host,
                                     "127.0.0.1",
                                     CONTROL_PLANE_SERVICE,
                                     job->settings->address,
                                     job->settings->listen,
                                     nullptr};
        struct rootless_certificate_plan plan = {.name = leaves[which].name ? leaves[which].name : node,
                                                 .organization = leaves[which].organization,
                                                 .names = which == LEAF_APISERVER ? names : nullptr,
                                                 .server = which == LEAF_APISERVER,
                                                 .seconds = LEAF_S};

        (void) gethostname(host, sizeof host - 1);
        nd_try(ensure(job->fd, leaves[which].file, &plan, which == LEAF_FRONT_PROXY ? &job->front_proxy : &job->authority,
                      &made));
        nd_try(rootless_certificate_format(made.certificate, &job->leaves[which].certificate));
        return rootless_certificate_key_format(made.key, &job->leaves[which].key);
}

/* ---- kubeconfigs ---- */

static struct rootless_plane_context context(const struct job *job, const char *name, enum leaf which, const char *server) {
        return (struct rootless_plane_context) {.name = name,
                                                .server = server,
                                                .ca = job->authority_text,
                                                .certificate = job->leaves[which].certificate,
                                                .key = job->leaves[which].key};
}

static struct nd_error *write_kubeconfig(const struct job *job, const char *file,
                                         const struct rootless_plane_context *contexts, size_t count) {
        char *text = rootless_plane_kubeconfig(contexts, count);
        struct nd_error *error = rootless_plane_write(job->fd, file, text);

        rootless_plane_wipe(text);
        return error;
}

static struct nd_error *write_kubeconfigs(const struct job *job) {
        const char *server = job->settings->server;
        struct rootless_plane_context admin = context(job, "kubernetes-admin", LEAF_ADMIN, server),
                                      manager = context(job, "manager", LEAF_CONTROLLER_MANAGER, INSIDE),
                                      scheduler = context(job, "scheduler", LEAF_SCHEDULER, INSIDE);
        struct rootless_plane_context node[] = {context(job, "kubelet", LEAF_KUBELET, INSIDE),
                                                context(job, "kube-proxy", LEAF_KUBE_PROXY, INSIDE),
                                                context(job, "controller", LEAF_CONTROLLER, server)};

        nd_try(write_kubeconfig(job, CONTROL_PLANE_ADMIN, &admin, 1));
        nd_try(write_kubeconfig(job, "controller-manager.kubeconfig", &manager, 1));
        nd_try(write_kubeconfig(job, "scheduler.kubeconfig", &scheduler, 1));
        return write_kubeconfig(job, CONTROL_PLANE_NODE, node, nd_count_of(node));
}

/* Signs the tokens of service accounts. */
static struct nd_error *ensure_accounts(int fd) {
        nd_cleanup(rootless_certificate_done) struct rootless_certificate c = {};
        nd_autofree char *public = nullptr;

        nd_try(ensure_key(fd, "sa", nullptr, &c.key));
        nd_try(rootless_certificate_public_format(c.key, &public));
        return rootless_plane_write(fd, "sa.pub", public);
}

/* Other hosts reach a port of all addresses at the node's, which is the host's own. */
static struct nd_error *write_server(const struct job *job) {
        const struct rootless_certificates_settings *s = job->settings;
        nd_autofree char *all = nd_format("https://%s%s", s->address, strrchr(s->server, ':'));

        return rootless_plane_write(job->fd, PLANE_SERVER, nd_streq(s->listen, "0.0.0.0") ? all : s->server);
}

struct nd_error *rootless_certificates_ensure(const struct rootless_certificates_settings *settings) {
        nd_cleanup(job_done) struct job job = {.settings = settings, .fd = -EBADF};

        nd_try(rootless_plane_open(settings->directory, true, &job.fd));
        nd_try(ensure_authorities(&job));
        for (unsigned i = 0; i < LEAVES; i++)
                nd_try(ensure_leaf(&job, (enum leaf) i));
        nd_try(ensure_accounts(job.fd));
        nd_try(rootless_plane_write(job.fd, "authentication.yaml", authentication));
        nd_try(write_server(&job));
        return write_kubeconfigs(&job);
}
