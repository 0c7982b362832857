/* SPDX-License-Identifier: Apache-2.0 */
/* test-request.c - decoding of the kubelet's messages, and refusal of invalid ones */
#include <unit/expect.h>

#include <cri.pb-c.h>
#include <signal.h>
#include <sys/mount.h>

#include "cri/core/pod-table.h"
#include "cri/core/request-decode.h"
#include "net/protobuf.h"

/* ---- valid messages, for tests to modify ---- */

struct pod_message {
        Runtime__V1__RunPodSandboxRequest request;
        Runtime__V1__PodSandboxConfig config;
        Runtime__V1__PodSandboxMetadata metadata;
        Runtime__V1__LinuxPodSandboxConfig linux;
        Runtime__V1__LinuxSandboxSecurityContext security;
        Runtime__V1__NamespaceOption options;
        Runtime__V1__UserNamespace users;
        Runtime__V1__IDMapping uid, gid, more;
        Runtime__V1__IDMapping *uids[2], *gids[2];
};

static void fill_pod(struct pod_message *m) {
        *m = (struct pod_message) {
                .request = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT,
                .config = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT,
                .metadata = RUNTIME__V1__POD_SANDBOX_METADATA__INIT,
                .linux = RUNTIME__V1__LINUX_POD_SANDBOX_CONFIG__INIT,
                .options = RUNTIME__V1__NAMESPACE_OPTION__INIT,
                .users = RUNTIME__V1__USER_NAMESPACE__INIT,
                .uid = RUNTIME__V1__IDMAPPING__INIT,
                .gid = RUNTIME__V1__IDMAPPING__INIT,
                .more = RUNTIME__V1__IDMAPPING__INIT,
        };
        /* its initialiser names a deprecated field */
        runtime__v1__linux_sandbox_security_context__init(&m->security);
        m->metadata.name = (char *) "web";
        m->metadata.namespace_ = (char *) "default";
        m->metadata.uid = (char *) "u-1";
        m->uid.host_id = m->gid.host_id = 65536;
        m->uid.length = m->gid.length = 65536;
        m->uids[0] = &m->uid;
        m->gids[0] = &m->gid;
        m->uids[1] = m->gids[1] = &m->more;
        m->users.n_uids = m->users.n_gids = 1;
        m->users.uids = m->uids;
        m->users.gids = m->gids;
        m->options.userns_options = &m->users;
        m->security.namespace_options = &m->options;
        m->linux.security_context = &m->security;
        m->config.metadata = &m->metadata;
        m->config.linux = &m->linux;
        m->request.config = &m->config;
}

static struct nd_error *decode_pod(const struct pod_message *m, struct cri_sandbox_request *ret) {
        nd_autotext struct nd_text bytes = {};

        nd_protobuf_pack(&m->request.base, &bytes);
        cri_sandbox_request_done(ret);
        return cri_request_decode_sandbox(nd_text_get(&bytes), bytes.length, ret);
}

struct container_message {
        Runtime__V1__CreateContainerRequest request;
        Runtime__V1__ContainerConfig config;
        Runtime__V1__ContainerMetadata metadata;
        Runtime__V1__ImageSpec image, mounted;
        Runtime__V1__LinuxContainerConfig linux;
        Runtime__V1__LinuxContainerSecurityContext security;
        Runtime__V1__Int64Value user, group;
        Runtime__V1__KeyValue variable;
        Runtime__V1__KeyValue *variables[1];
        Runtime__V1__Mount mount;
        Runtime__V1__Mount *mounts[1];
        Runtime__V1__Device device;
        Runtime__V1__Device *devices[1];
        Runtime__V1__SecurityProfile profile;
        Runtime__V1__IDMapping map;
        Runtime__V1__IDMapping *maps[1];
};

