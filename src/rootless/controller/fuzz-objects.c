/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-objects.c - objects of an API server, which all users of a cluster make: what is read of
 * them is within its limits, and no decision has a port twice, a port that the policy forbids, or
 * one that users cannot open */
#include <string.h>

#include <unit/fuzz.h>

#include "rootless/controller/ingress.h"
#include "rootless/controller/labels.h"
#include "rootless/controller/wanted-ports.h"

static void check_id(const struct rootless_object_id *id) {
        nd_autofree char *text = rootless_object_text(id);

        fuzz_require(rootless_object_name_valid(id->name) && rootless_object_name_valid(id->namespace));
        fuzz_require(strlen(text) < PORT_OBJECT_TEXT);
}

static void check_wanted(const struct rootless_wanted *wanted, const struct rootless_port_policy *policy) {
        fuzz_require(wanted->count <= PORTS_OWNED_MAX && wanted->problems.count <= WANTED_PROBLEMS);
        for (size_t i = 0; i < wanted->count; i++) {
                uint16_t port = wanted->items[i].spec.parent_port;

                fuzz_require(port >= policy->lowest && wanted->items[i].spec.child_port > 0);
                fuzz_require(rootless_port_ranges_have(&policy->host_ports, port) || port >= policy->lowest + policy->offset);
                for (size_t other = 0; other < i; other++)
                        fuzz_require(!rootless_port_overlaps(&wanted->items[i].spec, &wanted->items[other].spec));
        }
}

static void decide(const struct rootless_service *service, const struct rootless_slice *slice, const struct rootless_pod *pod,
                   uint8_t bits) {
        struct rootless_port_range allowed = {.first = 1, .last = bits & 1 ? UINT16_MAX : 2000};
        struct rootless_port_ranges ranges = {.items = {allowed}, .count = 1};
        struct rootless_port_policy policy = {.node_ports = ranges,
                                              .load_balancer_ports = ranges,
                                              .host_ports = ranges,
                                              .lowest = 1024,
                                              .offset = bits & 2 ? 10000 : 0,
                                              .has_host_addresses = bits & 4};
        nd_cleanup(nd_map_done) struct nd_map local = {};
        struct rootless_wanted wanted;

        if (slice)
                (void) nd_map_put(&local, slice->service, nullptr);
        wanted = rootless_wanted_decide(&(struct rootless_cluster_objects) {.services = &service,
                                                                            .service_count = service != nullptr,
                                                                            .local = &local,
                                                                            .pods = &pod,
                                                                            .pod_count = pod != nullptr},
                                        &policy);
        check_wanted(&wanted, &policy);
        rootless_wanted_done(&wanted);
}

static void check_service(const struct rootless_service *service, bool is_published) {
        nd_autofree char *patch = rootless_ingress_patch(service, "10.0.0.1", is_published);
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autoerror struct nd_error *error = patch ? nd_json_parse(patch, strlen(patch), 1 << 20, &doc) : nullptr;

        check_id(&service->id);
        fuzz_require(!error && service->port_count <= CLUSTER_OBJECT_PORTS && service->ingress_count <= CLUSTER_INGRESS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autojson yyjson_doc *doc = nullptr;
        nd_autoerror struct nd_error *error =
                size > 0 ? nd_json_parse((const char *) data + 1, size - 1, 1 << 20, &doc) : nullptr;
        struct rootless_service *service;
        struct rootless_slice *slice;
        struct rootless_pod *pod;
        struct rootless_node_info *node;

        if (error || size == 0)
                return 0;
        service = rootless_service_read(yyjson_doc_get_root(doc));
        slice = rootless_slice_read(yyjson_doc_get_root(doc), "own");
        pod = rootless_pod_read(yyjson_doc_get_root(doc), "own");
        node = rootless_node_info_read(yyjson_doc_get_root(doc));
        if (service)
                check_service(service, data[0] & 8);
        if (pod) {
                check_id(&pod->id);
                fuzz_require(pod->port_count > 0 && pod->port_count <= CLUSTER_OBJECT_PORTS);
        }
        if (node)
                (void) rootless_labels_wanted(node, "own", LABEL_ALL);
        decide(service, slice, pod, data[0]);
        rootless_service_free(service);
        rootless_slice_free(slice);
        rootless_pod_free(pod);
        rootless_node_info_free(node);
        return 0;
}
