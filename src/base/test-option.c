/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <sys/mman.h>

#include "base/option.h"

struct settings {
        bool json;
        const char *dir;
        uint32_t pods;
};

static const struct nd_option options[] = {
        {.name = "json",
         .letter = 'j',
         .kind = ND_OPTION_FLAG,
         .offset = offsetof(struct settings, json),
         .help = "for machines"},
        {.name = "dir",
         .letter = 'd',
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct settings, dir),
         .argument = "PATH",
         .values = ND_VALUES_DIRECTORY,
         .help = "look there"},
        {.name = "pods",
         .letter = 'p',
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct settings, pods),
         .argument = "N",
         .help = "how many"},
        {},
};

static int runs; /* how often a command ran */
static struct settings ran_with;
static char ran_operands[100];

static int run(void *settings, int operand_count, char **operands) {
        runs++;
        ran_with = *(struct settings *) settings;
        ran_operands[0] = '\0';
        for (int i = 0; i < operand_count; i++)
                (void) strncat(strncat(ran_operands, operands[i], 20), ";", 2);
        return 3;
}

static const struct nd_option_command commands[] = {
        {.name = "look", .summary = "look", .options = options, .settings_size = sizeof(struct settings), .run = run},
        {.name = "read",
         .summary = "read files",
         .operands = "[FILE...]",
         .options = options,
         .settings_size = sizeof(struct settings),
         .run = run},
        {.name = "wrap",
         .summary = "runs a command",
         .operands = "X COMMAND...",
         .verbatim_from = 2,
         .options = options,
         .settings_size = sizeof(struct settings),
         .run = run},
        {.name = "bare", .summary = "no options", .settings_size = 0, .run = run},
        {},
};
static const struct nd_option_program program = {.name = "prog", .summary = "a program", .commands = commands};

enum { WORDS = 10 };

static struct nd_error *parse(const struct nd_option_command *command, const char *const *words, struct settings *settings,
                              int *ret_operands, char **argv) {
        enum nd_option_parsed parsed;
        int argc = 1;

        argv[0] = (char *) command->name;
        for (; words[argc - 1]; argc++)
                argv[argc] = (char *) words[argc - 1];
        argv[argc] = nullptr;
        *settings = (struct settings) {};
        return nd_option_parse(command, argc, argv, settings, ret_operands, &parsed);
}

static void options_are_taken_in_every_spelling([[maybe_unused]] void **state) {
        static const char *const spellings[][WORDS] = {{"--dir", "/x", "--pods", "5", "--json"},
                                                       {"--dir=/x", "--pods=5", "--json"},
                                                       {"-d", "/x", "-p5", "--json"},
                                                       {"-d/x", "-p", "5", "--json"},
                                                       {"--json", "-d=/x", "-p=5"},
                                                       {"-jp5", "-jd", "/x"}};
        struct settings settings;
        char *argv[WORDS + 2];
        int operands;

        for (size_t i = 0; i < nd_count_of(spellings); i++) {
                expect_ok(parse(&commands[0], spellings[i], &settings, &operands, argv));
                assert_true(settings.json);
                assert_string_equal(settings.dir, "/x");
                assert_int_equal(settings.pods, 5);
                assert_int_equal(operands, 0);
        }
}

static void operands_are_gathered_in_front_and_may_stand_between_options([[maybe_unused]] void **state) {
        static const char *const words[] = {"a", "--json", "b", "-", "--", "--dir", "-h", nullptr};
        struct settings settings;
        char *argv[WORDS + 2];
        int operands;

        expect_ok(parse(&commands[1], words, &settings, &operands, argv));
        assert_int_equal(operands, 5);
        assert_string_equal(argv[1], "a");
        assert_string_equal(argv[2], "b");
        assert_string_equal(argv[3], "-");
        assert_string_equal(argv[4], "--dir");
        assert_string_equal(argv[5], "-h");
        assert_true(settings.json);
        assert_null(settings.dir);
}

static void the_command_line_of_another_program_is_left_alone([[maybe_unused]] void **state) {
        static const char *const words[][WORDS] = {{"x", "--json", "ls", "-d", "--help", "--"},
                                                   {"--json", "x", "--", "ls", "-d", "--help", "--"}};
        struct settings settings;
        char *argv[WORDS + 2];
        int operands;

        for (size_t i = 0; i < nd_count_of(words); i++) {
                expect_ok(parse(&commands[2], words[i], &settings, &operands, argv));
                assert_true(settings.json);
                assert_null(settings.dir);
                assert_int_equal(operands, 5);
                assert_string_equal(argv[2], "ls");
                assert_string_equal(argv[3], "-d");
                assert_string_equal(argv[5], "--");
        }
}