static void fill_container(struct container_message *m) {
        *m = (struct container_message) {
                .request = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT,
                .config = RUNTIME__V1__CONTAINER_CONFIG__INIT,
                .metadata = RUNTIME__V1__CONTAINER_METADATA__INIT,
                .image = RUNTIME__V1__IMAGE_SPEC__INIT,
                .mounted = RUNTIME__V1__IMAGE_SPEC__INIT,
                .linux = RUNTIME__V1__LINUX_CONTAINER_CONFIG__INIT,
                .user = RUNTIME__V1__INT64_VALUE__INIT,
                .group = RUNTIME__V1__INT64_VALUE__INIT,
                .variable = RUNTIME__V1__KEY_VALUE__INIT,
                .mount = RUNTIME__V1__MOUNT__INIT,
                .device = RUNTIME__V1__DEVICE__INIT,
                .profile = RUNTIME__V1__SECURITY_PROFILE__INIT,
                .map = RUNTIME__V1__IDMAPPING__INIT,
        };
        runtime__v1__linux_container_security_context__init(&m->security);
        m->request.pod_sandbox_id = (char *) "s-1";
        m->metadata.name = (char *) "main";
        m->image.image = (char *) "sha256:1";
        m->variable.key = (char *) "A";
        m->variable.value = (ProtobufCBinaryData) {.data = (uint8_t *) "b\xff", .len = 2};
        m->variables[0] = &m->variable;
        m->mount.container_path = (char *) "/data";
        m->mount.host_path = (char *) "/srv";
        m->mounts[0] = &m->mount;
        m->device.host_path = m->device.container_path = (char *) "/dev/fuse";
        m->device.permissions = (char *) "rwm";
        m->devices[0] = &m->device;
        m->map.host_id = 65536;
        m->map.length = 10;
        m->maps[0] = &m->map;
        m->config.metadata = &m->metadata;
        m->config.image = &m->image;
        m->config.n_envs = m->config.n_mounts = m->config.n_devices = 1;
        m->config.envs = m->variables;
        m->config.mounts = m->mounts;
        m->config.devices = m->devices;
        m->linux.security_context = &m->security;
        m->config.linux = &m->linux;
        m->request.config = &m->config;
}

static struct nd_error *decode_container(const struct container_message *m, struct cri_container_request *ret) {
        nd_autofree char *id = nullptr;
        nd_autotext struct nd_text bytes = {};

        nd_protobuf_pack(&m->request.base, &bytes);
        cri_container_request_done(ret);
        return cri_request_decode_container(nd_text_get(&bytes), bytes.length, &id, ret);
}

/* ---- sandboxes ---- */

static void a_pods_message_becomes_a_request([[maybe_unused]] void **state) {
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
        Runtime__V1__PortMapping port = RUNTIME__V1__PORT_MAPPING__INIT, unused = RUNTIME__V1__PORT_MAPPING__INIT;
        Runtime__V1__PortMapping *ports[] = {&port, &unused};
        Runtime__V1__PodSandboxConfig__LabelsEntry label = RUNTIME__V1__POD_SANDBOX_CONFIG__LABELS_ENTRY__INIT;
        Runtime__V1__PodSandboxConfig__LabelsEntry *labels[] = {&label};
        struct pod_message m;

        fill_pod(&m);
        port.host_port = 8080;
        port.container_port = unused.container_port = 80;
        m.config.n_port_mappings = 2;
        m.config.port_mappings = ports;
        label.key = (char *) "app";
        label.value = (char *) "web";
        m.config.n_labels = 1;
        m.config.labels = labels;
        expect_ok(decode_pod(&m, &request));
        assert_string_equal(request.name, "web");
        assert_string_equal(request.hostname, "");
        assert_true(request.user_namespace);
        assert_int_equal(request.uids.outside, 65536);
        assert_int_equal(request.ports.count, 1); /* a mapping without a host port is dropped */
        assert_true(cri_pairs_have(&request.labels, "app", "web"));
        assert_false(cri_pairs_have(&request.labels, "app", "other"));
        assert_false(request.has_dns);
}

