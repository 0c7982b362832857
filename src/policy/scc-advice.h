/* SPDX-License-Identifier: Apache-2.0 */
/* scc-advice.h - what would let constraints admit a pod that they refused
 *
 * Two ways: a grant of a constraint that fits, or a change of the pod after which a constraint fits
 * that is usable already. Both are tried before they are returned, so that no advice leads to the
 * next refusal. */
#pragma once

#include "policy/advice.h"
#include "policy/scc.h"

enum {
        ND_SCC_NEAR = 3,  /* constraints that nearly fit */
        ND_SCC_EDITS = 8, /* a change with more of them is not small */
};

/* A constraint that does not fit. */
struct nd_scc_near {
        const struct nd_scc *scc;
        struct nd_field_error first; /* explains it; path is nullptr: no field does */
        const char *failure;         /* if first has no path */
        size_t problems;
        bool usable;
        bool fits_changed; /* it fits, but an update must not fill in its defaults */
};

struct nd_scc_advice {
        /* Would admit the pod as it is if it might be used; nullptr: none. A constraint that
         * requires a user namespace is preferred, then the strictest. */
        const struct nd_scc *grant;
        bool grant_user_namespace; /* the pod would have one, perhaps because it is set here */
        /* Usable, and admits the pod with these edits; nullptr: none. */
        const struct nd_scc *change;
        struct nd_advice_edit edits[ND_SCC_EDITS];
        size_t edit_count;
        /* other constraints, with the fewest problems first; usable ones before others */
        struct nd_scc_near near[ND_SCC_NEAR];
        size_t near_count;
        size_t others; /* constraints that are not named above */
};

/* The request is that of the refusal. Its may_use() is called for constraints that do not fit as
 * well, so it must be cheap; it may say no where it does not know. All output lives in the
 * arena. */
void nd_scc_advise(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena,
                   struct nd_scc_advice *ret);
