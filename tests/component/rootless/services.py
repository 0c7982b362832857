# SPDX-License-Identifier: Apache-2.0
"""The controller beside a stock API server with RBAC: ports of Services and pods from outside, with kube-proxy in the node.

`tools/dev test rootless-services` runs it; it needs `tools/dev gobin kubernetes`.
"""
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest
from kubernetes import POD, WORK, make_pod, program
from nodenstest import machine
from nodenstest.machine import ALPHA4, HOME, ROUTER4, node, rootless
from test_ports import add, ask, ports, start_server

NODE = "services"
ADMIN, CONTROLLER, PROXY = "admin-token", "controller-token", "proxy-token"
ACCOUNT = "system:serviceaccount:nodens-system:nodens-rootless"
LABEL = "kubernetes.io/running-in-user-namespace"
PATIENCE = 120      # seconds: for anything on a loaded host
REFUSED = "ConnectionRefusedError"


# ---- the control plane, on the router

def kubeconfig(token: str) -> str:
    """Two contexts: the current one has no rights, that of the controller has the token."""
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "other",
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name}} for name in ("controller", "other")],
        "clusters": [{"name": "c", "cluster": {"server": f"https://{ROUTER4}:6443", "insecure-skip-tls-verify": True}}],
        "users": [{"name": "controller", "user": {"token": token}}, {"name": "other", "user": {"token": "none"}}]})


class Plane:
    """etcd and kube-apiserver."""

    def __init__(self) -> None:
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *words: str) -> None:
        with (WORK / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(machine.within("router", *words), stdout=log, stderr=log)

    def stop(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def start_api(self) -> None:
        self.start("api", str(program("kube-apiserver")), "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={ROUTER4}",
                   "--secure-port=6443", f"--cert-dir={WORK}", f"--token-auth-file={WORK}/tokens", "--authorization-mode=RBAC",
                   "--service-cluster-ip-range=10.96.0.0/16", "--service-account-issuer=https://test",
                   f"--service-account-key-file={WORK}/sa.key", f"--service-account-signing-key-file={WORK}/sa.key")
        machine.wait_for(lambda: self.kubectl("get", "--raw", "/readyz", check=False) == "ok", PATIENCE, "the API server is ready")

    def kubectl(self, *words: str, stdin: str = "", check: bool = True) -> str:
        done = subprocess.run(machine.within("router", str(program("kubectl")), "--kubeconfig", str(WORK / "admin"), "--context",
                                             "controller", "--request-timeout=20s", *words),
                              input=stdin, text=True, capture_output=True)
        assert not check or done.returncode == 0, f"kubectl {words}: {done.stderr}"
        return done.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(one) for one in objects))

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def events(self, kind: str, name: str) -> str:
        return "\n".join(one["message"] for one in self.get("events")["items"]
                         if one["involvedObject"]["kind"] == kind and one["involvedObject"]["name"] == name)


def service(name: str, kind: str = "NodePort", ports_: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    both = [{"name": one.lower(), "protocol": one, "port": 80, "targetPort": 5000} for one in ("TCP", "UDP")]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": kind, "ports": ports_ or both, **spec}}


def endpoints(name: str, ready: bool = True, on: str = NODE) -> dict[str, Any]:
    return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
            "endpoints": [{"addresses": [POD], "conditions": {"ready": ready, "serving": ready}, "nodeName": on}],
            "ports": [{"name": one.lower(), "protocol": one, "port": 5000} for one in ("TCP", "UDP")]}


def pair(number: int, port: int = 80) -> list[dict[str, Any]]:
    """TCP and UDP at one node port."""
    return [{"name": one.lower(), "protocol": one, "port": port, "targetPort": 5000, "nodePort": number} for one in ("TCP", "UDP")]


def one_port(number: int, port: int = 80) -> list[dict[str, Any]]:
    return pair(number, port)[:1]


