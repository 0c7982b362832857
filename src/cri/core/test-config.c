/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/config.h"

#include <unit/expect.h>

#include <fcntl.h>

#include "base/text.h"
#include "sys/file.h"

static struct nd_error *parse(const char *text, struct cri_config *config) {
        cri_config_init(config);
        return cri_config_parse(text, strlen(text), config);
}

/* All fields, one per line. A helper's directory depends on how the program was built. */
static char *describe(const struct cri_config *config) {
        const char *const texts[] = {config->socket,
                                     config->images,
                                     config->certificates,
                                     config->state,
                                     config->run,
                                     config->netns,
                                     config->crun,
                                     config->init,
                                     config->cni_config,
                                     config->cni_plugins,
                                     config->seccomp_profile,
                                     config->apparmor_profiles,
                                     config->cdi,
                                     config->verifier,
                                     config->cgroup_prefix,
                                     config->runtime_name,
                                     config->pull_broker,
                                     config->metrics,
                                     strrchr(config->monitor, '/'),
                                     strrchr(config->fetch_helper, '/'),
                                     strrchr(config->unpack_helper, '/'),
                                     strrchr(config->bridge_helper, '/')};
        nd_autotext struct nd_text text = ND_TEXT(1 << 16);

        for (size_t i = 0; i < nd_count_of(texts); i++)
                nd_text_addf(&text, "%s\n", texts[i]);
        nd_text_addf(&text, "%u %u %u %zu %zu %d %d %d %d", config->pulls, config->downloads, config->stalled_s,
                     config->pinned.count, config->handlers.count, config->systemd_cgroups, config->unlocked_volumes,
                     config->device_ownership, config->refuse_unmapped_owners);
        return nd_text_steal(&text);
}

static void an_empty_file_means_defaults([[maybe_unused]] void **state) {
        nd_cleanup(cri_config_done) struct cri_config config = {};

        expect_ok(parse("# only a comment\n", &config));
        assert_string_equal(config.socket, "/run/nodens/cri.sock");
        assert_int_equal(config.pulls, 8);
        assert_string_equal(config.metrics, "off");
}

static void every_key_is_taken([[maybe_unused]] void **state) {
        nd_cleanup(cri_config_done) struct cri_config config = {};
        struct cri_runtime_handler handler;

        expect_ok(parse(
                "socket: /a\nimages: /b\ncertificates: /c\nfetchHelper: /d\nunpackHelper: /u\nparallelPulls: 2\nparallelDownloads: 4\n"
                "noProgressSeconds: 9\npinnedImages:\n- pause:3\n- other\nstate: /e\nrun: /f\nnetworkNamespaces: /g\n"
                "crun: crun-next\nmonitor: /h\ninit: /i\ncgroupDriver: cgroupfs\ncgroupPrefix: crio\nruntimeName: containerd\nwithoutCgroups: true\ncniConfig: /j\n"
                "cniPlugins: [/k, /l]\nseccompProfile: /m\nmetrics: 127.0.0.1:9100\ncdi: [/n]\ndeviceOwnershipFromSecurityContext: true\nrefuseUnmappedOwners: true\nbridgeHelper: /r\nvolumes:\n  bridge: auto\n  rules:\n  - filesystem: nfs4\n    as: caller\n  - filesystem: fuse.s3fs\n    forceOwner: 1000:1001\nimageVerifier: /p\npullBroker: /q\nruntimeHandlers:\n- name: runc\n  engine: runc\n  program: /o\n- name: nested\n  writableCgroups: true\n",
                &config));
        assert_string_equal(config.socket, "/a");
        assert_string_equal(config.images, "/b");
        assert_string_equal(config.certificates, "/c");
        assert_string_equal(config.fetch_helper, "/d");
        assert_string_equal(config.unpack_helper, "/u");
        assert_int_equal(config.pulls, 2);
        assert_int_equal(config.downloads, 4);
        assert_int_equal(config.stalled_s, 9);
        assert_int_equal(config.pinned.count, 2);
        assert_string_equal(config.state, "/e");
        assert_string_equal(config.run, "/f");
        assert_string_equal(config.netns, "/g");
        assert_string_equal(config.crun, "crun-next");
        assert_string_equal(config.monitor, "/h");
        assert_string_equal(config.init, "/i");
        assert_false(config.systemd_cgroups);
        assert_string_equal(config.cgroup_prefix, "crio");
        assert_string_equal(config.runtime_name, "containerd");
        assert_true(config.without_cgroups);
        assert_string_equal(config.cni_config, "/j");
        assert_string_equal(config.cni_plugins, "/k:/l");
        assert_string_equal(config.seccomp_profile, "/m");
        assert_string_equal(config.metrics, "127.0.0.1:9100");
        assert_string_equal(config.cdi, "/n");
        assert_true(config.device_ownership);
        assert_true(config.refuse_unmapped_owners);
        assert_string_equal(config.bridge_helper, "/r");
        assert_true(config.bridge_volumes);
        assert_int_equal(config.bridge_rules.count, 2);
        assert_string_equal(config.bridge_rules.items[0].filesystem, "nfs4");
        assert_string_equal(config.bridge_rules.items[0].as, "caller");
        assert_string_equal(config.bridge_rules.items[1].force_owner, "1000:1001");
        assert_string_equal(config.verifier, "/p");
        assert_string_equal(config.pull_broker, "/q");
        assert_int_equal(config.handlers.count, 2);
        assert_true(cri_config_handler(&config, "runc", &handler));
        assert_int_equal(handler.kind, OCI_RUNTIME_RUNC);
        assert_string_equal(handler.program, "/o");
        assert_true(cri_config_handler(&config, "nested", &handler));
        assert_string_equal(handler.program, "crun");
        assert_true(handler.writable_cgroups);
        assert_true(cri_config_handler(&config, "", &handler));
        assert_string_equal(handler.program, "crun-next");
        assert_false(cri_config_handler(&config, "kata", &handler));
}

