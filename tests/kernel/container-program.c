/* SPDX-License-Identifier: Apache-2.0 */
/* The program in the container of crun-joins-pin.c, linked statically: prints what it sees and
 * leaves a file behind. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
        char map[256] = "";
        struct stat st;
        int maps = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);

        if (maps < 0 || read(maps, map, sizeof map - 1) <= 0 || stat("/program", &st) < 0)
                return 1;
        printf("user %u, uid_map %s", getuid(), map);
        printf("/program belongs to %u\n", st.st_uid);
        return open("/written", O_WRONLY | O_CREAT | O_CLOEXEC, 0644) < 0;
}
