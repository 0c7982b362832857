/* SPDX-License-Identifier: Apache-2.0 */
/* request-decode-container.c - decodes CreateContainerRequest; see request-decode.h */
#include <string.h>

#include "cri/core/request-pieces.h"
#include "net/protobuf.h"

static struct nd_error *take_variable(const Runtime__V1__KeyValue *variable, struct cri_container_request *ret) {
        const ProtobufCBinaryData *value = &variable->value;

        if (!variable->key[0] || strchr(variable->key, '='))
                return nd_error_new(ND_INVALID, 0, "invalid name of an environment variable: '%s'", variable->key);
        if (value->len > REQUEST_TEXT)
                return nd_error_new(ND_INVALID, 0, "variable '%s' is too long: %zu bytes, at most %d", variable->key,
                                    value->len, REQUEST_TEXT);
        if (value->len > 0 && memchr(value->data, '\0', value->len))
                return nd_error_new(ND_INVALID, 0, "variable '%s' contains a null byte", variable->key);
        nd_vector_push(&ret->environment,
                       ((struct cri_pair) {.key = nd_strdup(variable->key),
                                           .value = nd_strndup((const char *) value->data ?: "", value->len)}));
        return nullptr;
}

static struct nd_error *take_environment(const Runtime__V1__ContainerConfig *config, struct cri_container_request *ret) {
        nd_try(cri_decode_count("envs", config->n_envs));
        for (size_t i = 0; i < config->n_envs; i++)
                nd_try(take_variable(config->envs[i], ret));
        return nullptr;
}

/* ---- mounts and devices ---- */

static void mount_request_done(struct cri_mount_request *mount) {
        free(mount->container_path);
        free(mount->host_path);
        free(mount->image);
        free(mount->image_subpath);
}

static uint64_t attribute_of(const char *option) {
        for (size_t i = 0; i < CRI_MOUNT_OPTIONS; i++)
                if (nd_streq(cri_mount_options[i].name, option))
                        return cri_mount_options[i].attribute;
        return 0;
}

/* An unknown option is refused: it may protect the node. */
static struct nd_error *take_options(const Runtime__V1__Mount *m, struct cri_mount_request *mount) {
        nd_try(cri_decode_count("mount_options", m->n_mount_options));
        for (size_t i = 0; i < m->n_mount_options; i++) {
                uint64_t attribute = attribute_of(m->mount_options[i]);

                if (attribute == 0)
                        return nd_error_new(ND_INVALID, 0,
                                            "mount option '%.100s' is not supported: use noexec, nodev or nosuid",
                                            m->mount_options[i]);
                mount->attributes |= attribute;
        }
        return nullptr;
}

static struct nd_error *check_mount(const struct cri_mount_request *mount) {
        if (mount->recursive_read_only && !mount->read_only)
                return nd_error_new(ND_INVALID, 0, "recursive_read_only needs readonly");
        if (mount->recursive_read_only && mount->propagation != MOUNT_PRIVATE)
                return nd_error_new(ND_INVALID, 0, "recursive_read_only needs private propagation");
        if (mount->image[0] && mount->host_path[0])
                return nd_error_new(ND_INVALID, 0, "image and host_path exclude each other");
        if (!mount->image[0] && !mount->host_path[0])
                return nd_error_new(ND_INVALID, 0, "host_path or image is required");
        if (mount->image[0] && !mount->read_only)
                return nd_error_new(ND_INVALID, 0, "an image mount must be readonly");
        return nullptr;
}

static struct nd_error *fill_mount(const Runtime__V1__Mount *m, struct cri_mount_request *mount) {
        nd_try(cri_decode_path("container_path", m->container_path, false, &mount->container_path));
        nd_try(cri_decode_path("host_path", m->host_path, true, &mount->host_path));
        nd_try(cri_decode_text("image", m->image ? m->image->image : "", REQUEST_PATH, &mount->image));
        nd_try(cri_decode_text("image_sub_path", m->image_sub_path, REQUEST_PATH, &mount->image_subpath));
        if ((int) m->propagation < MOUNT_PRIVATE || (int) m->propagation > MOUNT_BIDIRECTIONAL)
                return nd_error_new(ND_INVALID, 0, "unknown propagation %d", (int) m->propagation);
        mount->propagation = (typeof(mount->propagation)) m->propagation;
        mount->read_only = m->readonly;
        mount->recursive_read_only = m->recursive_read_only;
        mount->relabel = m->selinux_relabel;
        nd_try(take_options(m, mount));
        if (m->n_uidmappings > 0 || m->n_gidmappings > 0) {
                nd_try(cri_decode_id_map("uidMappings", m->uidmappings, m->n_uidmappings, &mount->uids));
                nd_try(cri_decode_id_map("gidMappings", m->gidmappings, m->n_gidmappings, &mount->gids));
                mount->idmapped = true;
        }
        return check_mount(mount);
}