static void add_setting(const char *name, const char *value, void *userdata) {
        nd_text_addf(userdata, "%s=%s\n", name, value);
}

static void the_settings_in_use_are_described_by_their_keys([[maybe_unused]] void **state) {
        nd_cleanup(cri_config_done) struct cri_config config = {};
        nd_autotext struct nd_text text = ND_TEXT(64 << 10);

        expect_ok(parse("parallelPulls: 2\npinnedImages: [a, b]\ncgroupDriver: cgroupfs\ncniPlugins: [/k, /l]\n"
                        "unlockedReadOnlyVolumes: true\nruntimeHandlers:\n- name: runc\n  engine: runc\n  program: /o\n",
                        &config));
        cri_config_describe(&config, add_setting, &text);
        expect_contains(nd_text_get(&text), "socket=/run/nodens/cri.sock\n");
        expect_contains(nd_text_get(&text), "parallelPulls=2\n");
        expect_contains(nd_text_get(&text), "pinnedImages=a,b\n");
        expect_contains(nd_text_get(&text), "cgroupDriver=cgroupfs\n");
        expect_contains(nd_text_get(&text), "cniPlugins=/k:/l\n");
        expect_contains(nd_text_get(&text), "runtimeHandlers=runc=/o\n");
        expect_contains(nd_text_get(&text), "imageVerifier=off\n");
        expect_contains(nd_text_get(&text), "volumes=bridge=off\n");
        expect_contains(nd_text_get(&text), "unlockedReadOnlyVolumes=true\n");
        expect_contains(nd_text_get(&text), "metrics=off\n");
}

