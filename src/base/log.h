/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - a message and its fields, to the journal or to standard error
 *
 *      nd_log(ND_LOG_WARNING, "foreign user namespace file", nd_field("pod", uid), nd_field("file",
 *      path));
 *
 * Only the binaries' own directories and src/sys log; the layers between return errors. If standard
 * error is connected to the journal, fields become journal fields (POD=...); otherwise each message
 * is one line, with values quoted unless they are plain characters, so that container output or an
 * image's name cannot forge a line. */
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

void nd_log_fields(enum nd_log_level level, const char *message, const struct nd_log_field *fields);

void nd_log_set_level(enum nd_log_level most_verbose);
void nd_log_open(void); /* detects the destination; without it messages go to standard error */

/* For tests: a function that receives each finished line instead of standard error. */
void nd_log_set_sink(void (*sink)(enum nd_log_level level, const char *line));
