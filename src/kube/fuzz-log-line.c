/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-log-line.c - any bytes as a line of a container's log
 *
 * Property: an accepted line lies within the bytes, its timestamp parsed alone is the same time,
 * and the line formatted from its parts is parsed as the same line. */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "kube/log-line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *bytes = (const char *) data;
        struct nd_log_line line, again;
        nd_autotext struct nd_text text = ND_TEXT(size + 64);
        uint64_t time;

        (void) !nd_log_line_time_parse(bytes, size, &time);
        if (!nd_log_line_parse(bytes, size, &line))
                return 0;
        fuzz_require(line.stamp == bytes && line.stamp_length < size && line.text >= bytes &&
                     line.text + line.length == bytes + size);
        fuzz_require(nd_log_line_time_parse(line.stamp, line.stamp_length, &time) && time == line.time);
        nd_text_append(&text, line.stamp, line.stamp_length);
        nd_text_addf(&text, " %s %c ", line.stream == ND_LOG_STDERR ? "stderr" : "stdout", line.whole ? 'F' : 'P');
        if (line.length > 0)
                nd_text_append(&text, line.text, line.length);
        fuzz_require(nd_log_line_parse(text.bytes, text.length, &again));
        fuzz_require(again.time == line.time && again.stream == line.stream && again.whole == line.whole &&
                     again.length == line.length && memcmp(again.text, line.text, line.length) == 0);
        return 0;
}
