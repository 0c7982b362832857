/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-cni-config.c - parses untrusted configurations; a plugin's input is JSON and names the
 * network */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "cri/network/cni-config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_cleanup(cri_cni_config_done) struct cri_cni_config config = {}, again = {};
        nd_autoerror struct nd_error *error = cri_cni_config_parse((const char *) data, size, &config), *other = nullptr;
        struct cri_port_request port = {.container = 80, .host = 8080, .address = (char *) ""};
        struct cri_sandbox_request pod = {.ports = {.items = &port, .count = 1}, .has_dns = true};

        if (error) {
                assert(!config.name && config.plugins.count == 0);
                return 0;
        }
        assert(config.plugins.count > 0 && config.plugins.count <= CNI_PLUGINS_MOST);
        for (size_t i = 0; i < config.plugins.count; i++) {
                nd_autoerror struct nd_error *failure = nullptr;
                nd_autofree char *input = nullptr;
                nd_autojson yyjson_doc *doc = nullptr;

                assert(!strchr(config.plugins.items[i].type, '/'));
                failure = cri_cni_config_input(&config, i, &pod, "{\"ips\":[]}", &input);
                if (failure)
                        continue;
                nd_error_done(&failure);
                failure = nd_json_parse(input, strlen(input), SIZE_MAX, &doc);
                assert(!failure);
                assert(nd_streq(yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "name")), config.name));
        }
        other = cri_cni_config_parse(config.source, strlen(config.source), &again);
        assert(!other && again.plugins.count == config.plugins.count && nd_streq(again.name, config.name));
        return 0;
}
