/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

#include "rootless/controller/wanted-ports.h"

/* ---- a cluster as JSON ---- */

enum { OBJECTS = 8 };

struct cluster {
        const char *services[OBJECTS];
        const char *slices[OBJECTS];
        const char *pods[OBJECTS];
};

struct host {
        const char *node_ports, *load_balancer_ports, *host_ports;
        const char *address;
        uint16_t lowest, offset;
        bool is_slirp;
};

#define META(name) "\"metadata\": {\"name\": \"" name "\", \"namespace\": \"default\", \"uid\": \"u\"}"
#define META_OF(name, created)                                                                                                \
        "\"metadata\": {\"name\": \"" name                                                                                    \
        "\", \"namespace\": \"default\", \"uid\": \"u\", \"creationTimestamp\": \"" created "\"}"
#define SERVICE(name, spec) "{" META(name) ", \"spec\": {" spec "}}"
#define NODE_PORT "\"type\": \"NodePort\", "
#define BALANCER "\"type\": \"LoadBalancer\", "
#define LOCAL "\"externalTrafficPolicy\": \"Local\", "
#define SLICE(service, endpoint)                                                                                               \
        "{\"metadata\": {\"name\": \"s\", \"namespace\": \"default\", \"labels\": {\"kubernetes.io/service-name\": \"" service \
        "\"}}, \"endpoints\": [" endpoint "]}"
#define POD(name, phase, more, ports)                                                                                         \
        "{" META(name) ", \"spec\": {\"nodeName\": \"own\"" more ", \"containers\": [{\"ports\": [" ports                     \
                       "]}]}, \"status\": {\"phase\": \"" phase "\"}}"

static yyjson_doc *parse(const char *text) {
        yyjson_doc *doc = nullptr;

        expect_ok(nd_json_parse(text, strlen(text), 1 << 20, &doc));
        return doc;
}

/* The decision as lines: "PORT OBJECT" of each port, "!TEXT" of each problem. */
static char *decide(const struct cluster *cluster, const struct host *host) {
        const struct rootless_service *services[OBJECTS];
        const struct rootless_pod *pods[OBJECTS];
        struct rootless_cluster_objects objects = {.services = services, .pods = pods};
        struct rootless_port_policy policy = {
                .lowest = host->lowest ? host->lowest : 1024, .offset = host->offset, .has_host_addresses = !host->is_slirp};
        nd_cleanup(nd_map_done) struct nd_map local = {};
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);
        struct rootless_wanted wanted;

        expect_ok(rootless_port_ranges_parse(host->node_ports ? host->node_ports : "30000-32767", &policy.node_ports));
        expect_ok(rootless_port_ranges_parse(host->load_balancer_ports ? host->load_balancer_ports : "none",
                                             &policy.load_balancer_ports));
        expect_ok(rootless_port_ranges_parse(host->host_ports ? host->host_ports : "none", &policy.host_ports));
        if (host->address)
                assert_int_equal(nd_netlink_address_parse(host->address, &policy.address), 0);
        for (size_t i = 0; i < OBJECTS; i++) {
                nd_autojson yyjson_doc *service = cluster->services[i] ? parse(cluster->services[i]) : nullptr,
                                       *slice = cluster->slices[i] ? parse(cluster->slices[i]) : nullptr,
                                       *pod = cluster->pods[i] ? parse(cluster->pods[i]) : nullptr;
                struct rootless_slice *read = slice ? rootless_slice_read(yyjson_doc_get_root(slice), "own") : nullptr;

                if (service)
                        services[objects.service_count] = rootless_service_read(yyjson_doc_get_root(service));
                if (service && services[objects.service_count])
                        objects.service_count++;
                if (pod)
                        pods[objects.pod_count] = rootless_pod_read(yyjson_doc_get_root(pod), "own");
                if (pod && pods[objects.pod_count])
                        objects.pod_count++;
                if (read)
                        (void) nd_map_put(&local, read->service, nullptr);
                rootless_slice_free(read);
        }
        objects.local = &local;
        wanted = rootless_wanted_decide(&objects, &policy);
        nd_vector_each (port, &wanted) {
                char spec[PORT_TEXT];

                nd_text_addf(&text, "%s %s\n", rootless_port_format(&port->spec, spec), port->object->name);
        }
        nd_vector_each (problem, &wanted.problems) {
                nd_text_addf(&text, "!%s%s: %s\n", problem->is_expected ? "(expected) " : "", problem->object.name,
                             problem->text);
        }
        rootless_wanted_done(&wanted);
        for (size_t i = 0; i < objects.service_count; i++)
                rootless_service_free((struct rootless_service *) services[i]);
        for (size_t i = 0; i < objects.pod_count; i++)
                rootless_pod_free((struct rootless_pod *) pods[i]);
        return nd_strdup(nd_text_get(&text));
}

