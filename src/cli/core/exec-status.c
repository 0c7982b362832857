/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/exec-status.h"

#include <string.h>

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

/* Without what says only that nodens-cri failed to execute something in a container. */
static const char *reason_of(const char *message) {
        static const char *const wrappings[] = {"Internal error occurred: ", "error executing command in container: ",
                                                "error attaching to container: ", "execute in container '"};
        const char *end;

        for (size_t i = 0; i < nd_count_of(wrappings); i++)
                if (nd_has_prefix(message, wrappings[i]))
                        message += strlen(wrappings[i]);
        end = strstr(message, "': "); /* the ID that follows the last one */
        return end && strspn(message, "0123456789abcdef") == (size_t) (end - message) ? end + strlen("': ") : message;
}

struct nd_error *cli_exec_status_parse(const char *bytes, size_t length, int *ret_code) {
        nd_autojson yyjson_doc *document = nullptr;
        yyjson_val *status;
        int code;

        nd_try(nd_error_wrap(nd_json_parse(bytes, length, EXEC_STATUS_BYTES, &document), "exit status of the command"));
        status = yyjson_doc_get_root(document);
        if (nd_streq(text_of(status, "status"), "Success")) {
                *ret_code = 0;
                return nullptr;
        }
        if (nd_streq(text_of(status, "reason"), "NonZeroExitCode") && find_code(status, ret_code))
                return nullptr;
        if (find_code(status, &code) && (code == EXEC_STATUS_NOT_FOUND || code == EXEC_STATUS_NOT_EXECUTABLE))
                *ret_code = code;
        return nd_error_new(ND_UNKNOWN, 0, "%s",
                            *text_of(status, "message") ? reason_of(text_of(status, "message")) : "the command failed");
}
