/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - a message and its fields, to the journal or to standard error
 *
 *      nd_log(ND_LOG_WARNING, "foreign user namespace file", nd_field("pod", uid),
 *      nd_field("file", path));
 *
 * Each message is one line, on standard error and as MESSAGE in the journal alike:
 *
 *      warning: cannot save a record (container=a1b2 path="/x y"): No space left on device; free
 *      space
 *
 * The fields are in parentheses. The values of `error`, `reason` and `why` follow as the cause,
 * the value of `remedy` as the advice: plain journalctl shows MESSAGE only, and it must say what
 * failed, why, and what to do. In the journal all fields are fields as well (CONTAINER=...,
 * ERROR=...), and the level is PRIORITY instead of a word. A secret belongs in no field.
 *
 * Only the binaries' own directories and src/sys log; the layers between return errors. Values
 * are quoted unless they are plain characters, and nothing in a message or cause is a control
 * character, so that container output or an image's name cannot forge a line. */
#pragma once

#include "base/memory.h"

enum nd_log_level { /* syslog's numbers */
                    ND_LOG_ERROR = 3,
                    ND_LOG_WARNING = 4,
                    ND_LOG_NOTICE = 5,
                    ND_LOG_INFO = 6,
                    ND_LOG_DEBUG = 7,
};

struct nd_log_field {
        const char *key; /* lower case letters and '_' */
        const char *value;
};

#define nd_field(name, text) ((struct nd_log_field) {.key = (name), .value = (text)})

#define nd_log(level, message, ...)                                                                                           \
        nd_log_fields((level), (message), (const struct nd_log_field[]) {__VA_ARGS__ __VA_OPT__(, ){}})

/* The same right before the process exits. journald finds the unit of a message by the sender's
 * process ID, and misses it if the process is gone; standard error belongs to the unit from the
 * start. */
#define nd_log_last(level, message, ...)                                                                                      \
        nd_log_fields_last((level), (message), (const struct nd_log_field[]) {__VA_ARGS__ __VA_OPT__(, ){}})

void nd_log_fields_last(enum nd_log_level level, const char *message, const struct nd_log_field *fields);
void nd_log_fields(enum nd_log_level level, const char *message, const struct nd_log_field *fields);

void nd_log_set_level(enum nd_log_level most_verbose);
void nd_log_open(void); /* detects the destination; without it messages go to standard error */

/* For tests: a function that receives each finished line instead of standard error. */
void nd_log_set_sink(void (*sink)(enum nd_log_level level, const char *line));
