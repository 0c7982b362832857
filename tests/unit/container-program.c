/* SPDX-License-Identifier: Apache-2.0 */
/* container-program.c - the only program in the containers of our tests, linked statically
 *
 * Does what its arguments say, one after the other, and prints what it sees:
 *      cat FILE, line FILE WORD (the line that begins so), owner FILE, write FILE TEXT, say TEXT,
 *      id, env NAME, cwd, sleep SECONDS, trap CODE (SIGTERM ends it with this code), exit CODE */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int trap_code;

static void on_signal([[maybe_unused]] int signal) {
        _exit(trap_code);
}

static void cat(const char *path, const char *word) {
        FILE *file = fopen(path, "re");
        size_t capacity = 0;
        char *line = nullptr;

        if (!file) {
                printf("%s: %s\n", path, strerror(errno));
                return;
        }
        while (getline(&line, &capacity, file) > 0)
                if (!word || strncmp(line, word, strlen(word)) == 0)
                        printf("%s%s", line, strchr(line, '\n') ? "" : "\n");
        free(line);
        (void) fclose(file);
}

static void owner(const char *path) {
        struct stat st;

        if (stat(path, &st) < 0)
                printf("%s: %s\n", path, strerror(errno));
        else
                printf("%s %u:%u %o\n", path, st.st_uid, st.st_gid, st.st_mode & 07777);
}

static void put(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                printf("%s: %s\n", path, strerror(errno));
        else
                printf("%s written\n", path);
        if (fd >= 0)
                (void) close(fd);
}

static void id(void) {
        gid_t groups[1024];
        int count = getgroups(1024, groups);

        printf("%u:%u", geteuid(), getegid());
        for (int i = 0; i < count; i++)
                printf(" %u", groups[i]);
        printf("\n");
}

static int number(const char *text) {
        return (int) strtol(text, nullptr, 10);
}

int main(int argc, char **argv) {
        char directory[4096] = "";

        (void) setvbuf(stdout, nullptr, _IOLBF, 0);
        for (int i = 1; i < argc; i++) {
                const char *verb = argv[i], *next = i + 1 < argc ? argv[i + 1] : "", *second = i + 2 < argc ? argv[i + 2] : "";

                if (strcmp(verb, "cat") == 0)
                        cat(next, nullptr), i++;
                else if (strcmp(verb, "line") == 0)
                        cat(next, second), i += 2;
                else if (strcmp(verb, "owner") == 0)
                        owner(next), i++;
                else if (strcmp(verb, "write") == 0)
                        put(next, second), i += 2;
                else if (strcmp(verb, "say") == 0)
                        printf("%s\n", next), i++;
                else if (strcmp(verb, "id") == 0)
                        id();
                else if (strcmp(verb, "env") == 0)
                        printf("%s=%s\n", next, getenv(next) ? getenv(next) : "(none)"), i++;
                else if (strcmp(verb, "cwd") == 0)
                        printf("cwd %s\n", getcwd(directory, sizeof directory) ? directory : strerror(errno));
                else if (strcmp(verb, "sleep") == 0)
                        (void) sleep((unsigned) number(next)), i++;
                else if (strcmp(verb, "trap") == 0)
                        trap_code = number(next), (void) signal(SIGTERM, on_signal), i++;
                else if (strcmp(verb, "exit") == 0)
                        return number(next);
        }
        return EXIT_SUCCESS;
}
