/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/pull-progress.h"

#include <nodens.pb-c.h>
#include <stdio.h>

#include "cli/core/client.h"
#include "cli/output/progress.h"
#include "cli/output/sanitize.h"

struct following {
        struct cli_progress progress;
        bool quiet;
};

/* An archive can have an image twice, under different names. */
static bool is_repeated(const Nodens__V1__PullProgress *answer, size_t index) {
        for (size_t i = 0; i < index; i++)
                if (nd_streq(answer->image_ids[i], answer->image_ids[index]))
                        return true;
        return false;
}

/* Prints the ID of an image and, for people, its names. */
static void print_image(const struct following *f, const Nodens__V1__PullProgress *answer, const char *id) {
        const Nodens__V1__ImageEntry *image = nullptr;

        for (size_t i = 0; !f->quiet && i < answer->n_images && !image; i++)
                image = nd_streq(answer->images[i]->id, id) ? answer->images[i] : nullptr;
        (void) fputs(id, stdout);
        for (size_t i = 0; image && i < image->n_names; i++) {
                nd_autofree char *name = cli_sanitize_text(image->names[i]);

                printf("  %s", name);
        }
        (void) putchar('\n');
}

static void on_progress(const ProtobufCMessage *message, void *userdata) {
        const Nodens__V1__PullProgress *answer = (const Nodens__V1__PullProgress *) message;
        struct following *f = userdata;

        for (size_t i = 0; !f->quiet && i < answer->n_layers; i++) {
                const Nodens__V1__LayerProgress *layer = answer->layers[i];

                cli_progress_update(&f->progress, layer->digest, layer->state, layer->size, layer->done);
        }
        if (!f->quiet)
                cli_progress_show(&f->progress, answer->n_image_ids > 0);
        for (size_t i = 0; i < answer->n_image_ids; i++)
                if (!is_repeated(answer, i))
                        print_image(f, answer, answer->image_ids[i]);
}

int cli_pull_progress_follow(const char *command, const char *socket, const char *path, const ProtobufCMessage *request,
                             bool quiet) {
        nd_autoerror struct nd_error *error = nullptr;
        struct following f = {.quiet = quiet};

        cli_progress_init(&f.progress);
        error = cli_client_stream(socket, path, request, &nodens__v1__pull_progress__descriptor, on_progress, &f);
        cli_progress_done(&f.progress);
        return error ? cli_sanitize_print_error(command, error) : 0;
}