static void the_last_of_several_counts_and_a_value_may_look_like_an_option([[maybe_unused]] void **state) {
        static const char *const words[] = {"--dir", "/a", "--dir", "--json", nullptr};
        struct settings settings;
        char *argv[WORDS + 2];
        int operands;

        expect_ok(parse(&commands[0], words, &settings, &operands, argv));
        assert_string_equal(settings.dir, "--json");
        assert_false(settings.json);
}

static void an_invalid_command_line_is_refused_with_the_reason([[maybe_unused]] void **state) {
        static const struct {
                const char *words[WORDS];
                const char *error;
        } cases[] = {
                {{"--nope"}, "unknown option '--nope'"},
                {{"-x"}, "unknown option '-x'"},
                {{"--=x"}, "unknown option '--=x'"},
                {{"--di", "/x"}, "unknown option '--di'"},
                {{"--dir"}, "--dir needs a value (PATH)"},
                {{"-p"}, "--pods needs a value (N)"},
                {{"--json=1"}, "--json takes no value"},
                {{"-jx"}, "unknown option '-jx'"},
                {{"-j=1"}, "unknown option '-j=1'"},
                {{"--pods", "-1"}, "--pods needs a number from 0 to 4294967295, not '-1'"},
                {{"--pods=4294967296"}, "--pods needs a number from 0 to 4294967295, not '4294967296'"},
                {{"--pods="}, "--pods needs a number from 0 to 4294967295, not ''"},
                {{"word"}, "unexpected argument 'word'"},
                {{"--", "--json"}, "unexpected argument '--json'"},
        };
        struct settings settings;
        char *argv[WORDS + 2];
        int operands;

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_error_text(parse(&commands[0], cases[i].words, &settings, &operands, argv), cases[i].error);
}

static void help_wins_at_any_position([[maybe_unused]] void **state) {
        char *argv[] = {(char *) "look", (char *) "--json", (char *) "--help", (char *) "--nope", nullptr};
        struct settings settings = {};
        enum nd_option_parsed parsed;
        int operands;

        expect_ok(nd_option_parse(&commands[0], 4, argv, &settings, &operands, &parsed));
        assert_int_equal(parsed, ND_PARSED_HELP);
        argv[2] = (char *) "-h";
        expect_ok(nd_option_parse(&commands[0], 3, argv, &settings, &operands, &parsed));
        assert_int_equal(parsed, ND_PARSED_HELP);
}

/* Runs the program with its standard output and error in memory; returns both as one text. */
static char *ran(int *ret_code, const char *const *words) {
        int memory = memfd_create("output", MFD_CLOEXEC), out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
        char *argv[WORDS + 2] = {(char *) "prog"}, text[4096];
        int argc = 1;
        ssize_t n;

        for (; words[argc - 1]; argc++)
                argv[argc] = (char *) words[argc - 1];
        (void) fflush(stdout);
        (void) dup2(memory, STDOUT_FILENO);
        (void) dup2(memory, STDERR_FILENO);
        *ret_code = nd_option_run(&program, argc, argv);
        (void) fflush(stdout);
        (void) dup2(out, STDOUT_FILENO);
        (void) dup2(error, STDERR_FILENO);
        n = pread(memory, text, sizeof text, 0);
        (void) close(memory);
        (void) close(out);
        (void) close(error);
        return nd_strndup(text, n > 0 ? (size_t) n : 0);
}

#define ran_with_words(ret_code, ...) ran((ret_code), (const char *const[]) {__VA_ARGS__ __VA_OPT__(, ) nullptr})

static void the_command_runs_with_its_settings_and_operands([[maybe_unused]] void **state) {
        int code;

        runs = 0;
        expect_text(ran_with_words(&code, "read", "x", "--pods", "7", "y"), "");
        assert_int_equal(code, 3);
        assert_int_equal(runs, 1);
        assert_int_equal(ran_with.pods, 7);
        assert_false(ran_with.json);
        assert_string_equal(ran_operands, "x;y;");
}

