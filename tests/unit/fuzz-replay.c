/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-replay.c - a fuzzer without libFuzzer: gives it every file of the directories named, and fails when there is none
 *
 * A crash or a property that does not hold ends the process; the last line says with which input. */
#include <err.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include <unit/fuzz.h>

enum { INPUT_CEILING = 1 << 20 };

static void replay(const char *path) {
        FILE *file = fopen(path, "re");
        uint8_t *bytes = nd_malloc(INPUT_CEILING), *exact;
        size_t length;

        if (!file)
                err(EXIT_FAILURE, "open '%s'", path);
        length = fread(bytes, 1, INPUT_CEILING, file);
        if (ferror(file) || length == INPUT_CEILING)
                errx(EXIT_FAILURE, "cannot read '%s', or it is too large", path);
        (void) fclose(file);

        /* A copy of the exact size, so that AddressSanitizer sees a step past its end. */
        exact = nd_malloc(length);
        memcpy(exact, bytes, length);
        (void) printf("%s\n", path);
        (void) fflush(stdout);
        (void) LLVMFuzzerTestOneInput(exact, length);
        free(exact);
        free(bytes);
}

int main([[maybe_unused]] int argc, char **argv) {
        FTS *tree = fts_open(argv + 1, FTS_PHYSICAL | FTS_NOCHDIR, nullptr);
        const FTSENT *entry;
        size_t count = 0;

        if (!tree)
                err(EXIT_FAILURE, "read the corpus");
        while ((entry = fts_read(tree)))
                if (entry->fts_info == FTS_F) {
                        replay(entry->fts_accpath);
                        count++;
                }
        (void) fts_close(tree);
        if (count == 0)
                errx(EXIT_FAILURE, "no inputs");
        (void) printf("%zu inputs\n", count);
        return EXIT_SUCCESS;
}