static void users_are_the_nodes_by_default([[maybe_unused]] void **state) {
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
        struct pod_message m;

        fill_pod(&m);
        m.options.userns_options = nullptr; /* old kubelets */
        expect_ok(decode_pod(&m, &request));
        assert_false(request.user_namespace);
        m.options.userns_options = &m.users;
        m.users.mode = RUNTIME__V1__NAMESPACE_MODE__NODE;
        m.users.n_uids = m.users.n_gids = 0;
        expect_ok(decode_pod(&m, &request));
        assert_false(request.user_namespace);
}

static void invalid_id_maps_are_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
        struct pod_message m;

        fill_pod(&m);
        m.users.n_uids = 2;
        expect_error(decode_pod(&m, &request), ND_INVALID, "has 2 lines");
        m.users.n_uids = 0;
        expect_error(decode_pod(&m, &request), ND_INVALID, "has 0 lines");
        m.users.n_uids = 1;
        m.uid.container_id = 1;
        expect_error(decode_pod(&m, &request), ND_INVALID, "must begin at 0");
        m.uid.container_id = 0;
        m.gid.host_id = 0;
        expect_error(decode_pod(&m, &request), ND_INVALID, "the host's root");
        m.gid.host_id = 4294901760;
        expect_error(decode_pod(&m, &request), ND_INVALID, "exceeds the range of IDs");
        m.gid.host_id = 65536;
        m.gid.length = 0;
        expect_error(decode_pod(&m, &request), ND_INVALID, "is empty");
        m.gid.length = 65536;
        m.users.mode = RUNTIME__V1__NAMESPACE_MODE__CONTAINER;
        expect_error(decode_pod(&m, &request), ND_INVALID, "invalid user namespace mode");
        m.users.mode = RUNTIME__V1__NAMESPACE_MODE__TARGET;
        expect_error(decode_pod(&m, &request), ND_INVALID, "invalid user namespace mode");
        m.users.mode = RUNTIME__V1__NAMESPACE_MODE__POD;
        m.options.pid = RUNTIME__V1__NAMESPACE_MODE__NODE;
        expect_error(decode_pod(&m, &request), ND_INVALID, "the node's pid namespace");
}

static void pods_with_missing_names_or_invalid_ports_and_paths_are_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
        Runtime__V1__PortMapping port = RUNTIME__V1__PORT_MAPPING__INIT, *ports[] = {&port};
        struct pod_message m;

        fill_pod(&m);
        m.metadata.uid = (char *) "";
        expect_error(decode_pod(&m, &request), ND_INVALID, "no name, namespace or uid");
        fill_pod(&m);
        m.config.log_directory = (char *) "var/log";
        expect_error(decode_pod(&m, &request), ND_INVALID, "log_directory must be an absolute path");
        fill_pod(&m);
        m.linux.cgroup_parent = (char *) "/kubepods/../..";
        expect_error(decode_pod(&m, &request), ND_INVALID, "contains '..'");
        fill_pod(&m);
        port.host_port = 70000;
        m.config.n_port_mappings = 1;
        m.config.port_mappings = ports;
        expect_error(decode_pod(&m, &request), ND_INVALID, "must be between 1 and 65535");
        fill_pod(&m);
        m.options.network = RUNTIME__V1__NAMESPACE_MODE__CONTAINER;
        expect_error(decode_pod(&m, &request), ND_INVALID, "invalid network namespace mode");
        fill_pod(&m);
        m.options.pid = RUNTIME__V1__NAMESPACE_MODE__TARGET;
        expect_error(decode_pod(&m, &request), ND_INVALID, "TARGET is for containers");
        expect_error(cri_request_decode_sandbox("\xff", 1, &request), ND_INVALID, "");
        expect_error(cri_request_decode_sandbox("", 0, &request), ND_INVALID, "no config");
}

/* ---- checks against other pods ---- */

static struct cri_sandbox *add_pod(struct cri_pod_table *pods, struct cri_sandbox_request *request,
                                   enum cri_sandbox_state state) {
        struct cri_sandbox *sandbox = nd_new(struct cri_sandbox);

        cri_pod_table_new_id(sandbox->id);
        sandbox->state = state;
        sandbox->request = nd_take(*request, (struct cri_sandbox_request) {});
        cri_pod_table_add_sandbox(pods, sandbox);
        return sandbox;
}

