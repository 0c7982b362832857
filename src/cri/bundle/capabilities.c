/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/capabilities.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sys/file.h"

#define BIT(capability) (UINT64_C(1) << (capability))

static constexpr uint64_t default_set = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FSETID) | BIT(CAP_FOWNER) |
                                        BIT(CAP_MKNOD) | BIT(CAP_NET_RAW) | BIT(CAP_SETGID) | BIT(CAP_SETUID) |
                                        BIT(CAP_SETFCAP) | BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT) |
                                        BIT(CAP_KILL) | BIT(CAP_AUDIT_WRITE);

static bool is_all(const char *name) {
        return strcasecmp(name, "ALL") == 0;
}

static bool has_all(const struct nd_strings *names) {
        nd_vector_each (name, names) {
                if (is_all(*name))
                        return true;
        }
        return false;
}

static struct nd_error *named(const struct nd_strings *names, uint64_t *ret) {
        *ret = 0;
        nd_vector_each (name, names) {
                nd_autofree char *quoted = nd_text_quote(*name);
                int number = nd_spec_capability_parse(*name);

                if (is_all(*name))
                        continue;
                if (number < 0)
                        return nd_error_new(ND_INVALID, 0, "unknown capability %s", quoted);
                *ret |= BIT(number);
        }
        return nullptr;
}

struct nd_error *cri_capabilities_choose(const struct cri_container_request *request, uint64_t ours,
                                         struct nd_spec_capabilities *ret) {
        uint64_t set = default_set & ours, add = 0, drop = 0, ambient = 0;

        nd_try(named(&request->add_capabilities, &add));
        nd_try(named(&request->drop_capabilities, &drop));
        nd_try(named(&request->ambient_capabilities, &ambient));
        if (request->privileged) {
                *ret = (struct nd_spec_capabilities) {.bounding = ours, .effective = ours, .permitted = ours};
                return nullptr;
        }
        if (has_all(&request->add_capabilities))
                set = ours;
        if (has_all(&request->drop_capabilities))
                set = 0;
        set = (set | add) & ~drop;
        ambient &= set; /* the kernel refuses ambient capabilities that are not permitted */
        *ret = (struct nd_spec_capabilities) {
                .bounding = set, .effective = set, .permitted = set, .inheritable = ambient, .ambient = ambient};
        return nullptr;
}

static uint64_t status_mask(const char *status, const char *key) {
        const char *found = strstr(status, key);

        return found ? strtoull(found + strlen(key), nullptr, 16) : 0;
}

uint64_t cri_capabilities_own(void) {
        nd_autofree char *status = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel("/proc/self/status", 64 * 1024, &status);

        return error ? 0 : status_mask(status, "\nCapPrm:\t") & status_mask(status, "\nCapBnd:\t");
}
