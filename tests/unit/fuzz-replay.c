/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-replay.c - runs a fuzzer without libFuzzer, with the same inputs each time
 *
 *      replay-NAME DIRECTORY [COUNT SEED [NUMBER]]
 *
 * Theory of operation
 *   First every file of the corpus is executed, in the order of the names. Then COUNT inputs are
 *   derived from the corpus and executed. Input i depends on the corpus, SEED and i only: not on
 *   coverage, time or the order of a directory. So a run gives the same result on every machine, as
 *   the gate needs it. Guided random search is libFuzzer's, in `tools/dev fuzz`.
 *
 *   A child executes the inputs. If it dies, the parent names the input; NUMBER writes that derived
 *   input to standard output instead of executing anything, so that it can be added to the
 *   corpus. */
#include <dirent.h>
#include <err.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <unit/fuzz.h>

enum {
        INPUT_CEILING = 1 << 20,
        CORPUS_CEILING = 4096, /* files */
        DERIVED_CEILING = 1 << 16,
        CHANGES = 6, /* at most, for one derived input */
};

struct input {
        char *path;
        uint8_t *bytes;
        size_t length;
};

struct corpus {
        struct input inputs[CORPUS_CEILING];
        size_t count;
};

/* The child's progress, in memory that the parent reads. */
struct progress {
        size_t done;
        bool derived; /* done counts derived inputs, not files */
};

static struct corpus corpus;

/* splitmix64: a generator of 64 bits, good for any seed. */
static uint64_t next_random(uint64_t *state) {
        uint64_t z = *state += 0x9e3779b97f4a7c15;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t bound) {
        return bound == 0 ? 0 : (size_t) (next_random(state) % bound);
}

static void load(const char *directory, const char *name) {
        struct input *input = &corpus.inputs[corpus.count];
        struct stat st;
        FILE *file;

        if (asprintf(&input->path, "%s/%s", directory, name) < 0)
                err(EXIT_FAILURE, "name an input");
        if (!(file = fopen(input->path, "re")) || fstat(fileno(file), &st) < 0)
                err(EXIT_FAILURE, "open '%s'", input->path);
        if (!S_ISREG(st.st_mode) || st.st_size >= INPUT_CEILING)
                errx(EXIT_FAILURE, "'%s' is not a file, or too large", input->path);
        input->bytes = nd_malloc((size_t) st.st_size + 1);
        input->length = fread(input->bytes, 1, (size_t) st.st_size, file);
        if (ferror(file))
                errx(EXIT_FAILURE, "read '%s'", input->path);
        (void) fclose(file);
        corpus.count++;
}