static void no_two_pods_have_the_same_ids([[maybe_unused]] void **state) {
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
        nd_cleanup(cri_pod_table_done) struct cri_pod_table pods = {};
        struct cri_sandbox *there;
        struct pod_message m;

        fill_pod(&m);
        expect_ok(decode_pod(&m, &request));
        there = add_pod(&pods, &request, SANDBOX_READY);
        m.metadata.uid = (char *) "u-2";
        expect_ok(decode_pod(&m, &request));
        expect_error(cri_request_check_sandbox(&pods, &request), ND_INVALID,
                     "IDs 65536 to 131071 are in use by pod default/web (uid u-1)");
        m.uid.host_id = 131072;
        expect_ok(decode_pod(&m, &request));
        /* the groups are still the same */
        expect_error(cri_request_check_sandbox(&pods, &request), ND_INVALID, "");
        m.gid.host_id = 131072;
        expect_ok(decode_pod(&m, &request));
        expect_ok(cri_request_check_sandbox(&pods, &request));
        m.uid.host_id = m.gid.host_id = 65536;
        there->state = SANDBOX_NOTREADY; /* none of it runs: the kubelet may reuse its IDs */
        expect_ok(decode_pod(&m, &request));
        expect_ok(cri_request_check_sandbox(&pods, &request));
}

static void a_name_that_cni_cannot_take_is_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
        struct pod_message m;

        for (size_t i = 0; i < 3; i++) {
                fill_pod(&m);
                *(char **[]) {&m.metadata.name, &m.metadata.namespace_, &m.metadata.uid}[i] =
                        (char *) "a;K8S_POD_NAMESPACE=kube-system";
                expect_error(decode_pod(&m, &request), ND_INVALID, "must not contain ';' or '='");
        }
}

static void one_attempt_is_made_once([[maybe_unused]] void **state) {
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
        nd_cleanup(cri_pod_table_done) struct cri_pod_table pods = {};
        struct pod_message m;

        fill_pod(&m);
        expect_ok(decode_pod(&m, &request));
        (void) add_pod(&pods, &request, SANDBOX_NEW);
        expect_ok(decode_pod(&m, &request));
        expect_error(cri_request_check_sandbox(&pods, &request), ND_EXISTS, "attempt 0 already exists");
        m.metadata.attempt = 1;
        expect_ok(decode_pod(&m, &request));
        expect_ok(cri_request_check_sandbox(&pods, &request));
}

static void a_containers_users_are_its_pods([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_request_done) struct cri_container_request container = {};
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request pod = {};
        struct container_message c;
        struct pod_message m;

        fill_pod(&m);
        expect_ok(decode_pod(&m, &pod));
        fill_container(&c);
        expect_ok(decode_container(&c, &container));
        expect_error(cri_request_check_container(&pod, &container), ND_INVALID, "differs from its pod's");
        c.security.namespace_options = &m.options;
        expect_ok(decode_container(&c, &container));
        expect_ok(cri_request_check_container(&pod, &container));
        c.security.privileged = true;
        expect_ok(decode_container(&c, &container));
        expect_error(cri_request_check_container(&pod, &container), ND_INVALID, "privileged");
}

/* ---- containers ---- */

static void a_containers_message_becomes_a_request([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_request_done) struct cri_container_request request = {};
        struct container_message m;

        fill_container(&m);
        m.user.value = 1000;
        m.security.run_as_user = &m.user;
        m.config.stop_signal = RUNTIME__V1__SIGNAL__SIGNAL_SIGUSR1;
        m.config.log_path = (char *) "main/0.log";
        expect_ok(decode_container(&m, &request));
        assert_string_equal(request.name, "main");
        assert_string_equal(request.environment.items[0].value, "b\xff"); /* values are bytes */
        assert_true(request.has_user);
        assert_int_equal(request.user, 1000);
        assert_int_equal(request.stop_signal, SIGUSR1);
        assert_int_equal(request.seccomp.kind, PROFILE_UNSET);
        assert_false(request.mounts.items[0].idmapped);
}

