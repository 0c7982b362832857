/* SPDX-License-Identifier: Apache-2.0 */
/* torture.h - runs an operation again and again, with another system call failing each time
 *
 * For every kind of call the operation makes and for several errnos, the first call fails, then the
 * second, and so on until the operation passes without meeting the fault. After each run: the error
 * names the call's purpose, the errno and what it was done to; no descriptor is left open, no child
 * left behind; and the operation's own check holds. Memory is AddressSanitizer's business. */
#pragma once

#include "base/error.h"
#include <unit/faults.h>

struct torture {
        const char *name;
        const char *noun;        /* required in every error's text; "" for none */
        unsigned calls;          /* bits of enum fault_call: each must be met at least once */
        void (*prepare)(void *); /* before every run, with the real calls; may be nullptr */
        struct nd_error *(*run)(void *);
        /* After every run, with the real calls; may be nullptr. */
        void (*check)(void *, bool failed);
        /* A fault may pass without an error: check() decides then. */
        bool silent;
};

void torture(const struct torture *t, void *world);
