/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-option.c - a command line, one word per line: every word becomes an option, a value or an
 * operand, or is refused */
#include <string.h>

#include <unit/fuzz.h>

#include "base/option.h"
#include "base/text.h"

struct settings {
        bool flag;
        bool other;
        const char *text;
        uint32_t number;
};

static const struct nd_option options[] = {
        {.name = "flag", .letter = 'f', .offset = offsetof(struct settings, flag), .help = "a flag"},
        {.name = "flag-two", .offset = offsetof(struct settings, other), .help = "another"},
        {.name = "text",
         .letter = 't',
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct settings, text),
         .argument = "T",
         .help = "text"},
        {.name = "number",
         .letter = 'n',
         .kind = ND_OPTION_U32,
         .offset = offsetof(struct settings, number),
         .argument = "N",
         .help = "number"},
        {},
};
static const struct nd_option_command with = {.name = "c", .operands = "[X...]", .options = options},
                                      without = {.name = "c", .options = options};

enum { WORDS = 64 };

static int split(char *text, char **argv) {
        int argc = 1;

        argv[0] = (char *) "c";
        for (char *word = text; word && argc < WORDS; argc++) {
                char *end = strchr(word, '\n');

                if (end)
                        *end++ = '\0';
                argv[argc] = word;
                word = end;
        }
        argv[argc] = nullptr;
        return argc;
}

static bool within(const char *pointer, const char *text, size_t size) {
        return pointer >= text && pointer <= text + size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size);
        size_t length = strlen(text);
        char *argv[WORDS + 1], *before[WORDS + 1];
        nd_autoerror struct nd_error *error = nullptr, *stricter = nullptr;
        struct settings settings = {}, again = {};
        enum nd_option_parsed parsed = ND_PARSED_HELP, parsed_again;
        int argc = split(text, argv), operands = -1, none;

        memcpy(before, argv, sizeof argv[0] * (size_t) (argc + 1));
        error = nd_option_parse(&with, argc, argv, &settings, &operands, &parsed);
        fuzz_require(!error || nd_error_code(error) == ND_INVALID);
        if (error || parsed == ND_PARSED_HELP)
                return 0;
        fuzz_require(operands >= 0 && operands < argc);
        fuzz_require(!settings.text || within(settings.text, text, length));
        for (int i = 1; i <= operands; i++) {
                bool found = false;

                for (int j = 1; j < argc; j++)
                        found |= argv[i] == before[j];
                fuzz_require(found);
        }

        /* A command without operands refuses exactly those lines that have one. */
        stricter = nd_option_parse(&without, argc, before, &again, &none, &parsed_again);
        fuzz_require((stricter != nullptr) == (operands > 0));
        if (!stricter)
                fuzz_require(settings.flag == again.flag && settings.other == again.other && settings.text == again.text &&
                             settings.number == again.number);
        return 0;
}
