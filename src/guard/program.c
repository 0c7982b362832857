/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/program.h"

#include "guard/certificate.h"
#include "guard/manifest.h"
#include "guard/serve.h"

static const struct nd_option_command commands[] = {
        {.name = "serve",
         .summary = "answer the API server's admission reviews",
         .operands = "[FILE]",
         .options = guard_serve_options,
         .settings_size = sizeof(struct guard_serve_settings),
         .run = guard_serve_run},
        {.name = "manifest",
         .summary = "print the objects that the cluster needs, for `kubectl apply -f -`",
         .operands = GUARD_MANIFEST_PARTS " ...",
         .operand_values = ND_VALUES_WORDS,
         .operand_words = "crd constraints rbac webhooks deployment network admission kubeconfig guard-kubeconfig",
         .options = guard_manifest_options,
         .settings_size = sizeof(struct guard_manifest_settings),
         .run = guard_manifest_run},
        {.name = "certificate",
         .summary = "make or renew the guard's certificate, signed by an authority of its own",
         .options = guard_certificate_options,
         .settings_size = sizeof(struct guard_certificate_settings),
         .run = guard_certificate_run},
        {},
};

const struct nd_option_program guard_program = {
        .name = "nodens-guard",
        .summary = "admission by security context constraints and pod security, for any Kubernetes",
        .commands = commands};