static struct nd_error *take_mounts(const Runtime__V1__ContainerConfig *config, struct cri_container_request *ret) {
        nd_try(cri_decode_count("mounts", config->n_mounts));
        for (size_t i = 0; i < config->n_mounts; i++) {
                nd_cleanup(mount_request_done) struct cri_mount_request mount = {};

                nd_try(nd_error_wrap(fill_mount(config->mounts[i], &mount), "mount at '%s'",
                                     config->mounts[i]->container_path));
                nd_vector_push(&ret->mounts, nd_take(mount, (struct cri_mount_request) {}));
        }
        return nullptr;
}

static void device_request_done(struct cri_device_request *device) {
        free(device->host_path);
        free(device->container_path);
        free(device->permissions);
}

static struct nd_error *take_devices(const Runtime__V1__ContainerConfig *config, struct cri_container_request *ret) {
        nd_try(cri_decode_count("devices", config->n_devices));
        for (size_t i = 0; i < config->n_devices; i++) {
                const Runtime__V1__Device *d = config->devices[i];
                nd_cleanup(device_request_done) struct cri_device_request device = {};

                nd_try(cri_decode_path("a device's host_path", d->host_path, false, &device.host_path));
                nd_try(cri_decode_path("a device's container_path", d->container_path, false, &device.container_path));
                if (strlen(d->permissions) > 3 || d->permissions[strspn(d->permissions, "rwm")])
                        return nd_error_new(ND_INVALID, 0,
                                            "device '%s': invalid permissions '%s': only r, w and m are allowed", d->host_path,
                                            d->permissions);
                device.permissions = nd_strdup(d->permissions);
                nd_vector_push(&ret->devices, nd_take(device, (struct cri_device_request) {}));
        }
        return nullptr;
}

static struct nd_error *take_cdi(const Runtime__V1__ContainerConfig *config, struct cri_container_request *ret) {
        nd_try(cri_decode_count("CDI_devices", config->n_cdi_devices));
        for (size_t i = 0; i < config->n_cdi_devices; i++) {
                char *name = nullptr;

                nd_try(cri_decode_text("a CDI device", config->cdi_devices[i]->name, REQUEST_NAME, &name));
                nd_vector_push(&ret->cdi_devices, name);
        }
        return nullptr;
}

/* ---- security ---- */

/* The name of a localhost profile. Clients that took it over from the deprecated field have the
 * prefix of that field in it; containerd and CRI-O accept it. */
static const char *localhost_name(const char *text) {
        static const char prefix[] = "localhost/";

        return nd_has_prefix(text, prefix) ? text + strlen(prefix) : text;
}

/* Decodes the profile or, if there is none, the deprecated string: "runtime/default",
 * "unconfined", "localhost/<name>". */
static struct nd_error *take_profile(const char *what, const Runtime__V1__SecurityProfile *profile, const char *old,
                                     struct cri_security_profile *ret) {
        ret->kind = PROFILE_UNSET;
        if (profile) {
                if ((int) profile->profile_type < PROFILE_DEFAULT || (int) profile->profile_type > PROFILE_LOCALHOST)
                        return nd_error_new(ND_INVALID, 0, "%s: unknown profile type %d", what, (int) profile->profile_type);
                ret->kind = (typeof(ret->kind)) profile->profile_type;
                nd_try(cri_decode_text(what, localhost_name(profile->localhost_ref), REQUEST_PATH, &ret->localhost));
        } else if (nd_streq(old, "runtime/default") || nd_streq(old, "docker/default")) {
                ret->kind = PROFILE_DEFAULT;
        } else if (nd_streq(old, "unconfined")) {
                ret->kind = PROFILE_UNCONFINED;
        } else if (localhost_name(old) != old) {
                ret->kind = PROFILE_LOCALHOST;
                nd_try(cri_decode_text(what, localhost_name(old), REQUEST_PATH, &ret->localhost));
        } else if (old[0]) {
                return nd_error_new(ND_INVALID, 0, "%s: unknown profile '%s'", what, old);
        }
        if (!ret->localhost)
                ret->localhost = nd_strdup("");
        if (ret->kind == PROFILE_LOCALHOST && !ret->localhost[0])
                return nd_error_new(ND_INVALID, 0, "%s: a localhost profile needs a name", what);
        return nullptr;
}