@pytest.fixture(scope="module")
def plane() -> Iterator[Plane]:
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    machine.run("openssl", "genrsa", "-out", str(WORK / "sa.key"), "2048")
    (WORK / "tokens").write_text(f'{ADMIN},admin,1,"system:masters"\n{CONTROLLER},{ACCOUNT}-controller,2\n{PROXY},{ACCOUNT}-proxy,3\n')
    (WORK / "admin").write_text(kubeconfig(ADMIN))
    made = Plane()
    try:
        made.start("etcd", "etcd", "--data-dir", str(WORK / "etcd"), "--unsafe-no-fsync")
        made.start_api()
        made.kubectl("apply", "-f", "-", stdin=rootless("manifest", "--ingress").stdout)
        for name in (NODE, "other", "labelled"):
            made.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        made.kubectl("label", "node", "labelled", f"{LABEL}=true")
        made.kubectl("patch", "node", NODE, "--subresource=status", "--type=merge", "-p",
                     json.dumps({"status": {"addresses": [{"type": "InternalIP", "address": ALPHA4}]}}))
        yield made
    finally:
        for name in list(made.processes):
            made.stop(name)


# ---- the node, with a pod and kube-proxy, and the controller beside it

@pytest.fixture(scope="module")
def served(plane: Plane) -> Iterator[machine.Node]:
    with node(NODE) as made:
        make_pod(made)
        kubernetes.TOKEN = PROXY
        kubernetes.start_kube_proxy(made)
        yield made


class Controller:
    """`nodens-rootless controller`, with a kubeconfig of its own."""

    def __init__(self, *options: str) -> None:
        self.options = options
        self.file = HOME / "controller.kubeconfig"
        self.log = Path("/tmp/controller.log")
        self.process: subprocess.Popen[bytes] | None = None
        self.write(CONTROLLER)

    def write(self, token: str) -> None:
        self.file.write_text(kubeconfig(token))
        self.file.chmod(0o600)
        shutil.chown(self.file, machine.UID, machine.UID)

    def start(self) -> "Controller":
        self.log.write_text("")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                machine.as_user(machine.PROGRAM, "controller", "--name", NODE, "--kubeconfig", str(self.file), *self.options),
                stdout=log, stderr=log, env=machine.environment(), cwd="/")
        return self

    def wait(self) -> "Controller":
        self.says("published the ports of Services and pods")
        return self

    def says(self, words: str) -> None:
        machine.wait_for(lambda: words in self.log.read_text(), PATIENCE, f"{words}; the log: {self.log.read_text()}")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        assert self.process
        self.process.send_signal(how)
        status = self.process.wait(machine.LIMIT)
        machine.without_report(self.log.read_text())
        assert status == (0 if how == signal.SIGTERM else -how), self.log.read_text()


@contextlib.contextmanager
def controller(*options: str) -> Iterator[Controller]:
    made = Controller(*options).start()
    try:
        yield made.wait()
    finally:
        assert made.process
        if made.process.poll() is None:
            made.end()


def published(made: machine.Node) -> set[str]:
    """HOST-PORT:NODE-PORT/PROTOCOL of the controller's ports that are open."""
    return {f"{one['spec']['parentPort']}:{one['spec']['childPort']}/{one['spec']['proto'][:3]}" for one in ports(made)
            if one.get("owner") == "kubernetes" and "error" not in one}


def becomes(made: machine.Node, *expected: str) -> None:
    machine.wait_for(lambda: published(made) == set(expected), PATIENCE, f"published: {published(made)}, expected: {expected}")


def replies(port: int, kind: str = "tcp", said: str = ROUTER4) -> None:
    machine.wait_for(lambda: ask(ALPHA4, port, kind, seconds=1) == said, PATIENCE, f"{kind} port {port} replies with {said}")


def allow_from(port: int) -> None:
    machine.run(*machine.within("alpha", "sh", "-c", f"echo {port} >/proc/sys/net/ipv4/ip_unprivileged_port_start"))


