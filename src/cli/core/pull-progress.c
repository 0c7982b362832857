/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/pull-progress.h"

#include <nodens.pb-c.h>
#include <stdio.h>

#include "cli/core/client.h"
#include "cli/core/progress.h"

struct following {
        struct cli_progress progress;
        bool quiet;
};

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
                puts(answer->image_ids[i]);
}

int cli_pull_progress_follow(const char *command, const char *socket, const char *path, const ProtobufCMessage *request,
                             bool quiet) {
        nd_autoerror struct nd_error *error = nullptr;
        struct following f = {.quiet = quiet};

        cli_progress_init(&f.progress);
        error = cli_client_stream(socket, path, request, &nodens__v1__pull_progress__descriptor, on_progress, &f);
        cli_progress_done(&f.progress);
        if (error)
                fprintf(stderr, "nodens %s: %s\n", command, nd_error_text(error));
        return error ? 1 : 0;
}
