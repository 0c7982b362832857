/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program.h"

#include "cli/command/check.h"
#include "cli/command/exec.h"
#include "cli/command/ids.h"
#include "cli/command/images.h"
#include "cli/command/import.h"
#include "cli/command/inspect.h"
#include "cli/command/lint.h"
#include "cli/command/logs.h"
#include "cli/command/pods.h"
#include "cli/command/pull.h"
#include "cli/command/rm.h"
#include "cli/command/stats.h"
#include "cli/command/top.h"

static const struct nd_option_command commands[] = {
        {.name = "check",
         .summary = "check whether this node can run pods with user namespaces",
         .options = cli_check_options,
         .settings_size = sizeof(struct cli_check_settings),
         .run = cli_check_run},
        {.name = "ids",
         .summary = "show the ID blocks of pods",
         .options = cli_ids_options,
         .settings_size = sizeof(struct cli_ids_settings),
         .run = cli_ids_run},
        {.name = "pods",
         .summary = "list the pods of nodens-cri",
         .options = cli_pods_options,
         .settings_size = sizeof(struct cli_pods_settings),
         .run = cli_pods_run},
        {.name = "inspect",
         .summary = "show and verify a pod's IDs, namespaces and mounts",
         .operands = "POD",
         .options = cli_inspect_options,
         .settings_size = sizeof(struct cli_inspect_settings),
         .run = cli_inspect_run},
        {.name = "exec",
         .summary = "run a command in a container",
         .operands = "POD[/CONTAINER] COMMAND [ARGUMENT...]",
         .verbatim_from = 2,
         .options = cli_exec_options,
         .settings_size = sizeof(struct cli_exec_settings),
         .run = cli_exec_run},
        {.name = "logs",
         .summary = "print the log of a container",
         .operands = "POD[/CONTAINER]",
         .options = cli_logs_options,
         .settings_size = sizeof(struct cli_logs_settings),
         .run = cli_logs_run},
        {.name = "stats",
         .summary = "show resource usage of pods and containers",
         .operands = "[POD...]",
         .options = cli_stats_options,
         .settings_size = sizeof(struct cli_stats_settings),
         .run = cli_stats_run},
        {.name = "top",
         .summary = "show live CPU and memory use",
         .options = cli_top_options,
         .settings_size = sizeof(struct cli_top_settings),
         .run = cli_top_run},
        {.name = "rm",
         .summary = "stop and remove pods",
         .operands = "POD...",
         .options = cli_rm_options,
         .settings_size = sizeof(struct cli_rm_settings),
         .run = cli_rm_run},
        {.name = "lint",
         .summary = "check manifests against pod security levels and security context constraints",
         .operands = "FILE...",
         .options = cli_lint_options,
         .settings_size = sizeof(struct cli_lint_settings),
         .run = cli_lint_run},
        {.name = "images",
         .summary = "list the images of nodens-cri",
         .options = cli_images_options,
         .settings_size = sizeof(struct cli_images_settings),
         .run = cli_images_run},
        {.name = "pull",
         .summary = "pull an image",
         .operands = "IMAGE",
         .options = cli_pull_options,
         .settings_size = sizeof(struct cli_pull_settings),
         .run = cli_pull_run},
        {.name = "import",
         .summary = "import images from an OCI archive",
         .operands = "FILE",
         .options = cli_import_options,
         .settings_size = sizeof(struct cli_import_settings),
         .run = cli_import_run},
        {},
};

const struct nd_option_program cli_program = {
        .name = "nodens",
        .summary = "operate and check a node for pods without host root",
        .commands = commands,
};