@pytest.fixture(autouse=True)
def clean(plane: Plane, served: machine.Node) -> Iterator[None]:
    yield
    plane.kubectl("delete", "services,endpointslices,pods,events", "--all", "-n", "default", "--grace-period=0", "--force")
    allow_from(1024)


# ---- Services

def test_a_client_reaches_a_pod_by_a_node_port_and_the_pod_sees_its_address(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("web", ports_=pair(31080), externalTrafficPolicy="Local"), endpoints("web"))
    with controller():
        becomes(served, "31080:31080/tcp", "31080:31080/udp")
        for kind in ("tcp", "udp"):
            replies(31080, kind)
        said = rootless("ports", "--name", NODE).stdout
        assert said.count("Service default/web: client address kept") == 2, said
        plane.kubectl("delete", "service", "web")
        becomes(served)
        assert ask(ALPHA4, 31080) == REFUSED


def test_with_a_local_policy_the_port_is_open_only_while_the_node_has_a_ready_endpoint(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("local", ports_=pair(31081), externalTrafficPolicy="Local"), endpoints("local", on="other"),
                service("all", ports_=one_port(31082)))
    with controller():
        becomes(served, "31082:31082/tcp")
        plane.apply(endpoints("local"))
        becomes(served, "31081:31081/tcp", "31081:31081/udp", "31082:31082/tcp")
        replies(31081)
        plane.apply(endpoints("local", ready=False))
        becomes(served, "31082:31082/tcp")


def test_a_load_balancer_gets_the_hosts_port_its_health_check_and_the_address_in_its_status(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("lb", "LoadBalancer", pair(31083, port=8083), externalTrafficPolicy="Local", healthCheckNodePort=31084),
                endpoints("lb"), service("second", "LoadBalancer", one_port(31085, port=8083)))
    with controller("--load-balancer-ports", "8000-8999", "--ingress-address", ALPHA4):
        becomes(served, "31083:31083/tcp", "31083:31083/udp", "31084:31084/tcp", "31085:31085/tcp", "8083:31083/tcp", "8083:31083/udp")
        for kind in ("tcp", "udp"):
            replies(8083, kind)
        code = f"import urllib.request as r; print(r.urlopen('http://{ALPHA4}:31084', timeout=5).status)"

        def healthy() -> bool:
            done = subprocess.run(machine.within("router", sys.executable, "-c", code), capture_output=True, text=True)
            return done.stdout.strip() == "200"

        machine.wait_for(healthy, PATIENCE, "kube-proxy answers the health check")
        machine.wait_for(lambda: plane.get("service", "lb")["status"]["loadBalancer"] == {"ingress": [{"ip": ALPHA4, "ipMode": "Proxy"}]},
                         PATIENCE, "the address is in the status")
        machine.wait_for(lambda: "Service default/lb has port 8083 of the host" in plane.events("Service", "second"), PATIENCE, "an Event")
        assert plane.get("service", "second")["status"]["loadBalancer"] == {}
        plane.kubectl("patch", "service", "lb", "--type=merge", "-p", '{"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}')
        machine.wait_for(lambda: plane.get("service", "lb")["status"]["loadBalancer"] == {}, PATIENCE, "the address is removed")
        machine.wait_for(lambda: "8083:31085/tcp" in published(served), PATIENCE, "the other Service has the port now")


def test_a_load_balancer_gets_no_port_by_default(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("lb", "LoadBalancer", one_port(31086, port=8086)))
    with controller() as made:
        becomes(served, "31086:31086/tcp")
        made.says("load balancer port 8086 is not published: the user of the node does not allow it; --load-balancer-ports")
        assert ask(ALPHA4, 8086) == REFUSED


# ---- ports below 1024

def test_a_port_below_1024_is_an_event_until_the_sysctl_allows_it(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("low", "LoadBalancer", one_port(31087), externalTrafficPolicy="Local", healthCheckNodePort=31187), endpoints("low"))
    with controller("--load-balancer-ports", "all"):
        becomes(served, "31087:31087/tcp", "31187:31187/tcp")
        machine.wait_for(lambda: "sysctl net.ipv4.ip_unprivileged_port_start=80" in plane.events("Service", "low"), PATIENCE, "an Event")
        allow_from(80)
        becomes(served, "31087:31087/tcp", "31187:31187/tcp", "80:31087/tcp")
        replies(80)


