/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/exec-status.h"

#include "base/json.h"

static const char *text_of(yyjson_val *object, const char *key) {
        return yyjson_get_str(yyjson_obj_get(object, key)) ?: "";
}

/* {"details": {"causes": [{"reason": "ExitCode", "message": "3"}]}} */
static bool find_code(yyjson_val *status, int *ret) {
        yyjson_val *causes = yyjson_obj_get(yyjson_obj_get(status, "details"), "causes"), *cause;
        size_t i, count;
        uint64_t code;

        yyjson_arr_foreach(causes, i, count, cause) {
                if (nd_streq(text_of(cause, "reason"), "ExitCode") &&
                    nd_text_parse_u64(text_of(cause, "message"), 255, &code) == 0 && code > 0) {
                        *ret = (int) code;
                        return true;
                }
        }
        return false;
}

struct nd_error *cli_exec_status_parse(const char *bytes, size_t length, int *ret_code) {
        nd_autojson yyjson_doc *document = nullptr;
        yyjson_val *status;

        nd_try(nd_error_wrap(nd_json_parse(bytes, length, EXEC_STATUS_BYTES, &document), "exit status of the command"));
        status = yyjson_doc_get_root(document);
        if (nd_streq(text_of(status, "status"), "Success")) {
                *ret_code = 0;
                return nullptr;
        }
        if (nd_streq(text_of(status, "reason"), "NonZeroExitCode") && find_code(status, ret_code))
                return nullptr;
        return nd_error_new(ND_UNKNOWN, 0, "%s",
                            *text_of(status, "message") ? text_of(status, "message") : "the command failed");
}
