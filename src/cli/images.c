/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images.h"

#include <fcntl.h>
#include <nodens.pb-c.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/daemon.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "net/protobuf.h"
#include "sys/file.h"

#define QUIET_OPTION                                                                                                          \
        {.name = "quiet", .letter = 'q', .offset = offsetof(struct pull_settings, quiet), .help = "print only the image's id"}

const struct nd_option images_options[] = {
        {.name = "json", .offset = offsetof(struct images_settings, json), .help = "print JSON"},
        DAEMON_SOCKET_OPTION(images_settings),
        {},
};

const struct nd_option pull_options[] = {
        {.name = "credentials",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct pull_settings, credentials),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "a file with 'user:password' for the registry"},
        QUIET_OPTION,
        DAEMON_SOCKET_OPTION(pull_settings),
        {},
};

const struct nd_option import_options[] = {
        QUIET_OPTION,
        DAEMON_SOCKET_OPTION(pull_settings),
        {},
};

static int complain(const char *command, const char *text) {
        fprintf(stderr, "nodens %s: %s\n", command, text);
        return 1;
}

/* ---- images ---- */

enum { SHORT_ID = 12 };

static const char *without_algorithm(const char *digest) {
        const char *colon = strchr(digest, ':');

        return colon ? colon + 1 : digest;
}

static void print_table(const Nodens__V1__ImagesAnswer *answer) {
        static const char *const headings[] = {"NAME", "ID", "SIZE", "", nullptr};
        nd_cleanup(table_done) struct table table = {};

        table_init(&table, headings);
        for (size_t i = 0; i < answer->n_images; i++) {
                const Nodens__V1__ImageEntry *image = answer->images[i];
                nd_autofree char *id = nd_strndup(without_algorithm(image->id), SHORT_ID);
                size_t names = image->n_names > 0 ? image->n_names : 1;
                char size[PROGRESS_SIZE_TEXT];

                for (size_t n = 0; n < names; n++) {
                        const char *name = image->n_names > 0     ? image->names[n]
                                           : image->n_digests > 0 ? image->digests[0]
                                                                  : "<none>";

                        table_row(&table,
                                  (const char *[]) {name, id, progress_size(image->size, size), image->pinned ? "pinned" : ""},
                                  nullptr);
                }
        }
        table_print(&table);
}

static void print_strings(struct nd_json_out *out, const char *key, char *const *strings, size_t count) {
        nd_json_open(out, key, '[');
        for (size_t i = 0; i < count; i++)
                nd_json_string(out, nullptr, strings[i]);
        nd_json_close(out, ']');
}

static void print_json(const Nodens__V1__ImagesAnswer *answer) {
        nd_autotext text = ND_TEXT(64 << 20);
        struct nd_json_out out = {.text = &text, .indent = 2};

        nd_json_open(&out, nullptr, '[');
        for (size_t i = 0; i < answer->n_images; i++) {
                const Nodens__V1__ImageEntry *image = answer->images[i];

                nd_json_open(&out, nullptr, '{');
                nd_json_string(&out, "id", image->id);
                print_strings(&out, "names", image->names, image->n_names);
                print_strings(&out, "digests", image->digests, image->n_digests);
                nd_json_number(&out, "size", image->size);
                nd_json_bool(&out, "pinned", image->pinned);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, ']');
        puts(nd_text_get(&text));
}

int images_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct images_settings *settings = settings_pointer;
        Nodens__V1__ImagesRequest request = NODENS__V1__IMAGES_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;

        error = daemon_ask(settings->socket, "/nodens.v1.Node/Images", &request.base, &nodens__v1__images_answer__descriptor,
                           &answer);
        if (error)
                return complain("images", nd_error_text(error));
        if (settings->json)
                print_json((const Nodens__V1__ImagesAnswer *) answer);
        else
                print_table((const Nodens__V1__ImagesAnswer *) answer);
        nd_protobuf_free(answer);
        return 0;
}

/* ---- pull and import ---- */

struct following {
        struct progress progress;
        bool quiet;
};

static void on_progress(const ProtobufCMessage *message, void *userdata) {
        const Nodens__V1__PullProgress *answer = (const Nodens__V1__PullProgress *) message;
        struct following *f = userdata;

        for (size_t i = 0; !f->quiet && i < answer->n_layers; i++) {
                const Nodens__V1__LayerProgress *layer = answer->layers[i];

                progress_update(&f->progress, layer->digest, layer->state, layer->size, layer->done);
        }
        if (!f->quiet)
                progress_show(&f->progress, answer->n_image_ids > 0);
        for (size_t i = 0; i < answer->n_image_ids; i++)
                puts(answer->image_ids[i]);
}

static int follow(const char *command, const struct pull_settings *settings, const char *path,
                  const ProtobufCMessage *request) {
        nd_autoerror struct nd_error *error = nullptr;
        struct following f = {.quiet = settings->quiet};

        progress_init(&f.progress);
        error = daemon_follow(settings->socket, path, request, &nodens__v1__pull_progress__descriptor, on_progress, &f);
        progress_done(&f.progress);
        return error ? complain(command, nd_error_text(error)) : 0;
}

/* "user:password", from a file and never from the command line, which every user of the machine can read. */
static struct nd_error *read_credentials(const char *path, Nodens__V1__PullRequest *request, char **ret_text) {
        char *colon;

        nd_try(nd_file_read(AT_FDCWD, path, 64 << 10, ret_text, nullptr));
        (*ret_text)[strcspn(*ret_text, "\n")] = '\0';
        colon = strchr(*ret_text, ':');
        if (!colon)
                return nd_error_new(ND_INVALID, 0, "'%s' does not hold 'user:password'", path);
        *colon = '\0';
        request->username = *ret_text;
        request->password = colon + 1;
        return nullptr;
}

int pull_run(void *settings_pointer, int operand_count, char **operands) {
        const struct pull_settings *settings = settings_pointer;
        Nodens__V1__PullRequest request = NODENS__V1__PULL_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *credentials = nullptr;

        if (operand_count != 1)
                return complain("pull", "needs one image, as in 'nodens pull docker.io/library/busybox:1.37'");
        if (settings->credentials)
                error = read_credentials(settings->credentials, &request, &credentials);
        if (error)
                return complain("pull", nd_error_text(error));
        request.reference = operands[0];
        return follow("pull", settings, "/nodens.v1.Node/Pull", &request.base);
}

int import_run(void *settings_pointer, int operand_count, char **operands) {
        const struct pull_settings *settings = settings_pointer;
        Nodens__V1__ImportRequest request = NODENS__V1__IMPORT_REQUEST__INIT;
        nd_autofree char *path = nullptr;

        if (operand_count != 1)
                return complain("import", "needs one OCI archive, as in 'nodens import image.tar'");
        path = realpath(operands[0], nullptr);
        if (!path) {
                nd_autofree char *text = nd_format("%s: %s", operands[0], strerror(errno));

                return complain("import", text);
        }
        request.path = path;
        return follow("import", settings, "/nodens.v1.Node/Import", &request.base);
}
