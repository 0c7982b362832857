/* SPDX-License-Identifier: Apache-2.0 */
/* nftables.h - one small table of the kernel's packet filter, written whole
 *
 * Enough for rules that look at marks and set them, in the network namespace that we are in. A table is put in place of the one of its name
 * in one transaction: packets meet the old rules or the new ones. No program is needed for it, only the kernel's nf_tables. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* One step of a rule; they work on one register. A comparison that does not hold ends the rule. */
enum nd_nftables_step_kind {
        ND_NFT_END,
        ND_NFT_LOAD_MARK,      /* the packet's */
        ND_NFT_LOAD_CT_MARK,   /* its connection's */
        ND_NFT_LOAD_DIRECTION, /* 0 = as the connection began, 1 = the answer */
        ND_NFT_MASK,           /* register = (register & mask) ^ value */
        ND_NFT_EQUAL,          /* the register has this value; a direction is one byte, a mark four */
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
        const char *type; /* "filter", or "route": packets are routed anew when their mark has changed */
        uint32_t hook;    /* NF_INET_... */
        int32_t priority;
        struct nd_nftables_step rules[ND_NFT_RULES][ND_NFT_STEPS]; /* the first empty rule ends them */
};

/* Puts a table of the family inet, for IPv4 and IPv6. ND_UNIMPLEMENTED when the kernel has no nf_tables. */
[[nodiscard]] struct nd_error *nd_nftables_put(const char *table, const struct nd_nftables_chain *chains);
