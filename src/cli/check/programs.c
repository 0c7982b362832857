/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/check/programs.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/text.h"
#include "net/pasta.h"
#include "sys/child.h"
#include "sys/program.h"
#include "userns/probe.h"

enum {
        OUTPUT_CEILING = 16 * 1024,
};

static constexpr uint64_t version_timeout_us = 5 * ND_SECOND_US;

bool cli_version_find(const char *text, struct cli_version *ret) {
        for (const char *c = text; *c; c++) {
                unsigned numbers[3] = {};
                int count = 0;

                if (!isdigit((unsigned char) *c) || (c > text && (isalnum((unsigned char) c[-1]) || c[-1] == '.')))
                        continue;
                for (const char *d = c; count < 3 && isdigit((unsigned char) *d); d++) {
                        for (; isdigit((unsigned char) *d) && numbers[count] < 100000000; d++)
                                numbers[count] = numbers[count] * 10 + (unsigned) (*d - '0');
                        count++;
                        if (*d != '.')
                                break;
                }
                if (count < 2)
                        continue;
                memcpy(ret->parts, numbers, sizeof numbers);
                return true;
        }
        return false;
}

int cli_version_compare(const struct cli_version *a, const struct cli_version *b) {
        for (size_t i = 0; i < nd_count_of(a->parts); i++)
                if (a->parts[i] != b->parts[i])
                        return a->parts[i] < b->parts[i] ? -1 : 1;
        return 0;
}

/* Versions from .from up to, but not including, .fixed are broken. */
struct broken_version {
        struct cli_version from, fixed;
        const char *why;
};

struct program {
        const char *name;
        const char *argument; /* prints the version; nullptr = not asked */
        enum cli_finding_level when_missing;
        const char *package;
        const char *purpose;
        const struct broken_version *broken; /* terminated by why == nullptr */
        /* by its output, for versions that are not numbers; nullptr = no defect is known */
        bool (*is_defective)(const char *said);
        const char *defect, *remedy;
};

static const struct broken_version crun_broken[] = {
        {{}, {{1, 21}}, "older than the versions tested with nodens; idmapped mounts of volumes are incomplete"},
        {{{1, 22}}, {{1, 23}}, "idmapped mounts are broken in 1.22"},
        {{{1, 23}}, {{1, 24}}, "mounts inside a user namespace are broken in 1.23"},
        {},
};

static const struct broken_version no_broken[] = {{}};

static const struct program programs[] = {
        {"crun", "--version", FINDING_FAIL, "crun", "runs the containers", crun_broken, .is_defective = nullptr},
        {"catatonit", "--version", FINDING_WARN, "catatonit", "is PID 1 of pods with a shared PID namespace", no_broken,
         .is_defective = nullptr},
};

static const struct program programs_of_rootless[] = {
        {"pasta", "--version", FINDING_WARN, "passt", "connects a rootless node to the network", no_broken,
         nd_pasta_version_stalls, "streams out of a rootless node stall",
         "install passt of " ND_PASTA_FIXED_TEXT " or later, for example of trixie-backports"},
        {"slirp4netns", "--version", FINDING_NOTE, "slirp4netns", "alternative network for a rootless node", no_broken,
         .is_defective = nullptr},
};

char *cli_program_find(const char *name) {
        nd_autofree char *directories = nd_format("%s:/usr/sbin:/usr/bin:/usr/local/bin", getenv("PATH") ?: "");

        return nd_program_find(directories, name);
}

/* Returns the first line of a program's version output; an error when it cannot be run. */
static struct nd_error *ask(const char *path, const char *argument, char **ret) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        const char *said;

        nd_try(nd_child_run(&(struct nd_child_plan) {.argv = (const char *const[]) {path, argument, nullptr},
                                                     .deadline_us = version_timeout_us,
                                                     .output_ceiling = OUTPUT_CEILING},
                            &result));
        if (result.timed_out)
                return nd_child_result_error(&result, path);
        said = result.output[0] ? result.output : result.errors;
        said += strspn(said, "\n");
        *ret = nd_strndup(said, strcspn(said, "\n"));
        return nullptr;
}

static const struct broken_version *find_broken(const struct program *program, const struct cli_version *version) {
        for (const struct broken_version *b = program->broken; b->why; b++)
                if (cli_version_compare(version, &b->from) >= 0 && cli_version_compare(version, &b->fixed) < 0)
                        return b;
        return nullptr;
}

