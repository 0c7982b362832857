/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/spec.h"

#include "base/json.h"

void nd_spec_process_done(struct nd_spec_process *process) {
        nd_vector_done(&process->user.groups);
        nd_strings_done(&process->arguments);
        nd_strings_done(&process->environment);
        nd_vector_done(&process->limits);
        free(process->directory);
        free(process->apparmor);
        free(process->selinux);
        *process = (struct nd_spec_process) {};
}

void nd_spec_resources_done(struct nd_spec_resources *resources) {
        free(resources->cpus);
        free(resources->memories);
        nd_vector_each (page, &resources->pages) {
                free(page->size);
        }
        nd_vector_done(&resources->pages);
        nd_vector_each (setting, &resources->unified) {
                free(setting->key);
                free(setting->value);
        }
        nd_vector_done(&resources->unified);
        nd_vector_done(&resources->devices);
        *resources = (struct nd_spec_resources) {};
}

void nd_spec_hook_done(struct nd_spec_hook *hook) {
        free(hook->path);
        nd_strings_done(&hook->arguments);
        nd_strings_done(&hook->environment);
        *hook = (struct nd_spec_hook) {};
}

void nd_spec_done(struct nd_spec *spec) {
        nd_vector_each (hook, &spec->hooks)
                nd_spec_hook_done(hook);
        nd_vector_done(&spec->hooks);
        nd_spec_process_done(&spec->process);
        nd_spec_resources_done(&spec->resources);
        nd_vector_each (mount, &spec->mounts) {
                free(mount->destination);
                free(mount->type);
                free(mount->source);
                nd_strings_done(&mount->options);
        }
        nd_vector_done(&spec->mounts);
        nd_vector_each (namespace, &spec->namespaces) {
                free(namespace->path);
        }
        nd_vector_done(&spec->namespaces);
        nd_vector_each (device, &spec->devices) {
                free(device->path);
        }
        nd_vector_done(&spec->devices);
        nd_strings_done(&spec->masked);
        nd_strings_done(&spec->read_only);
        free(spec->root);
        free(spec->cgroup);
        free(spec->leaf_cgroup);
        free(spec->seccomp);
        free(spec->mount_label);
        *spec = (struct nd_spec) {};
}

struct nd_spec_mount *nd_spec_add_mount(struct nd_spec *spec, const char *destination, const char *type, const char *source) {
        nd_vector_push(&spec->mounts, ((struct nd_spec_mount) {.destination = nd_strdup(destination),
                                                               .type = nd_strdup(type ? type : "bind"),
                                                               .source = nd_strdup(source)}));
        return &spec->mounts.items[spec->mounts.count - 1];
}

void nd_spec_mount_option(struct nd_spec_mount *mount, const char *option) {
        nd_strings_add(&mount->options, option);
}

void nd_spec_add_device(struct nd_spec *spec, const char *host, const struct nd_spec_device *device) {
        nd_autofree char *path = device->path;

        if (!spec->binds_devices || device->own || nd_streq(host, path)) {
                nd_vector_push(&spec->devices, *device);
                path = nullptr;
                return;
        }
        nd_spec_bind_device(spec, host, path);
}

void nd_spec_bind_device(struct nd_spec *spec, const char *host, const char *path) {
        struct nd_spec_mount *mount = nd_spec_add_mount(spec, path, nullptr, host);

        nd_spec_mount_option(mount, "bind");
        nd_spec_mount_option(mount, "rprivate");
        nd_spec_mount_option(mount, "nosuid");
        nd_spec_mount_option(mount, "noexec");
}

void nd_spec_add_namespace(struct nd_spec *spec, const char *type, const char *path) {
        nd_vector_push(&spec->namespaces,
                       ((struct nd_spec_namespace) {.type = type, .path = path ? nd_strdup(path) : nullptr}));
}

/* ---- writing ---- */

static void put_strings(struct nd_json_out *out, const char *key, const struct nd_strings *strings) {
        nd_json_open(out, key, '[');
        nd_vector_each (string, strings) {
                nd_json_string(out, nullptr, *string);
        }
        nd_json_close(out, ']');
}

static void put_capabilities(struct nd_json_out *out, const char *key, uint64_t bits) {
        nd_json_open(out, key, '[');
        for (unsigned i = 0; nd_spec_capability_name(i); i++)
                if (bits & UINT64_C(1) << i)
                        nd_json_string(out, nullptr, nd_spec_capability_name(i));
        nd_json_close(out, ']');
}

