/* SPDX-License-Identifier: Apache-2.0 */
/* A client's certificates in DER, as one and as a chain of two halves: checking them has no memory
 * error, and an accepted one has no reason of a refusal. */
#include <string.h>

#include <unit/fuzz.h>

#include "guard/server/client-auth.h"

static const char authority[] = "-----BEGIN CERTIFICATE-----\n"
                                "MIIBhjCCASugAwIBAgIUQ1tQWtTNWgkuaGeKSNpoBD3eFLAwCgYIKoZIzj0EAwIw\n"
                                "DzENMAsGA1UEAwwEZnV6ejAgFw0yNjExMTYwMzE1MjdaGA8yMTI2MTAyMzAzMTUy\n"
                                "N1owDzENMAsGA1UEAwwEZnV6ejBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABDXD\n"
                                "E1N//60eXul4mDF4Qsp//NldsfVMtZwIzYrCrfj34h30Zy5LN8dNhXGRbavy/GiT\n"
                                "njXpJw8KiDFv22SnusajYzBhMB0GA1UdDgQWBBSAM2g8RGtz//eyNgMNeac3qaQz\n"
                                "yDAfBgNVHSMEGDAWgBSAM2g8RGtz//eyNgMNeac3qaQzyDAPBgNVHRMBAf8EBTAD\n"
                                "AQH/MA4GA1UdDwEB/wQEAwICBDAKBggqhkjOPQQDAgNJADBGAiEA4fCb2y72KKIf\n"
                                "mjfLfZkVO1heVua8GAPfdw0FY6HBcSkCIQCerWlfd9UKOPPXctxmxh97/0tHsQub\n"
                                "hGAJSdxidzH4XA==\n"
                                "-----END CERTIFICATE-----\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static char api[] = "api", uri[] = "spiffe://x", dns[] = "api.example";
        static char *names[] = {api, uri}, *readers[] = {dns};
        static struct guard_client_auth *auth;
        struct guard_client_verdict whole, halves;
        size_t middle = size / 2;

        if (!auth) {
                nd_autoerror struct nd_error *error =
                        guard_client_auth_new(authority, (struct guard_client_names) {names, nd_count_of(names)},
                                              (struct guard_client_names) {readers, nd_count_of(readers)}, &auth);

                fuzz_require(!error);
        }
        guard_client_auth_judge(auth, &(struct guard_client_der) {data, size}, 1, 0, &whole);
        guard_client_auth_judge(auth, (struct guard_client_der[]) {{data, middle}, {data + middle, size - middle}}, 2, 0,
                                &halves);
        fuzz_require((whole.right == GUARD_RIGHT_NONE) == (whole.why != nullptr));
        fuzz_require((halves.right == GUARD_RIGHT_NONE) == (halves.why != nullptr));
        fuzz_require(strlen(whole.name) < sizeof whole.name);
        return 0;
}
