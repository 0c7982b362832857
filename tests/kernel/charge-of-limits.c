/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a user namespace are charged to its creator.
 *
 * What the kernel does: what processes in a user namespace use of the limits per user (inotify
 * instances, pending signals, user namespaces, ...) counts in each namespace up to the first one,
 * there against the user who made the namespace: its effective user ID at that moment. If host root
 * makes it, every pod eats from host root's allowance; if the maker's effective ID is what the
 * pod's root maps to, each pod has an allowance of its own.
 *
 * Why nodens needs it: fs.inotify.max_user_instances is 128 by default, for all of host root
 * together with every pod made by it. One pod could starve the kubelet's own watchers. nodens makes
 * the namespace with the mapped root's effective IDs (the real ones stay, so that it may still
 * signal and trace the child). */
#include <signal.h>
#include <sys/inotify.h>

#include "evidence.h"

enum { LIMIT = 60, INSTANCES = 25, SIGNALS = 40 };

/* How many more inotify instances this user may have now; they are closed again. */
static int inotify_room(void) {
        int fds[LIMIT + 1], count = 0;

        while (count <= LIMIT && (fds[count] = inotify_init1(IN_CLOEXEC)) >= 0)
                count++;
        for (int i = 0; i < count; i++)
                (void) close(fds[i]);
        return count;
}

/* Signals that are queued for this process's user, as the kernel counts them. */
static int pending_signals(void) {
        char text[4096];
        const char *line = strstr(read_text("/proc/self/status", text, sizeof text), "SigQ:");
        int count = -1;

        step(line && sscanf(line, "SigQ: %d", &count) == 1);
        return count;
}

struct consumer {
        int userns;
        int ready[2], finish[2];
};

/* A process of the pod that uses a lot. */
static void consume(struct consumer *c) {
        sigset_t blocked;
        int room = 0;
        char byte;

        (void) close(c->finish[1]);
        enter_userns(c->userns);
        while (room < INSTANCES && inotify_init1(IN_CLOEXEC) >= 0)
                room++;
        step(sigemptyset(&blocked) == 0 && sigaddset(&blocked, SIGRTMIN) == 0 &&
             sigprocmask(SIG_BLOCK, &blocked, nullptr) == 0);
        for (int i = 0; i < SIGNALS; i++)
                step(sigqueue(getpid(), SIGRTMIN, (union sigval) {.sival_int = i}) == 0);
        step(write(c->ready[1], &room, sizeof room) == sizeof room);
        (void) !read(c->finish[0], &byte, 1);
        exit(0);
}

/* What the pod's use costs the node's root: inotify instances and signals. */
static void measure(bool charge_to_root, int *ret_instances, int *ret_signals) {
        struct consumer c = {.userns = make_pod_userns(BLOCK, charge_to_root)};
        int room = inotify_room(), signals = pending_signals(), used = 0, status;
        pid_t pid;

        step(pipe2(c.ready, O_CLOEXEC) == 0 && pipe2(c.finish, O_CLOEXEC) == 0);
        pid = fork();
        step(pid >= 0);
        if (pid == 0)
                consume(&c);
        step(close(c.ready[1]) == 0 && close(c.finish[0]) == 0);
        step(read(c.ready[0], &used, sizeof used) == sizeof used && used == INSTANCES);
        *ret_instances = room - inotify_room();
        *ret_signals = pending_signals() - signals;
        step(close(c.finish[1]) == 0 && waitpid(pid, &status, 0) == pid && close(c.ready[0]) == 0 && close(c.userns) == 0);
}

static int node(void *argument) {
        int instances, signals;

        enter_userns(*(int *) argument);
        write_file("/proc/sys/user/max_inotify_instances", "60");
        saw("the node's root may have %d inotify instances; a pod takes %d, and queues %d signals", inotify_room(), INSTANCES,
            SIGNALS);
        measure(false, &instances, &signals);
        expect(instances == INSTANCES && signals == SIGNALS,
               "made by the node's root, who pays for all of it (%d instances, %d signals)", instances, signals);
        measure(true, &instances, &signals);
        expect(instances == 0 && signals == 0,
               "made with the mapped root's effective IDs: the node's root pays nothing (%d instances, %d signals)", instances,
               signals);
        return 0;
}

int main(void) {
        /* A node within a user namespace of its own, so that the host's own allowance is left
         * alone. */
        struct nd_userns_map map = {.inside = 0, .outside = POD_ROOT, .count = 2 * BLOCK};
        struct nd_userns_plan plan = {.uids = &map, .uid_count = 1, .gids = &map, .gid_count = 1, .charge_to_root = true};
        int userns = -EBADF;

        need_root();
        done(nd_userns_make(&plan, &userns));
        return in_child(node, &userns);
}