#pragma GCC diagnostic push
/* old kubelets set the deprecated field */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static struct nd_error *take_profiles(const Runtime__V1__LinuxContainerSecurityContext *s, struct cri_container_request *ret) {
        nd_try(take_profile("seccomp", s ? s->seccomp : nullptr, s ? s->seccomp_profile_path : "", &ret->seccomp));
        return take_profile("AppArmor", s ? s->apparmor : nullptr, s ? s->apparmor_profile : "", &ret->apparmor);
}
#pragma GCC diagnostic pop

static struct nd_error *take_selinux(const Runtime__V1__SELinuxOption *options, struct cri_selinux_request *ret) {
        if (!options)
                return nullptr;
        nd_try(cri_decode_text("SELinux user", options->user, REQUEST_NAME, &ret->user));
        nd_try(cri_decode_text("SELinux role", options->role, REQUEST_NAME, &ret->role));
        nd_try(cri_decode_text("SELinux type", options->type, REQUEST_NAME, &ret->type));
        return cri_decode_text("SELinux level", options->level, REQUEST_NAME, &ret->level);
}

static struct nd_error *take_capabilities(const Runtime__V1__Capability *c, struct cri_container_request *ret) {
        if (!c)
                return nullptr;
        nd_try(cri_decode_strings("add_capabilities", c->add_capabilities, c->n_add_capabilities, REQUEST_NAME,
                                  &ret->add_capabilities));
        nd_try(cri_decode_strings("drop_capabilities", c->drop_capabilities, c->n_drop_capabilities, REQUEST_NAME,
                                  &ret->drop_capabilities));
        return cri_decode_strings("add_ambient_capabilities", c->add_ambient_capabilities, c->n_add_ambient_capabilities,
                                  REQUEST_NAME, &ret->ambient_capabilities);
}

static struct nd_error *take_container_namespaces(const Runtime__V1__NamespaceOption *options,
                                                  struct cri_container_request *ret) {
        struct cri_decode_namespaces wanted = {};

        nd_try(cri_decode_namespaces(options, &wanted));
        ret->network = wanted.network;
        ret->pid = wanted.pid;
        ret->ipc = wanted.ipc;
        ret->user_namespace = wanted.user_namespace;
        ret->uids = wanted.uids;
        ret->gids = wanted.gids;
        nd_try(cri_decode_text("target_id", options ? options->target_id : "", REQUEST_NAME, &ret->pid_target));
        if (ret->pid == NAMESPACE_TARGET && !ret->pid_target[0])
                return nd_error_new(ND_INVALID, 0, "PID namespace mode TARGET needs a target_id");
        return nullptr;
}

static struct nd_error *take_user(const Runtime__V1__LinuxContainerSecurityContext *s, struct cri_container_request *ret) {
        nd_try(cri_decode_text("run_as_username", s->run_as_username, REQUEST_NAME, &ret->user_name));
        if (s->run_as_user && ret->user_name[0])
                return nd_error_new(ND_INVALID, 0, "run_as_user and run_as_username exclude each other");
        if (s->run_as_group && !s->run_as_user && !ret->user_name[0])
                return nd_error_new(ND_INVALID, 0, "run_as_group needs run_as_user or run_as_username");
        ret->has_user = s->run_as_user;
        ret->user = s->run_as_user ? s->run_as_user->value : 0;
        ret->has_group = s->run_as_group;
        ret->group = s->run_as_group ? s->run_as_group->value : 0;
        nd_try(cri_decode_count("supplemental_groups", s->n_supplemental_groups));
        for (size_t i = 0; i < s->n_supplemental_groups; i++)
                nd_vector_push(&ret->groups, s->supplemental_groups[i]);
        if (s->supplemental_groups_policy != RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Merge &&
            s->supplemental_groups_policy != RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Strict)
                return nd_error_new(ND_INVALID, 0, "unknown supplemental_groups_policy %d",
                                    (int) s->supplemental_groups_policy);
        ret->strict_groups = s->supplemental_groups_policy == RUNTIME__V1__SUPPLEMENTAL_GROUPS_POLICY__Strict;
        return nullptr;
}

