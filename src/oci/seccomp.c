/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/seccomp.h"

#include <stdio.h>
#include <string.h>

#include "base/json-member.h"
#include "oci/spec.h"

enum {
        RULES_MOST = 2000,
        NAMES_MOST = 2000,
        NAME_LENGTH = 64,
        CONDITIONS_MOST = 64,
        ERRNO_MOST = 4095, /* the kernel's maximum */
};

static const char *const actions[] = {"SCMP_ACT_ALLOW",       "SCMP_ACT_ERRNO", "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS",
                                      "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP",  "SCMP_ACT_LOG",  "SCMP_ACT_TRACE"};
static const char *const operators[] = {"SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE",       "SCMP_CMP_EQ",
                                        "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"};
static const char *const flags[] = {"SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW", "SECCOMP_FILTER_FLAG_TSYNC"};

static const struct {
        const char *go, *seccomp;
} architectures[] = {
        {"amd64", "SCMP_ARCH_X86_64"},      {"386", "SCMP_ARCH_X86"},
        {"arm64", "SCMP_ARCH_AARCH64"},     {"arm", "SCMP_ARCH_ARM"},
        {"riscv64", "SCMP_ARCH_RISCV64"},   {"s390x", "SCMP_ARCH_S390X"},
        {"ppc64le", "SCMP_ARCH_PPC64LE"},   {"loong64", "SCMP_ARCH_LOONGARCH64"},
        {"mips64le", "SCMP_ARCH_MIPSEL64"},
};

static const char *seccomp_architecture(const char *go) {
        for (size_t i = 0; i < nd_count_of(architectures); i++)
                if (nd_streq(architectures[i].go, go))
                        return architectures[i].seccomp;
        return nullptr;
}

static bool known(const char *word, const char *const *words, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (nd_streq(words[i], word))
                        return true;
        return false;
}

/* Writes a member that must be one of a set of names. */
static struct nd_error *put_word(struct nd_json_out *out, yyjson_val *object, const char *key, const char *as,
                                 const char *const *words, size_t count) {
        const char *word;

        nd_try(nd_json_member_text(object, key, NAME_LENGTH, &word));
        if (!word)
                return nd_error_new(ND_INVALID, 0, "no '%s'", key);
        if (nd_streq(word, "SCMP_ACT_NOTIFY"))
                return nd_error_new(ND_UNIMPLEMENTED, 0,
                                    "action 'SCMP_ACT_NOTIFY' needs a seccomp listener, which is not supported");
        if (!known(word, words, count))
                return nd_error_new(ND_INVALID, 0, "'%s' has the unknown value '%s'", key, word);
        nd_json_string(out, as, word);
        return nullptr;
}

static struct nd_error *put_errno(struct nd_json_out *out, yyjson_val *object, const char *key) {
        uint64_t number;

        nd_try(nd_json_member_number(object, key, ERRNO_MOST, &number));
        if (number > 0)
                nd_json_number(out, key, number);
        return nullptr;
}

/* ---- conditions of rules ---- */

static struct nd_error *member_names(yyjson_val *object, const char *key, struct nd_strings *ret) {
        return nd_json_member_strings(object, key, CONDITIONS_MOST, NAME_LENGTH, ret);
}

/* Kernel "4.8" or later? Without a condition always true. */
static struct nd_error *kernel_reached(const char *text, const struct nd_seccomp_host *host, bool *ret) {
        unsigned major = 0, minor = 0;
        char rest;

        /* The string is short: nd_json_member_text() has checked it. */
        if (sscanf(text, "%4u.%4u%c", &major, &minor, &rest) != 2) /* NOLINT(cert-err34-c): bounded by widths */
                return nd_error_new(ND_INVALID, 0, "invalid 'minKernel' '%s': expected a version like '4.8'", text);
        *ret = host->kernel_major > major || (host->kernel_major == major && host->kernel_minor >= minor);
        return nullptr;
}

static bool has_capability(const struct nd_seccomp_host *host, const char *name) {
        int number = nd_spec_capability_parse(name);

        return number >= 0 && host->capabilities & UINT64_C(1) << number;
}

