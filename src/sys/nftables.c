/* SPDX-License-Identifier: Apache-2.0 */
/* nftables.c - see nftables.h
 *
 * Theory of operation
 *   A transaction is one datagram of messages between a begin and an end. To replace a table it is
 *   created (a no-op if it exists), deleted, and created again. Only the last message requests an
 *   acknowledgement; a failed one is always answered, and then the whole transaction is rolled
 *   back. */
#include "sys/nftables.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum {
        BATCH_BYTES = 32 * 1024,
        ANSWER_BYTES = 8 * 1024,
        NAME_BYTES = 16, /* of an interface */
        ANSWER_SECONDS = 5,
        LAST = UINT16_MAX, /* sequence number of the acknowledged message */
};

struct batch {
        uint8_t bytes[BATCH_BYTES];
        size_t length;
        size_t message; /* offset of the open one */
};

static void put(struct batch *b, const void *bytes, size_t length) {
        size_t padded = NLA_ALIGN(length);

        if (b->length + padded > sizeof b->bytes)
                abort(); /* our tables are few and small */
        memset(b->bytes + b->length, 0, padded);
        memcpy(b->bytes + b->length, bytes, length);
        b->length += padded;
}

static void message_end(struct batch *b) {
        uint32_t length = (uint32_t) (b->length - b->message);

        memcpy(b->bytes + b->message + offsetof(struct nlmsghdr, nlmsg_len), &length, sizeof length);
}

static void message_begin(struct batch *b, uint16_t type, uint16_t flags, uint32_t sequence) {
        bool control = type == NFNL_MSG_BATCH_BEGIN || type == NFNL_MSG_BATCH_END;
        struct nlmsghdr header = {.nlmsg_type = control ? type : (uint16_t) (NFNL_SUBSYS_NFTABLES << 8 | type),
                                  .nlmsg_flags = NLM_F_REQUEST | flags,
                                  .nlmsg_seq = sequence};
        struct nfgenmsg family = {.nfgen_family = control ? 0 : NFPROTO_INET,
                                  .version = NFNETLINK_V0,
                                  .res_id = control ? htons(NFNL_SUBSYS_NFTABLES) : 0};

        b->message = b->length;
        put(b, &header, sizeof header);
        put(b, &family, sizeof family);
}

static void add(struct batch *b, uint16_t type, const void *value, size_t length) {
        struct nlattr attribute = {.nla_type = type, .nla_len = (uint16_t) (NLA_HDRLEN + length)};

        put(b, &attribute, sizeof attribute);
        put(b, value, length);
}

static void add_text(struct batch *b, uint16_t type, const char *text) {
        add(b, type, text, strlen(text) + 1);
}

static void add_number(struct batch *b, uint16_t type, uint32_t number) {
        uint32_t big = htonl(number);

        add(b, type, &big, sizeof big);
}

/* Nested attributes: pass the result of nest_begin() to nest_end(). */
static size_t nest_begin(struct batch *b, uint16_t type) {
        size_t at = b->length;

        put(b, &(struct nlattr) {.nla_type = type | NLA_F_NESTED}, NLA_HDRLEN);
        return at;
}

static void nest_end(struct batch *b, size_t at) {
        uint16_t length = (uint16_t) (b->length - at);

        memcpy(b->bytes + at + offsetof(struct nlattr, nla_len), &length, sizeof length);
}

static void add_data(struct batch *b, uint16_t type, const void *value, size_t length) {
        size_t nest = nest_begin(b, type);

        add(b, NFTA_DATA_VALUE, value, length);
        nest_end(b, nest);
}

/* ---- expressions ---- */

static void add_meta(struct batch *b, uint16_t register_type, uint32_t key) {
        add_number(b, register_type, NFT_REG_1);
        add_number(b, NFTA_META_KEY, key);
}

static void add_ct(struct batch *b, uint16_t register_type, uint32_t key) {
        add_number(b, register_type, NFT_REG_1);
        add_number(b, NFTA_CT_KEY, key);
}