static void a_number_below_its_least_is_refused([[maybe_unused]] void **state) {
        static const struct nd_option interval[] = {{.name = "interval",
                                                     .kind = ND_OPTION_U32,
                                                     .offset = offsetof(struct settings, pods),
                                                     .argument = "SECONDS",
                                                     .least = 1,
                                                     .help = "how often"},
                                                    {}};
        static const struct nd_option_command command = {
                .name = "look", .options = interval, .settings_size = sizeof(struct settings), .run = run};
        struct settings settings = {.pods = 7};
        enum nd_option_parsed parsed;
        int operands;

        expect_error(nd_option_parse(&command, 2, (char *[]) {(char *) "look", (char *) "--interval=0", nullptr}, &settings,
                                     &operands, &parsed),
                     ND_INVALID, "--interval needs a number from 1 to 4294967295, not '0'");
        assert_int_equal(settings.pods, 7);
        expect_ok(nd_option_parse(&command, 2, (char *[]) {(char *) "look", (char *) "--interval=1", nullptr}, &settings,
                                  &operands, &parsed));
        assert_int_equal(settings.pods, 1);
}

static void mistakes_end_with_64_and_point_to_the_help([[maybe_unused]] void **state) {
        int code;

        runs = 0;
        expect_text(ran_with_words(&code, "nope"), "prog: unknown command 'nope'\nTry 'prog --help'.\n");
        assert_int_equal(code, ND_EXIT_USAGE);
        expect_text(ran_with_words(&code, "look", "--nope"), "prog look: unknown option '--nope'\nTry 'prog look --help'.\n");
        assert_int_equal(code, ND_EXIT_USAGE);
        expect_text(ran_with_words(&code, "bare", "--json"), "prog bare: unknown option '--json'\nTry 'prog bare --help'.\n");
        assert_int_equal(code, ND_EXIT_USAGE);
        assert_int_equal(runs, 0);
}

static void help_and_version_succeed_but_a_missing_command_fails([[maybe_unused]] void **state) {
        static const char *const ways[] = {"--help", "-h", "help"};
        nd_autofree char *without = nullptr, *version = nullptr, *command = nullptr;
        int code;

        for (size_t i = 0; i < nd_count_of(ways); i++) {
                nd_autofree char *text = ran_with_words(&code, ways[i]);

                assert_int_equal(code, EXIT_SUCCESS);
                expect_contains(text, "prog - a program");
        }
        without = ran_with_words(&code);
        assert_int_equal(code, ND_EXIT_USAGE);
        expect_contains(without, "prog COMMAND");
        version = ran_with_words(&code, "--version");
        assert_int_equal(code, EXIT_SUCCESS);
        assert_string_equal(version, "prog " ND_VERSION "\n");
        command = ran_with_words(&code, "look", "--help");
        assert_int_equal(code, EXIT_SUCCESS);
        expect_contains(command, "-d, --dir PATH");
}

static void help_names_a_command_as_its_option_does([[maybe_unused]] void **state) {
        nd_autofree char *by_option = nullptr, *by_help = nullptr, *unknown = nullptr, *many = nullptr;
        int code;

        runs = 0;
        by_option = ran_with_words(&code, "look", "--help");
        by_help = ran_with_words(&code, "help", "look");
        assert_int_equal(code, EXIT_SUCCESS);
        assert_string_equal(by_help, by_option);
        unknown = ran_with_words(&code, "help", "nope");
        assert_int_equal(code, ND_EXIT_USAGE);
        assert_string_equal(unknown, "prog: unknown command 'nope'\nTry 'prog --help'.\n");
        many = ran_with_words(&code, "help", "look", "read");
        assert_int_equal(code, ND_EXIT_USAGE);
        expect_contains(many, "'help' takes one command");
        assert_int_equal(runs, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(options_are_taken_in_every_spelling),
                cmocka_unit_test(operands_are_gathered_in_front_and_may_stand_between_options),
                cmocka_unit_test(the_command_line_of_another_program_is_left_alone),
                cmocka_unit_test(the_last_of_several_counts_and_a_value_may_look_like_an_option),
                cmocka_unit_test(an_invalid_command_line_is_refused_with_the_reason),
                cmocka_unit_test(help_wins_at_any_position),
                cmocka_unit_test(the_command_runs_with_its_settings_and_operands),
                cmocka_unit_test(a_number_below_its_least_is_refused),
                cmocka_unit_test(mistakes_end_with_64_and_point_to_the_help),
                cmocka_unit_test(help_and_version_succeed_but_a_missing_command_fails),
                cmocka_unit_test(help_names_a_command_as_its_option_does),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
