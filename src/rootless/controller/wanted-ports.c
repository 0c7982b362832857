/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/controller/wanted-ports.h"

#include <netinet/in.h>

enum { PORTS = UINT16_MAX + 1 };

struct decision {
        const struct rootless_port_policy *policy;
        struct rootless_wanted *wanted;
        /* Per protocol and host port: number of the last wanted port there, from 1; 0: none. */
        uint16_t *taken[2];
        uint16_t *previous; /* per wanted port: the one before it at the same port */
        bool is_full;
};
static_assert(PORTS_OWNED_MAX < UINT16_MAX);

void rootless_port_problem_done(struct rootless_port_problem *problem) {
        rootless_object_id_done(&problem->object);
        free(nd_take_ptr(problem->text));
}

void rootless_wanted_done(struct rootless_wanted *wanted) {
        nd_vector_each (problem, &wanted->problems) {
                rootless_port_problem_done(problem);
        }
        nd_vector_done(&wanted->problems);
        nd_vector_done(wanted);
}

/* ---- problems ---- */

static void add_problem(struct decision *d, const struct rootless_object_id *object, bool is_expected, char *text) {
        struct rootless_port_problem problem = {
                .object = rootless_object_id_copy(object), .text = text, .is_expected = is_expected};

        if (d->wanted->problems.count < WANTED_PROBLEMS) {
                nd_vector_push(&d->wanted->problems, problem);
                return;
        }
        d->wanted->problems_ignored++;
        rootless_port_problem_done(&problem);
}

static bool is_served(struct decision *d, const struct rootless_object_id *object, enum rootless_protocol protocol,
                      const char *what, uint16_t port) {
        if (protocol != PROTOCOL_OTHER)
                return true;
        add_problem(d, object, false,
                    nd_format("%s %u is not published: its protocol is neither TCP nor UDP, the only ones that a node without "
                              "root forwards",
                              what, port));
        return false;
}

static bool is_allowed(struct decision *d, const struct rootless_object_id *object, const struct rootless_port_ranges *ranges,
                       const char *what, const char *option, uint16_t port) {
        if (rootless_port_ranges_have(ranges, port))
                return true;
        add_problem(d, object, ranges == &d->policy->load_balancer_ports,
                    nd_format("%s %u is not published: the user of the node does not allow it; --%s (NODENS_%s) lists the "
                              "allowed ports",
                              what, port, option,
                              ranges == &d->policy->node_ports            ? "NODE_PORTS"
                              : ranges == &d->policy->load_balancer_ports ? "LOAD_BALANCER_PORTS"
                                                                          : "HOST_PORTS"));
        return false;
}

/* ---- one port ---- */

static const struct rootless_wanted_port *find_overlap(const struct decision *d, const struct rootless_port_spec *spec) {
        for (uint16_t at = d->taken[spec->stream][spec->parent_port]; at > 0; at = d->previous[at - 1])
                if (rootless_port_overlaps(&d->wanted->items[at - 1].spec, spec))
                        return &d->wanted->items[at - 1];
        return nullptr;
}

/* Ports that users may not open: the sysctl or the capability would have changed lowest. */
static bool move_privileged(struct decision *d, const struct rootless_object_id *object, const char *what,
                            struct rootless_port_spec *spec) {
        uint32_t moved = (uint32_t) spec->parent_port + d->policy->offset;

        if (spec->parent_port >= d->policy->lowest)
                return true;
        if (d->policy->offset > 0 && moved <= UINT16_MAX && moved >= d->policy->lowest) {
                spec->parent_port = (uint16_t) moved;
                return true;
        }
        add_problem(d, object, false,
                    nd_format("%s %u is not published: users cannot open ports below %u; as root: sysctl "
                              "net.ipv4.ip_unprivileged_port_start=%u, or use --port-offset (NODENS_PORT_OFFSET) to publish "
                              "it at another port",
                              what, spec->parent_port, d->policy->lowest, spec->parent_port));
        return false;
}

static void push(struct decision *d, const struct rootless_wanted_port *port) {
        uint16_t *taken = &d->taken[port->spec.stream][port->spec.parent_port];

        d->previous[d->wanted->count] = *taken;
        nd_vector_push(d->wanted, *port);
        *taken = (uint16_t) d->wanted->count;
}

static void want(struct decision *d, const char *what, struct rootless_wanted_port port) {
        const struct rootless_wanted_port *other;

        if (!move_privileged(d, port.object, what, &port.spec))
                return;
        other = find_overlap(d, &port.spec);
        if (other && other->object == port.object && rootless_port_equal(&other->spec, &port.spec))
                return; /* two containers of a pod with the host's network, or a port given twice */
        if (other) {
                nd_autofree char *name = rootless_object_text(other->object);

                add_problem(d, port.object, false,
                            nd_format("%s %u is not published: %s has port %u of the host; choose another port", what,
                                      port.spec.parent_port, name, port.spec.parent_port));
                return;
        }
        if (d->wanted->count < PORTS_OWNED_MAX) {
                push(d, &port);
                return;
        }
        if (!d->is_full)
                add_problem(d, port.object, false,
                            nd_format("%s %u is not published: the node publishes at most %d ports of the cluster", what,
                                      port.spec.parent_port, PORTS_OWNED_MAX));
        else
                d->wanted->problems_ignored++;
        d->is_full = true;
}