static void add_payload(struct batch *b, uint32_t base, uint32_t offset, uint32_t length) {
        add_number(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
        add_number(b, NFTA_PAYLOAD_BASE, base);
        add_number(b, NFTA_PAYLOAD_OFFSET, offset);
        add_number(b, NFTA_PAYLOAD_LEN, length);
}

static void add_mask(struct batch *b, uint32_t mask, uint32_t value) {
        add_number(b, NFTA_BITWISE_SREG, NFT_REG_1);
        add_number(b, NFTA_BITWISE_DREG, NFT_REG_1);
        add_number(b, NFTA_BITWISE_LEN, sizeof mask);
        add_data(b, NFTA_BITWISE_MASK, &mask, sizeof mask);
        add_data(b, NFTA_BITWISE_XOR, &value, sizeof value);
}

/* The width is that of the value loaded last. */
static void add_comparison(struct batch *b, const struct nd_nftables_step *step, size_t width) {
        uint8_t byte = (uint8_t) step->value;
        uint16_t port = htons((uint16_t) step->value);
        char name[NAME_BYTES] = {};
        const void *values[] = {[1] = &byte, [2] = &port, [4] = &step->value, [NAME_BYTES] = name};

        if (step->name)
                memcpy(name, step->name, strnlen(step->name, sizeof name - 1));
        add_number(b, NFTA_CMP_SREG, NFT_REG_1);
        add_number(b, NFTA_CMP_OP, step->kind == ND_NFT_EQUAL ? NFT_CMP_EQ : NFT_CMP_NEQ);
        add_data(b, NFTA_CMP_DATA, values[width], width);
}

static void add_drop(struct batch *b) {
        size_t data, verdict;

        add_number(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
        data = nest_begin(b, NFTA_IMMEDIATE_DATA);
        verdict = nest_begin(b, NFTA_DATA_VERDICT);
        add_number(b, NFTA_VERDICT_CODE, NF_DROP);
        nest_end(b, verdict);
        nest_end(b, data);
}

/* What each step is called, and the width of the value that it loads. */
static const struct {
        const char *name;
        size_t width;
} kinds[] = {
        [ND_NFT_LOAD_MARK] = {"meta", 4},
        [ND_NFT_LOAD_CT_MARK] = {"ct", 4},
        [ND_NFT_LOAD_DIRECTION] = {"ct", 1},
        [ND_NFT_LOAD_FAMILY] = {"meta", 1},
        [ND_NFT_LOAD_PROTOCOL] = {"meta", 1},
        [ND_NFT_LOAD_PORT] = {"payload", 2},
        [ND_NFT_LOAD_SOURCE] = {"payload", 4},
        [ND_NFT_LOAD_INPUT] = {"meta", NAME_BYTES},
        [ND_NFT_LOAD_OUTPUT] = {"meta", NAME_BYTES},
        [ND_NFT_MASK] = {"bitwise", 4},
        [ND_NFT_EQUAL] = {"cmp", 0},
        [ND_NFT_DIFFERS] = {"cmp", 0},
        [ND_NFT_SET_MARK] = {"meta", 0},
        [ND_NFT_SET_CT_MARK] = {"ct", 0},
        [ND_NFT_DROP] = {"immediate", 0},
        [ND_NFT_MASQUERADE] = {"masq", 0},
};

static void add_load(struct batch *b, enum nd_nftables_step_kind kind) {
        enum { PORT_AT = 2, SOURCE_AT = 12 };

        switch (kind) {
        case ND_NFT_LOAD_CT_MARK:
                add_ct(b, NFTA_CT_DREG, NFT_CT_MARK);
                break;
        case ND_NFT_LOAD_DIRECTION:
                add_ct(b, NFTA_CT_DREG, NFT_CT_DIRECTION);
                break;
        case ND_NFT_LOAD_FAMILY:
                add_meta(b, NFTA_META_DREG, NFT_META_NFPROTO);
                break;
        case ND_NFT_LOAD_PROTOCOL:
                add_meta(b, NFTA_META_DREG, NFT_META_L4PROTO);
                break;
        case ND_NFT_LOAD_PORT:
                add_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, PORT_AT, sizeof(uint16_t));
                break;
        case ND_NFT_LOAD_SOURCE:
                add_payload(b, NFT_PAYLOAD_NETWORK_HEADER, SOURCE_AT, sizeof(uint32_t));
                break;
        case ND_NFT_LOAD_INPUT:
                add_meta(b, NFTA_META_DREG, NFT_META_IIFNAME);
                break;
        case ND_NFT_LOAD_OUTPUT:
                add_meta(b, NFTA_META_DREG, NFT_META_OIFNAME);
                break;
        default:
                add_meta(b, NFTA_META_DREG, NFT_META_MARK);
                break;
        }
}

static void add_expression(struct batch *b, const struct nd_nftables_step *step, size_t width) {
        switch (step->kind) {
        case ND_NFT_SET_MARK:
                add_meta(b, NFTA_META_SREG, NFT_META_MARK);
                break;
        case ND_NFT_SET_CT_MARK:
                add_ct(b, NFTA_CT_SREG, NFT_CT_MARK);
                break;
        case ND_NFT_MASK:
                add_mask(b, step->mask, step->value);
                break;
        case ND_NFT_EQUAL:
        case ND_NFT_DIFFERS:
                add_comparison(b, step, width);
                break;
        case ND_NFT_DROP:
                add_drop(b);
                break;
        case ND_NFT_MASQUERADE:
        case ND_NFT_END:
                break;
        default:
                add_load(b, step->kind);
                break;
        }
}

static void add_step(struct batch *b, const struct nd_nftables_step *step, size_t width) {
        size_t element = nest_begin(b, NFTA_LIST_ELEM), data;

        add_text(b, NFTA_EXPR_NAME, kinds[step->kind].name);
        data = nest_begin(b, NFTA_EXPR_DATA);
        add_expression(b, step, width);
        nest_end(b, data);
        nest_end(b, element);
}

/* ---- the transaction ---- */

static void add_chain(struct batch *b, const char *table, const struct nd_nftables_chain *chain) {
        size_t hook;

        message_begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE, 0);
        add_text(b, NFTA_CHAIN_TABLE, table);
        add_text(b, NFTA_CHAIN_NAME, chain->name);
        hook = nest_begin(b, NFTA_CHAIN_HOOK);
        add_number(b, NFTA_HOOK_HOOKNUM, chain->hook);
        add_number(b, NFTA_HOOK_PRIORITY, (uint32_t) chain->priority);
        nest_end(b, hook);
        add_number(b, NFTA_CHAIN_POLICY, NF_ACCEPT);
        add_text(b, NFTA_CHAIN_TYPE, chain->type);
        message_end(b);
}

