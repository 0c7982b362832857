/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/complete.h"

#include <nodens.pb-c.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/core/client.h"
#include "net/protobuf.h"

static constexpr uint64_t answer_timeout_us = ND_SECOND_US; /* a person waits at the prompt */

const struct nd_option cli_complete_options[] = {
        CLIENT_SOCKET_OPTION(cli_complete_settings),
        {},
};

static void print_name(const char *name) {
        static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./:@_-";

        if (*name && *name != '-' && name[strspn(name, harmless)] == '\0')
                puts(name);
}

static struct nd_error *print_pods(const char *socket, bool containers) {
        Nodens__V1__PodsRequest request = NODENS__V1__PODS_REQUEST__INIT;
        const Nodens__V1__PodsAnswer *answer;
        ProtobufCMessage *message = nullptr;

        nd_try(cli_client_call_within(socket, "/nodens.v1.Node/Pods", &request.base, &nodens__v1__pods_answer__descriptor,
                                      answer_timeout_us, &message));
        answer = (const Nodens__V1__PodsAnswer *) message;
        for (size_t i = 0; i < answer->n_pods; i++) {
                const Nodens__V1__PodEntry *pod = answer->pods[i];
                nd_autofree char *name = nd_format("%s/%s", pod->namespace_, pod->name);

                print_name(name);
                for (size_t c = 0; containers && pod->n_containers > 1 && c < pod->n_containers; c++) {
                        nd_autofree char *full = nd_format("%s/%s", name, pod->containers[c]->name);

                        print_name(full);
                }
        }
        nd_protobuf_free(message);
        return nullptr;
}

static struct nd_error *print_images(const char *socket) {
        Nodens__V1__ImagesRequest request = NODENS__V1__IMAGES_REQUEST__INIT;
        const Nodens__V1__ImagesAnswer *answer;
        ProtobufCMessage *message = nullptr;

        nd_try(cli_client_call_within(socket, "/nodens.v1.Node/Images", &request.base, &nodens__v1__images_answer__descriptor,
                                      answer_timeout_us, &message));
        answer = (const Nodens__V1__ImagesAnswer *) message;
        for (size_t i = 0; i < answer->n_images; i++)
                for (size_t n = 0; n < answer->images[i]->n_names; n++)
                        print_name(answer->images[i]->names[n]);
        nd_protobuf_free(message);
        return nullptr;
}

/* The socket that the line names, else our own. */
static const char *socket_of(const char *socket, int count, char **words) {
        for (int i = 0; i < count; i++) {
                if (nd_has_prefix(words[i], "--socket="))
                        return words[i] + strlen("--socket=");
                if (nd_streq(words[i], "--socket") && i + 1 < count)
                        return words[i + 1];
        }
        return socket;
}

int cli_complete_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_complete_settings *settings = settings_pointer;
        const char *kind = operand_count > 0 ? operands[0] : "";
        const char *socket = socket_of(settings->socket, operand_count - 1, operands + 1);
        nd_autoerror struct nd_error *error = nullptr;

        if (nd_streq(kind, "pods") || nd_streq(kind, "containers"))
                error = print_pods(socket, nd_streq(kind, "containers"));
        else if (nd_streq(kind, "images"))
                error = print_images(socket);
        else
                return ND_EXIT_USAGE;
        /* without a message, which would stand in the prompt */
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
