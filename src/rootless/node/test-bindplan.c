/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <unit/scratch.h>

#include "base/text.h"
#include "rootless/node/bindplan.h"

/* A small host root: /usr merged, a few files in /etc, a home directory with a project and keys. */
static char *machine(void) {
        char *top = scratch_make();
        nd_autofree char *bin = nd_format("%s/bin", top), *zone = nd_format("%s/etc/localtime", top);

        scratch_mkdir(top, "usr/bin");
        scratch_mkdir(top, "etc/ssl");
        scratch_mkdir(top, "etc/cni");
        scratch_mkdir(top, "home/u/project");
        scratch_mkdir(top, "home/u/.ssh");
        scratch_mkdir(top, "run/user/1000");
        scratch_mkdir(top, "srv/models");
        scratch_text(top, "etc/passwd", "root:x:0:0::/root:/bin/sh\n");
        scratch_text(top, "etc/resolv.conf", "nameserver 127.0.0.53\n");
        assert_int_equal(symlink("usr/bin", bin), 0);
        assert_int_equal(symlink("../usr/share/zoneinfo/UTC", zone), 0);
        return top;
}

static struct rootless_bindplan_facts facts(const char *top) {
        return (struct rootless_bindplan_facts) {.machine = top,
                                                 .name = "n",
                                                 .api = "/run/user/1000/nodens/n/api",
                                                 .home = "/home/u",
                                                 .runtime = "/run/user/1000",
                                                 .resolv = "nameserver 169.254.1.1\n",
                                                 .own_network = true};
}

static const struct rootless_bind *find(const struct rootless_bindplan *plan, const char *target) {
        nd_vector_each (bind, plan) {
                if (nd_streq(bind->target, target))
                        return bind;
        }
        return nullptr;
}