/* A rule applies if the container has all of its included capabilities and the architecture is
 * listed. */
static struct nd_error *included(yyjson_val *conditions, const struct nd_seccomp_host *host, bool *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings capabilities = {}, machines = {};
        const char *kernel;

        *ret = true;
        if (!conditions)
                return nullptr;
        nd_try(member_names(conditions, "caps", &capabilities));
        nd_try(member_names(conditions, "arches", &machines));
        nd_try(nd_json_member_text(conditions, "minKernel", NAME_LENGTH, &kernel));
        if (kernel)
                nd_try(kernel_reached(kernel, host, ret));
        nd_vector_each (name, &capabilities) {
                *ret = *ret && has_capability(host, *name);
        }
        if (machines.count > 0)
                *ret = *ret && nd_strings_have(&machines, host->architecture);
        return nullptr;
}

/* A rule does not apply if the container has one of its excluded capabilities. */
static struct nd_error *excluded(yyjson_val *conditions, const struct nd_seccomp_host *host, bool *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings capabilities = {}, machines = {};
        const char *kernel;

        *ret = false;
        if (!conditions)
                return nullptr;
        nd_try(member_names(conditions, "caps", &capabilities));
        nd_try(member_names(conditions, "arches", &machines));
        nd_try(nd_json_member_text(conditions, "minKernel", NAME_LENGTH, &kernel));
        if (kernel)
                nd_try(kernel_reached(kernel, host, ret));
        nd_vector_each (name, &capabilities) {
                *ret = *ret || has_capability(host, *name);
        }
        *ret = *ret || nd_strings_have(&machines, host->architecture);
        return nullptr;
}

static struct nd_error *holds(yyjson_val *rule, const struct nd_seccomp_host *host, bool *ret) {
        yyjson_val *includes, *excludes;
        bool in = false, out = false;

        nd_try(nd_json_member_object(rule, "includes", &includes));
        nd_try(nd_json_member_object(rule, "excludes", &excludes));
        nd_try(nd_error_wrap(included(includes, host, &in), "includes"));
        nd_try(nd_error_wrap(excluded(excludes, host, &out), "excludes"));
        *ret = in && !out;
        return nullptr;
}

/* ---- rules ---- */

static struct nd_error *put_argument(struct nd_json_out *out, yyjson_val *argument) {
        uint64_t index, value, second;

        if (!yyjson_is_obj(argument))
                return nd_error_new(ND_INVALID, 0, "an entry of 'args' is not an object");
        /* A system call has six arguments. */
        nd_try(nd_json_member_number(argument, "index", 5, &index));
        nd_try(nd_json_member_number(argument, "value", UINT64_MAX, &value));
        nd_try(nd_json_member_number(argument, "valueTwo", UINT64_MAX, &second));
        nd_json_open(out, nullptr, '{');
        nd_json_number(out, "index", index);
        nd_json_number(out, "value", value);
        nd_json_number(out, "valueTwo", second);
        nd_try(put_word(out, argument, "op", "op", operators, nd_count_of(operators)));
        nd_json_close(out, '}');
        return nullptr;
}

static struct nd_error *put_arguments(struct nd_json_out *out, yyjson_val *rule) {
        yyjson_val *arguments, *argument;
        yyjson_arr_iter each;

        nd_try(nd_json_member_array(rule, "args", CONDITIONS_MOST, &arguments));
        if (yyjson_arr_size(arguments) == 0)
                return nullptr;
        nd_json_open(out, "args", '[');
        each = yyjson_arr_iter_with(arguments);
        while ((argument = yyjson_arr_iter_next(&each)))
                nd_try(put_argument(out, argument));
        nd_json_close(out, ']');
        return nullptr;
}