struct row {
        const char *what;
        struct cluster cluster;
        struct host host;
        const char *ports;   /* all lines of ports */
        const char *problem; /* a part of the first problem; nullptr: none */
};

static void expect_rows(const struct row *rows, size_t count) {
        for (size_t i = 0; i < count; i++) {
                nd_autofree char *text = decide(&rows[i].cluster, &rows[i].host);
                char *problem = strchr(text, '!');
                bool is_good = rows[i].problem ? problem && strstr(problem, rows[i].problem) : !problem;

                if (!is_good)
                        fail_msg("%s: problems of\n%s", rows[i].what, text);
                if (problem)
                        *problem = '\0';
                if (!nd_streq(text, rows[i].ports))
                        fail_msg("%s: got\n%s", rows[i].what, text);
        }
}

/* ---- Services ---- */

#define WEB NODE_PORT "\"ports\": [{\"port\": 80, \"nodePort\": 30080}]"
#define WEB_LOCAL NODE_PORT LOCAL "\"ports\": [{\"port\": 80, \"nodePort\": 30080}]"
#define BALANCED BALANCER "\"ports\": [{\"port\": 8080, \"nodePort\": 30080}]"
#define PRIVILEGED BALANCER "\"ports\": [{\"port\": 80, \"nodePort\": 30080}]"

static void test_services_get_their_node_ports([[maybe_unused]] void **state) {
        static const struct row rows[] = {
                {"an empty cluster", {}, {}, "", nullptr},
                {"a node port", {.services = {SERVICE("web", WEB)}}, {}, "30080:30080/tcp web\n", nullptr},
                {"TCP and UDP",
                 {.services = {SERVICE(
                          "dns", NODE_PORT
                          "\"ports\": [{\"protocol\": \"TCP\", \"port\": 53, \"nodePort\": 30053}, {\"protocol\": \"UDP\", "
                          "\"port\": 53, \"nodePort\": 30053}]")}},
                 {},
                 "30053:30053/tcp dns\n30053:30053/udp dns\n",
                 nullptr},
                {"SCTP",
                 {.services = {SERVICE("sctp",
                                       NODE_PORT "\"ports\": [{\"protocol\": \"SCTP\", \"port\": 1, \"nodePort\": 30001}]")}},
                 {},
                 "",
                 "neither TCP nor UDP"},
                {"ClusterIP",
                 {.services = {SERVICE("own", "\"type\": \"ClusterIP\", \"ports\": [{\"port\": 80}]")}},
                 {},
                 "",
                 nullptr},
                {"ExternalName", {.services = {SERVICE("name", "\"type\": \"ExternalName\"")}}, {}, "", nullptr},
                {"a port outside the allowed range",
                 {.services = {SERVICE("web", NODE_PORT "\"ports\": [{\"port\": 80, \"nodePort\": 22}]")}},
                 {},
                 "",
                 "node port 22 is not published: the user of the node does not allow it; --node-ports"},
                {"another allowed range",
                 {.services = {SERVICE("web", NODE_PORT "\"ports\": [{\"port\": 80, \"nodePort\": 9000}]")}},
                 {.node_ports = "30000-32767,9000"},
                 "9000:9000/tcp web\n",
                 nullptr},
                {"IPv4 only",
                 {.services = {SERVICE("web", "\"ipFamilies\": [\"IPv4\"], " WEB)}},
                 {},
                 "30080:30080/tcp4 web\n",
                 nullptr},
                {"both families",
                 {.services = {SERVICE("web", "\"ipFamilies\": [\"IPv6\", \"IPv4\"], " WEB)}},
                 {},
                 "30080:30080/tcp web\n",
                 nullptr},
                {"one address of the host",
                 {.services = {SERVICE("web", "\"ipFamilies\": [\"IPv4\"], " WEB)}},
                 {.address = "127.0.0.1"},
                 "127.0.0.1:30080:30080/tcp web\n",
                 nullptr},
                {"an address of the other family",
                 {.services = {SERVICE("web", "\"ipFamilies\": [\"IPv6\"], " WEB)}},
                 {.address = "127.0.0.1"},
                 "",
                 nullptr},
                {"no port yet", {.services = {SERVICE("web", NODE_PORT "\"ports\": [{\"port\": 80}]")}}, {}, "", nullptr},
                {"ports that are not numbers",
                 {.services = {SERVICE("web", NODE_PORT
                                       "\"ports\": [{\"port\": \"80\", \"nodePort\": -1}, {\"nodePort\": 70000}, 1, null]")}},
                 {},
                 "",
                 nullptr},
        };

        expect_rows(rows, nd_count_of(rows));
}