def test_a_port_below_1024_is_published_with_an_offset(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("low", "LoadBalancer", one_port(31088), externalTrafficPolicy="Local", healthCheckNodePort=31188), endpoints("low"))
    with controller("--load-balancer-ports", "all", "--port-offset", "10000"):
        becomes(served, "31088:31088/tcp", "31188:31188/tcp", "10080:31088/tcp")
        replies(10080)


def test_a_port_controller_with_the_capability_publishes_ports_below_1024(plane: Plane, served: machine.Node) -> None:
    """As the administrator may give it to a copy of the program: all other processes of the node stay without."""
    copy = HOME.parent / "nodens-rootless-ports"
    shutil.copy(machine.PROGRAM, copy)
    machine.run("setcap", "cap_net_bind_service=ep", str(copy))
    plane.apply(service("low", "LoadBalancer", one_port(31089), externalTrafficPolicy="Local", healthCheckNodePort=31189), endpoints("low"))
    assert served.process
    before = process_of(served, "api")
    machine.kill(served.process.pid)    # it would start the port controller again
    served.process.wait()
    machine.kill(before)
    machine.wait_for(lambda: not machine.alive(before), PATIENCE, "it has released its lock")
    with subprocess.Popen(machine.as_user(str(copy), "api", "--name", NODE), env=machine.environment(), cwd="/") as privileged:
        try:
            with controller("--load-balancer-ports", "all"):
                becomes(served, "31089:31089/tcp", "31189:31189/tcp", "80:31089/tcp")
                replies(80)
                plane.kubectl("delete", "service", "low")
                becomes(served)
        finally:
            privileged.kill()
            privileged.wait()
            served.start()


# ---- pods

def make_pod_object(plane: Plane, name: str, port: int, **spec: Any) -> None:
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}},
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": {
                    "nodeName": NODE, "automountServiceAccountToken": False,
                    "containers": [{"name": "c", "image": "x", "ports": [{"containerPort": port, "hostPort": port, "protocol": one}
                                                                       for one in ("TCP", "UDP")]}], **spec}})


def set_phase(plane: Plane, name: str, phase: str) -> None:
    plane.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"phase": phase}}))


def test_a_running_pod_has_its_host_port_if_the_user_allows_it(plane: Plane, served: machine.Node) -> None:
    start_server(served, "0.0.0.0/8090")
    make_pod_object(plane, "p", 8090)
    with controller("--host-ports", "8090"):
        assert published(served) == set()
        set_phase(plane, "p", "Running")
        becomes(served, "8090:8090/tcp", "8090:8090/udp")
        for kind in ("tcp", "udp"):
            replies(8090, kind)
        set_phase(plane, "p", "Succeeded")
        becomes(served)
    set_phase(plane, "p", "Running")
    with controller() as made:
        made.says("host port 8090 is not published: the user of the node does not allow it; --host-ports")
        machine.wait_for(lambda: "--host-ports" in plane.events("Pod", "p"), PATIENCE, "an Event")
        assert published(served) == set()


# ---- conflicts

def test_a_service_never_takes_a_port_from_a_program_of_the_user(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("late", ports_=one_port(31091), externalTrafficPolicy="Local"), endpoints("late"))
    with contextlib.ExitStack() as stack:
        stack.enter_context(machine.servers("alpha", "0.0.0.0/31091"))
        with controller() as made:
            made.says("port 31091 is not published: publish 31091:31091/tcp")
            machine.wait_for(lambda: "port 31091 is not published" in plane.events("Service", "late"), PATIENCE, "an Event")
            assert published(served) == set()
            assert ask(ALPHA4, 31091) == ROUTER4, "the program of the user answers"
            said = rootless("ports", "--name", NODE).stdout
            assert "Service default/late: publish 31091" in said and "ss -lptu" in said, said
            stack.close()
            becomes(served, "31091:31091/tcp")
            replies(31091)