static struct rootless_port_spec spec_of(const struct decision *d, enum rootless_protocol protocol, int family,
                                         uint16_t parent_port, uint16_t child_port) {
        struct rootless_port_spec spec = {.stream = protocol == PROTOCOL_TCP,
                                          .parent = d->policy->address,
                                          .parent_port = parent_port,
                                          .child_port = child_port};

        spec.only = spec.parent.family ? 0 : family;
        return spec;
}

/* An address of the other family cannot have the port. */
static bool has_family(const struct decision *d, int family) {
        return family == 0 || d->policy->address.family == 0 || d->policy->address.family == family;
}

/* ---- Services ---- */

static bool has_endpoint(const struct rootless_cluster_objects *objects, const struct rootless_service *service) {
        nd_autofree char *name = nd_format("%s/%s", service->id.namespace, service->id.name);

        return !service->is_local || nd_map_has(objects->local, name);
}

/* Where a node port is published; 0 if the offset leads beyond the last port. */
static uint16_t moved_node_port(struct decision *d, const struct rootless_object_id *object, const char *what, uint16_t port) {
        uint32_t moved = (uint32_t) port + d->policy->node_port_offset;

        if (moved <= UINT16_MAX)
                return (uint16_t) moved;
        add_problem(d, object, false,
                    nd_format("%s %u is not published: with the node's offset of %u it is beyond the last port, 65535", what,
                              port, d->policy->node_port_offset));
        return 0;
}

static void want_node_ports(struct decision *d, const struct rootless_service *service) {
        for (size_t i = 0; i < service->port_count; i++) {
                const struct rootless_service_port *port = &service->ports[i];
                uint16_t moved;

                if (port->node_port == 0 || !is_served(d, &service->id, port->protocol, "node port", port->node_port) ||
                    !is_allowed(d, &service->id, &d->policy->node_ports, "node port", "node-ports", port->node_port))
                        continue;
                moved = moved_node_port(d, &service->id, "node port", port->node_port);
                if (moved > 0)
                        want(d, "node port",
                             (struct rootless_wanted_port) {
                                     .object = &service->id,
                                     .spec = spec_of(d, port->protocol, service->family, moved, port->node_port)});
        }
}

static void want_health_check_port(struct decision *d, const struct rootless_service *service) {
        uint16_t port = service->health_check_port, moved;

        if (port == 0 || !service->is_load_balancer || !service->is_local ||
            !is_allowed(d, &service->id, &d->policy->node_ports, "health check port", "node-ports", port))
                return;
        moved = moved_node_port(d, &service->id, "health check port", port);
        if (moved > 0)
                want(d, "health check port",
                     (struct rootless_wanted_port) {.object = &service->id,
                                                    .spec = spec_of(d, PROTOCOL_TCP, service->family, moved, port)});
}

/* kube-proxy checks source ranges for the load balancer's address only, and connections arrive at
 * the node port: to publish it would open the Service to all clients. */
static bool is_balanced(struct decision *d, const struct rootless_service *service) {
        if (!service->is_load_balancer || service->is_of_other_class)
                return false;
        if (!service->is_restricted)
                return true;
        add_problem(d, &service->id, false,
                    nd_strdup("its load balancer is not published: loadBalancerSourceRanges cannot be enforced on a node "
                              "without root; remove them, or use another loadBalancerClass"));
        return false;
}

static void want_load_balancer_ports(struct decision *d, const struct rootless_service *service) {
        if (!is_balanced(d, service))
                return;
        for (size_t i = 0; i < service->port_count; i++) {
                const struct rootless_service_port *port = &service->ports[i];
                const char *what = "load balancer port";

                if (port->port == 0 || !is_served(d, &service->id, port->protocol, what, port->port) ||
                    !is_allowed(d, &service->id, &d->policy->load_balancer_ports, what, "load-balancer-ports", port->port))
                        continue;
                if (port->node_port == 0) {
                        add_problem(d, &service->id, false,
                                    nd_format("load balancer port %u is not published: it has no node port; set "
                                              "allocateLoadBalancerNodePorts: true",
                                              port->port));
                        continue;
                }
                want(d, what,
                     (struct rootless_wanted_port) {
                             .object = &service->id,
                             .is_load_balancer = true,
                             .spec = spec_of(d, port->protocol, service->family, port->port, port->node_port)});
        }
}

