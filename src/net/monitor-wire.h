/* SPDX-License-Identifier: Apache-2.0 */
/* monitor-wire.h - what nodens-cri and nodens-mon say to each other, as bytes
 *
 * A monitor outlives the daemon that started it, and the next daemon may be of another version: so both forms are fixed, and additions are new letters
 * and new words at a line's end, which older readers pass over.
 *
 * The record is a file of three slots. Each is written once, by one write, and never again; a slot that does not end as it should has not been written
 * yet. So a reader never sees a mixture, and the file's room is taken before anything can go wrong.
 *      slot 0  "nodens-mon 1 ."                         the monitor runs
 *      slot 1  "created PID BIRTH ." or "failed ."      what became of the engine's `create`
 *      slot 2  "exited CODE NANOSECONDS OOM LOST ."     the container's end; OOM is "-" where nobody could look
 *
 * Messages are packets on a unix socket (SOCK_SEQPACKET): a letter and what belongs to it. Letters of the daemon are large. A connection that
 * says 'A' becomes a client of the container's streams: with the message come sockets, one for each bit, over which the bytes go. Such a connection is
 * told of the container's end like any other one; its own end is the client's. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/memory.h"

enum {
        ND_MONITOR_SLOT = 128,
        ND_MONITOR_RECORD = 3 * ND_MONITOR_SLOT,
        ND_MONITOR_TEXT = 4000,    /* most words of a message */
        ND_MONITOR_MESSAGE = 4096, /* most bytes of one */
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
        uint64_t birth;    /* its start time in clock ticks */
        int code;          /* 0-255 */
        uint64_t at;       /* nanoseconds since 1970 */
        int64_t oom_kills; /* -1 = unknown */
        uint64_t lost;     /* bytes that the log had no room for */
};

/* Writes the slot that belongs to the record's phase; returns its number. */
unsigned nd_monitor_record_slot(const struct nd_monitor_record *record, char ret[static ND_MONITOR_SLOT]);

/* False where the bytes are no record. */
[[nodiscard]] bool nd_monitor_record_read(const char *bytes, size_t length, struct nd_monitor_record *ret);

enum nd_monitor_letter {
        ND_MONITOR_REOPEN = 'L',     /* open the log anew */
        ND_MONITOR_RESIZE = 'W',     /* rows, columns of the terminal */
        ND_MONITOR_ATTACH = 'A',     /* bits: which streams; as many descriptors, in the bits' order */
        ND_MONITOR_ATTACHED = 'a',   /* error number, 0 = done; words */
        ND_MONITOR_DROPPED = 'd',    /* the client took too little, and gets no more */
        ND_MONITOR_REOPENED = 'l',   /* error number, 0 = done; words */
        ND_MONITOR_IS_CREATED = 'c', /* words: what the engine said although it succeeded */
        ND_MONITOR_IS_FAILED = 'f',  /* error number; words: why */
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
        const char *words; /* not terminated; of a message that was read: points into its bytes */
        size_t length;
};

/* Words past ND_MONITOR_TEXT are cut off. Returns the number of bytes. */
size_t nd_monitor_message_write(const struct nd_monitor_message *message, char ret[static ND_MONITOR_MESSAGE]);

/* False for a packet that this version does not know: it is passed over. */
[[nodiscard]] bool nd_monitor_message_read(const char *bytes, size_t length, struct nd_monitor_message *ret);
