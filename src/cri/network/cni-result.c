/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/network/cni-result.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/json-member.h"

enum {
        INTERFACES_MOST = 256,
        WORDS = 4096, /* characters of an error message */
        CIDR = INET6_ADDRSTRLEN + 4,
        TRY_AGAIN = 11, /* CNI's code */
};

static struct nd_error *add_address(const char *text, struct nd_strings *ret) {
        char address[CIDR + 1];
        struct in6_addr binary;
        size_t length = strcspn(text, "/");

        if (length > CIDR)
                return nd_error_new(ND_INVALID, 0, "an address is too long: %zu bytes", length);
        memcpy(address, text, length);
        address[length] = '\0';
        if (inet_pton(AF_INET, address, &binary) != 1 && inet_pton(AF_INET6, address, &binary) != 1)
                return nd_error_new(ND_INVALID, 0, "invalid IP address '%s'", address);
        nd_strings_add(ret, address);
        return nullptr;
}

/* The list position of the interface; -1 = the result lists none of that name. */
static struct nd_error *find_interface(yyjson_val *root, const char *name, bool *ret_listed, int64_t *ret) {
        yyjson_val *list = nullptr, *item;
        yyjson_arr_iter items;
        int64_t position = 0;

        *ret = -1;
        nd_try(nd_json_member_array(root, "interfaces", INTERFACES_MOST, &list));
        *ret_listed = list && yyjson_arr_size(list) > 0;
        if (!list)
                return nullptr;
        items = yyjson_arr_iter_with(list);
        for (; (item = yyjson_arr_iter_next(&items)); position++) {
                const char *found = nullptr, *sandbox = nullptr;

                if (!yyjson_is_obj(item))
                        return nd_error_new(ND_INVALID, 0, "an entry of 'interfaces' is not an object");
                nd_try(nd_json_member_text(item, "name", WORDS, &found));
                nd_try(nd_json_member_text(item, "sandbox", WORDS, &sandbox));
                if (found && sandbox && sandbox[0] && nd_streq(found, name))
                        *ret = position;
        }
        return nullptr;
}

/* Results since version 0.3. */
static struct nd_error *take_ips(yyjson_val *root, yyjson_val *ips, const char *interface, struct nd_strings *ret) {
        yyjson_arr_iter items = yyjson_arr_iter_with(ips);
        int64_t position = -1;
        bool listed = false;
        yyjson_val *item;

        nd_try(find_interface(root, interface, &listed, &position));
        while ((item = yyjson_arr_iter_next(&items))) {
                yyjson_val *index;
                const char *address = nullptr;

                if (!yyjson_is_obj(item))
                        return nd_error_new(ND_INVALID, 0, "an entry of 'ips' is not an object");
                nd_try(nd_json_member_text(item, "address", WORDS, &address));
                if (!address)
                        return nd_error_new(ND_INVALID, 0, "an entry of 'ips' has no address");
                index = yyjson_obj_get(item, "interface");
                if (listed && index && !yyjson_is_null(index) && yyjson_get_sint(index) != position)
                        continue; /* on a host interface, or another one of the pod */
                nd_try(add_address(address, ret));
        }
        return nullptr;
}

/* Results of 0.1 and 0.2. */
static struct nd_error *take_old(yyjson_val *root, struct nd_strings *ret) {
        static const char *const families[] = {"ip4", "ip6"};

        for (size_t i = 0; i < nd_count_of(families); i++) {
                yyjson_val *family = nullptr;
                const char *address = nullptr;

                nd_try(nd_json_member_object(root, families[i], &family));
                if (!family)
                        continue;
                nd_try(nd_json_member_text(family, "ip", WORDS, &address));
                if (address)
                        nd_try(add_address(address, ret));
        }
        return nullptr;
}

struct nd_error *cri_cni_result_addresses(const char *text, size_t length, const char *interface, struct nd_strings *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings addresses = {};
        yyjson_val *root, *ips = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;

        nd_try(nd_json_parse(text, length, CNI_RESULT_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "the result is not an object");
        nd_try(nd_json_member_array(root, "ips", CNI_ADDRESSES_MOST, &ips));
        nd_try(ips ? take_ips(root, ips, interface, &addresses) : take_old(root, &addresses));
        *ret = nd_take(addresses, (struct nd_strings) {});
        return nullptr;
}

static struct nd_error *verbatim(const char *text, size_t length) {
        nd_autotext struct nd_text words = ND_TEXT(WORDS);

        length = strnlen(text, length); /* a null byte would end the message anyway */
        while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
                length--;
        nd_text_add_utf8(&words, text, length);
        return nd_error_new(ND_INTERNAL, 0, "%s", words.length > 0 ? nd_text_get(&words) : "the plugin failed without output");
}

struct nd_error *cri_cni_result_error(const char *text, size_t length) {
        nd_autoerror struct nd_error *unreadable = nullptr;
        const char *message = nullptr, *details = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root;
        uint64_t code;

        unreadable = nd_json_parse(text, length, CNI_RESULT_CEILING, &doc);
        if (unreadable)
                return verbatim(text, length);
        root = yyjson_doc_get_root(doc);
        message = yyjson_get_str(yyjson_obj_get(root, "msg"));
        details = yyjson_get_str(yyjson_obj_get(root, "details"));
        code = yyjson_get_uint(yyjson_obj_get(root, "code"));
        if (!message)
                return verbatim(text, length);
        return nd_error_new(code == TRY_AGAIN ? ND_UNAVAILABLE : ND_INTERNAL, 0, "%.*s%s%.*s (CNI code %llu)", WORDS, message,
                            details && details[0] ? ": " : "", WORDS, details ?: "", (unsigned long long) code);
}