def test_ports_of_the_user_are_not_touched(plane: Plane, served: machine.Node) -> None:
    start_server(served, "0.0.0.0/5077")
    mine = add(served, "31092:5077", "8192:5077")
    plane.apply(service("same", ports_=one_port(31092)), service("free", ports_=one_port(31093)))
    with controller() as made:
        becomes(served, "31093:31093/tcp")
        made.says(f"the user has published 31092:5077/tcp ('nodens-rootless ports remove {mine[0]}' frees it)")
        said = rootless("ports", "--name", NODE, "add", "31093:5077", check=False)
        assert said.returncode == 1 and "kubernetes has published 31093:31093/tcp4 for Service default/free" in said.stderr, said.stderr
        plane.kubectl("delete", "services", "same", "free")
        becomes(served)
    assert [one["id"] for one in ports(served) if "owner" not in one] == mine
    assert ask(ALPHA4, 31092) == ask(ALPHA4, 8192) == ROUTER4
    rootless("ports", "--name", NODE, "remove", *map(str, mine))


# ---- failures

def held(port: int) -> subprocess.Popen[str]:
    """A client that connects all the time and prints how many connections it made, and how many failed."""
    code = f"""
import signal, socket, sys, time
good = bad = 0
def end(*_):
    print(good, bad, flush=True); sys.exit()
signal.signal(signal.SIGTERM, end)
while True:
    try:
        s = socket.create_connection(({ALPHA4!r}, {port}), 10)
        said = s.recv(100).strip(); s.close()
        if said != {ROUTER4.encode()!r}: raise OSError(said)
        good += 1
    except OSError:
        bad += 1
    time.sleep(0.002)
"""
    return subprocess.Popen(machine.within("router", sys.executable, "-c", code), stdout=subprocess.PIPE, text=True)


def end_held(client: subprocess.Popen[str]) -> None:
    client.terminate()
    good, bad = map(int, client.communicate(timeout=machine.LIMIT)[0].split())
    assert good > 20 and bad == 0, f"{good} connections made, {bad} failed"


def test_ports_stay_while_the_api_server_is_away_and_follow_when_it_is_back(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("kept", ports_=one_port(31094), externalTrafficPolicy="Local"), endpoints("kept"))
    with controller() as made:
        replies(31094)
        client = held(31094)
        plane.stop("api")
        made.says("no contact with the API server")
        time.sleep(5)
        # A controller that starts now has no list, and closes nothing.
        made.end(signal.SIGKILL)
        made.start()
        made.says("no contact with the API server")
        assert published(served) == {"31094:31094/tcp"}
        plane.start_api()
        made.wait()
        plane.apply(service("more", ports_=one_port(31095)))
        becomes(served, "31094:31094/tcp", "31095:31095/tcp")
        end_held(client)


def process_of(made: machine.Node, command: str) -> int:
    parts = json.loads((machine.RUNTIME / "nodens" / made.name / "parts").read_text())
    return int(parts[command]["pid"])


def test_no_connection_fails_while_controllers_are_killed(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("kept", ports_=one_port(31096), externalTrafficPolicy="Local"), endpoints("kept"))
    with controller() as made:
        replies(31096)
        number = [one["id"] for one in ports(served)]
        client = held(31096)
        for _ in range(10):
            made.end(signal.SIGKILL)
            made.start().wait()
            before = process_of(served, "api")
            machine.kill(before)
            machine.wait_for(lambda before=before: process_of(served, "api") != before, PATIENCE, "the port controller is back")
            becomes(served, "31096:31096/tcp")
        end_held(client)
        assert [one["id"] for one in ports(served)] == number, "the port was never closed"