static void test_with_a_local_policy_a_service_needs_an_endpoint_on_the_node([[maybe_unused]] void **state) {
        static const struct row rows[] = {
                {"none", {.services = {SERVICE("web", WEB_LOCAL)}}, {}, "", nullptr},
                {"on another node",
                 {.services = {SERVICE("web", WEB_LOCAL)},
                  .slices = {SLICE("web", "{\"nodeName\": \"other\", \"conditions\": {\"ready\": true}}")}},
                 {},
                 "",
                 nullptr},
                {"ready",
                 {.services = {SERVICE("web", WEB_LOCAL)},
                  .slices = {SLICE("web",
                                   "{\"nodeName\": \"other\"}, {\"nodeName\": \"own\", \"conditions\": {\"ready\": true}}")}},
                 {},
                 "30080:30080/tcp web\n",
                 nullptr},
                {"without conditions",
                 {.services = {SERVICE("web", WEB_LOCAL)}, .slices = {SLICE("web", "{\"nodeName\": \"own\"}")}},
                 {},
                 "30080:30080/tcp web\n",
                 nullptr},
                {"not ready",
                 {.services = {SERVICE("web", WEB_LOCAL)},
                  .slices = {SLICE("web", "{\"nodeName\": \"own\", \"conditions\": {\"ready\": false, \"serving\": false}}")}},
                 {},
                 "",
                 nullptr},
                {"terminating, and still serving",
                 {.services = {SERVICE("web", WEB_LOCAL)},
                  .slices = {SLICE("web", "{\"nodeName\": \"own\", \"conditions\": {\"ready\": false, \"serving\": true, "
                                          "\"terminating\": true}}")}},
                 {},
                 "30080:30080/tcp web\n",
                 nullptr},
                {"of another Service",
                 {.services = {SERVICE("web", WEB_LOCAL)}, .slices = {SLICE("api", "{\"nodeName\": \"own\"}")}},
                 {},
                 "",
                 nullptr},
                {"the health check port, with an endpoint or not",
                 {.services = {SERVICE("web", LOCAL "\"healthCheckNodePort\": 32000, " BALANCED)}},
                 {},
                 "32000:32000/tcp web\n",
                 nullptr},
        };

        expect_rows(rows, nd_count_of(rows));
}