static struct nd_error *take_security(const Runtime__V1__LinuxContainerSecurityContext *s, struct cri_container_request *ret) {
        nd_try(take_container_namespaces(s ? s->namespace_options : nullptr, ret));
        nd_try(take_profiles(s, ret));
        nd_try(take_selinux(s ? s->selinux_options : nullptr, &ret->selinux));
        if (!s) {
                ret->user_name = nd_strdup("");
                return nullptr;
        }
        nd_try(take_capabilities(s->capabilities, ret));
        nd_try(take_user(s, ret));
        ret->privileged = s->privileged;
        ret->read_only_root = s->readonly_rootfs;
        ret->no_new_privileges = s->no_new_privs;
        nd_try(cri_decode_strings("masked_paths", s->masked_paths, s->n_masked_paths, REQUEST_PATH, &ret->masked_paths));
        return cri_decode_strings("readonly_paths", s->readonly_paths, s->n_readonly_paths, REQUEST_PATH,
                                  &ret->read_only_paths);
}

/* ---- the request ---- */

/* log_path is relative to the sandbox's log directory and must not leave it. */
static struct nd_error *take_log_path(const char *path, struct cri_container_request *ret) {
        if (path[0] == '/')
                return nd_error_new(ND_INVALID, 0, "log_path '%s' must be relative to the pod's log_directory", path);
        if (cri_decode_climbs(path))
                return nd_error_new(ND_INVALID, 0, "log_path '%s' leaves the pod's log_directory", path);
        return cri_decode_text("log_path", path, REQUEST_PATH, &ret->log_path);
}

static struct nd_error *take_names(const Runtime__V1__ContainerConfig *config, struct cri_container_request *ret) {
        if (!config->metadata || !config->metadata->name[0])
                return nd_error_new(ND_INVALID, 0, "the container has no name");
        if (!config->image || !config->image->image[0])
                return nd_error_new(ND_INVALID, 0, "the container has no image");
        ret->attempt = config->metadata->attempt;
        nd_try(cri_decode_text("the container's name", config->metadata->name, REQUEST_NAME, &ret->name));
        nd_try(cri_decode_text("image", config->image->image, REQUEST_PATH, &ret->image));
        return cri_decode_text("user_specified_image", config->image->user_specified_image, REQUEST_PATH, &ret->image_by_user);
}

static struct nd_error *take_container(const Runtime__V1__ContainerConfig *config, struct cri_container_request *ret) {
        const Runtime__V1__LinuxContainerConfig *linux = config->linux;

        nd_try(take_names(config, ret));
        nd_try(cri_decode_strings("command", config->command, config->n_command, REQUEST_TEXT, &ret->command));
        nd_try(cri_decode_strings("args", config->args, config->n_args, REQUEST_TEXT, &ret->arguments));
        nd_try(cri_decode_text("working_dir", config->working_dir, REQUEST_PATH, &ret->working_directory));
        nd_try(take_environment(config, ret));
        nd_try(take_mounts(config, ret));
        nd_try(take_devices(config, ret));
        nd_try(take_cdi(config, ret));
        nd_try(piece_pairs("labels", config->labels, config->n_labels, REQUEST_TEXT, &ret->labels));
        nd_try(piece_pairs("annotations", config->annotations, config->n_annotations, REQUEST_TEXT, &ret->annotations));
        nd_try(take_log_path(config->log_path, ret));
        ret->stdin_open = config->stdin;
        ret->stdin_once = config->stdin_once;
        ret->tty = config->tty;
        ret->stop_signal = cri_request_signal_from_cri((int) config->stop_signal);
        if (ret->stop_signal < 0)
                return nd_error_new(ND_INVALID, 0, "unknown stop_signal %d", (int) config->stop_signal);
        nd_try(cri_decode_resources(linux ? linux->resources : nullptr, &ret->resources));
        return take_security(linux ? linux->security_context : nullptr, ret);
}

static void message_done(ProtobufCMessage **message) {
        nd_protobuf_free(*message);
}

struct nd_error *cri_request_decode_container(const char *bytes, size_t length, char **ret_sandbox_id,
                                              struct cri_container_request *ret) {
        nd_cleanup(cri_container_request_done) struct cri_container_request request = {};
        nd_cleanup(message_done) ProtobufCMessage *message = nullptr;
        const Runtime__V1__CreateContainerRequest *create;

        nd_try(nd_protobuf_unpack(&runtime__v1__create_container_request__descriptor, bytes, length, &message));
        create = (const Runtime__V1__CreateContainerRequest *) message;
        if (!create->config)
                return nd_error_new(ND_INVALID, 0, "the request has no config");
        nd_try(take_container(create->config, &request));
        nd_try(cri_decode_text("pod_sandbox_id", create->pod_sandbox_id, REQUEST_NAME, ret_sandbox_id));
        *ret = nd_take(request, (struct cri_container_request) {});
        return nullptr;
}
