/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - `nodens-rootless token`: bootstrap tokens, with which other nodes join a cluster of the
 * user's own */
#include "base/strings.h"
#include "rootless/command/commands.h"
#include "rootless/components/control-plane.h"

static struct nd_error *execute(const struct rootless_settings *settings, int operand_count, char **operands) {
        nd_cleanup(rootless_config_done) struct rootless_config config = {};
        nd_cleanup(nd_strings_done) struct nd_strings words = {};
        nd_autofree char *program = rootless_program_beside(CONTROL_PLANE_PROGRAM);

        nd_try(rootless_config_resolve(settings, true, rootless_command_getenv, nullptr, &config));
        nd_strings_add(&words, CONTROL_PLANE_PROGRAM);
        nd_strings_add(&words, "token");
        nd_strings_addf(&words, "--name=%s", config.name);
        nd_strings_addf(&words, "--directory=%s/" CONTROL_PLANE_DIRECTORY, config.data);
        if (settings->ttl)
                nd_strings_addf(&words, "--ttl=%u", settings->ttl);
        for (int i = 0; i < operand_count; i++)
                nd_strings_add(&words, operands[i]);
        nd_strings_add_owned(&words, nullptr);
        (void) execv(program, words.items);
        return nd_error_new(nd_error_code_of(errno), errno, "execute '%s'", program);
}

int rootless_command_token(void *settings, int operand_count, char **operands) {
        struct rootless_settings given = *(struct rootless_settings *) settings;

        if (!given.name)
                given.name = NODE_DEFAULT_NAME;
        return rootless_command_fail(execute(&given, operand_count, operands));
}
