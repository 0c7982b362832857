/* SPDX-License-Identifier: Apache-2.0 */
/* nftables.h - writes one small nftables table as a whole
 *
 * Enough for rules that match and set marks, drop packets and masquerade, in our network namespace.
 * A table replaces the one of its name in one transaction: packets see the old rules or the new
 * ones. Needs the kernel's nf_tables, but no program. */
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
        ND_NFT_LOAD_FAMILY,    /* NFPROTO_IPV4 or NFPROTO_IPV6; one byte, like the next */
        ND_NFT_LOAD_PROTOCOL,  /* of the transport layer */
        ND_NFT_LOAD_PORT,      /* the destination port; two bytes */
        ND_NFT_LOAD_SOURCE,    /* the IPv4 source address, as in the packet */
        ND_NFT_LOAD_INPUT,     /* name of the interface by which the packet came */
        ND_NFT_LOAD_OUTPUT,    /* or leaves */
        /* The register has this value, or this name; a direction is one byte, a mark four. */
        ND_NFT_EQUAL,
        ND_NFT_DIFFERS,
        ND_NFT_SET_MARK,
        ND_NFT_SET_CT_MARK,
        ND_NFT_DROP,
        ND_NFT_MASQUERADE, /* in a chain of type "nat" */
};

struct nd_nftables_step {
        enum nd_nftables_step_kind kind;
        uint32_t mask;
        uint32_t value;
        const char *name; /* of an interface */
};

enum { ND_NFT_RULES = 20, ND_NFT_STEPS = 9 };

struct nd_nftables_chain {
        const char *name; /* nullptr ends the list */
        /* "filter", "nat", or "route": packets are rerouted if their mark has changed */
        const char *type;
        uint32_t hook; /* NF_INET_... */
        int32_t priority;
        /* The first empty rule ends them. */
        struct nd_nftables_step rules[ND_NFT_RULES][ND_NFT_STEPS];
};

/* Replaces a table of the family inet, for IPv4 and IPv6. ND_UNIMPLEMENTED if the kernel has no
 * nf_tables. */
[[nodiscard]] struct nd_error *nd_nftables_put(const char *table, const struct nd_nftables_chain *chains);