static void test_load_balancer_ports_need_the_users_permission([[maybe_unused]] void **state) {
        static const struct row rows[] = {
                {"by default",
                 {.services = {SERVICE("web", BALANCED)}},
                 {},
                 "30080:30080/tcp web\n",
                 "!(expected) web: load balancer port 8080 is not published: the user of the node does not allow it"},
                {"allowed",
                 {.services = {SERVICE("web", BALANCED)}},
                 {.load_balancer_ports = "8000-8999"},
                 "30080:30080/tcp web\n8080:30080/tcp web\n",
                 nullptr},
                {"below 1024",
                 {.services = {SERVICE("web", PRIVILEGED)}},
                 {.load_balancer_ports = "all"},
                 "30080:30080/tcp web\n",
                 "users cannot open ports below 1024; as root: sysctl net.ipv4.ip_unprivileged_port_start=80, or use "
                 "--port-offset"},
                {"below 1024 with the sysctl",
                 {.services = {SERVICE("web", PRIVILEGED)}},
                 {.load_balancer_ports = "all", .lowest = 80, .offset = 10000},
                 "30080:30080/tcp web\n80:30080/tcp web\n",
                 nullptr},
                {"below 1024 with an offset",
                 {.services = {SERVICE("web", PRIVILEGED)}},
                 {.load_balancer_ports = "80", .offset = 10000},
                 "30080:30080/tcp web\n10080:30080/tcp web\n",
                 nullptr},
                {"an offset that does not help",
                 {.services = {SERVICE("web", PRIVILEGED)}},
                 {.load_balancer_ports = "80", .offset = 100},
                 "30080:30080/tcp web\n",
                 "users cannot open ports below 1024"},
                {"an offset beyond the last port",
                 {.services = {SERVICE("web", PRIVILEGED)}},
                 {.load_balancer_ports = "80", .offset = 65500},
                 "30080:30080/tcp web\n",
                 "users cannot open ports below 1024"},
                {"source ranges",
                 {.services = {SERVICE("web", "\"loadBalancerSourceRanges\": [\"10.0.0.0/8\"], " BALANCED)}},
                 {.load_balancer_ports = "all"},
                 "30080:30080/tcp web\n",
                 "loadBalancerSourceRanges cannot be enforced"},
                {"source ranges as an annotation",
                 {.services =
                          {"{\"metadata\": {\"name\": \"web\", \"namespace\": \"default\", \"annotations\": "
                           "{\"service.beta.kubernetes.io/load-balancer-source-ranges\": \"10.0.0.0/8\"}}, \"spec\": {" BALANCED
                           "}}"}},
                 {.load_balancer_ports = "all"},
                 "30080:30080/tcp web\n",
                 "loadBalancerSourceRanges cannot be enforced"},
                {"another class",
                 {.services = {SERVICE("web", "\"loadBalancerClass\": \"example.com/lb\", " BALANCED)}},
                 {.load_balancer_ports = "all"},
                 "30080:30080/tcp web\n",
                 nullptr},
                {"our class",
                 {.services = {SERVICE("web", "\"loadBalancerClass\": \"nodens.io/rootless\", " BALANCED)}},
                 {.load_balancer_ports = "all"},
                 "30080:30080/tcp web\n8080:30080/tcp web\n",
                 nullptr},
                {"without node ports",
                 {.services = {SERVICE("web",
                                       BALANCER "\"allocateLoadBalancerNodePorts\": false, \"ports\": [{\"port\": 8080}]")}},
                 {.load_balancer_ports = "all"},
                 "",
                 "allocateLoadBalancerNodePorts: true"},
        };

        expect_rows(rows, nd_count_of(rows));
}

/* ---- pods ---- */

