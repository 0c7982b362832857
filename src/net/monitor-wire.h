/* SPDX-License-Identifier: Apache-2.0 */
/* monitor-wire.h - the formats between nodens-cri and nodens-mon: record file and messages
 *
 * A monitor outlives the daemon that started it, and the next daemon may be of another version: so
 * both formats are fixed, and additions are new letters and new fields at a line's end, which older
 * readers ignore.
 *
 * The record is a file of three slots. Each is written once, by one write(); a slot without its end
 * mark has not been written yet. So a reader never sees a partial update, and the disk space is
 * allocated before anything can fail.
 *      slot 0  "nodens-mon 1 ."                         the monitor runs
 *      slot 1  "created PID BIRTH ." or "failed ."      result of the engine's `create`
 *      slot 2  "exited CODE NANOSECONDS OOM LOST ."     exit of the container; OOM "-": unknown
 *
 * Messages are packets on a unix socket (SOCK_SEQPACKET): a letter and its payload. The daemon's
 * letters are upper case. A connection that sends 'A' becomes a client of the container's streams:
 * the message carries sockets, one for each bit, for the data. Such a connection is notified of the
 * container's exit like any other; closing it detaches the client. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/memory.h"

enum {
        ND_MONITOR_SLOT = 128,
        ND_MONITOR_RECORD = 3 * ND_MONITOR_SLOT,
        ND_MONITOR_TEXT = 4000,    /* maximum length of a message's text */
        ND_MONITOR_MESSAGE = 4096, /* maximum size of a message */
};

enum nd_monitor_phase {
        ND_MONITOR_CREATING,
        ND_MONITOR_CREATED,
        ND_MONITOR_FAILED,
        ND_MONITOR_EXITED,
};

struct nd_monitor_record {
        enum nd_monitor_phase phase;
        pid_t pid;         /* 0 before CREATED */
        uint64_t birth;    /* its start time in clock ticks, to detect a reused PID */
        int code;          /* 0-255 */
        uint64_t at;       /* nanoseconds since 1970 */
        int64_t oom_kills; /* -1 = unknown */
        uint64_t lost;     /* bytes that did not fit the log */
};

/* Writes the slot of the record's phase; returns its number. */
unsigned nd_monitor_record_slot(const struct nd_monitor_record *record, char ret[static ND_MONITOR_SLOT]);

/* False if the bytes are not a record. */
[[nodiscard]] bool nd_monitor_record_read(const char *bytes, size_t length, struct nd_monitor_record *ret);

enum nd_monitor_letter {
        ND_MONITOR_REOPEN = 'L', /* reopen the log */
        ND_MONITOR_RESIZE = 'W', /* rows, columns of the terminal */
        /* Bits: which streams; one descriptor per bit, in the bits' order. */
        ND_MONITOR_ATTACH = 'A',
        ND_MONITOR_ATTACHED = 'a',   /* errno, 0 = done; text */
        ND_MONITOR_DROPPED = 'd',    /* the client read too slowly and was detached */
        ND_MONITOR_REOPENED = 'l',   /* errno, 0 = done; text */
        ND_MONITOR_IS_CREATED = 'c', /* text: the engine's stderr despite success */
        ND_MONITOR_IS_FAILED = 'f',  /* errno; text: why */
        ND_MONITOR_IS_EXITED = 'x',
};

enum { /* bits of ND_MONITOR_ATTACH */
       ND_MONITOR_STDIN = 1,
       ND_MONITOR_STDOUT = 2,
       ND_MONITOR_STDERR = 4,
       ND_MONITOR_STREAMS = 3, /* how many there are */
};

struct nd_monitor_message {
        enum nd_monitor_letter letter;
        uint8_t streams;
        uint16_t rows, columns;
        int error_number;
        const char *words; /* not terminated; points into the packet if read */
        size_t length;
};

/* Truncates the text to ND_MONITOR_TEXT. Returns the number of bytes. */
size_t nd_monitor_message_write(const struct nd_monitor_message *message, char ret[static ND_MONITOR_MESSAGE]);

/* False for a packet that this version does not know: ignore it. */
[[nodiscard]] bool nd_monitor_message_read(const char *bytes, size_t length, struct nd_monitor_message *ret);
