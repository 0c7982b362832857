#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
        static char b[1 << 20];
        int fd;
        memset(b, 'x', sizeof b);
        for (int i = 0; i < 4010; i++)
                if (mkdir("d", 0755) < 0 || chdir("d") < 0) {
                        perror("d");
                        return 1;
                }
        fd = open("big", O_CREAT | O_WRONLY, 0644);
        for (int i = 0; i < 300; i++)
                if (write(fd, b, sizeof b) != sizeof b) {
                        perror("write");
                        return 1;
                }
        fsync(fd);
        printf("300 MiB written\n");
        fflush(stdout);
        sleep(10000);
}