static void report_ignored(struct decision *d, const struct rootless_object_id *object, size_t ignored) {
        if (ignored > 0)
                add_problem(
                        d, object, false,
                        nd_format("%zu of its ports are not published: it has more than %d", ignored, CLUSTER_OBJECT_PORTS));
}

/* ---- pods ---- */

static bool is_loopback(const struct nd_netlink_address *address) {
        return address->family == AF_INET ? (ntohl(address->v4.s_addr) >> 24) == 127 : IN6_IS_ADDR_LOOPBACK(&address->v6);
}

static bool is_any(const struct nd_netlink_address *address) {
        return address->family == AF_INET ? address->v4.s_addr == 0 : IN6_IS_ADDR_UNSPECIFIED(&address->v6);
}

/* The CNI plugin of the node matches hostIP, so connections must arrive at that address there. */
static bool set_host_ip(struct decision *d, const struct rootless_pod *pod, const struct rootless_host_port *port,
                        struct rootless_port_spec *spec) {
        char text[ND_ADDRESS_TEXT];

        if (port->address.family == 0)
                return true;
        if (is_any(&port->address)) {
                spec->only = spec->parent.family ? 0 : port->address.family;
                return has_family(d, port->address.family);
        }
        if (!d->policy->has_host_addresses && !is_loopback(&port->address)) {
                add_problem(d, &pod->id, false,
                            nd_format("host port %u is not published: hostIP %s is not an address of the node; leave it out, "
                                      "or use --net pasta, whose nodes have the addresses of the host",
                                      port->port, nd_netlink_address_text(&port->address, text)));
                return false;
        }
        spec->parent = spec->child = port->address;
        spec->only = 0;
        return true;
}

static void want_host_ports(struct decision *d, const struct rootless_pod *pod) {
        for (size_t i = 0; i < pod->port_count; i++) {
                const struct rootless_host_port *port = &pod->ports[i];
                struct rootless_wanted_port wanted = {.object = &pod->id,
                                                      .spec = spec_of(d, port->protocol, 0, port->port, port->port)};

                if (is_served(d, &pod->id, port->protocol, "host port", port->port) &&
                    is_allowed(d, &pod->id, &d->policy->host_ports, "host port", "host-ports", port->port) &&
                    set_host_ip(d, pod, port, &wanted.spec))
                        want(d, "host port", wanted);
        }
        report_ignored(d, &pod->id, pod->ports_ignored);
}

/* ---- all ---- */

static int compare_ids(const struct rootless_object_id *a, const struct rootless_object_id *b) {
        int order = strcmp(a->created, b->created);

        order = order ? order : strcmp(a->namespace, b->namespace);
        return order ? order : strcmp(a->name, b->name);
}

static int compare_services(const void *a, const void *b) {
        return compare_ids(&(*(const struct rootless_service *const *) a)->id,
                           &(*(const struct rootless_service *const *) b)->id);
}

static int compare_pods(const void *a, const void *b) {
        return compare_ids(&(*(const struct rootless_pod *const *) a)->id, &(*(const struct rootless_pod *const *) b)->id);
}

static void *sorted(const void *items, size_t count, int (*compare)(const void *, const void *)) {
        void *copy = nd_calloc(count > 0 ? count : 1, sizeof(void *));

        if (count > 0) {
                memcpy(copy, items, count * sizeof(void *));
                qsort(copy, count, sizeof(void *), compare);
        }
        return copy;
}

static void decide(struct decision *d, const struct rootless_cluster_objects *objects) {
        nd_autofree const struct rootless_service **services =
                sorted(objects->services, objects->service_count, compare_services);
        nd_autofree const struct rootless_pod **pods = sorted(objects->pods, objects->pod_count, compare_pods);

        for (size_t i = 0; i < objects->service_count; i++) {
                if (has_family(d, services[i]->family) && has_endpoint(objects, services[i]))
                        want_node_ports(d, services[i]);
                if (has_family(d, services[i]->family))
                        want_health_check_port(d, services[i]);
                report_ignored(d, &services[i]->id, services[i]->ports_ignored);
        }
        for (size_t i = 0; i < objects->service_count; i++)
                if (has_family(d, services[i]->family) && has_endpoint(objects, services[i]))
                        want_load_balancer_ports(d, services[i]);
        for (size_t i = 0; i < objects->pod_count; i++)
                want_host_ports(d, pods[i]);
}

struct rootless_wanted rootless_wanted_decide(const struct rootless_cluster_objects *objects,
                                              const struct rootless_port_policy *policy) {
        struct rootless_wanted wanted = {};
        nd_autofree uint16_t *tcp = nd_calloc(PORTS, sizeof *tcp), *udp = nd_calloc(PORTS, sizeof *udp),
                             *previous = nd_calloc(PORTS_OWNED_MAX, sizeof *previous);
        struct decision d = {.policy = policy, .wanted = &wanted, .taken = {udp, tcp}, .previous = previous};

        decide(&d, objects);
        return wanted;
}