def test_new_credentials_are_used_without_a_restart(plane: Plane, served: machine.Node) -> None:
    plane.apply(service("web", ports_=one_port(31098)))
    made = Controller()
    made.write("invalid")
    made.start()
    try:
        made.says("refuses the controller's credentials (HTTP 401)")
        made.write(CONTROLLER)
        made.says("loaded new credentials")
        becomes(served, "31098:31098/tcp")
        assert CONTROLLER not in made.log.read_text()
    finally:
        made.end()


# ---- labels

def labels_of(plane: Plane) -> dict[str, str]:
    return {one["metadata"]["name"]: one["metadata"].get("labels", {}).get(LABEL) for one in plane.get("nodes")["items"]}


def test_every_node_gets_the_label_and_others_keep_theirs(plane: Plane, served: machine.Node) -> None:
    def labels() -> dict[str, str]:
        return labels_of(plane)

    plane.kubectl("label", "node", NODE, f"{LABEL}=false", "--overwrite")
    plane.kubectl("label", "node", "other", f"{LABEL}-")
    with controller("--label", "own"):
        machine.wait_for(lambda: labels() == {NODE: "true", "other": None, "labelled": "true"}, PATIENCE, f"labels: {labels()}")
    with controller():
        machine.wait_for(lambda: labels() == {NODE: "true", "other": "false", "labelled": "true"}, PATIENCE, f"labels: {labels()}")
        plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}})
        machine.wait_for(lambda: labels().get("late") == "false", PATIENCE, f"labels: {labels()}")
    plane.kubectl("delete", "node", "late")


def test_with_the_rights_for_one_node_only_that_node_can_be_labelled(plane: Plane, served: machine.Node) -> None:
    plane.kubectl("apply", "-f", "-", stdin=rootless("manifest", "--label", "own", "--node-name", NODE).stdout)
    plane.kubectl("label", "node", NODE, f"{LABEL}-")
    plane.kubectl("label", "node", "other", f"{LABEL}-")
    try:
        with controller() as made:
            machine.wait_for(lambda: labels_of(plane)[NODE] == "true", PATIENCE, "the own node has the label")
            made.says(f"cannot label a node with {LABEL} (name=other)")
            made.says("`nodens-rootless manifest` prints the rights that the controller needs")
            assert labels_of(plane)["other"] is None
    finally:
        plane.kubectl("apply", "-f", "-", stdin=rootless("manifest", "--ingress").stdout)


def test_the_log_names_a_right_that_is_missing(plane: Plane, served: machine.Node) -> None:
    plane.kubectl("delete", "clusterrolebinding", "nodens:rootless-controller")
    made = Controller()
    made.start()
    try:
        made.says("cannot read /api/v1/services: HTTP 403")
        made.says("`nodens-rootless manifest` prints the rights that the controller needs")
        assert published(served) == set()
        plane.kubectl("apply", "-f", "-", stdin=rootless("manifest", "--ingress").stdout)
        made.wait()
    finally:
        made.end()


# ---- the policy for sysctls

PING, SHM = "net.ipv4.ping_group_range", "kernel.shm_rmid_forced"


def pod_with_sysctls(*names: str, **more: Any) -> dict[str, Any]:
    values = {PING: "0 2147483647", PING.replace(".", "/"): "0 2147483647", SHM: "1", "net.core.somaxconn": "64", "net.corefoo": "1"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tuned", "namespace": "default"}, "spec": {
        "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "x"}],
        "securityContext": {"sysctls": [{"name": name, "value": values[name]} for name in names]}, **more}}


def admitted(plane: Plane, pod: dict[str, Any]) -> tuple[list[str], str | None]:
    """What the API server makes of the sysctls, and what it records as removed."""
    made = json.loads(plane.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod)))
    context = made["spec"].get("securityContext", {})
    return [one["name"] for one in context.get("sysctls", [])], made["metadata"].get("annotations", {}).get("nodens.io/removed-sysctls")


