/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/export.h"

#include <stdio.h>

#include "base/log.h"
#include "guard/core/config.h"
#include "guard/install/policy-export.h"
#include "guard/install/yaml-out.h"

enum {
        OUTPUT_BYTES = 4 << 20,
};

const struct nd_option guard_export_options[] = {
        {.name = "config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_export_command, config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "configuration: source of group and userNamespacesHostNetwork"},
        {.name = "namespace",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_export_command, namespace),
         .argument = "NAME",
         .help = "namespace that policies leave out besides kube-system (default nodens-system)"},
        {.name = "json",
         .offset = offsetof(struct guard_export_command, json),
         .help = "print JSON documents instead of YAML"},
        {},
};

static struct nd_error *part_of(const char *name, enum guard_export_part *ret) {
        for (enum guard_export_part part = 0; part < GUARD_EXPORT_PARTS; part++)
                if (nd_streq(name, guard_export_part_names[part])) {
                        *ret = part;
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "unknown part '%s'; use " GUARD_EXPORT_WORDS, name);
}

static struct nd_error *check_usage(int count, char **names) {
        enum guard_export_part part = GUARD_EXPORT_PARTS;

        if (count == 0)
                return nd_error_new(ND_INVALID, 0, "no part given; use " GUARD_EXPORT_WORDS);
        for (int i = 0; i < count; i++)
                nd_try(part_of(names[i], &part));
        return nullptr;
}

static struct nd_error *print_policies(const struct guard_export_command *command, int count, char **names) {
        nd_autotext struct nd_text json = ND_TEXT(OUTPUT_BYTES), yaml = ND_TEXT(OUTPUT_BYTES);
        nd_cleanup(guard_config_done) struct guard_config config = {};
        enum guard_export_part part = GUARD_EXPORT_PARTS;

        nd_try(guard_config_read(GUARD_ROLE_ADMISSION, command->config, &config));
        for (int i = 0; i < count; i++) {
                nd_try(part_of(names[i], &part));
                guard_export_write(part,
                                   &(struct guard_export_settings) {.group = config.group,
                                                                    .namespace = command->namespace ? command->namespace
                                                                                                    : "nodens-system",
                                                                    .host_network = config.host_network},
                                   &json);
        }
        if (!command->json)
                guard_yaml_out_write(nd_text_get(&json), &yaml);
        (void) fputs(nd_text_get(command->json ? &json : &yaml), stdout);
        if (fflush(stdout) != 0 || ferror(stdout))
                return nd_error_new(ND_INTERNAL, errno, "write to standard output");
        return nullptr;
}

int guard_export_run(void *settings, int operand_count, char **operands) {
        nd_autoerror struct nd_error *usage = check_usage(operand_count, operands), *error = nullptr;

        if (usage) {
                nd_log(ND_LOG_ERROR, nd_error_text(usage));
                return ND_EXIT_USAGE;
        }
        error = print_policies(settings, operand_count, operands);
        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
