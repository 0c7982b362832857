/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/images.h"

#include <nodens.pb-c.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/core/client.h"
#include "cli/output/format.h"
#include "cli/output/sanitize.h"
#include "cli/output/table.h"
#include "net/protobuf.h"

const struct nd_option cli_images_options[] = {
        {.name = "json", .offset = offsetof(struct cli_images_settings, json), .help = "print JSON"},
        CLIENT_SOCKET_OPTION(cli_images_settings),
        {},
};

enum { SHORT_ID = 12 };

static const char *without_algorithm(const char *digest) {
        const char *colon = strchr(digest, ':');

        return colon ? colon + 1 : digest;
}

static void print_table(const Nodens__V1__ImagesAnswer *answer) {
        static const struct cli_column columns[] = {{"NAME", .kind = COLUMN_SHORTEN, .least = 20},
                                                    {"ID", .kind = COLUMN_WHOLE},
                                                    {"SIZE", .kind = COLUMN_NUMBER},
                                                    {"", .kind = COLUMN_WHOLE},
                                                    {}};
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_table_init_columns(&table, columns);
        for (size_t i = 0; i < answer->n_images; i++) {
                const Nodens__V1__ImageEntry *image = answer->images[i];
                nd_autofree char *id = nd_strndup(without_algorithm(image->id), SHORT_ID);
                size_t names = image->n_names > 0 ? image->n_names : 1;
                char size[FORMAT_SIZE];

                for (size_t n = 0; n < names; n++) {
                        const char *name = image->n_names > 0     ? image->names[n]
                                           : image->n_digests > 0 ? image->digests[0]
                                                                  : "<none>";

                        cli_table_row(
                                &table,
                                (const char *[]) {name, id, cli_format_size(image->size, size), image->pinned ? "pinned" : ""},
                                nullptr);
                }
        }
        cli_table_print_or_note(&table, "no images");
}

static void print_strings(struct nd_json_out *out, const char *key, char *const *strings, size_t count) {
        nd_json_open(out, key, '[');
        for (size_t i = 0; i < count; i++)
                nd_json_string(out, nullptr, strings[i]);
        nd_json_close(out, ']');
}

static void print_json(const Nodens__V1__ImagesAnswer *answer) {
        nd_autotext struct nd_text text = ND_TEXT(64 << 20);
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

int cli_images_run(void *settings_pointer, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct cli_images_settings *settings = settings_pointer;
        Nodens__V1__ImagesRequest request = NODENS__V1__IMAGES_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;

        error = cli_client_call(settings->socket, "/nodens.v1.Node/Images", &request.base,
                                &nodens__v1__images_answer__descriptor, &answer);
        if (error)
                return cli_sanitize_print_error("images", error);
        if (settings->json)
                print_json((const Nodens__V1__ImagesAnswer *) answer);
        else
                print_table((const Nodens__V1__ImagesAnswer *) answer);
        nd_protobuf_free(answer);
        return 0;
}
