/* SPDX-License-Identifier: Apache-2.0 */
/* Any WWW-Authenticate header gives an error, or a challenge that leads to no request with a line
 * break or a user in its URL. */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "pull/fetch/auth.h"

static const char password[] = "secretword";

/* Compares the parsed value, not the header's text: any character of a quoted string may have a
 * backslash before it. */
static bool comes_with(const struct pull_challenge *challenge, const char *word) {
        const char *const texts[] = {challenge->realm, challenge->service, challenge->scope};

        for (size_t i = 0; i < nd_count_of(texts); i++)
                if (texts[i] && strstr(texts[i], word))
                        return true;
        return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct pull_credentials credentials = {
                .username = (char *) "u", .password = (char *) password, .server = (char *) ""};
        static const struct pull_host host = {
                .url = (char *) "https://r.example/v2", .authority = (char *) "r.example", .upstream = true};
        nd_cleanup(pull_challenge_done) struct pull_challenge challenge = {};
        nd_cleanup(pull_token_request_done) struct pull_token_request request = {};
        struct pull_auth *auth = pull_auth_new(&credentials);
        nd_autoerror struct nd_error *error = pull_challenge_parse((const char *) data, size, &challenge);

        if (!error)
                error = pull_auth_respond(auth, &host, "a/b", &challenge, &request);
        if (!error && request.url) {
                fuzz_require(nd_has_prefix(request.url, "https://"));
                fuzz_require(!strpbrk(request.url, "\r\n \t"));
                fuzz_require(!memchr(request.url + 8, '@', strcspn(request.url + 8, "/?#")));
                fuzz_require(comes_with(&challenge, password) || !strstr(request.url, password));
        }
        pull_auth_free(auth);
        return 0;
}