static void an_invalid_key_or_value_is_named_in_the_error([[maybe_unused]] void **state) {
        static const struct {
                const char *text;
                const char *words;
        } cases[] = {
                {"sockets: /a\n", "unknown key 'sockets'"},
                {"volumes: auto\n", "volumes must have the members bridge and rules"},
                {"volumes: {bridge: yes}\n", "volumes: invalid member 'bridge': bridge is auto or off"},
                {"volumes: {bridges: auto}\n", "volumes: invalid member 'bridges'"},
                {"volumes: {rules: {}}\n", "volumes: rules must be a list"},
                {"volumes: {rules: [{as: root}]}\n", "volumes: a rule has no filesystem"},
                {"volumes: {rules: [{filesystem: nfs4, as: nobody}]}\n", "volumes: invalid member 'as' of a rule"},
                {"volumes: {rules: [{filesystem: nfs4, forceOwner: 5}]}\n", "volumes: invalid member 'forceOwner' of a rule"},
                {"runtimeHandlers: {}\n", "must be a list"},
                {"runtimeHandlers: [{name: crun}]\n", "duplicate handler 'crun'"},
                {"runtimeHandlers: [{name: a}, {name: a}]\n", "duplicate handler 'a'"},
                {"runtimeHandlers: [{name: ../a}]\n", "'name': a handler has a name"},
                {"runtimeHandlers: [{engine: runc}]\n", "no name"},
                {"runtimeHandlers: [{name: a, engine: kata}]\n", "'engine': a handler"},
                {"runtimeHandlers: [{name: a, program: bin/x}]\n", "'program': a handler"},
                {"runtimeHandlers: [{name: a, color: red}]\n", "'color': a handler"},
                {"runtimeHandlers: [{name: a, engine: runc, writableCgroups: true}]\n",
                 "'a': writableCgroups needs the engine crun"},
                {"runtimeHandlers: [5]\n", "no name"},
                {"imageVerifier: verify\n", "imageVerifier must be an absolute path, or off"},
                {"metrics: 127.0.0.1:0\n", "metrics must be off, the absolute path"},
                {"metrics: 0.0.0.0:80\n", "metrics must be off, the absolute path"},
                {"metrics: true\n", "metrics must be off, the absolute path"},
                {"cgroupDriver: v2\n", "cgroupDriver must be systemd or cgroupfs"},
                {"cgroupPrefix: a:b\n", "cgroupPrefix must be a name of small letters"},
                {"cgroupPrefix: ../x\n", "cgroupPrefix must be a name of small letters"},
                {"runtimeName: ''\n", "runtimeName must be a name of small letters"},
                {"crun: bin/crun\n", "crun must be a program's name"},
                {"crun: \"\"\n", "crun must be a program's name"},
                {"cniPlugins: /opt\n", "cniPlugins must be a list"},
                {"cniPlugins: [\"/a:/b\"]\n", "without colons"},
                {"socket: a\n", "socket must be an absolute path"},
                {"parallelPulls: 0\n", "parallelPulls must be a number from 1 to 64"},
                {"parallelPulls: many\n", "parallelPulls must be a number"},
                {"pinnedImages: pause\n", "pinnedImages must be a list"},
                {"- a\n", "not a list of keys"},
                {"socket: /a\nsocket: /b\n", "second time"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(cri_config_done) struct cri_config config = {};

                expect_error(parse(cases[i].text, &config), ND_INVALID, cases[i].words);
        }
}

/* debian/cri.yaml with "#name: value" as "name: value"; comments of prose stay. */
static char *shipped_settings(void) {
        nd_autofree char *path = nd_format("%s/debian/cri.yaml", getenv("NODENS_SOURCE")), *text = nullptr;
        nd_autotext struct nd_text settings = ND_TEXT(1 << 16);

        assert_non_null(getenv("NODENS_SOURCE"));
        expect_ok(nd_file_read(AT_FDCWD, path, 1 << 16, &text, nullptr));
        for (const char *line = text; *line;) {
                size_t length = strcspn(line, "\n");
                size_t name = line[0] == '#' ? strspn(line + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") : 0;
                bool hidden = name > 0 && line[1 + name] == ':';

                nd_text_append(&settings, line + hidden, length - hidden);
                nd_text_add(&settings, "\n");
                line += length + (line[length] == '\n');
        }
        return nd_text_steal(&settings);
}

static void the_shipped_file_names_every_setting([[maybe_unused]] void **state) {
        nd_autofree char *settings = shipped_settings();
        const char *key;

        assert_non_null(cri_config_key(20));
        for (size_t i = 0; (key = cri_config_key(i)); i++) {
                nd_autofree char *line = nd_format("\n%s: ", key);

                if (!strstr(settings, line))
                        fail_msg("debian/cri.yaml does not name the setting '%s'", key);
        }
}

static void the_shipped_file_shows_the_defaults([[maybe_unused]] void **state) {
        nd_cleanup(cri_config_done) struct cri_config shown = {}, defaults = {};
        nd_autofree char *settings = shipped_settings(), *shown_text = nullptr, *default_text = nullptr;

        cri_config_init(&defaults);
        expect_ok(parse(settings, &shown)); /* refuses names that are not settings */
        shown_text = describe(&shown);
        default_text = describe(&defaults);
        assert_string_equal(shown_text, default_text);
}

static void a_named_file_must_exist([[maybe_unused]] void **state) {
        nd_cleanup(cri_config_done) struct cri_config config = {};

        expect_error(cri_config_read("/nonexistent/cri.yaml", &config), ND_NOT_FOUND, "/nonexistent/cri.yaml");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_empty_file_means_defaults),
                cmocka_unit_test(every_key_is_taken),
                cmocka_unit_test(the_settings_in_use_are_described_by_their_keys),
                cmocka_unit_test(an_invalid_key_or_value_is_named_in_the_error),
                cmocka_unit_test(the_shipped_file_names_every_setting),
                cmocka_unit_test(the_shipped_file_shows_the_defaults),
                cmocka_unit_test(a_named_file_must_exist),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