@pytest.fixture(scope="module")
def policy(plane: Plane) -> Iterator[None]:
    plane.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}})
    plane.kubectl("apply", "-f", "-", stdin=rootless("manifest", "--ingress", "--strip-sysctls", f"{PING},net.core.*").stdout)
    machine.wait_for(lambda: admitted(plane, pod_with_sysctls(PING, nodeSelector={LABEL: "true"}))[0] == [], PATIENCE, "the policy applies")
    yield
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        plane.kubectl("delete", kind, "nodens-rootless-sysctls")


def test_sysctls_that_a_node_without_root_refuses_are_removed_and_recorded(plane: Plane, policy: None) -> None:
    pod = pod_with_sysctls(PING.replace(".", "/"), SHM, "net.core.somaxconn", nodeSelector={LABEL: "true"})
    assert admitted(plane, pod) == ([SHM], f"{PING.replace('.', '/')},net.core.somaxconn")
    pod["metadata"]["annotations"] = {"mine": "1"}
    made = json.loads(plane.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod)))
    assert made["metadata"]["annotations"]["mine"] == "1", "annotations of the pod stay"


@pytest.mark.parametrize("selector", [None, {LABEL: "false"}, {"other": "true"}], ids=["none", "false", "other"])
def test_pods_for_other_nodes_keep_their_sysctls(plane: Plane, policy: None, selector: dict[str, str] | None) -> None:
    pod = pod_with_sysctls(PING, SHM, **({"nodeSelector": selector} if selector else {}))
    assert admitted(plane, pod) == ([PING, SHM], None)


def test_a_prefix_ends_at_a_dot_and_pods_without_sysctls_are_not_changed(plane: Plane, policy: None) -> None:
    assert admitted(plane, pod_with_sysctls("net.corefoo", nodeSelector={LABEL: "true"})) == (["net.corefoo"], None)
    bare = pod_with_sysctls(nodeSelector={LABEL: "true"})
    del bare["spec"]["securityContext"]
    assert admitted(plane, bare) == ([], None)


@pytest.mark.parametrize("names", ["", "a'||true||'", "net core", "a,,b", "*", "net.core*", "a\nkind: Secret",
                                   "x" * 300, ",".join(["a"] * 40)])
def test_names_that_could_leave_the_expression_are_refused(names: str) -> None:
    done = rootless("manifest", "--strip-sysctls", names, check=False)
    assert done.returncode != 0 and "--strip-sysctls" in done.stderr and done.stdout == ""


# ---- hostile objects

def test_many_services_at_once_get_their_ports_and_too_many_are_refused_one_by_one(plane: Plane, served: machine.Node) -> None:
    add_before = add(served, "8199:5000")
    for number in range(8):
        plane.apply(service(f"many-{number}", ports_=[{"name": f"p{port}", "protocol": "TCP", "port": port + 1,
                                                       "nodePort": 30000 + number * 260 + port} for port in range(260)]))
    with controller() as made:
        machine.wait_for(lambda: len(published(served)) == 8 * 256 == 2048, PATIENCE, "the first 256 ports of each Service")
        made.says("4 of its ports are not published: it has more than 256")
        plane.apply(service("one-more", ports_=one_port(32700)))
        made.says("node port 32700 is not published: the node publishes at most 2048 ports of the cluster")
        assert [one["id"] for one in ports(served) if "owner" not in one] == add_before
        add_more = add(served, "8198:5000")
        plane.kubectl("delete", "services", "--all", "-n", "default")
        becomes(served)
    rootless("ports", "--name", NODE, "remove", *map(str, add_before + add_more))


def test_the_controller_refuses_to_run_twice_or_without_a_kubeconfig(served: machine.Node) -> None:
    with controller() as made:
        second = rootless("controller", "--name", NODE, "--kubeconfig", str(made.file), check=False)
        assert second.returncode == 1 and "cannot start" in second.stderr
    without = rootless("controller", "--name", NODE, check=False)
    assert without.returncode == 64 and "no kubeconfig: use --kubeconfig FILE" in without.stderr