static void test_running_pods_get_their_host_ports([[maybe_unused]] void **state) {
        static const struct row rows[] = {
                {"by default",
                 {.pods = {POD("p", "Running", "", "{\"containerPort\": 80, \"hostPort\": 8080}")}},
                 {},
                 "",
                 "!p: host port 8080 is not published: the user of the node does not allow it; --host-ports (NODENS_HOST_PORTS)"},
                {"allowed",
                 {.pods = {POD("p", "Running", "", "{\"containerPort\": 80, \"hostPort\": 8080}, {\"containerPort\": 81}")}},
                 {.host_ports = "all"},
                 "8080:8080/tcp p\n",
                 nullptr},
                {"pending", {.pods = {POD("p", "Pending", "", "{\"hostPort\": 8080}")}}, {.host_ports = "all"}, "", nullptr},
                {"ended", {.pods = {POD("p", "Succeeded", "", "{\"hostPort\": 8080}")}}, {.host_ports = "all"}, "", nullptr},
                {"of another node",
                 {.pods = {"{" META("p") ", \"spec\": {\"nodeName\": \"other\", \"containers\": [{\"ports\": [{\"hostPort\": "
                                         "8080}]}]}, \"status\": {\"phase\": \"Running\"}}"}},
                 {.host_ports = "all"},
                 "",
                 nullptr},
                {"two containers with the host's network and one port",
                 {.pods = {POD(
                          "p", "Running", ", \"hostNetwork\": true",
                          "{\"hostPort\": 9100, \"containerPort\": 9100}, {\"hostPort\": 9100, \"containerPort\": 9100}")}},
                 {.host_ports = "all"},
                 "9100:9100/tcp p\n",
                 nullptr},
                {"a sidecar",
                 {.pods = {POD("p", "Running",
                               ", \"initContainers\": [{\"restartPolicy\": \"Always\", \"ports\": [{\"hostPort\": 9001}]}, "
                               "{\"ports\": [{\"hostPort\": 9002}]}]",
                               "")}},
                 {.host_ports = "all"},
                 "9001:9001/tcp p\n",
                 nullptr},
                {"hostIP of the loopback",
                 {.pods = {POD("p", "Running", "", "{\"hostPort\": 8080, \"hostIP\": \"127.0.0.1\", \"protocol\": \"UDP\"}")}},
                 {.host_ports = "all", .is_slirp = true},
                 "127.0.0.1:8080:127.0.0.1:8080/udp p\n",
                 nullptr},
                {"hostIP of the host",
                 {.pods = {POD("p", "Running", "", "{\"hostPort\": 8080, \"hostIP\": \"10.1.2.3\"}")}},
                 {.host_ports = "all"},
                 "10.1.2.3:8080:10.1.2.3:8080/tcp p\n",
                 nullptr},
                {"hostIP of the host, which the node does not have",
                 {.pods = {POD("p", "Running", "", "{\"hostPort\": 8080, \"hostIP\": \"10.1.2.3\"}")}},
                 {.host_ports = "all", .is_slirp = true},
                 "",
                 "hostIP 10.1.2.3 is not an address of the node"},
                {"hostIP of all IPv4 addresses",
                 {.pods = {POD("p", "Running", "", "{\"hostPort\": 8080, \"hostIP\": \"0.0.0.0\"}")}},
                 {.host_ports = "all"},
                 "8080:8080/tcp4 p\n",
                 nullptr},
                {"hostIP that is not an address",
                 {.pods = {POD("p", "Running", "", "{\"hostPort\": 8080, \"hostIP\": \"10.1.2.3/8\"}")}},
                 {.host_ports = "all"},
                 "",
                 nullptr},
                {"below 1024 with an offset",
                 {.pods = {POD("p", "Running", "", "{\"hostPort\": 443}")}},
                 {.host_ports = "all", .offset = 10000},
                 "10443:443/tcp p\n",
                 nullptr},
        };

        expect_rows(rows, nd_count_of(rows));
}

/* ---- conflicts ---- */

#define OLD "2026-01-01T00:00:00Z"
#define NEW "2026-02-01T00:00:00Z"

