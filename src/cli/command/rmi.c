/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/rmi.h"

#include <nodens.pb-c.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/core/client.h"
#include "cli/output/format.h"
#include "cli/output/sanitize.h"
#include "net/protobuf.h"

/* until the disk space is freed */
static constexpr uint64_t remove_timeout_us = 600 * ND_SECOND_US;

const struct nd_option cli_rmi_options[] = {
        {.name = "unused",
         .offset = offsetof(struct cli_rmi_settings, unused),
         .help = "remove all images that no container uses, except pinned ones"},
        {.name = "force",
         .letter = 'f',
         .offset = offsetof(struct cli_rmi_settings, force),
         .help = "remove images that a container uses, too, and ignore images that do not exist"},
        CLIENT_SOCKET_OPTION(cli_rmi_settings),
        {},
};

static void print_removed(const Nodens__V1__RemoveImageAnswer *answer) {
        char size[FORMAT_SIZE];

        for (size_t i = 0; i < answer->n_names; i++) {
                nd_autofree char *name = cli_sanitize_text(answer->names[i]);

                printf("%s %s\n", answer->removed ? "removed name" : "removed only the name", name);
        }
        if (answer->removed)
                printf("removed image %s (%s)\n", answer->id, cli_format_size(answer->size, size));
        else
                printf("kept image %s, which has other names\n", answer->id);
        (void) fflush(stdout);
}

static int remove_one(const struct cli_rmi_settings *settings, char *image) {
        Nodens__V1__RemoveImageRequest request = NODENS__V1__REMOVE_IMAGE_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        ProtobufCMessage *answer = nullptr;

        request.image = image;
        request.force = settings->force;
        error = cli_client_call_within(settings->socket, "/nodens.v1.Node/RemoveImage", &request.base,
                                       &nodens__v1__remove_image_answer__descriptor, remove_timeout_us, &answer);
        if (nd_error_code(error) == ND_NOT_FOUND && settings->force)
                return 0;
        if (error)
                return cli_sanitize_print_error("rmi", error);
        print_removed((const Nodens__V1__RemoveImageAnswer *) answer);
        nd_protobuf_free(answer);
        return 0;
}

/* A container may be created meanwhile: the daemon checks again. */
static int remove_unused(const struct cli_rmi_settings *settings) {
        Nodens__V1__ImagesRequest request = NODENS__V1__IMAGES_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        const Nodens__V1__ImagesAnswer *images;
        ProtobufCMessage *answer = nullptr;
        size_t number = 0;
        int code = 0;

        error = cli_client_call(settings->socket, "/nodens.v1.Node/Images", &request.base,
                                &nodens__v1__images_answer__descriptor, &answer);
        if (error)
                return cli_sanitize_print_error("rmi", error);
        images = (const Nodens__V1__ImagesAnswer *) answer;
        for (size_t i = 0; i < images->n_images; i++) {
                if (images->images[i]->containers > 0 || images->images[i]->pinned)
                        continue;
                number++;
                code |= remove_one(settings, images->images[i]->id);
        }
        if (number == 0)
                fputs("no unused images\n", stderr);
        nd_protobuf_free(answer);
        return code;
}

int cli_rmi_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_rmi_settings *settings = settings_pointer;
        int code = 0;

        if ((operand_count > 0) == settings->unused) {
                fputs("nodens rmi: specify images as 'nodens images' lists them, or --unused\n", stderr);
                return ND_EXIT_USAGE;
        }
        if (settings->unused && settings->force) {
                fputs("nodens rmi: --force cannot be combined with --unused\n", stderr);
                return ND_EXIT_USAGE;
        }
        if (settings->unused)
                return remove_unused(settings);
        for (int i = 0; i < operand_count; i++)
                code |= remove_one(settings, operands[i]);
        return code;
}