static void add_rule(struct batch *b, const char *table, const char *chain, const struct nd_nftables_step *steps) {
        size_t list, width = 0;

        message_begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, 0);
        add_text(b, NFTA_RULE_TABLE, table);
        add_text(b, NFTA_RULE_CHAIN, chain);
        list = nest_begin(b, NFTA_RULE_EXPRESSIONS);
        for (size_t i = 0; i < ND_NFT_STEPS && steps[i].kind != ND_NFT_END; i++) {
                add_step(b, &steps[i], width);
                width = kinds[steps[i].kind].width ?: width;
        }
        nest_end(b, list);
        message_end(b);
}

static void add_table(struct batch *b, uint16_t type, uint16_t flags, uint32_t sequence, const char *table) {
        message_begin(b, type, flags, sequence);
        add_text(b, NFTA_TABLE_NAME, table);
        message_end(b);
}

static void build(struct batch *b, const char *table, const struct nd_nftables_chain *chains) {
        message_begin(b, NFNL_MSG_BATCH_BEGIN, 0, 0);
        message_end(b);
        add_table(b, NFT_MSG_NEWTABLE, NLM_F_CREATE, 0, table);
        add_table(b, NFT_MSG_DELTABLE, 0, 0, table);
        add_table(b, NFT_MSG_NEWTABLE, NLM_F_CREATE, 0, table);
        for (const struct nd_nftables_chain *chain = chains; chain->name; chain++) {
                add_chain(b, table, chain);
                for (size_t i = 0; i < ND_NFT_RULES && chain->rules[i][0].kind != ND_NFT_END; i++)
                        add_rule(b, table, chain->name, chain->rules[i]);
        }
        /* Exists: only requests the acknowledgement. */
        add_table(b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_ACK, LAST, table);
        message_begin(b, NFNL_MSG_BATCH_END, 0, 0);
        message_end(b);
}

/* Result of the transaction: 0 or -errno. */
static int read_answer(int fd) {
        union {
                struct nlmsghdr header;
                uint8_t bytes[ANSWER_BYTES];
        } answer;

        for (;;) {
                ssize_t n = recv(fd, &answer, sizeof answer, 0);
                const struct nlmsgerr *end = NLMSG_DATA(&answer.header);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? -ETIMEDOUT : -errno;
                if ((size_t) n < NLMSG_LENGTH(sizeof *end) || answer.header.nlmsg_type != NLMSG_ERROR)
                        return -EPROTO;
                if (end->error != 0 || answer.header.nlmsg_seq == LAST)
                        return end->error;
        }
}

struct nd_error *nd_nftables_put(const char *table, const struct nd_nftables_chain *chains) {
        struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
        struct timeval patience = {.tv_sec = ANSWER_SECONDS};
        nd_autofree struct batch *b = nd_new(struct batch);
        nd_autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
        int status;

        if (fd < 0)
                return nd_error_new(ND_UNIMPLEMENTED, errno, "this kernel has no nf_tables");
        build(b, table, chains);
        if (connect(fd, (struct sockaddr *) &kernel, sizeof kernel) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 || send(fd, b->bytes, b->length, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "send nftables table '%s'", table);
        status = read_answer(fd);
        if (status == -EOPNOTSUPP || status == -EINVAL || status == -ENOENT)
                return nd_error_new(ND_UNIMPLEMENTED, -status, "this kernel's nf_tables does not support table '%s'", table);
        if (status < 0)
                return nd_error_new(nd_error_code_of(-status), -status, "replace nftables table '%s'", table);
        return nullptr;
}
