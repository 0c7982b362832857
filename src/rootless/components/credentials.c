/* SPDX-License-Identifier: Apache-2.0 */
/* credentials.c - see credentials.h
 *
 * The child's result is a list of null-terminated strings: "0" and the texts, or the code of an
 * error and its message. */
#include "rootless/components/credentials.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base64.h"
#include "base/json.h"
#include "net/kubeconfig.h"
#include "sys/file.h"

static void wipe(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

void rootless_credentials_done(struct rootless_credentials *credentials) {
        wipe(credentials->kubelet);
        wipe(credentials->proxy);
        free(credentials->ca);
        *credentials = (struct rootless_credentials) {};
}

/* ---- one kubeconfig ---- */

static void add_data(struct nd_json_out *out, const char *key, const char *value) {
        nd_autofree char *encoded = value ? nd_base64(value, strlen(value)) : nullptr;

        if (encoded)
                nd_json_string(out, key, encoded);
}

static void open_named(struct nd_json_out *out, const char *list, const char *name, const char *member) {
        nd_json_open(out, list, '[');
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", name);
        nd_json_open(out, member, '{');
}

static void close_named(struct nd_json_out *out) {
        nd_json_close(out, '}');
        nd_json_close(out, '}');
        nd_json_close(out, ']');
}

static void add_config(struct nd_json_out *out, const struct nd_kubeconfig *config, const char *certificate_file) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "apiVersion", "v1");
        nd_json_string(out, "kind", "Config");
        nd_json_string(out, "current-context", "node");
        open_named(out, "contexts", "node", "context");
        nd_json_string(out, "cluster", "cluster");
        nd_json_string(out, "user", "user");
        close_named(out);
        open_named(out, "clusters", "cluster", "cluster");
        nd_json_string(out, "server", config->server);
        if (config->tls_server_name)
                nd_json_string(out, "tls-server-name", config->tls_server_name);
        if (config->insecure)
                nd_json_bool(out, "insecure-skip-tls-verify", true);
        else
                add_data(out, "certificate-authority-data", config->ca);
        close_named(out);
        open_named(out, "users", "user", "user");
        if (certificate_file) {
                nd_json_string(out, "client-certificate", certificate_file);
                nd_json_string(out, "client-key", certificate_file);
                close_named(out);
                nd_json_close(out, '}');
                return;
        }
        add_data(out, "client-certificate-data", config->certificate);
        add_data(out, "client-key-data", config->key);
        if (config->token)
                nd_json_string(out, "token", config->token);
        close_named(out);
        nd_json_close(out, '}');
}

static struct nd_error *format(const char *path, const char *context, const char *certificate_file, char **ret_config,
                               char **ret_ca) {
        nd_cleanup(nd_kubeconfig_done) struct nd_kubeconfig config = {};
        nd_autotext struct nd_text text = ND_TEXT(CREDENTIALS_BYTES);
        struct nd_json_out out = {.text = &text, .indent = 1};
        bool named = false;

        nd_try(nd_kubeconfig_has_context(path, context, &named));
        nd_try(nd_kubeconfig_load(path, named ? context : nullptr, &config));
        /* a file with a token ends with a newline */
        if (config.token)
                config.token[strcspn(config.token, "\r\n")] = '\0';
        if (!config.certificate && !config.token)
                return nd_error_new(ND_INVALID, 0,
                                    "kubeconfig '%s': the user of context '%s' has neither a certificate nor a token", path,
                                    named ? context : "current-context");
        add_config(&out, &config, certificate_file);
        nd_text_add(&text, "\n");
        if (text.overflow)
                return nd_error_new(ND_INVALID, E2BIG, "kubeconfig '%s' is too large", path);
        *ret_config = nd_text_steal(&text);
        if (ret_ca)
                *ret_ca = nd_strdup(config.ca && !config.insecure ? config.ca : "");
        return nullptr;
}

struct nd_error *rootless_credentials_format(const char *path, const char *context, char **ret_config, char **ret_ca) {
        return format(path, context, nullptr, ret_config, ret_ca);
}

/* ---- the child ---- */

