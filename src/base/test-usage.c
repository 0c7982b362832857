/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <string.h>
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
        {.name = "level",
         .kind = ND_OPTION_TEXT,
         .argument = "LEVEL",
         .values = ND_VALUES_WORDS,
         .words = "low high",
         .help = "which"},
        {},
};
static const struct nd_option_command commands[] = {
        {.name = "check", .summary = NASTY, .options = options},
        {.name = "read",
         .summary = "read files",
         .operands = "[FILE...]",
         .operand_values = ND_VALUES_FILE,
         .options = options},
        {.name = "bare", .summary = "nothing"},
        {.name = "show",
         .summary = "show one",
         .operands = "NAME [WORD...]",
         .operand_values = ND_VALUES_ASK,
         .operand_words = "names",
         .operand_last = 1,
         .options = options},
        {.name = "complete", .summary = "names", .operands = "KIND", .hidden = true},
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
        assert_null(strstr(text, "  complete "));
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
                    "      --level LEVEL            which\n"
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

/* bash's completions at the end of a line, one per line. The program prints these names; options
 * for the shell itself are shown as it would get them. */
static char *bash_offers(const char *line, const char *names) {
        scratch_directory directory = scratch_make();
        nd_autofree char *script = printed(nd_option_usage_bash), *command = nullptr;
        char *output;

        scratch_text(directory, "completion", script);
        scratch_text(directory, "names", names);
        command = nd_format("cd %s && . ./completion && compopt() { echo \"compopt $*\"; }; "
                            "prog() { [ \"$1 $2\" = 'complete names' ] && cat names; }; "
                            "COMP_LINE='%s' COMP_POINT=%zu && _prog; "
                            "[ ${#COMPREPLY[@]} -eq 0 ] || printf '%%s\\n' \"${COMPREPLY[@]}\"",
                            directory, line, strlen(line));
        if (shell((const char *const[]) {"bash", "-c", command, nullptr}, &output) < 0) {
                free(output);
                return nullptr;
        }
        return output;
}

static void bash_offers_commands_options_and_values([[maybe_unused]] void **state) {
        nd_autofree char *first = bash_offers("prog c", "");

        if (!first)
                skip_because("bash is not installed");
        assert_string_equal(first, "check\n");
        expect_text(bash_offers("prog ", ""), "check\nread\nbare\nshow\nhelp\n--help\n--version\n");
        expect_text(bash_offers("prog help b", ""), "bare\n");
        expect_text(bash_offers("prog check --j", ""), "--json\n");
        expect_text(bash_offers("prog check --dir s", ""), "compopt -o dirnames -o filenames\n");
        expect_text(bash_offers("prog check -d s", ""), "compopt -o dirnames -o filenames\n");
        expect_text(bash_offers("prog read --file c", ""), "compopt -o default\n");
        expect_text(bash_offers("prog read --file=c", ""), "compopt -o default\n");
        expect_text(bash_offers("prog read x --json c", ""), "compopt -o default\n");
        expect_text(bash_offers("prog check --pods ", ""), "");
        expect_text(bash_offers("prog check --level ", ""), "low\nhigh\n");
        expect_text(bash_offers("prog check --level=h", ""), "high\n");
        expect_text(bash_offers("prog bare ", ""), "--help\n");
        expect_text(bash_offers("prog bare -", ""), "--help\n");
}

static void bash_asks_the_program_for_names_of_one_operand([[maybe_unused]] void **state) {
        static const char names[] = "default/web\ntest/web\nreg:5000/a:1.0\nreg:5000/a:1.1\n";
        nd_autofree char *first = bash_offers("prog show ", names);

        if (!first)
                skip_because("bash is not installed");
        assert_string_equal(first, names);
        expect_text(bash_offers("prog show d", names), "default/web\n");
        expect_text(bash_offers("prog show --dir /x -p 3 --json t", names), "test/web\n");
        expect_text(bash_offers("prog show default/web t", names), "");
        /* the line has the part up to the last colon already */
        expect_text(bash_offers("prog show reg:5000/a:1", names), "1.0\n1.1\n");
}

static void bash_never_runs_a_name([[maybe_unused]] void **state) {
        static const char names[] = "$(touch ran)\n`touch ran`\n$HOME\nx;touch ran\n*\n";
        nd_autofree char *all = bash_offers("prog show ", names);

        if (!all)
                skip_because("bash is not installed");
        assert_string_equal(all, names);
}

static void completions_have_every_command_and_option([[maybe_unused]] void **state) {
        nd_autofree char *zsh = printed(nd_option_usage_zsh), *fish = printed(nd_option_usage_fish);

        expect_contains(zsh, "#compdef prog\n");
        expect_contains(zsh, "'--dir[it'\\''s \\[a\\] ");
        expect_contains(zsh, ":PATH:_files -/'");
        expect_contains(fish, "complete -c prog -n __fish_use_subcommand -a check -d 'it\\'s [a] \"b\" $c `d` \\\\e ");
        expect_contains(fish, "-l dir -r -F -d ");
        expect_contains(fish, "-l pods -r -d ");
        expect_contains(fish, "-l level -r -a 'low high' -d ");
        expect_contains(fish, "-n '__fish_seen_subcommand_from show' -a '(prog complete names -- ");
        expect_contains(zsh, "'1:operand:_prog_ask names' ;;\n");
        expect_contains(zsh, ":LEVEL:(low high)'");
        assert_null(strstr(zsh, "'complete:"));
        assert_null(strstr(fish, "-a complete "));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_program_s_help_lists_its_commands),
                cmocka_unit_test(a_command_s_help_lists_its_options_and_help_itself),
                cmocka_unit_test(man_page_sections_escape_what_scdoc_would_take_for_markup),
                cmocka_unit_test(bash_takes_the_completion),
                cmocka_unit_test(zsh_takes_the_completion),
                cmocka_unit_test(fish_takes_the_completion),
                cmocka_unit_test(bash_offers_commands_options_and_values),
                cmocka_unit_test(bash_asks_the_program_for_names_of_one_operand),
                cmocka_unit_test(bash_never_runs_a_name),
                cmocka_unit_test(completions_have_every_command_and_option),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
