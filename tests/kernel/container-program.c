/* SPDX-License-Identifier: Apache-2.0 */
/* The program in the container of crun-joins-pin.c, linked statically: tells what it sees and leaves a file behind. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
        char map[256] = "";
        struct stat st;
        FILE *file = fopen("/proc/self/uid_map", "re");

        if (!file || !fgets(map, sizeof map, file) || stat("/program", &st) < 0)
                return 1;
        printf("user %u, uid_map %s", getuid(), map);
        printf("/program belongs to %u\n", st.st_uid);
        return open("/written", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0;
}
