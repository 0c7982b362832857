/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/request.h"

#include <signal.h>
#include <sys/mount.h>

void cri_pairs_done(struct cri_pairs *list) {
        nd_vector_each (pair, list) {
                free(pair->key);
                free(pair->value);
        }
        nd_vector_done(list);
}

bool cri_pairs_have(const struct cri_pairs *list, const char *key, const char *value) {
        nd_vector_each (pair, list) {
                if (nd_streq(pair->key, key))
                        return nd_streq(pair->value, value);
        }
        return false;
}

void cri_sandbox_request_done(struct cri_sandbox_request *request) {
        free(request->name);
        free(request->uid);
        free(request->namespace);
        free(request->hostname);
        free(request->log_directory);
        nd_strings_done(&request->dns_servers);
        nd_strings_done(&request->dns_searches);
        nd_strings_done(&request->dns_options);
        nd_vector_each (port, &request->ports) {
                free(port->address);
        }
        nd_vector_done(&request->ports);
        cri_pairs_done(&request->labels);
        cri_pairs_done(&request->annotations);
        free(request->cgroup_parent);
        cri_pairs_done(&request->sysctls);
        free(request->selinux_level);
        free(request->runtime_handler);
        *request = (struct cri_sandbox_request) {};
}

void cri_sandbox_request_fill(struct cri_sandbox_request *request) {
        char **const texts[] = {&request->name,          &request->uid,           &request->namespace,      &request->hostname,
                                &request->log_directory, &request->cgroup_parent, &request->runtime_handler};

        for (size_t i = 0; i < nd_count_of(texts); i++)
                if (!*texts[i])
                        *texts[i] = nd_strdup("");
}

void cri_resource_request_done(struct cri_resource_request *resources) {
        free(resources->cpuset_cpus);
        free(resources->cpuset_mems);
        nd_vector_each (limit, &resources->hugepages) {
                free(limit->page_size);
        }
        nd_vector_done(&resources->hugepages);
        cri_pairs_done(&resources->unified);
        *resources = (struct cri_resource_request) {};
}

static void mounts_done(struct cri_container_request *request) {
        nd_vector_each (mount, &request->mounts) {
                free(mount->container_path);
                free(mount->host_path);
                free(mount->image);
                free(mount->image_subpath);
        }
        nd_vector_done(&request->mounts);
}

static void devices_done(struct cri_container_request *request) {
        nd_vector_each (device, &request->devices) {
                free(device->host_path);
                free(device->container_path);
                free(device->permissions);
        }
        nd_vector_done(&request->devices);
}

static void security_done(struct cri_container_request *request) {
        nd_strings_done(&request->add_capabilities);
        nd_strings_done(&request->drop_capabilities);
        nd_strings_done(&request->ambient_capabilities);
        free(request->pid_target);
        free(request->user_name);
        nd_vector_done(&request->groups);
        nd_strings_done(&request->masked_paths);
        nd_strings_done(&request->read_only_paths);
        free(request->seccomp.localhost);
        free(request->apparmor.localhost);
        free(request->selinux.user);
        free(request->selinux.role);
        free(request->selinux.type);
        free(request->selinux.level);
}

void cri_container_request_done(struct cri_container_request *request) {
        free(request->name);
        free(request->image);
        free(request->image_by_user);
        nd_strings_done(&request->command);
        nd_strings_done(&request->arguments);
        free(request->working_directory);
        cri_pairs_done(&request->environment);
        mounts_done(request);
        devices_done(request);
        cri_pairs_done(&request->labels);
        cri_pairs_done(&request->annotations);
        free(request->log_path);
        cri_resource_request_done(&request->resources);
        security_done(request);
        nd_strings_done(&request->cdi_devices);
        *request = (struct cri_container_request) {};
}

/* By CRI number. Of several names for one signal, the first is reported. */
static const unsigned char signals[] = {
        0,       SIGABRT, SIGALRM, SIGBUS,  SIGCHLD, SIGCHLD, SIGCONT, SIGFPE,    SIGHUP,   SIGILL,  SIGINT,  SIGIO,
        SIGABRT, SIGKILL, SIGPIPE, SIGPOLL, SIGPROF, SIGPWR,  SIGQUIT, SIGSEGV,   16,       SIGSTOP, SIGSYS,  SIGTERM,
        SIGTRAP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG,  SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

enum {
        REAL_TIME = nd_count_of(signals), /* the CRI's number of the first real-time signal ... */
        REAL_TIME_FIRST = 34,             /* ... which the C library counts from here */
        REAL_TIME_LAST = 64,
};

const struct cri_mount_option cri_mount_options[CRI_MOUNT_OPTIONS] = {
        {"noexec", "rnoexec", MOUNT_ATTR_NOEXEC},
        {"nodev", "rnodev", MOUNT_ATTR_NODEV},
        {"nosuid", "rnosuid", MOUNT_ATTR_NOSUID},
};

int cri_request_signal_from_cri(int signal) {
        if (signal < 0 || signal > REAL_TIME + REAL_TIME_LAST - REAL_TIME_FIRST)
                return -EINVAL;
        return signal < REAL_TIME ? signals[signal] : REAL_TIME_FIRST + signal - REAL_TIME;
}

int cri_request_signal_to_cri(int number) {
        if (number >= REAL_TIME_FIRST && number <= REAL_TIME_LAST)
                return REAL_TIME + number - REAL_TIME_FIRST;
        for (int i = 0; i < REAL_TIME; i++)
                if (signals[i] == number)
                        return i;
        return 0;
}
