/* SPDX-License-Identifier: Apache-2.0 */
/* Any WWW-Authenticate header: an error, or a challenge from which no request with a line break or a user in its URL is made. */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "pull/auth.h"

static const char password[] = "secretword";

/* As it is read, not as it is written: a backslash may stand before any letter of a quoted string. */
static bool comes_with(const struct nd_challenge *challenge, const char *word) {
        const char *const texts[] = {challenge->realm, challenge->service, challenge->scope};

        for (size_t i = 0; i < nd_count_of(texts); i++)
                if (texts[i] && strstr(texts[i], word))
                        return true;
        return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct nd_credentials credentials = {
                .username = (char *) "u", .password = (char *) password, .server = (char *) ""};
        static const struct nd_host host = {
                .url = (char *) "https://r.example/v2", .authority = (char *) "r.example", .upstream = true};
        nd_cleanup(nd_challenge_done) struct nd_challenge challenge = {};
        nd_cleanup(nd_token_request_done) struct nd_token_request request = {};
        struct nd_auth *auth = nd_auth_new(&credentials);
        nd_autoerror struct nd_error *error = nd_challenge_parse((const char *) data, size, &challenge);

        if (!error)
                error = nd_auth_answer(auth, &host, "a/b", &challenge, &request);
        if (!error && request.url) {
                fuzz_require(nd_has_prefix(request.url, "https://"));
                fuzz_require(!strpbrk(request.url, "\r\n \t"));
                fuzz_require(!memchr(request.url + 8, '@', strcspn(request.url + 8, "/?#")));
                fuzz_require(comes_with(&challenge, password) || !strstr(request.url, password));
        }
        nd_auth_free(auth);
        return 0;
}
