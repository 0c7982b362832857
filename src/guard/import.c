/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/import.h"

#include <stdio.h>

#include "base/log.h"
#include "guard/core/config.h"
#include "guard/install/scc-import.h"
#include "guard/install/yaml-out.h"
#include "sys/file.h"

const struct nd_option guard_import_options[] = {
        {.name = "config",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct guard_import_command, config),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "configuration: source of group"},
        {.name = "all",
         .offset = offsetof(struct guard_import_command, all),
         .help = "also constraints with the name of one of the guard's own"},
        {.name = "json",
         .offset = offsetof(struct guard_import_command, json),
         .help = "print JSON documents instead of YAML"},
        {},
};

static void on_report(size_t line, const char *text, void *userdata) {
        const char *path = userdata;

        (void) fprintf(stderr, "%s:%zu: %s\n", path, line, text);
}

static struct nd_error *import_file(struct guard_import *import, const char *path, struct nd_text *json) {
        nd_autofree char *bytes = nullptr;
        size_t length = 0;

        import->userdata = (void *) path;
        nd_try(nd_file_read_any(nd_streq(path, "-") ? "/dev/stdin" : path, GUARD_IMPORT_BYTES, &bytes, &length));
        return nd_error_wrap(guard_import_read(import, bytes, length, json), "%s", path);
}

static struct nd_error *import_files(const struct guard_import_command *command, int count, char **paths,
                                     struct guard_import *import) {
        nd_autotext struct nd_text json = ND_TEXT(2 * GUARD_IMPORT_BYTES), yaml = ND_TEXT(2 * GUARD_IMPORT_BYTES);
        nd_cleanup(guard_config_done) struct guard_config config = {};

        nd_try(guard_config_read(GUARD_ROLE_ADMISSION, command->config, &config));
        import->group = config.group;
        for (int i = 0; i < count; i++)
                nd_try(import_file(import, paths[i], &json));
        if (!command->json)
                guard_yaml_out_write(nd_text_get(&json), &yaml);
        (void) fputs(nd_text_get(command->json ? &json : &yaml), stdout);
        if (fflush(stdout) != 0 || ferror(stdout))
                return nd_error_new(ND_INTERNAL, errno, "write to standard output");
        (void) fprintf(stderr, "%zu constraints imported, %zu objects left out, %zu invalid\n", import->imported,
                       import->left_out, import->invalid);
        return nullptr;
}

int guard_import_run(void *settings, int operand_count, char **operands) {
        const struct guard_import_command *command = settings;
        struct guard_import import = {.all = command->all, .report = on_report};
        nd_autoerror struct nd_error *error = nullptr;

        if (operand_count == 0) {
                nd_log(ND_LOG_ERROR,
                       "no file given; '-' reads standard input, as in `oc get scc -o yaml | nodens-guard import -`");
                return ND_EXIT_USAGE;
        }
        error = import_files(command, operand_count, operands, &import);
        if (error)
                nd_log(ND_LOG_ERROR, nd_error_text(error));
        return error || import.invalid > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
