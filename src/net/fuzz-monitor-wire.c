/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-monitor-wire.c - records and messages between nodens-cri and nodens-mon: an accepted one can
 * be written and read again */
#include <string.h>

#include <unit/fuzz.h>

#include "net/monitor-wire.h"

static void message(const char *bytes, size_t length) {
        char again[ND_MONITOR_MESSAGE];
        struct nd_monitor_message first, second;
        size_t written;

        if (!nd_monitor_message_read(bytes, length, &first))
                return;
        fuzz_require(first.length <= length && (first.length == 0 || first.words >= bytes));
        written = nd_monitor_message_write(&first, again);
        fuzz_require(nd_monitor_message_read(again, written, &second));
        fuzz_require(first.letter == second.letter && first.rows == second.rows && first.columns == second.columns);
        fuzz_require(first.error_number == second.error_number && first.streams == second.streams);
        fuzz_require(second.length == (first.length < ND_MONITOR_TEXT ? first.length : ND_MONITOR_TEXT));
        fuzz_require(second.length == 0 || memcmp(first.words, second.words, second.length) == 0);
}

static void record(const char *bytes, size_t length) {
        char file[ND_MONITOR_RECORD], slot[ND_MONITOR_SLOT];
        struct nd_monitor_record first, second;
        enum nd_monitor_phase last;

        if (!nd_monitor_record_read(bytes, length, &first))
                return;
        fuzz_require(first.code >= 0 && first.code <= 255 && first.oom_kills >= -1 && first.pid >= 0);
        fuzz_require(first.pid > 0 || first.phase == ND_MONITOR_CREATING || first.phase == ND_MONITOR_FAILED);
        memset(file, '\n', sizeof file);
        last = first.phase;
        for (enum nd_monitor_phase phase = ND_MONITOR_CREATING; phase <= last; phase++) {
                if (phase == ND_MONITOR_FAILED && last == ND_MONITOR_EXITED)
                        continue;
                first.phase = phase;
                memcpy(file + (size_t) nd_monitor_record_slot(&first, slot) * ND_MONITOR_SLOT, slot, sizeof slot);
        }
        fuzz_require(nd_monitor_record_read(file, sizeof file, &second));
        fuzz_require(second.phase == last && second.pid == first.pid && second.birth == first.birth);
        fuzz_require(second.code == first.code && second.at == first.at && second.oom_kills == first.oom_kills);
        fuzz_require(second.lost == first.lost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        message((const char *) data, size);
        record((const char *) data, size);
        return 0;
}