/* pasta 2025 loses its version output when standard output is not a terminal. */
static char *version_text(const char *said, const char *path) {
        return said[0] ? nd_format("%s (%s)", said, path) : nd_format("%s, unknown version", path);
}

static void check_program(struct cli_findings *findings, const struct program *program) {
        nd_autofree char *path = cli_program_find(program->name), *said = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        const struct broken_version *broken = nullptr;
        struct cli_version version;

        if (!path) {
                cli_findings_add(findings, program->when_missing, program->name,
                                 nd_format("not installed (%s)", program->purpose),
                                 nd_format("apt install %s", program->package));
                return;
        }
        error = ask(path, program->argument, &said);
        if (error || !said) {
                cli_findings_add(findings, FINDING_FAIL, program->name, nd_strdup(nd_error_text(error)),
                                 nd_format("apt reinstall %s", program->package));
                return;
        }
        if (cli_version_find(said, &version))
                broken = find_broken(program, &version);
        if (broken)
                cli_findings_add(findings, program->when_missing == FINDING_FAIL ? FINDING_FAIL : FINDING_WARN, program->name,
                                 nd_format("%s: %s", said, broken->why),
                                 nd_format("upgrade %s to %u.%u.%u or later", program->package, broken->fixed.parts[0],
                                           broken->fixed.parts[1], broken->fixed.parts[2]));
        else if (program->is_defective && program->is_defective(said)) {
                nd_autofree char *text = version_text(said, path);

                cli_findings_add(findings, FINDING_WARN, program->name, nd_format("%s: %s", text, program->defect),
                                 nd_strdup(program->remedy));
        } else {
                cli_findings_add(findings, FINDING_OK, program->name, version_text(said, path), nullptr);
        }
}

/* Tries it, since versions do not show it: distributions fix bugs without a new version. */
static void check_dev_link(struct cli_findings *findings) {
        nd_autofree char *path = cli_program_find("crun");
        nd_autoerror struct nd_error *error = path && geteuid() == 0 ? nd_probe_engine_dev(path, false, nullptr) : nullptr;

        if (!path)
                return;
        if (geteuid() != 0)
                cli_findings_add(findings, FINDING_NOTE, "crun and links", nd_strdup("not checked: needs root"),
                                 nd_strdup("run nodens check as root"));
        else if (nd_error_code(error) == ND_PRECONDITION)
                cli_findings_add(/* a note: nodens-cri rejects such images itself */
                                 findings, FINDING_NOTE, "crun and links", nd_strdup(nd_error_text(error)),
                                 nd_strdup(
                                         "upgrade crun to 1.28 or later; nodens-cri rejects such images itself, other runtimes may not"));
        else if (error)
                cli_findings_add(findings, FINDING_NOTE, "crun and links", nd_format("not checked: %s", nd_error_text(error)),
                                 nullptr);
        else
                cli_findings_add(findings, FINDING_OK, "crun and links",
                                 nd_strdup("does not follow a link at /dev of an image"), nullptr);
}

static const char *const cni_directories[] = {"/opt/cni/bin", "/usr/lib/cni", nullptr};

static const char *cni_plugin_directory(const char *plugin) {
        for (const char *const *directory = cni_directories; *directory; directory++) {
                nd_autofree char *path = nd_format("%s/%s", *directory, plugin);

                if (access(path, X_OK) == 0)
                        return *directory;
        }
        return nullptr;
}

/* Runs a plugin without CNI_COMMAND: it prints its version on standard error. */
static char *cni_version(const char *directory, const char *plugin) {
        nd_autofree char *path = nd_format("%s/%s", directory, plugin), *said = nullptr;
        nd_autoerror struct nd_error *error = ask(path, nullptr, &said);

        return error || !said[0] ? nd_format("in %s", directory) : nd_format("%s (%s)", said, directory);
}