static int visible(const struct dirent *entry) {
        return entry->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_corpus(const char *directory) {
        struct dirent **names = nullptr;
        int count = scandir(directory, &names, visible, by_bytes);

        if (count <= 0 || count > CORPUS_CEILING)
                errx(EXIT_FAILURE, "'%s' has no inputs, or too many", directory);
        for (int i = 0; i < count; i++) {
                load(directory, names[i]->d_name);
                free(names[i]);
        }
        free(names);
}

/* A byte at which parsers branch: the ends of ranges, and the punctuation of the formats that we
 * read. */
static uint8_t boundary_byte(uint64_t *state) {
        static const uint8_t bytes[] = "\0\1\x7f\x80\xfe\xff \t\r\n\"'{}[]():;,./\\=+-_*&#%@!<>?0123456789aAzZ";

        return bytes[below(state, sizeof bytes - 1)];
}

/* Inserts or removes bytes at a random offset; the length stays below the ceiling. */
static size_t change_length(uint8_t *bytes, size_t length, uint64_t *state) {
        size_t at = below(state, length + 1), piece = below(state, 32) + 1;

        if (next_random(state) % 2 && length > 0) { /* remove */
                piece = piece < length - at ? piece : length - at;
                memmove(bytes + at, bytes + at + piece, length - at - piece);
                return length - piece;
        }
        if (length + piece > DERIVED_CEILING)
                return length;
        /* Insert one byte repeated, or a copy of existing bytes. */
        memmove(bytes + at + piece, bytes + at, length - at);
        if (next_random(state) % 2 || length == 0)
                memset(bytes + at, boundary_byte(state), piece);
        else
                for (size_t i = 0, from = below(state, length); i < piece; i++)
                        bytes[at + i] = bytes[(from + i) % (length + piece)];
        return length + piece;
}

/* Replaces the tail by the tail of another input. */
static size_t splice(uint8_t *bytes, size_t length, uint64_t *state) {
        const struct input *other = &corpus.inputs[below(state, corpus.count)];
        size_t at = below(state, length + 1), from = below(state, other->length + 1), tail = other->length - from;

        if (at + tail > DERIVED_CEILING)
                tail = DERIVED_CEILING - at;
        memcpy(bytes + at, other->bytes + from, tail);
        return at + tail;
}

static size_t change(uint8_t *bytes, size_t length, uint64_t *state) {
        switch (length == 0 ? 3 : next_random(state) % 6) {
        case 0:
                bytes[below(state, length)] ^= (uint8_t) (1U << below(state, 8));
                return length;
        case 1:
                bytes[below(state, length)] = boundary_byte(state);
                return length;
        case 2: /* a number of four bytes: sizes and counts of binary formats */
                for (size_t i = 0, at = below(state, length); i < 4 && at + i < length; i++)
                        bytes[at + i] = (uint8_t) (next_random(state) % 3 ? 0xff : next_random(state));
                return length;
        case 3:
        case 4:
                return change_length(bytes, length, state);
        default:
                return splice(bytes, length, state);
        }
}

/* Derives input @number into @bytes, which has room for DERIVED_CEILING. */
static size_t derive(uint64_t seed, size_t number, uint8_t *bytes) {
        uint64_t state = seed * 0x2545f4914f6cdd1d + number;
        const struct input *from = &corpus.inputs[below(&state, corpus.count)];
        size_t length = from->length < DERIVED_CEILING ? from->length : DERIVED_CEILING;

        memcpy(bytes, from->bytes, length);
        for (size_t i = below(&state, CHANGES) + 1; i > 0; i--)
                length = change(bytes, length, &state);
        return length;
}

static void execute(const uint8_t *bytes, size_t length) {
        /* Of the exact size, so that AddressSanitizer sees a step past its end. */
        uint8_t *exact = nd_malloc(length);

        memcpy(exact, bytes, length);
        (void) LLVMFuzzerTestOneInput(exact, length);
        free(exact);
}

static void execute_all(size_t count, uint64_t seed, struct progress *progress) {
        static uint8_t bytes[DERIVED_CEILING + INPUT_CEILING];

        for (progress->done = 0; progress->done < corpus.count; progress->done++)
                execute(corpus.inputs[progress->done].bytes, corpus.inputs[progress->done].length);
        progress->derived = true;
        for (progress->done = 0; progress->done < count; progress->done++)
                execute(bytes, derive(seed, progress->done, bytes));
}

static int judge(int status, const struct progress *progress, size_t count, uint64_t seed) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
                (void) printf("%zu inputs of the corpus, %zu derived ones\n", corpus.count, count);
                return EXIT_SUCCESS;
        }
        if (!progress->derived && progress->done < corpus.count)
                (void) printf("failed with %s\n", corpus.inputs[progress->done].path);
        else if (progress->done < count)
                (void) printf("failed with input %zu of seed %llu; the argument %zu writes it to standard output\n",
                              progress->done, (unsigned long long) seed, progress->done);
        else
                (void) printf("failed at its end, after all inputs\n");
        return EXIT_FAILURE;
}

int main(int argc, char **argv) {
        size_t count = argc > 3 ? strtoul(argv[2], nullptr, 10) : 0;
        uint64_t seed = argc > 3 ? strtoull(argv[3], nullptr, 10) : 0;
        struct progress *progress;
        int status = 0;
        pid_t child;

        if (argc < 2)
                errx(EXIT_FAILURE, "usage: %s DIRECTORY [COUNT SEED [NUMBER]]", argv[0]);
        load_corpus(argv[1]);
        if (argc > 4) {
                static uint8_t bytes[DERIVED_CEILING + INPUT_CEILING];
                size_t length = derive(seed, strtoul(argv[4], nullptr, 10), bytes);

                return fwrite(bytes, 1, length, stdout) == length ? EXIT_SUCCESS : EXIT_FAILURE;
        }
        progress = mmap(nullptr, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (progress == MAP_FAILED || (child = fork()) < 0)
                err(EXIT_FAILURE, "start the child");
        if (child == 0) {
                execute_all(count, seed, progress);
                exit(EXIT_SUCCESS); /* and LeakSanitizer looks */
        }
        if (waitpid(child, &status, 0) != child)
                err(EXIT_FAILURE, "wait for the child");
        return judge(status, progress, count, seed);
}