static void put_user(struct nd_json_out *out, const struct nd_spec_user *user) {
        nd_json_open(out, "user", '{');
        nd_json_number(out, "uid", user->uid);
        nd_json_number(out, "gid", user->gid);
        nd_json_open(out, "additionalGids", '[');
        nd_vector_each (group, &user->groups) {
                nd_json_number(out, nullptr, *group);
        }
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static void put_limits(struct nd_json_out *out, const struct nd_spec_process *process) {
        if (process->limits.count == 0)
                return;
        nd_json_open(out, "rlimits", '[');
        nd_vector_each (limit, &process->limits) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "type", limit->type);
                nd_json_number(out, "hard", limit->hard);
                nd_json_number(out, "soft", limit->soft);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void put_process(struct nd_json_out *out, const char *key, const struct nd_spec_process *process) {
        const struct nd_spec_capabilities *capabilities = &process->capabilities;

        nd_json_open(out, key, '{');
        nd_json_bool(out, "terminal", process->terminal);
        put_user(out, &process->user);
        put_strings(out, "args", &process->arguments);
        put_strings(out, "env", &process->environment);
        nd_json_string(out, "cwd", process->directory ? process->directory : "/");
        nd_json_open(out, "capabilities", '{');
        put_capabilities(out, "bounding", capabilities->bounding);
        put_capabilities(out, "effective", capabilities->effective);
        put_capabilities(out, "permitted", capabilities->permitted);
        put_capabilities(out, "inheritable", capabilities->inheritable);
        put_capabilities(out, "ambient", capabilities->ambient);
        nd_json_close(out, '}');
        put_limits(out, process);
        nd_json_bool(out, "noNewPrivileges", process->no_new_privileges);
        if (process->has_oom_score)
                nd_json_signed(out, "oomScoreAdj", process->oom_score);
        if (process->apparmor)
                nd_json_string(out, "apparmorProfile", process->apparmor);
        if (process->selinux)
                nd_json_string(out, "selinuxLabel", process->selinux);
        nd_json_close(out, '}');
}

static void put_map(struct nd_json_out *out, const char *key, const struct nd_userns_map *map) {
        nd_json_open(out, key, '[');
        nd_json_open(out, nullptr, '{');
        nd_json_number(out, "containerID", map->inside);
        nd_json_number(out, "hostID", map->outside);
        nd_json_number(out, "size", map->count);
        nd_json_close(out, '}');
        nd_json_close(out, ']');
}

static void put_mounts(struct nd_json_out *out, const struct nd_spec *spec) {
        nd_json_open(out, "mounts", '[');
        nd_vector_each (mount, &spec->mounts) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "destination", mount->destination);
                nd_json_string(out, "type", mount->type);
                nd_json_string(out, "source", mount->source);
                put_strings(out, "options", &mount->options);
                if (mount->idmapped) {
                        put_map(out, "uidMappings", &mount->uids);
                        put_map(out, "gidMappings", &mount->gids);
                }
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void put_namespaces(struct nd_json_out *out, const struct nd_spec *spec) {
        nd_json_open(out, "namespaces", '[');
        nd_vector_each (namespace, &spec->namespaces) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "type", namespace->type);
                if (namespace->path)
                        nd_json_string(out, "path", namespace->path);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void put_type(struct nd_json_out *out, char type) {
        nd_json_string(out, "type", (const char[]) {type, '\0'});
}

static void put_devices(struct nd_json_out *out, const struct nd_spec *spec) {
        if (spec->devices.count == 0)
                return;
        nd_json_open(out, "devices", '[');
        nd_vector_each (device, &spec->devices) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "path", device->path);
                put_type(out, device->type);
                nd_json_number(out, "major", device->major);
                nd_json_number(out, "minor", device->minor);
                nd_json_number(out, "fileMode", device->mode);
                nd_json_number(out, "uid", device->uid);
                nd_json_number(out, "gid", device->gid);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void put_if(struct nd_json_out *out, const char *key, int64_t value) {
        if (value != 0)
                nd_json_signed(out, key, value);
}

static void put_text_if(struct nd_json_out *out, const char *key, const char *value) {
        if (value && *value)
                nd_json_string(out, key, value);
}

static void put_rules(struct nd_json_out *out, const struct nd_spec_resources *resources) {
        nd_json_open(out, "devices", '[');
        nd_vector_each (rule, &resources->devices) {
                nd_json_open(out, nullptr, '{');
                nd_json_bool(out, "allow", rule->allow);
                if (rule->type != 'a')
                        put_type(out, rule->type);
                if (rule->major >= 0)
                        nd_json_signed(out, "major", rule->major);
                if (rule->minor >= 0)
                        nd_json_signed(out, "minor", rule->minor);
                nd_json_string(out, "access", rule->access);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void put_memory(struct nd_json_out *out, const struct nd_spec_resources *resources) {
        nd_json_open(out, "memory", '{');
        put_if(out, "limit", resources->memory_limit);
        put_if(out, "swap", resources->memory_swap);
        nd_json_close(out, '}');
}

static void put_cpu(struct nd_json_out *out, const struct nd_spec_resources *resources) {
        nd_json_open(out, "cpu", '{');
        put_if(out, "shares", resources->cpu_shares);
        put_if(out, "quota", resources->cpu_quota);
        put_if(out, "period", resources->cpu_period);
        put_text_if(out, "cpus", resources->cpus);
        put_text_if(out, "mems", resources->memories);
        nd_json_close(out, '}');
}

static void put_pages(struct nd_json_out *out, const struct nd_spec_resources *resources) {
        nd_json_open(out, "hugepageLimits", '[');
        nd_vector_each (page, &resources->pages) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "pageSize", page->size);
                nd_json_number(out, "limit", page->limit);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

/* Sections without values are left out: an engine may touch a controller's files for an empty
 * one. */
static void put_resources(struct nd_json_out *out, const char *key, const struct nd_spec_resources *r) {
        nd_json_open(out, key, '{');
        if (r->devices.count > 0)
                put_rules(out, r);
        if (r->memory_limit != 0 || r->memory_swap != 0)
                put_memory(out, r);
        if (r->cpu_shares != 0 || r->cpu_quota != 0 || r->cpu_period != 0 || (r->cpus && *r->cpus) ||
            (r->memories && *r->memories))
                put_cpu(out, r);
        if (r->pages.count > 0)
                put_pages(out, r);
        if (r->unified.count > 0) {
                nd_json_open(out, "unified", '{');
                nd_vector_each (setting, &r->unified) {
                        nd_json_string(out, setting->key, setting->value);
                }
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
}

static void put_linux(struct nd_json_out *out, const struct nd_spec *spec) {
        nd_json_open(out, "linux", '{');
        if (spec->user_namespace) {
                put_map(out, "uidMappings", &spec->uids);
                put_map(out, "gidMappings", &spec->gids);
        }
        put_namespaces(out, spec);
        put_devices(out, spec);
        put_resources(out, "resources", &spec->resources);
        if (spec->cgroup)
                nd_json_string(out, "cgroupsPath", spec->cgroup);
        put_strings(out, "maskedPaths", &spec->masked);
        put_strings(out, "readonlyPaths", &spec->read_only);
        if (spec->propagation)
                nd_json_string(out, "rootfsPropagation", spec->propagation);
        if (spec->seccomp)
                nd_json_raw(out, "seccomp", spec->seccomp);
        if (spec->mount_label)
                nd_json_string(out, "mountLabel", spec->mount_label);
        nd_json_close(out, '}');
}

static const char *const stages[] = {"prestart",       "createRuntime", "createContainer",
                                     "startContainer", "poststart",     "poststop"};

const char *nd_spec_hook_stage(const char *name) {
        for (size_t i = 0; i < nd_count_of(stages); i++)
                if (nd_streq(stages[i], name))
                        return stages[i];
        return nullptr;
}

static void put_hook(struct nd_json_out *out, const struct nd_spec_hook *hook) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "path", hook->path);
        put_strings(out, "args", &hook->arguments);
        put_strings(out, "env", &hook->environment);
        if (hook->timeout_s > 0)
                nd_json_number(out, "timeout", hook->timeout_s);
        nd_json_close(out, '}');
}

static void put_hooks(struct nd_json_out *out, const struct nd_spec *spec) {
        if (spec->hooks.count == 0)
                return;
        nd_json_open(out, "hooks", '{');
        for (size_t i = 0; i < nd_count_of(stages); i++) {
                nd_json_open(out, stages[i], '[');
                nd_vector_each (hook, &spec->hooks) {
                        if (hook->stage == stages[i])
                                put_hook(out, hook);
                }
                nd_json_close(out, ']');
        }
        nd_json_close(out, '}');
}

static struct nd_error *finished(const struct nd_text *text) {
        return text->overflow
                       ? nd_error_new(ND_EXHAUSTED, 0,
                                      "the runtime spec has more than %zu bytes: fewer or shorter arguments, variables, "
                                      "mounts or devices are required",
                                      text->ceiling)
                       : nullptr;
}

static void put_annotations(struct nd_json_out *out, const struct nd_spec *spec) {
        if (!spec->no_subgroup && !spec->leaf_cgroup)
                return;
        nd_json_open(out, "annotations", '{');
        if (spec->no_subgroup)
                nd_json_string(out, "run.oci.systemd.subgroup", "");
        put_text_if(out, "run.oci.delegate-cgroup", spec->leaf_cgroup);
        nd_json_close(out, '}');
}

struct nd_error *nd_spec_format(const struct nd_spec *spec, struct nd_text *ret) {
        struct nd_json_out out = {.text = ret};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "ociVersion", "1.0.2");
        put_process(&out, "process", &spec->process);
        nd_json_open(&out, "root", '{');
        nd_json_string(&out, "path", spec->root);
        nd_json_bool(&out, "readonly", spec->read_only_root);
        nd_json_close(&out, '}');
        put_mounts(&out, spec);
        put_hooks(&out, spec);
        put_linux(&out, spec);
        put_annotations(&out, spec);
        nd_json_close(&out, '}');
        return finished(ret);
}

struct nd_error *nd_spec_resources_format(const struct nd_spec_resources *resources, struct nd_text *ret) {
        put_resources(&(struct nd_json_out) {.text = ret}, nullptr, resources);
        return finished(ret);
}