static void check_cni(struct cli_findings *findings) {
        static const char *const plugins[] = {"loopback", "bridge", "host-local", "portmap"};
        nd_autotext struct nd_text missing = ND_TEXT(256);
        const char *directory = nullptr;

        for (size_t i = 0; i < nd_count_of(plugins); i++) {
                const char *found = cni_plugin_directory(plugins[i]);

                if (found && !directory)
                        directory = found;
                if (!found)
                        nd_text_addf(&missing, "%s%s", missing.length > 0 ? ", " : "", plugins[i]);
        }
        if (!directory)
                cli_findings_add(
                        findings, FINDING_WARN, "CNI plugins", nd_strdup("none in /opt/cni/bin or /usr/lib/cni"),
                        nd_strdup("apt install containernetworking-plugins, or use a CNI whose DaemonSet installs them"));
        else if (missing.length > 0)
                cli_findings_add(findings, FINDING_NOTE, "CNI plugins",
                                 nd_format("%s lacks plugins: %s", directory, nd_text_get(&missing)),
                                 nd_strdup("apt install containernetworking-plugins, unless your CNI installs its own"));
        else
                cli_findings_add(findings, FINDING_OK, "CNI plugins", cni_version(directory, "bridge"), nullptr);
}

void cli_programs_check(struct cli_findings *findings) {
        for (size_t i = 0; i < nd_count_of(programs); i++) {
                check_program(findings, &programs[i]);
                if (nd_streq(programs[i].name, "crun"))
                        check_dev_link(findings);
        }
        check_cni(findings);
}

/* newuidmap and newgidmap work only with the setuid bit or a file capability. */
static void check_map_program(struct cli_findings *findings, const char *name) {
        nd_autofree char *path = cli_program_find(name);
        struct stat st;

        if (!path)
                cli_findings_add(findings, FINDING_FAIL, name, nd_strdup("not installed"), nd_strdup("apt install uidmap"));
        else if (stat(path, &st) == 0 &&
                 ((st.st_uid == 0 && st.st_mode & S_ISUID) || getxattr(path, "security.capability", nullptr, 0) > 0))
                cli_findings_add(findings, FINDING_OK, name, nd_format("%s, privileged to write ID maps", path), nullptr);
        else
                cli_findings_add(findings, FINDING_FAIL, name,
                                 nd_format("%s has neither the setuid bit nor a capability", path),
                                 nd_strdup("apt reinstall uidmap"));
}

/* "systemd 257 (257.9-1)"; what is in parentheses is the distribution's and may have any form. */
static unsigned systemd_version(const char *said) {
        uint32_t version = 0;
        nd_autofree char *number = nullptr;

        if (strncmp(said, "systemd ", strlen("systemd ")) != 0)
                return 0;
        said += strlen("systemd ");
        number = nd_strndup(said, strspn(said, "0123456789"));
        return nd_text_parse_u32(number, &version) < 0 ? 0 : version;
}

/* KEP-2033 recommends this version: it is the first that delegates the controller cpuset. */
static void check_systemd(struct cli_findings *findings) {
        enum { SYSTEMD_LEAST = 244 };
        nd_autofree char *path = cli_program_find("systemctl"), *said = nullptr;
        nd_autoerror struct nd_error *error = path ? ask(path, "--version", &said) : nullptr;
        unsigned version = said ? systemd_version(said) : 0;

        if (!path)
                cli_findings_add(findings, FINDING_NOTE, "systemd", nd_strdup("not installed: nodes cannot be user units"),
                                 nd_strdup("nodens-rootless up --foreground works without it"));
        else if (version == 0)
                cli_findings_add(findings, FINDING_NOTE, "systemd",
                                 nd_format("unknown version: %s", error ? nd_error_text(error) : said),
                                 nd_format("%s --version shows it; %d or later is recommended", path, SYSTEMD_LEAST));
        else if (version < SYSTEMD_LEAST)
                cli_findings_add(findings, FINDING_WARN, "systemd",
                                 nd_format("%s: it does not delegate the controller cpuset to users", said),
                                 nd_format("upgrade systemd to %d or later", SYSTEMD_LEAST));
        else
                cli_findings_add(findings, FINDING_OK, "systemd", nd_strdup(said), nullptr);
}

void cli_programs_check_rootless(struct cli_findings *findings) {
        check_systemd(findings);
        check_map_program(findings, "newuidmap");
        check_map_program(findings, "newgidmap");
        for (size_t i = 0; i < nd_count_of(programs_of_rootless); i++)
                check_program(findings, &programs_of_rootless[i]);
}
