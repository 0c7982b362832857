/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/process.h"

#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "base/map.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static void add_all(struct nd_strings *list, const struct nd_strings *more) {
        nd_vector_each (text, more) {
                nd_strings_add(list, *text);
        }
}

static struct nd_error *put_arguments(const struct cri_container_request *request, const struct nd_oci_config *image,
                                      struct nd_strings *ret) {
        bool own = request->command.count > 0;

        add_all(ret, own ? &request->command : &image->entrypoint);
        if (own || request->arguments.count > 0)
                add_all(ret, &request->arguments);
        else
                add_all(ret, &image->command);
        if (ret->count == 0)
                return nd_error_new(ND_INVALID, 0, "no command: set command in the pod, or an ENTRYPOINT or CMD in the image");
        return nullptr;
}

/* Variables in the order in which their names first appear; a later value replaces an earlier
 * one. A hostile image can have thousands, so names are found by a hash map. */
struct variables {
        struct nd_strings *list;
        struct nd_map places; /* name -> index + 1 */
};

static void set(struct variables *variables, char *name, char *pair) {
        size_t place = (size_t) nd_map_get(&variables->places, name);

        if (place > 0) {
                free(variables->list->items[place - 1]);
                variables->list->items[place - 1] = pair;
        } else {
                nd_vector_push(variables->list, pair);
                (void) nd_map_put(&variables->places, name, (void *) variables->list->count);
        }
}

static void set_value(struct variables *variables, const char *name, const char *value) {
        nd_autofree char *key = nd_strdup(name);

        set(variables, key, nd_format("%s=%s", name, value));
}

static void set_pair(struct variables *variables, const char *pair) {
        nd_autofree char *key = nd_strndup(pair, strcspn(pair, "="));

        set(variables, key, nd_strdup(pair));
}

static void put_environment(const struct cri_container_request *request, const struct nd_oci_config *image,
                            const char *hostname, struct nd_strings *ret) {
        struct variables variables = {.list = ret};
        struct utsname node;

        set_value(&variables, "PATH", DEFAULT_PATH);
        nd_vector_each (pair, &image->environment) {
                set_pair(&variables, *pair);
        }
        if (request->tty)
                set_value(&variables, "TERM", "xterm");
        if (*hostname == '\0' && uname(&node) == 0)
                hostname = node.nodename;
        set_value(&variables, "HOSTNAME", hostname);
        nd_vector_each (variable, &request->environment) {
                set_value(&variables, variable->key, variable->value);
        }
        nd_map_done(&variables.places);
}

struct nd_error *cri_process_describe(const struct cri_container_request *request, const struct nd_oci_config *image,
                                      const char *hostname, struct nd_spec_process *ret) {
        const char *directory = *request->working_directory ? request->working_directory
                                : *image->working_directory ? image->working_directory
                                                            : "/";

        nd_try(put_arguments(request, image, &ret->arguments));
        put_environment(request, image, hostname, &ret->environment);
        /* An image may have "app"; containerd and CRI-O resolve it from the root. */
        ret->directory = directory[0] == '/' ? nd_strdup(directory) : nd_format("/%s", directory);
        ret->terminal = request->tty;
        return nullptr;
}

static int parse_realtime(const char *name, const char *prefix, int base, int sign) {
        uint64_t offset;

        if (!nd_has_prefix(name, prefix))
                return 0;
        name += strlen(prefix);
        if (*name == '\0')
                return base;
        if (*name != (sign > 0 ? '+' : '-') || nd_text_parse_u64(name + 1, 30, &offset) < 0)
                return 0;
        return base + sign * (int) offset;
}

static int parse_signal(const char *text) {
        const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
        uint64_t number;

        if (nd_text_parse_u64(text, 64, &number) == 0)
                return (int) number;
        for (int i = 1; i < 32; i++)
                if (sigabbrev_np(i) && strcasecmp(sigabbrev_np(i), name) == 0)
                        return i;
        /* The kernel's numbers; glibc reserves two of them. */
        number = (uint64_t) parse_realtime(name, "RTMIN", 34, 1);
        return number > 0 ? (int) number : parse_realtime(name, "RTMAX", 64, -1);
}

int cri_process_stop_signal(const struct cri_container_request *request, const struct nd_oci_config *image) {
        /* the pod's init has no image */
        int signal = request->stop_signal > 0 ? request->stop_signal : parse_signal(image->stop_signal ?: "");

        return signal > 0 && signal <= 64 ? signal : SIGTERM;
}