static void test_the_older_object_has_the_port([[maybe_unused]] void **state) {
        static const struct row rows[] = {
                {"two load balancers",
                 {.services = {"{" META_OF("new", NEW) ", \"spec\": {" BALANCER
                                                       "\"ports\": [{\"port\": 8080, \"nodePort\": 30002}]}}",
                               "{" META_OF("old", OLD) ", \"spec\": {" BALANCER
                                                       "\"ports\": [{\"port\": 8080, \"nodePort\": 30001}]}}"}},
                 {.load_balancer_ports = "all"},
                 "30001:30001/tcp old\n30002:30002/tcp new\n8080:30001/tcp old\n",
                 "!new: load balancer port 8080 is not published: Service default/old has port 8080 of the host"},
                {"a node port and an older pod",
                 {.services = {"{" META_OF("web", NEW) ", \"spec\": {" WEB "}}"},
                  .pods = {"{" META_OF("p",
                                       OLD) ", \"spec\": {\"nodeName\": \"own\", \"containers\": [{\"ports\": [{\"hostPort\": "
                                            "30080}]}]}, \"status\": {\"phase\": \"Running\"}}"}},
                 {.host_ports = "all"},
                 "30080:30080/tcp web\n",
                 "!p: host port 30080 is not published: Service default/web has port 30080 of the host"},
                {"pods at different addresses",
                 {.pods = {POD("a", "Running", "", "{\"hostPort\": 8080, \"hostIP\": \"10.0.0.1\"}"),
                           POD("b", "Running", "", "{\"hostPort\": 8080, \"hostIP\": \"10.0.0.2\"}"),
                           POD("c", "Running", "", "{\"hostPort\": 8080}")}},
                 {.host_ports = "all"},
                 "10.0.0.1:8080:10.0.0.1:8080/tcp a\n10.0.0.2:8080:10.0.0.2:8080/tcp b\n",
                 "!c: host port 8080 is not published: Pod default/b has port 8080"},
                {"an offset onto the port of another",
                 {.pods = {POD("a", "Running", "", "{\"hostPort\": 10443}"), POD("b", "Running", "", "{\"hostPort\": 443}")}},
                 {.host_ports = "all", .offset = 10000},
                 "10443:10443/tcp a\n",
                 "!b: host port 10443 is not published: Pod default/a has port 10443"},
        };

        expect_rows(rows, nd_count_of(rows));
}

/* ---- limits ---- */

static void test_the_number_of_ports_is_limited([[maybe_unused]] void **state) {
        enum { SERVICES = PORTS_OWNED_MAX / CLUSTER_OBJECT_PORTS + 2, MANY = CLUSTER_OBJECT_PORTS + 1 };
        const struct rootless_service *services[SERVICES];
        struct rootless_port_policy policy = {.lowest = 1024};
        struct rootless_wanted wanted;
        struct nd_map local = {};

        expect_ok(rootless_port_ranges_parse("all", &policy.node_ports));
        for (unsigned i = 0; i < SERVICES; i++) {
                nd_autotext struct nd_text text = ND_TEXT(1 << 20);
                nd_autojson yyjson_doc *doc = nullptr;

                nd_text_addf(
                        &text,
                        "{\"metadata\": {\"name\": \"s%u\", \"namespace\": \"n\"}, \"spec\": {\"type\": \"NodePort\", \"ports\": [",
                        i);
                for (unsigned port = 0; port < MANY; port++)
                        nd_text_addf(&text, "%s{\"nodePort\": %u}", port ? "," : "", 2000 + i * MANY + port);
                nd_text_add(&text, "]}}");
                doc = parse(text.bytes);
                services[i] = rootless_service_read(yyjson_doc_get_root(doc));
                assert_non_null(services[i]);
                assert_int_equal(services[i]->port_count, CLUSTER_OBJECT_PORTS);
        }
        wanted = rootless_wanted_decide(
                &(struct rootless_cluster_objects) {.services = services, .service_count = SERVICES, .local = &local},
                &policy);
        assert_int_equal(wanted.count, PORTS_OWNED_MAX);
        assert_true(wanted.problems.count <= WANTED_PROBLEMS);
        assert_int_equal(wanted.problems_ignored, 2 * CLUSTER_OBJECT_PORTS - 1);
        rootless_wanted_done(&wanted);
        for (unsigned i = 0; i < SERVICES; i++)
                rootless_service_free((struct rootless_service *) services[i]);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_services_get_their_node_ports),
                cmocka_unit_test(test_with_a_local_policy_a_service_needs_an_endpoint_on_the_node),
                cmocka_unit_test(test_load_balancer_ports_need_the_users_permission),
                cmocka_unit_test(test_running_pods_get_their_host_ports),
                cmocka_unit_test(test_the_older_object_has_the_port),
                cmocka_unit_test(test_the_number_of_ports_is_limited),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
