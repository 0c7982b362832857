/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <sys/wait.h>

#include <unit/scratch.h>

#include "base/option.h"
#include "base/text.h"

/* Texts that every format has to escape. */
#define NASTY "it's [a] \"b\" $c `d` \\e *f* _g_"

static const struct nd_option options[] = {
        {.name = "json", .kind = ND_OPTION_FLAG, .help = "print JSON"},
        {.name = "dir",
         .letter = 'd',
         .kind = ND_OPTION_TEXT,
         .argument = "PATH",
         .values = ND_VALUES_DIRECTORY,
         .help = NASTY},
        {.name = "file", .kind = ND_OPTION_TEXT, .argument = "FILE", .values = ND_VALUES_FILE, .help = "read it"},
        {.name = "pods", .letter = 'p', .kind = ND_OPTION_U32, .argument = "N", .help = "how many"},
        {},
};
static const struct nd_option_command commands[] = {
        {.name = "check", .summary = NASTY, .options = options},
        {.name = "read", .summary = "read files", .operands = "[FILE...]", .options = options},
        {.name = "bare", .summary = "nothing"},
        {},
};
static const struct nd_option_program program = {.name = "prog", .summary = "a program", .commands = commands};

static char *printed(void (*print)(const struct nd_option_program *program, FILE *to)) {
        char *text = nullptr;
        size_t length;
        FILE *to = open_memstream(&text, &length);

        assert_non_null(to);
        print(&program, to);
        (void) fclose(to);
        return text;
}

static char *printed_command(void (*print)(const struct nd_option_program *program, const struct nd_option_command *command,
                                           FILE *to),
                             const struct nd_option_command *command) {
        char *text = nullptr;
        size_t length;
        FILE *to = open_memstream(&text, &length);

        assert_non_null(to);
        print(&program, command, to);
        (void) fclose(to);
        return text;
}

static void the_program_s_help_lists_its_commands([[maybe_unused]] void **state) {
        nd_autofree char *text = printed(nd_option_usage_program);

        expect_contains(text, "Usage: prog COMMAND [OPTION...]\n");
        expect_contains(text, "  read       read files\n");
        expect_contains(text, "  bare       nothing\n");
}

static void a_command_s_help_lists_its_options_and_help_itself([[maybe_unused]] void **state) {
        expect_text(printed_command(nd_option_usage_command, &commands[1]),
                    "prog read - read files\n\n"
                    "Usage: prog read [OPTION...] [FILE...]\n\n"
                    "Options:\n"
                    "      --json                   print JSON\n"
                    "  -d, --dir PATH               " NASTY "\n"
                    "      --file FILE              read it\n"
                    "  -p, --pods N                 how many\n"
                    "  -h, --help                   print this help\n");
        expect_text(printed_command(nd_option_usage_command, &commands[2]),
                    "prog bare - nothing\n\n"
                    "Usage: prog bare [OPTION...]\n\n"
                    "Options:\n"
                    "  -h, --help                   print this help\n");
}

static void man_page_sections_escape_what_scdoc_would_take_for_markup([[maybe_unused]] void **state) {
        nd_autofree char *text = printed_command(nd_option_usage_scdoc, &commands[1]);

        expect_contains(text, "*prog read* [_OPTION_...] \\[FILE...\\]\n");
        expect_contains(text, "*-d*, *--dir* _PATH_\n\tit's \\[a\\] \"b\" $c `d` \\\\e \\*f\\* \\_g\\_.\n");
        expect_contains(text, "*-h*, *--help*\n\tprint this help.\n");
}

/* Runs a shell on a file and captures its output; returns the exit status, or -1 if the shell is
 * not installed. */
static int shell(const char *const *argv, char **ret_output) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 16);
        char piece[4096];
        int fds[2], status;
        ssize_t n;
        pid_t pid;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) dup2(fds[1], STDOUT_FILENO);
                (void) dup2(fds[1], STDERR_FILENO);
                (void) execvp(argv[0], (char *const *) argv);
                _exit(127);
        }
        (void) close(fds[1]);
        while ((n = read(fds[0], piece, sizeof piece)) > 0)
                nd_text_append(&text, piece, (size_t) n);
        (void) close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        *ret_output = nd_text_steal(&text);
        return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}

