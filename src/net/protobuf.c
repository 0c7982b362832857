/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf.c - see protobuf.h
 *
 * Theory of operation
 *   Decoding uses an allocator that counts: a hostile message can make a decoder allocate far more
 *   than its own size (repeated empty messages). At the ceiling the allocator fails and protobuf-c
 *   returns an error. One decode at a time, hence one counter.
 *   Encoding walks the message by its descriptors to the strings. They belong to the caller and may
 *   be constants, so an invalid one is replaced by a valid copy during encoding, and restored. */
#include "net/protobuf.h"

#include <string.h>

#include "base/vector.h"

static size_t decode_budget;

static void *budget_alloc([[maybe_unused]] void *data, size_t size) {
        if (size > decode_budget)
                return nullptr;
        decode_budget -= size;
        return malloc(size > 0 ? size : 1);
}

static void budget_free([[maybe_unused]] void *data, void *memory) {
        free(memory);
}

static ProtobufCAllocator budget_allocator = {.alloc = budget_alloc, .free = budget_free};

/* ---- walking ---- */

struct walk {
        struct nd_error *(*string)(char **string, void *userdata);
        void *userdata;
};

static struct nd_error *walk_message(const struct walk *walk, ProtobufCMessage *message, int depth);

static struct nd_error *walk_value(const struct walk *walk, const ProtobufCFieldDescriptor *field, void *value, int depth) {
        switch (field->type) {
        case PROTOBUF_C_TYPE_STRING: {
                char **string = value;

                return *string && *string != protobuf_c_empty_string ? walk->string(string, walk->userdata) : nullptr;
        }
        case PROTOBUF_C_TYPE_MESSAGE: {
                ProtobufCMessage *message = *(ProtobufCMessage **) value;

                return message ? walk_message(walk, message, depth + 1) : nullptr;
        }
        default:
                return nullptr;
        }
}

static struct nd_error *walk_field(const struct walk *walk, const ProtobufCFieldDescriptor *field, char *base, int depth) {
        void **items;
        size_t count;

        /* The descriptor holds the field's byte offset: memcpy() avoids any alignment and aliasing
         * assumption. */
        if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
                return nullptr;
        if (field->label != PROTOBUF_C_LABEL_REPEATED)
                return walk_value(walk, field, base + field->offset, depth);
        memcpy(&count, base + field->quantifier_offset, sizeof count);
        memcpy(&items, base + field->offset, sizeof items);
        for (size_t i = 0; i < count; i++)
                nd_try(walk_value(walk, field, &items[i], depth));
        return nullptr;
}

static struct nd_error *walk_message(const struct walk *walk, ProtobufCMessage *message, int depth) {
        const ProtobufCMessageDescriptor *type = message->descriptor;

        if (depth > ND_PROTOBUF_DEPTH)
                return nd_error_new(ND_INVALID, 0, "%s is nested deeper than %d", type->name, ND_PROTOBUF_DEPTH);
        for (unsigned i = 0; i < message->n_unknown_fields; i++)
                /* protobuf-c accepts an overlong zero, which is not a valid field number. */
                if (message->unknown_fields[i].tag == 0)
                        return nd_error_new(ND_INVALID, 0, "%s has a field without a number", type->name);
        for (unsigned i = 0; i < type->n_fields; i++)
                nd_try(walk_field(walk, &type->fields[i], (char *) message, depth));
        return nullptr;
}

/* ---- decoding ---- */

static struct nd_error *refuse_dirty(char **string, [[maybe_unused]] void *userdata) {
        if (nd_text_utf8_valid(*string, strlen(*string)))
                return nullptr;
        return nd_error_new(ND_INVALID, 0, "a string is not UTF-8");
}

struct nd_error *nd_protobuf_unpack(const ProtobufCMessageDescriptor *type, const char *bytes, size_t length,
                                    ProtobufCMessage **ret) {
        ProtobufCMessage *message;
        struct nd_error *error;

        decode_budget = ND_PROTOBUF_MEMORY;
        message = protobuf_c_message_unpack(type, &budget_allocator, length, (const uint8_t *) bytes);
        if (!message)
                return nd_error_new(ND_INVALID, 0, "not a %s", type->name);
        error = walk_message(&(struct walk) {.string = refuse_dirty}, message, 0);
        if (error) {
                nd_protobuf_free(message);
                return error;
        }
        *ret = message;
        return nullptr;
}

void nd_protobuf_free(ProtobufCMessage *message) {
        if (message)
                protobuf_c_message_free_unpacked(message, &budget_allocator);
}

/* ---- encoding ---- */

struct replaced {
        char **place;
        char *original;
};

struct cleaning {
        nd_vector(struct replaced) list;
};

static struct nd_error *replace_dirty(char **string, void *userdata) {
        struct cleaning *cleaning = userdata;
        size_t length = strlen(*string);
        nd_autotext struct nd_text clean = ND_TEXT(3 * length);

        if (nd_text_utf8_valid(*string, length))
                return nullptr;
        nd_text_add_utf8(&clean, *string, length);
        nd_vector_push(&cleaning->list, ((struct replaced) {.place = string, .original = *string}));
        *string = nd_text_steal(&clean);
        return nullptr;
}

void nd_protobuf_pack(const ProtobufCMessage *message, struct nd_text *ret) {
        struct cleaning cleaning = {};
        size_t size;

        /* Our own messages never nest that deep; an error is a bug that a test would find. */
        nd_ignore(walk_message(&(struct walk) {.string = replace_dirty, .userdata = &cleaning}, (ProtobufCMessage *) message,
                               0));
        size = protobuf_c_message_get_packed_size(message);
        nd_text_done(ret);
        *ret = (struct nd_text) {.bytes = nd_malloc(size + 1), .length = size, .capacity = size + 1, .ceiling = size};
        (void) protobuf_c_message_pack(message, (uint8_t *) ret->bytes);
        ret->bytes[size] = '\0';
        nd_vector_each (r, &cleaning.list) {
                free(*r->place);
                *r->place = r->original;
        }
        nd_vector_done(&cleaning.list);
}
