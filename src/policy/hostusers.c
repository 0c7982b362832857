/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/hostusers.h"

static bool has_volume_devices(const struct nd_pod *pod) {
        const struct nd_pod_container *c;

        for (size_t i = 0; (c = nd_pod_container(&pod->spec, i)); i++)
                if (c->volume_devices.count > 0)
                        return true;
        return false;
}

static void validate_proc_mount(const struct nd_pod_container *c, const char *list, size_t number, bool user_namespace,
                                struct nd_field_errors *errors) {
        const char *type = c->security ? c->security->proc_mount : nullptr, *value;

        if (!type)
                return;
        value = nd_field_json(errors->arena, type);
        if (!nd_streq(type, "Default") && !nd_streq(type, "Unmasked"))
                nd_field_add(errors, ND_FIELD_NOT_SUPPORTED, value, "supported values: \"Default\", \"Unmasked\"",
                             "spec.%s[%zu].securityContext.procMount", list, number);
        else if (!user_namespace && nd_streq(type, "Unmasked"))
                nd_field_add(errors, ND_FIELD_INVALID, value, "`hostUsers` must be false to use `Unmasked`",
                             "spec.%s[%zu].securityContext.procMount", list, number);
}

/* As in the API server, the regular containers come first here. */
static void validate_proc_mounts(const struct nd_pod *pod, struct nd_field_errors *errors) {
        const struct nd_pod_spec *spec = &pod->spec;
        bool user_namespace = nd_pod_has_user_namespace(pod);

        for (size_t i = 0; i < spec->containers.count; i++)
                validate_proc_mount(&spec->containers.items[i], "containers", i, user_namespace, errors);
        for (size_t i = 0; i < spec->init_containers.count; i++)
                validate_proc_mount(&spec->init_containers.items[i], "initContainers", i, user_namespace, errors);
        for (size_t i = 0; i < spec->ephemeral_containers.count; i++)
                validate_proc_mount(&spec->ephemeral_containers.items[i], "ephemeralContainers", i, user_namespace, errors);
}

static void validate_devices(const struct nd_pod *pod, struct nd_field_errors *errors) {
        const struct nd_pod_container *c;

        for (size_t i = 0, number; (c = nd_pod_container(&pod->spec, i)); i++) {
                const char *list = nd_pod_container_list(&pod->spec, i, &number);

                if (c->volume_devices.count > 0)
                        nd_field_add(errors, ND_FIELD_FORBIDDEN, nullptr, "when `hostUsers` is false",
                                     "spec.%s[%zu].volumeDevices", list, number);
        }
}

static void validate_windows(const struct nd_pod *pod, struct nd_field_errors *errors) {
        const struct nd_pod_container *c;

        if (pod->spec.host_users != ND_UNSET)
                nd_field_add(errors, ND_FIELD_FORBIDDEN, nullptr, "cannot be set for a windows pod", "spec.hostUsers");
        for (size_t i = 0, number; (c = nd_pod_container(&pod->spec, i)); i++) {
                const char *list = nd_pod_container_list(&pod->spec, i, &number);

                if (c->security && c->security->proc_mount)
                        nd_field_add(errors, ND_FIELD_FORBIDDEN, nullptr, "cannot be set for a windows pod",
                                     "spec.%s[%zu].securityContext.procMount", list, number);
        }
}

void nd_hostusers_validate(const struct nd_pod *pod, const struct nd_hostusers_options *options,
                           struct nd_field_errors *errors) {
        bool old_userns = options->old && nd_pod_has_user_namespace(options->old);
        bool network = options->host_network || (old_userns && options->old->spec.host_network);
        bool devices = old_userns && has_volume_devices(options->old);

        validate_proc_mounts(pod, errors);
        if (nd_pod_has_user_namespace(pod)) {
                if (pod->spec.host_network && !network)
                        nd_field_add(errors, ND_FIELD_FORBIDDEN, nullptr, "when `hostUsers` is false", "spec.hostNetwork");
                if (pod->spec.host_pid)
                        nd_field_add(errors, ND_FIELD_FORBIDDEN, nullptr, "when `hostUsers` is false", "spec.HostPID");
                if (pod->spec.host_ipc)
                        nd_field_add(errors, ND_FIELD_FORBIDDEN, nullptr, "when `hostUsers` is false", "spec.HostIPC");
                if (!devices)
                        validate_devices(pod, errors);
        }
        if (nd_pod_is_windows(pod))
                validate_windows(pod, errors);
}

const char *nd_hostusers_obstacle(const struct nd_pod *pod, bool host_network) {
        if (nd_pod_is_windows(pod))
                return "spec.os.name";
        if (pod->spec.host_pid)
                return "spec.hostPID";
        if (pod->spec.host_ipc)
                return "spec.hostIPC";
        if (pod->spec.host_network && !host_network)
                return "spec.hostNetwork";
        return has_volume_devices(pod) ? "volumeDevices" : "";
}