static void programs_are_read_only_and_keep_their_paths([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        struct rootless_bindplan_facts f = facts(top);

        expect_ok(rootless_bindplan_make(&f, &plan));
        assert_int_equal(find(&plan, "/usr")->kind, BIND_TREE);
        assert_true(find(&plan, "/usr")->read_only);
        assert_int_equal(find(&plan, "/bin")->kind, BIND_SYMLINK);
        assert_string_equal(find(&plan, "/bin")->source, "usr/bin");
        assert_null(find(&plan, "/lib64"));
}

static void etc_is_copied_except_files_that_the_node_writes([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        struct rootless_bindplan_facts f = facts(top);

        expect_ok(rootless_bindplan_make(&f, &plan));
        assert_int_equal(find(&plan, "/etc/passwd")->kind, BIND_COPY);
        assert_true(find(&plan, "/etc/ssl")->read_only);
        assert_int_equal(find(&plan, "/etc/localtime")->kind, BIND_SYMLINK);
        assert_null(find(&plan, "/etc/cni"));
        assert_int_equal(find(&plan, "/etc/resolv.conf")->kind, BIND_TEXT);
        assert_string_equal(find(&plan, "/etc/resolv.conf")->source, "nameserver 169.254.1.1\n");
        assert_string_equal(find(&plan, "/etc/hostname")->source, "n\n");
}

static void home_run_and_tmp_contain_only_our_own_directories([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        struct rootless_bindplan_facts f = facts(top);

        f.data = "/home/u/.local/share/nodens/n";
        expect_ok(rootless_bindplan_make(&f, &plan));
        nd_vector_each (bind, &plan) {
                bool of_machine = bind->kind == BIND_TREE || bind->kind == BIND_FILE || bind->kind == BIND_COPY;

                if (!of_machine)
                        continue;
                assert_true(nd_has_prefix(bind->source, "/usr") || nd_has_prefix(bind->source, "/etc/") ||
                            nd_has_prefix(bind->source, "/dev/") || nd_has_prefix(bind->source, f.data) ||
                            nd_has_prefix(bind->source, f.api));
        }
        assert_string_equal(find(&plan, "/var/lib")->source, "/home/u/.local/share/nodens/n/lib");
        assert_int_equal(find(&plan, "/tmp")->kind, BIND_TMPFS);
        assert_true(find(&plan, f.api)->read_only);
        assert_string_equal(find(&plan, "/dev/kmsg")->source, "/dev/null");
}

static void bind_options_add_paths([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        struct rootless_bindplan_facts f = facts(top);

        f.binds = "/home/u/project,,/srv/models:ro";
        expect_ok(rootless_bindplan_make(&f, &plan));
        assert_false(find(&plan, "/home/u/project")->read_only);
        assert_true(find(&plan, "/srv/models")->read_only);
}

static void bind_options_for_sockets_and_keys_are_denied([[maybe_unused]] void **state) {
        static const char *const refused[] = {"/",       "/run",         "/run/user/1000", "/run/user", "/tmp",    "/home",
                                              "/home/u", "/home/u/.ssh", "/proc",          "relative",  "/dev/sda"};
        scratch_directory top = machine();

        for (size_t i = 0; i < nd_count_of(refused); i++) {
                nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
                struct rootless_bindplan_facts f = facts(top);

                f.binds = refused[i];
                expect_error(rootless_bindplan_make(&f, &plan), ND_DENIED, "denied");
        }
}

static void directories_of_programs_are_read_only([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {}, refused = {};
        struct rootless_bindplan_facts f = facts(top);

        f.programs = "/home/u/project:/usr/bin:/srv/models";
        expect_ok(rootless_bindplan_make(&f, &plan));
        assert_true(find(&plan, "/home/u/project")->read_only);
        assert_true(find(&plan, "/srv/models")->read_only);
        assert_null(find(&plan, "/usr/bin")); /* it is there already */
        f.programs = "/home/u";
        expect_error(rootless_bindplan_make(&f, &refused), ND_DENIED, "--programs /home/u denied");
}

static void make_device(const char *top, const char *name, unsigned major_number, unsigned minor_number) {
        nd_autofree char *path = nd_format("%s/dev/%s", top, name);

        assert_int_equal(mknod(path, S_IFCHR | 0666, makedev(major_number, minor_number)), 0);
}

static void devices_of_the_host_are_added_on_request([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        nd_autofree char *directory = nd_format("%s/dev", top);
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        struct rootless_bindplan_facts f = facts(top);

        (void) mkdir(directory, 0755);
        make_device(top, "accelerator", 195, 0);
        f.devices = "/dev/accelerator";
        f.cdi = "/srv/models";
        expect_ok(rootless_bindplan_make(&f, &plan));
        assert_int_equal(find(&plan, "/dev/accelerator")->kind, BIND_FILE);
        assert_true(find(&plan, "/srv/models")->read_only);
}

/* By the first ones, processes in the node could type into a shell of the user. */
static void terminals_memory_and_files_are_not_devices_of_a_node([[maybe_unused]] void **state) {
        static const struct {
                const char *name;
                unsigned major_number, minor_number;
        } denied[] = {{"tty1", 4, 1},     {"console", 5, 1},   {"vcs1", 7, 1}, {"pts-3", 136, 3},  {"ptm", 128, 0},
                      {"event0", 13, 64}, {"uinput", 10, 223}, {"mem", 1, 1},  {"kmsg-too", 1, 11}};
        scratch_directory top = machine();
        nd_autofree char *directory = nd_format("%s/dev", top), *sly = nd_format("%s/dev/sly", top),
                         *file = nd_format("%s/srv/models", top);

        (void) mkdir(directory, 0755);
        for (size_t i = 0; i < nd_count_of(denied); i++) {
                nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
                nd_autofree char *path = nd_format("/dev/%s", denied[i].name);
                struct rootless_bindplan_facts f = facts(top);

                make_device(top, denied[i].name, denied[i].major_number, denied[i].minor_number);
                f.devices = path;
                expect_error(rootless_bindplan_make(&f, &plan), ND_DENIED, "terminals, input devices and memory");
        }
        assert_int_equal(symlink(file, sly), 0);
        for (size_t i = 0; i < 3; i++) {
                nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
                struct rootless_bindplan_facts f = facts(top);

                f.devices = (const char *const[]) {"/dev/sly", "/dev", "/srv/models"}[i];
                expect_error(rootless_bindplan_make(&f, &plan), ND_DENIED, "not a character device below /dev");
                f.devices = nullptr;
                f.cdi = "/home/u/.ssh";
                expect_error(rootless_bindplan_make(&f, &plan), ND_DENIED, "--cdi");
        }
}

static void more_entries_come_last([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {}, more = {};
        struct rootless_bindplan_facts f = facts(top);

        rootless_bindplan_add_text(&more, "/etc/kubernetes/x", "secret", 0600);
        f.more = &more;
        expect_ok(rootless_bindplan_make(&f, &plan));
        assert_string_equal(plan.items[plan.count - 1].target, "/etc/kubernetes/x");
        assert_string_equal(plan.items[plan.count - 1].source, "secret");
        assert_int_equal(plan.items[plan.count - 1].mode, 0600);
}

static void an_entry_takes_the_place_of_a_copy_of_the_host([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {}, more = {};
        struct rootless_bindplan_facts f = facts(top);
        size_t found = 0;

        rootless_bindplan_add_text(&more, "/etc/hosts", "ours", 0600);
        f.more = &more;
        expect_ok(rootless_bindplan_make(&f, &plan));
        nd_vector_each (bind, &plan) {
                found += nd_streq(bind->target, "/etc/hosts");
        }
        assert_int_equal(found, 1);
        assert_int_equal(find(&plan, "/etc/hosts")->kind, BIND_TEXT);
        assert_string_equal(find(&plan, "/etc/hosts")->source, "ours");
}

static void a_symbolic_link_to_a_denied_path_is_denied([[maybe_unused]] void **state) {
        scratch_directory top = machine();
        nd_cleanup(rootless_bindplan_done) struct rootless_bindplan plan = {};
        nd_autofree char *link = nd_format("%s/srv/sly", top), *to = nd_format("%s/run/user/1000", top);
        struct rootless_bindplan_facts f = facts(top);

        assert_int_equal(symlink(to, link), 0);
        f.binds = "/srv/sly";
        expect_error(rootless_bindplan_make(&f, &plan), ND_DENIED, "denied");
        f.binds = "/srv/absent";
        expect_error(rootless_bindplan_make(&f, &plan), ND_NOT_FOUND, "/srv/absent");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(programs_are_read_only_and_keep_their_paths),
                cmocka_unit_test(etc_is_copied_except_files_that_the_node_writes),
                cmocka_unit_test(home_run_and_tmp_contain_only_our_own_directories),
                cmocka_unit_test(bind_options_add_paths),
                cmocka_unit_test(bind_options_for_sockets_and_keys_are_denied),
                cmocka_unit_test(directories_of_programs_are_read_only),
                cmocka_unit_test(devices_of_the_host_are_added_on_request),
                cmocka_unit_test(terminals_memory_and_files_are_not_devices_of_a_node),
                cmocka_unit_test(more_entries_come_last),
                cmocka_unit_test(an_entry_takes_the_place_of_a_copy_of_the_host),
                cmocka_unit_test(a_symbolic_link_to_a_denied_path_is_denied),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
