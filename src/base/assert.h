/* SPDX-License-Identifier: Apache-2.0 */
/* assert.h - checks of invariants, in every build
 *
 * nd_assert() is for what must hold if this program is correct, where the check is cheap. A
 * condition that input, a peer, the kernel or the file system can break is an error (error.h),
 * never an assertion. Unlike assert() it does not depend on NDEBUG. When the condition is false,
 * nd_assert() writes file, line and condition to stderr and calls abort(). */
#pragma once

[[noreturn, gnu::cold]] void nd_assert_failed(const char *condition, const char *file, int line);

#define nd_assert(condition) (__builtin_expect(!!(condition), 1) ? (void) 0 : nd_assert_failed(#condition, __FILE__, __LINE__))
