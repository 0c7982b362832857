/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check.h"
#include "cli/commands.h"
#include "cli/ids.h"
#include "cli/images.h"
#include "cli/inspect.h"
#include "cli/lint.h"
#include "cli/pods.h"

static const struct nd_command commands[] = {
        {.name = "check",
         .summary = "tell whether this node can run pods with user namespaces, and what to do if not",
         .options = check_options,
         .settings_size = sizeof(struct check_settings),
         .run = check_run},
        {.name = "ids",
         .summary = "show which pod holds which IDs",
         .options = ids_options,
         .settings_size = sizeof(struct ids_settings),
         .run = ids_run},
        {.name = "pods",
         .summary = "list the pods that nodens-cri runs",
         .options = pods_options,
         .settings_size = sizeof(struct pods_settings),
         .run = pods_run},
        {.name = "inspect",
         .summary = "show a pod's IDs, namespaces and mounts, and whether they are what was promised",
         .operands = "POD",
         .options = inspect_options,
         .settings_size = sizeof(struct inspect_settings),
         .run = inspect_run},
        {.name = "lint",
         .summary = "tell which pod security level manifests meet, with and without a user namespace, and what would help",
         .operands = "FILE...",
         .options = lint_options,
         .settings_size = sizeof(struct lint_settings),
         .run = lint_run},
        {.name = "images",
         .summary = "list the images that nodens-cri has",
         .options = images_options,
         .settings_size = sizeof(struct images_settings),
         .run = images_run},
        {.name = "pull",
         .summary = "pull an image",
         .operands = "IMAGE",
         .options = pull_options,
         .settings_size = sizeof(struct pull_settings),
         .run = pull_run},
        {.name = "import",
         .summary = "take images from an OCI archive",
         .operands = "FILE",
         .options = import_options,
         .settings_size = sizeof(struct pull_settings),
         .run = import_run},
        {},
};

const struct nd_program nodens_program = {
        .name = "nodens",
        .summary = "pods without host root: checks and views of a node",
        .commands = commands,
};
