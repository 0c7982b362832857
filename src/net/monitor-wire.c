/* SPDX-License-Identifier: Apache-2.0 */
#include "net/monitor-wire.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum {
        CODE_MOST = 255,
        WORDS = 8, /* maximum fields of a slot */
};

unsigned nd_monitor_record_slot(const struct nd_monitor_record *record, char ret[static ND_MONITOR_SLOT]) {
        unsigned slot = 0;
        int n = 0;

        switch (record->phase) {
        case ND_MONITOR_CREATING:
                n = snprintf(ret, ND_MONITOR_SLOT, "nodens-mon 1 .");
                break;
        case ND_MONITOR_CREATED:
                slot = 1;
                n = snprintf(ret, ND_MONITOR_SLOT, "created %d %llu .", record->pid, (unsigned long long) record->birth);
                break;
        case ND_MONITOR_FAILED:
                slot = 1;
                n = snprintf(ret, ND_MONITOR_SLOT, "failed .");
                break;
        case ND_MONITOR_EXITED: {
                char oom[32] = "-";

                if (record->oom_kills >= 0)
                        (void) snprintf(oom, sizeof oom, "%lld", (long long) record->oom_kills);
                slot = 2;
                n = snprintf(ret, ND_MONITOR_SLOT, "exited %d %llu %s %llu .", record->code, (unsigned long long) record->at,
                             oom, (unsigned long long) record->lost);
                break;
        }
        }
        memset(ret + n, '\n', ND_MONITOR_SLOT - (size_t) n);
        return slot;
}

/* Splits a slot into fields, without the end mark; 0 if the slot has not been written
 * completely. */
static size_t split(const char *slot, char copy[static ND_MONITOR_SLOT + 1], const char *words[static WORDS]) {
        size_t count = 0;
        char *state = nullptr;
        char *line;

        memcpy(copy, slot, ND_MONITOR_SLOT);
        copy[ND_MONITOR_SLOT] = '\0';
        line = copy;
        line[strcspn(line, "\n")] = '\0';
        for (char *word = strtok_r(line, " ", &state); word; word = strtok_r(nullptr, " ", &state)) {
                if (nd_streq(word, "."))
                        return count;
                if (count < WORDS)
                        words[count++] = word;
        }
        return 0;
}

static bool read_created(const char *const *words, size_t count, struct nd_monitor_record *record) {
        uint64_t pid;

        if (count >= 1 && nd_streq(words[0], "failed")) {
                record->phase = ND_MONITOR_FAILED;
                return true;
        }
        if (count < 3 || !nd_streq(words[0], "created") || nd_text_parse_u64(words[1], INT_MAX, &pid) < 0 || pid == 0 ||
            nd_text_parse_u64(words[2], UINT64_MAX, &record->birth) < 0)
                return false;
        record->pid = (pid_t) pid;
        record->phase = ND_MONITOR_CREATED;
        return true;
}

static bool read_exited(const char *const *words, size_t count, struct nd_monitor_record *record) {
        uint64_t code, at, oom = 0, lost;

        if (count < 5 || !nd_streq(words[0], "exited") || nd_text_parse_u64(words[1], CODE_MOST, &code) < 0 ||
            nd_text_parse_u64(words[2], UINT64_MAX, &at) < 0 || nd_text_parse_u64(words[4], UINT64_MAX, &lost) < 0)
                return false;
        if (!nd_streq(words[3], "-") && nd_text_parse_u64(words[3], INT64_MAX, &oom) < 0)
                return false;
        record->code = (int) code;
        record->at = at;
        record->oom_kills = nd_streq(words[3], "-") ? -1 : (int64_t) oom;
        record->lost = lost;
        record->phase = ND_MONITOR_EXITED;
        return true;
}

bool nd_monitor_record_read(const char *bytes, size_t length, struct nd_monitor_record *ret) {
        struct nd_monitor_record record = {.phase = ND_MONITOR_CREATING, .oom_kills = -1};
        char copy[ND_MONITOR_SLOT + 1];
        const char *words[WORDS] = {};
        size_t count;

        if (length < ND_MONITOR_RECORD)
                return false;
        count = split(bytes, copy, words);
        if (count < 2 || !nd_streq(words[0], "nodens-mon"))
                return false;
        count = split(bytes + ND_MONITOR_SLOT, copy, words);
        if (count > 0 && !read_created(words, count, &record))
                return false;
        if (record.phase == ND_MONITOR_CREATED) {
                count = split(bytes + (size_t) 2 * ND_MONITOR_SLOT, copy, words);
                if (count > 0 && !read_exited(words, count, &record))
                        return false;
        }
        *ret = record;
        return true;
}

size_t nd_monitor_message_write(const struct nd_monitor_message *message, char ret[static ND_MONITOR_MESSAGE]) {
        size_t length = message->length < ND_MONITOR_TEXT ? message->length : ND_MONITOR_TEXT, at = 1;
        int32_t number = message->error_number;

        ret[0] = (char) message->letter;
        switch (message->letter) {
        case ND_MONITOR_RESIZE:
                memcpy(ret + at, &message->rows, sizeof message->rows);
                memcpy(ret + at + sizeof message->rows, &message->columns, sizeof message->columns);
                return at + sizeof message->rows + sizeof message->columns;
        case ND_MONITOR_ATTACH:
                ret[at] = (char) message->streams;
                return at + 1;
        case ND_MONITOR_REOPENED:
        case ND_MONITOR_ATTACHED:
        case ND_MONITOR_IS_FAILED:
                memcpy(ret + at, &number, sizeof number);
                at += sizeof number;
                break;
        case ND_MONITOR_IS_CREATED:
                break;
        case ND_MONITOR_REOPEN:
        case ND_MONITOR_DROPPED:
        case ND_MONITOR_IS_EXITED:
                return at;
        }
        if (length > 0)
                memcpy(ret + at, message->words, length);
        return at + length;
}

bool nd_monitor_message_read(const char *bytes, size_t length, struct nd_monitor_message *ret) {
        struct nd_monitor_message message = {};
        size_t at = 1;
        int32_t number;

        if (length < at || length > ND_MONITOR_MESSAGE)
                return false;
        message.letter = (enum nd_monitor_letter) bytes[0];
        switch (bytes[0]) {
        case ND_MONITOR_RESIZE:
                if (length < at + sizeof message.rows + sizeof message.columns)
                        return false;
                memcpy(&message.rows, bytes + at, sizeof message.rows);
                memcpy(&message.columns, bytes + at + sizeof message.rows, sizeof message.columns);
                break;
        case ND_MONITOR_ATTACH:
                if (length < at + 1)
                        return false;
                message.streams = (uint8_t) bytes[at];
                break;
        case ND_MONITOR_REOPENED:
        case ND_MONITOR_ATTACHED:
        case ND_MONITOR_IS_FAILED:
                if (length < at + sizeof number)
                        return false;
                memcpy(&number, bytes + at, sizeof number);
                message.error_number = number;
                at += sizeof number;
                [[fallthrough]];
        case ND_MONITOR_IS_CREATED:
                message.words = bytes + at;
                message.length = length - at;
                break;
        case ND_MONITOR_REOPEN:
        case ND_MONITOR_DROPPED:
        case ND_MONITOR_IS_EXITED:
                break;
        default:
                return false;
        }
        *ret = message;
        return true;
}