static void a_localhost_profile_may_have_the_prefix_of_the_deprecated_field([[maybe_unused]] void **state) {
        static const char *const refs[] = {"shop", "localhost/shop"};

        for (size_t i = 0; i < nd_count_of(refs); i++) {
                nd_cleanup(cri_container_request_done) struct cri_container_request request = {};
                struct container_message m;

                fill_container(&m);
                m.profile.profile_type = RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost;
                m.profile.localhost_ref = (char *) refs[i];
                m.security.apparmor = m.security.seccomp = &m.profile;
                expect_ok(decode_container(&m, &request));
                assert_int_equal(request.apparmor.kind, PROFILE_LOCALHOST);
                assert_string_equal(request.apparmor.localhost, "shop");
                assert_string_equal(request.seccomp.localhost, "shop");
        }
}

static void mount_options_become_attributes([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_request_done) struct cri_container_request request = {}, unknown = {};
        char *options[] = {(char *) "nosuid", (char *) "noexec", (char *) "noexec", (char *) "suid"};
        struct container_message m;

        fill_container(&m);
        m.mount.mount_options = options;
        m.mount.n_mount_options = 3;
        expect_ok(decode_container(&m, &request));
        assert_int_equal(request.mounts.items[0].attributes, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
        m.mount.n_mount_options = 4;
        expect_error(decode_container(&m, &unknown), ND_INVALID,
                     "mount at '/data': mount option 'suid' is not supported: use noexec, nodev or nosuid");
}

static void invalid_mounts_are_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_request_done) struct cri_container_request request = {};
        struct container_message m;

        fill_container(&m);
        m.mount.recursive_read_only = true;
        expect_error(decode_container(&m, &request), ND_INVALID, "mount at '/data': recursive_read_only needs readonly");
        m.mount.readonly = true;
        m.mount.propagation = RUNTIME__V1__MOUNT_PROPAGATION__PROPAGATION_BIDIRECTIONAL;
        expect_error(decode_container(&m, &request), ND_INVALID, "private propagation");
        fill_container(&m);
        m.mount.container_path = (char *) "data";
        expect_error(decode_container(&m, &request), ND_INVALID, "must be an absolute path: 'data'");
        fill_container(&m);
        m.mount.host_path = (char *) "";
        expect_error(decode_container(&m, &request), ND_INVALID, "host_path or image is required");
        m.mounted.image = (char *) "sha256:2";
        m.mount.image = &m.mounted;
        expect_error(decode_container(&m, &request), ND_INVALID, "an image mount must be readonly");
        m.mount.readonly = true;
        expect_ok(decode_container(&m, &request));
        fill_container(&m);
        m.mount.n_uidmappings = 1;
        m.mount.uidmappings = m.maps;
        expect_error(decode_container(&m, &request), ND_INVALID, "gidMappings has 0 lines");
        m.mount.n_gidmappings = 1;
        m.mount.gidmappings = m.maps;
        expect_ok(decode_container(&m, &request));
        assert_true(request.mounts.items[0].idmapped);
}