static struct nd_error *read_all(const char *path, struct rootless_credentials *ret) {
        nd_try(nd_kubeconfig_has_context(path, "bootstrap", &ret->bootstrap));
        if (ret->bootstrap) {
                nd_try(format(path, "bootstrap", nullptr, &ret->kubelet, &ret->ca));
                return format(path, "bootstrap", KUBELET_CERTIFICATE, &ret->proxy, nullptr);
        }
        nd_try(rootless_credentials_format(path, "kubelet", &ret->kubelet, &ret->ca));
        return rootless_credentials_format(path, "kube-proxy", &ret->proxy, nullptr);
}

static void write_string(int fd, const char *text) {
        for (size_t length = strlen(text) + 1; length > 0;) {
                ssize_t n = write(fd, text, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        _exit(EXIT_FAILURE); /* the parent sees that texts are missing */
                text += n;
                length -= (size_t) n;
        }
}

[[noreturn]] static void child_main(const char *path, int fd) {
        struct rootless_credentials all = {};
        struct nd_error *error = read_all(path, &all);
        nd_autofree char *code = nd_format("%d", (int) nd_error_code(error));

        write_string(fd, code);
        if (error) {
                write_string(fd, nd_error_text(error));
        } else {
                write_string(fd, all.kubelet);
                write_string(fd, all.proxy);
                write_string(fd, all.ca);
                write_string(fd, all.bootstrap ? "1" : "0");
        }
        _exit(EXIT_SUCCESS);
}

/* ---- the parent ---- */

static struct nd_error *receive(int fd, struct nd_text *text) {
        char piece[16 * 1024];
        ssize_t n;

        while ((n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR))
                if (n > 0)
                        nd_text_append(text, piece, (size_t) n);
        explicit_bzero(piece, sizeof piece);
        if (n < 0 || text->overflow)
                return nd_error_new(ND_INTERNAL, n < 0 ? errno : E2BIG, "receive credentials from a child process");
        return nullptr;
}

/* The next string of the child's result, nullptr at its end. */
static const char *next_string(const struct nd_text *text, size_t *at) {
        const char *string = text->bytes + *at;

        if (*at >= text->length || !memchr(string, '\0', text->length - *at))
                return nullptr;
        *at += strlen(string) + 1;
        return string;
}

static struct nd_error *take_result(const struct nd_text *text, struct rootless_credentials *ret) {
        size_t at = 0;
        const char *code = next_string(text, &at), *first = next_string(text, &at), *second = next_string(text, &at),
                   *third = next_string(text, &at), *fourth = next_string(text, &at);
        uint64_t number = ND_INTERNAL;

        if (code && first && !nd_streq(code, "0")) {
                (void) !nd_text_parse_u64(code, ND_UNAUTHENTICATED, &number);
                return nd_error_received((enum nd_error_code) number, 0, first);
        }
        if (!fourth)
                return nd_error_new(ND_INTERNAL, 0, "the child process that reads the kubeconfig ended too early");
        *ret = (struct rootless_credentials) {.kubelet = nd_strdup(first),
                                              .proxy = nd_strdup(second),
                                              .ca = nd_strdup(third),
                                              .bootstrap = nd_streq(fourth, "1")};
        return nullptr;
}

struct nd_error *rootless_credentials_read(const char *path, struct rootless_credentials *ret) {
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        nd_autotext struct nd_text text = ND_TEXT(CREDENTIALS_BYTES);
        nd_autoclose int ours = -EBADF, theirs = -EBADF;
        struct nd_error *error;
        siginfo_t end;
        int fds[2];
        pid_t pid;

        if (nd_sys->pipe2(fds, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pipe");
        ours = fds[0];
        theirs = fds[1];
        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a process");
        if (pid == 0)
                child_main(path, theirs);
        nd_close_fd(&theirs);
        error = receive(ours, &text);
        while (waitid(P_PID, (id_t) pid, &end, WEXITED) < 0 && errno == EINTR)
                ;
        if (!error)
                error = take_result(&text, ret);
        if (text.bytes)
                explicit_bzero(text.bytes, text.length);
        return error;
}

struct nd_error *rootless_credentials_link_controller(const char *path, const struct rootless_node *node) {
        char *text = nullptr;

        nd_try(rootless_credentials_format(path, "controller", &text, nullptr));
        wipe(text);
        (void) nd_sys->unlinkat(node->fd, CONTROLLER_KUBECONFIG, 0);
        if (nd_sys->symlinkat(path, node->fd, CONTROLLER_KUBECONFIG) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create '%s/" CONTROLLER_KUBECONFIG "'", node->path);
        return nullptr;
}