/* Whether the shell accepts the script; `-n` parses it without running it. -1 if the shell is not
 * installed. */
static int shell_complaints(const char *name, void (*print)(const struct nd_option_program *program, FILE *to)) {
        scratch_directory directory = scratch_make();
        nd_autofree char *script = printed(print), *path = nd_format("%s/completion", directory), *output = nullptr;
        int code;

        scratch_text(directory, "completion", script);
        code = shell((const char *const[]) {name, "-n", path, nullptr}, &output);
        if (code >= 0)
                assert_string_equal(output, "");
        return code;
}

static void shell_reads(const char *name, void (*print)(const struct nd_option_program *program, FILE *to)) {
        int code = shell_complaints(name, print);

        if (code < 0)
                skip_because("there is no %s here", name);
        assert_int_equal(code, 0);
}

static void bash_takes_the_completion([[maybe_unused]] void **state) {
        shell_reads("bash", nd_option_usage_bash);
}

static void zsh_takes_the_completion([[maybe_unused]] void **state) {
        shell_reads("zsh", nd_option_usage_zsh);
}

static void fish_takes_the_completion([[maybe_unused]] void **state) {
        shell_reads("fish", nd_option_usage_fish);
}

/* bash's completions of these words, one per line. */
static char *bash_offers(const char *words, int position) {
        scratch_directory directory = scratch_make();
        nd_autofree char *script = printed(nd_option_usage_bash), *command = nullptr;
        char *output;

        scratch_text(directory, "completion", script);
        command = nd_format("cd %s && . ./completion && mkdir -p sub && COMP_WORDS=(%s) COMP_CWORD=%d && _prog && "
                            "[ ${#COMPREPLY[@]} -eq 0 ] || printf '%%s\\n' \"${COMPREPLY[@]}\"",
                            directory, words, position);
        if (shell((const char *const[]) {"bash", "-c", command, nullptr}, &output) < 0) {
                free(output);
                return nullptr;
        }
        return output;
}

static void bash_offers_commands_options_and_directories([[maybe_unused]] void **state) {
        nd_autofree char *first = bash_offers("prog c", 1);

        if (!first)
                skip_because("there is no bash here");
        assert_string_equal(first, "check\n");
        expect_text(bash_offers("prog check --j", 2), "--json\n");
        expect_text(bash_offers("prog check --dir s", 3), "sub\n");
        expect_text(bash_offers("prog check -d s", 3), "sub\n");
        expect_text(bash_offers("prog read --file c", 3), "completion\n");
        expect_text(bash_offers("prog check --pods ''", 3), "");
        expect_text(bash_offers("prog bare -", 2), "--help\n");
}

static void completions_have_every_command_and_option([[maybe_unused]] void **state) {
        nd_autofree char *zsh = printed(nd_option_usage_zsh), *fish = printed(nd_option_usage_fish);

        expect_contains(zsh, "#compdef prog\n");
        expect_contains(zsh, "'--dir[it'\\''s \\[a\\] ");
        expect_contains(zsh, ":PATH:_files -/'");
        expect_contains(fish, "complete -c prog -n __fish_use_subcommand -a check -d 'it\\'s [a] \"b\" $c `d` \\\\e ");
        expect_contains(fish, "-l dir -r -F -d ");
        expect_contains(fish, "-l pods -r -d ");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_program_s_help_lists_its_commands),
                cmocka_unit_test(a_command_s_help_lists_its_options_and_help_itself),
                cmocka_unit_test(man_page_sections_escape_what_scdoc_would_take_for_markup),
                cmocka_unit_test(bash_takes_the_completion),
                cmocka_unit_test(zsh_takes_the_completion),
                cmocka_unit_test(fish_takes_the_completion),
                cmocka_unit_test(bash_offers_commands_options_and_directories),
                cmocka_unit_test(completions_have_every_command_and_option),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
