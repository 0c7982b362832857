/* SPDX-License-Identifier: Apache-2.0 */
/* nftables.h - writes one small nftables table as a whole
 *
 * Enough for rules that match and set marks, in our network namespace. A table replaces the one of
 * its name in one transaction: packets see the old rules or the new ones. Needs the kernel's
 * nf_tables, but no program. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* One step of a rule; all use one register. A comparison that fails ends the rule. */
enum nd_nftables_step_kind {
        ND_NFT_END,
        ND_NFT_LOAD_MARK,      /* the packet's */
        ND_NFT_LOAD_CT_MARK,   /* its connection's */
        ND_NFT_LOAD_DIRECTION, /* 0 = original, 1 = reply */
        ND_NFT_MASK,           /* register = (register & mask) ^ value */
        /* The register has this value; a direction is one byte, a mark four. */
        ND_NFT_EQUAL,
        ND_NFT_SET_MARK,
        ND_NFT_SET_CT_MARK,
};

struct nd_nftables_step {
        enum nd_nftables_step_kind kind;
        uint32_t mask;
        uint32_t value;
};

enum { ND_NFT_RULES = 4, ND_NFT_STEPS = 8 };

struct nd_nftables_chain {
        const char *name; /* nullptr ends the list */
        const char *type; /* "filter", or "route": packets are rerouted if their mark has changed */
        uint32_t hook;    /* NF_INET_... */
        int32_t priority;
        /* The first empty rule ends them. */
        struct nd_nftables_step rules[ND_NFT_RULES][ND_NFT_STEPS];
};

/* Replaces a table of the family inet, for IPv4 and IPv6. ND_UNIMPLEMENTED if the kernel has no
 * nf_tables. */
[[nodiscard]] struct nd_error *nd_nftables_put(const char *table, const struct nd_nftables_chain *chains);
