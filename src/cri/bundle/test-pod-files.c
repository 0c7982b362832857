/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <unit/scratch.h>

#include "base/text.h"
#include "cri/bundle/pod-files.h"
#include "cri/core/config.h"
#include "sys/mount.h"

enum { HOST = 1 << 20, COUNT = 65536 };

static char hostname[] = "a-pod", empty[] = "";

static struct cri_sandbox_request request_of(void) {
        static char *servers[] = {(char *) "10.0.0.10", (char *) "10.0.0.11"},
                    *searches[] = {(char *) "a.svc", (char *) "svc"};
        static char *options[] = {(char *) "ndots:5"};

        return (struct cri_sandbox_request) {.hostname = hostname,
                                             .has_dns = true,
                                             .dns_servers = {.items = servers, .count = 2},
                                             .dns_searches = {.items = searches, .count = 2},
                                             .dns_options = {.items = options, .count = 1},
                                             .user_namespace = true,
                                             .uids = {.outside = HOST, .count = COUNT},
                                             .gids = {.outside = HOST, .count = COUNT}};
}

static void set_up(struct cri_config *config, struct cri_sandbox *sandbox, char **ret_root) {
        *ret_root = scratch_make();
        cri_config_init(config);
        free(config->run);
        config->run = nd_strdup(*ret_root);
        *sandbox = (struct cri_sandbox) {.request = request_of()};
        memset(sandbox->id, 'c', POD_ID);
}

static char *contents(const struct cri_config *config, const struct cri_sandbox *sandbox, enum cri_pod_file which) {
        nd_autofree char *path = cri_pod_files_path(config, sandbox, which);

        return scratch_read("", path);
}

static void a_pod_gets_its_own_hostname_resolv_conf_and_shm([[maybe_unused]] void **state) {
        struct cri_config config;
        struct cri_sandbox sandbox;
        struct statvfs fs;
        struct stat st;
        char *root;

        if (geteuid() != 0)
                skip_because("mounting needs privilege");
        set_up(&config, &sandbox, &root);
        expect_ok(cri_pod_files_make(&config, &sandbox));
        expect_text(contents(&config, &sandbox, POD_HOSTNAME), "a-pod\n");
        expect_text(contents(&config, &sandbox, POD_RESOLV),
                    "search a.svc svc\nnameserver 10.0.0.10\nnameserver 10.0.0.11\noptions ndots:5\n");
        {
                nd_autofree char *hosts = contents(&config, &sandbox, POD_HOSTS),
                                 *shm = cri_pod_files_path(&config, &sandbox, POD_SHM);

                expect_contains(hosts, "127.0.0.1\tlocalhost\n");
                assert_int_equal(stat(shm, &st), 0);
                assert_int_equal(st.st_mode, S_IFDIR | 01777);
                assert_int_equal(st.st_uid, HOST);
                assert_int_equal(statvfs(shm, &fs), 0);
                assert_int_equal(fs.f_blocks * fs.f_frsize, 64 << 20);
                assert_int_equal(fs.f_flag & (ST_NOSUID | ST_NODEV | ST_NOEXEC), ST_NOSUID | ST_NODEV | ST_NOEXEC);
        }
        expect_ok(cri_pod_files_undo(&config, &sandbox));
        /* nothing is left, and that is no error */
        expect_ok(cri_pod_files_undo(&config, &sandbox));
        assert_int_equal(scratch_entries(root, "pods"), 0);
        cri_config_done(&config);
        scratch_remove(&root);
}

static void a_pod_on_the_hosts_network_and_ipc_uses_the_hosts_files([[maybe_unused]] void **state) {
        nd_autofree char *node = nullptr;
        char name[65] = "";
        struct cri_config config;
        struct cri_sandbox sandbox;
        char *root;

        if (geteuid() != 0)
                skip_because("mounting needs privilege");
        set_up(&config, &sandbox, &root);
        sandbox.request.network = sandbox.request.ipc = NAMESPACE_NODE;
        sandbox.request.hostname = empty;
        sandbox.request.has_dns = false;
        assert_int_equal(gethostname(name, sizeof name - 1), 0);
        node = nd_format("%s\n", name);
        expect_text(cri_pod_files_path(&config, &sandbox, POD_SHM), "/dev/shm");
        expect_ok(cri_pod_files_make(&config, &sandbox));
        expect_text(contents(&config, &sandbox, POD_HOSTNAME), node);
        expect_ok(cri_pod_files_undo(&config, &sandbox));
        cri_config_done(&config);
        scratch_remove(&root);
}

static void a_value_cannot_add_a_line([[maybe_unused]] void **state) {
        char *words[] = {(char *) "a\nnameserver 6.6.6.6"};
        struct cri_sandbox_request request = request_of();

        expect_ok(cri_pod_files_check(&request));
        request.dns_searches.items = words;
        request.dns_searches.count = 1;
        expect_error(cri_pod_files_check(&request), ND_INVALID, "DNS search: the value contains a line break");
        request = request_of();
        request.hostname = (char *) "a\nb";
        expect_error(cri_pod_files_check(&request), ND_INVALID, "host name");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_pod_gets_its_own_hostname_resolv_conf_and_shm),
                cmocka_unit_test(a_pod_on_the_hosts_network_and_ipc_uses_the_hosts_files),
                cmocka_unit_test(a_value_cannot_add_a_line),
        };

        scratch_private_mounts();
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
