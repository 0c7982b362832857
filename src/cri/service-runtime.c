/* SPDX-License-Identifier: Apache-2.0 */
/* service-runtime.c - runtime.v1.RuntimeService. So far it says who we are; pods come next, and what is not here is UNIMPLEMENTED. */
#include <cri.pb-c.h>

#include "cri/answer.h"
#include "cri/service.h"

#ifndef ND_VERSION
#define ND_VERSION "0"
#endif

static void handle_version(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                           [[maybe_unused]] void *userdata) {
        Runtime__V1__VersionResponse answer = RUNTIME__V1__VERSION_RESPONSE__INIT;

        answer.version = (char *) "0.1.0"; /* the kubelet takes no other */
        answer.runtime_name = (char *) "nodens";
        answer.runtime_version = (char *) ND_VERSION;
        answer.runtime_api_version = (char *) "v1";
        answer_with(call, &answer.base);
}

const struct nd_grpc_method service_runtime_methods[] = {
        {"/runtime.v1.RuntimeService/Version", handle_version},
        {},
};