static void container_options_that_the_cri_forbids_are_refused([[maybe_unused]] void **state) {
        nd_cleanup(cri_container_request_done) struct cri_container_request request = {};
        struct container_message m;

        fill_container(&m);
        m.security.run_as_group = &m.group;
        expect_error(decode_container(&m, &request), ND_INVALID, "run_as_group needs");
        m.security.run_as_user = &m.user;
        m.security.run_as_username = (char *) "nobody";
        expect_error(decode_container(&m, &request), ND_INVALID, "exclude each other");
        fill_container(&m);
        m.variable.value = (ProtobufCBinaryData) {.data = (uint8_t *) "a\0b", .len = 3};
        expect_error(decode_container(&m, &request), ND_INVALID, "null byte");
        m.variable.key = (char *) "A=B";
        expect_error(decode_container(&m, &request), ND_INVALID, "invalid name of an environment variable");
        fill_container(&m);
        m.device.permissions = (char *) "rwx";
        expect_error(decode_container(&m, &request), ND_INVALID, "only r, w and m are allowed");
        fill_container(&m);
        m.config.log_path = (char *) "../other/0.log";
        expect_error(decode_container(&m, &request), ND_INVALID, "leaves the pod's log_directory");
        m.config.log_path = (char *) "/0.log";
        expect_error(decode_container(&m, &request), ND_INVALID, "must be relative");
        fill_container(&m);
        m.profile.profile_type = RUNTIME__V1__SECURITY_PROFILE__PROFILE_TYPE__Localhost;
        m.security.seccomp = &m.profile;
        expect_error(decode_container(&m, &request), ND_INVALID, "needs a name");
        m.profile.localhost_ref = (char *) "localhost/";
        expect_error(decode_container(&m, &request), ND_INVALID, "needs a name");
        fill_container(&m);
        m.image.image = (char *) "";
        expect_error(decode_container(&m, &request), ND_INVALID, "no image");
        fill_container(&m);
        m.config.stop_signal = (Runtime__V1__Signal) 99;
        expect_error(decode_container(&m, &request), ND_INVALID, "unknown stop_signal 99");
}

static void signals_convert_both_ways([[maybe_unused]] void **state) {
        assert_int_equal(cri_request_signal_from_cri(RUNTIME__V1__SIGNAL__SIGNAL_SIGTERM), SIGTERM);
        assert_int_equal(cri_request_signal_from_cri(RUNTIME__V1__SIGNAL__SIGNAL_SIGRTMIN), 34);
        assert_int_equal(cri_request_signal_from_cri(RUNTIME__V1__SIGNAL__SIGNAL_SIGRTMAX), 64);
        assert_int_equal(cri_request_signal_from_cri(RUNTIME__V1__SIGNAL__SIGNAL_SIGRTMAX + 1), -EINVAL);
        assert_int_equal(cri_request_signal_from_cri(-1), -EINVAL);
        for (int signal = 1; signal <= RUNTIME__V1__SIGNAL__SIGNAL_SIGRTMAX; signal++) {
                int number = cri_request_signal_from_cri(signal);

                assert_true(number > 0);
                assert_int_equal(cri_request_signal_from_cri(cri_request_signal_to_cri(number)), number);
        }
}

static void a_cgroup_parent_is_a_path_or_a_name([[maybe_unused]] void **state) {
        static const struct {
                const char *given, *path;
        } cases[] = {
                {"", ""},
                {"/kubepods/pod1", "/kubepods/pod1"},
                {"/kubepods.slice/kubepods-pod1.slice", "/kubepods.slice/kubepods-pod1.slice"},
                {"kubepods-burstable-pod1.slice", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice"},
                {"kubepods/pod1", "/kubepods/pod1"},
                {"kubepods", "/kubepods"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
                struct pod_message m;

                fill_pod(&m);
                m.linux.cgroup_parent = (char *) cases[i].given;
                expect_ok(decode_pod(&m, &request));
                assert_string_equal(request.cgroup_parent, cases[i].path);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_cgroup_parent_is_a_path_or_a_name),
                cmocka_unit_test(a_pods_message_becomes_a_request),
                cmocka_unit_test(users_are_the_nodes_by_default),
                cmocka_unit_test(invalid_id_maps_are_refused),
                cmocka_unit_test(pods_with_missing_names_or_invalid_ports_and_paths_are_refused),
                cmocka_unit_test(no_two_pods_have_the_same_ids),
                cmocka_unit_test(a_name_that_cni_cannot_take_is_refused),
                cmocka_unit_test(one_attempt_is_made_once),
                cmocka_unit_test(a_containers_users_are_its_pods),
                cmocka_unit_test(a_containers_message_becomes_a_request),
                cmocka_unit_test(a_localhost_profile_may_have_the_prefix_of_the_deprecated_field),
                cmocka_unit_test(mount_options_become_attributes),
                cmocka_unit_test(invalid_mounts_are_refused),
                cmocka_unit_test(container_options_that_the_cri_forbids_are_refused),
                cmocka_unit_test(signals_convert_both_ways),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