static const char *const id_calls[] = {"setuid",      "setgid",     "setreuid",   "setregid",    "setresuid",
                                       "setresgid",   "setgroups",  "setfsuid",   "setfsgid",    "setuid32",
                                       "setgid32",    "setreuid32", "setregid32", "setresuid32", "setresgid32",
                                       "setgroups32", "setfsuid32", "setfsgid32", "chown",       "fchown",
                                       "lchown",      "fchownat",   "chown32",    "fchown32",    "lchown32"};

static bool is_id_call(const char *name) {
        for (size_t i = 0; i < nd_count_of(id_calls); i++)
                if (nd_streq(name, id_calls[i]))
                        return true;
        return false;
}

static void put_id_calls(struct nd_json_out *out) {
        nd_json_open(out, nullptr, '{');
        nd_json_open(out, "names", '[');
        for (size_t i = 0; i < nd_count_of(id_calls); i++)
                nd_json_string(out, nullptr, id_calls[i]);
        nd_json_close(out, ']');
        nd_json_string(out, "action", "SCMP_ACT_ERRNO");
        nd_json_number(out, "errnoRet", 0);
        nd_json_close(out, '}');
}

static struct nd_error *names_of(yyjson_val *rule, struct nd_strings *ret) {
        const char *single;

        nd_try(nd_json_member_strings(rule, "names", NAMES_MOST, NAME_LENGTH, ret));
        nd_try(nd_json_member_text(rule, "name", NAME_LENGTH, &single)); /* old files */
        if (single && *single)
                nd_strings_add(ret, single);
        return ret->count > 0 ? nullptr : nd_error_new(ND_INVALID, 0, "a rule without 'names'");
}

/* Leaves out the calls that have a rule of ours; returns the number of the others. */
static size_t put_names(struct nd_json_out *out, const struct nd_strings *names, bool single_id) {
        size_t count = 0;

        if (out)
                nd_json_open(out, "names", '[');
        nd_vector_each (name, names) {
                if (single_id && is_id_call(*name))
                        continue;
                count++;
                if (out)
                        nd_json_string(out, nullptr, *name);
        }
        if (out)
                nd_json_close(out, ']');
        return count;
}

static struct nd_error *put_rule(struct nd_json_out *out, yyjson_val *rule, const struct nd_seccomp_host *host) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        bool wanted = false;

        if (!yyjson_is_obj(rule))
                return nd_error_new(ND_INVALID, 0, "not an object");
        nd_try(holds(rule, host, &wanted));
        if (!wanted)
                return nullptr;
        nd_try(names_of(rule, &names));
        if (put_names(nullptr, &names, host->single_id) == 0)
                return nullptr;
        nd_json_open(out, nullptr, '{');
        (void) put_names(out, &names, host->single_id);
        nd_try(put_word(out, rule, "action", "action", actions, nd_count_of(actions)));
        nd_try(put_errno(out, rule, "errnoRet"));
        nd_try(put_arguments(out, rule));
        nd_json_close(out, '}');
        return nullptr;
}

static struct nd_error *put_rules(struct nd_json_out *out, yyjson_val *root, const struct nd_seccomp_host *host) {
        yyjson_val *rules, *rule;
        yyjson_arr_iter each;
        size_t at = 0;

        nd_try(nd_json_member_array(root, "syscalls", RULES_MOST, &rules));
        nd_json_open(out, "syscalls", '[');
        each = yyjson_arr_iter_with(rules);
        while ((rule = yyjson_arr_iter_next(&each)))
                nd_try(nd_error_wrap(put_rule(out, rule, host), "syscalls[%zu]", at++));
        if (host->single_id)
                put_id_calls(out);
        nd_json_close(out, ']');
        return nullptr;
}

/* ---- architectures ---- */

/* The entry of archMap for this host's architecture, with its subarchitectures. */
static struct nd_error *mapped_architectures(yyjson_val *map, const char *native, struct nd_strings *ret) {
        yyjson_arr_iter each = yyjson_arr_iter_with(map);
        yyjson_val *entry;

        while ((entry = yyjson_arr_iter_next(&each))) {
                nd_cleanup(nd_strings_done) struct nd_strings others = {};
                const char *name;

                if (!yyjson_is_obj(entry))
                        return nd_error_new(ND_INVALID, 0, "an entry of 'archMap' is not an object");
                nd_try(nd_json_member_text(entry, "architecture", NAME_LENGTH, &name));
                if (!name || !nd_streq(name, native))
                        continue;
                nd_try(nd_json_member_strings(entry, "subArchitectures", CONDITIONS_MOST, NAME_LENGTH, &others));
                nd_strings_add(ret, native);
                nd_vector_each (other, &others) {
                        nd_strings_add(ret, *other);
                }
                return nullptr;
        }
        return nullptr;
}

static struct nd_error *put_architectures(struct nd_json_out *out, yyjson_val *root, const struct nd_seccomp_host *host) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        const char *native = seccomp_architecture(host->architecture);
        yyjson_val *map;

        nd_try(nd_json_member_array(root, "archMap", CONDITIONS_MOST, &map));
        nd_try(nd_json_member_strings(root, "architectures", CONDITIONS_MOST, NAME_LENGTH, &names));
        if (map && names.count > 0)
                return nd_error_new(ND_INVALID, 0, "both 'architectures' and 'archMap' are given; one is enough");
        if (map && native)
                nd_try(mapped_architectures(map, native, &names));
        if (names.count == 0)
                return nullptr; /* then the engine uses the native one */
        nd_json_open(out, "architectures", '[');
        nd_vector_each (name, &names) {
                if (!nd_has_prefix(*name, "SCMP_ARCH_"))
                        return nd_error_new(ND_INVALID, 0, "unknown architecture '%s'", *name);
                nd_json_string(out, nullptr, *name);
        }
        nd_json_close(out, ']');
        return nullptr;
}

static struct nd_error *put_flags(struct nd_json_out *out, yyjson_val *root) {
        nd_cleanup(nd_strings_done) struct nd_strings given = {};

        nd_try(nd_json_member_strings(root, "flags", CONDITIONS_MOST, NAME_LENGTH, &given));
        if (given.count == 0)
                return nullptr;
        nd_json_open(out, "flags", '[');
        nd_vector_each (flag, &given) {
                if (!known(*flag, flags, nd_count_of(flags)))
                        return nd_error_new(ND_INVALID, 0, "unknown flag '%s'", *flag);
                nd_json_string(out, nullptr, *flag);
        }
        nd_json_close(out, ']');
        return nullptr;
}

static struct nd_error *convert(yyjson_val *root, const struct nd_seccomp_host *host, struct nd_text *ret) {
        struct nd_json_out out = {.text = ret};
        const char *listener;

        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "not a JSON object");
        nd_try(nd_json_member_text(root, "listenerPath", ND_SECCOMP_CEILING, &listener));
        if (listener && *listener)
                return nd_error_new(ND_UNIMPLEMENTED, 0, "'listenerPath': seccomp listeners are not supported");
        nd_json_open(&out, nullptr, '{');
        nd_try(put_word(&out, root, "defaultAction", "defaultAction", actions, nd_count_of(actions)));
        nd_try(put_errno(&out, root, "defaultErrnoRet"));
        nd_try(put_architectures(&out, root, host));
        nd_try(put_flags(&out, root));
        nd_try(put_rules(&out, root, host));
        nd_json_close(&out, '}');
        return ret->overflow ? nd_error_new(ND_EXHAUSTED, 0, "the filter is too long") : nullptr;
}

struct nd_error *nd_seccomp_convert(const char *bytes, size_t length, const struct nd_seccomp_host *host,
                                    struct nd_text *ret) {
        nd_autojson yyjson_doc *doc = nullptr;

        nd_try(nd_json_parse(bytes, length, ND_SECCOMP_CEILING, &doc));
        return convert(yyjson_doc_get_root(doc), host, ret);
}

void nd_seccomp_single_id(struct nd_text *ret) {
        struct nd_json_out out = {.text = ret};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "defaultAction", "SCMP_ACT_ALLOW");
        nd_json_open(&out, "syscalls", '[');
        put_id_calls(&out);
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
}
