# SPDX-License-Identifier: Apache-2.0
"""Failures around the version floor, beside a stock API server: no wrong allow, no crash, and what is closed opens by itself.

In each case a node falls below the floor while something is broken, and requests of this and of another node go on all the time.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, Plane, guard_config, guard_running, guarded, wait_until
from nodensdev import cluster
from nodensdev.cluster import addresses, switch
from nodensdev.cluster.controlplane import STATE
from nodensdev.cluster.options import Webhook
from test_authorizer import INSIDE, OUTSIDE, PORT, Node, authorizing, certificate, with_authorizer
from test_floor import report

pytestmark = pytest.mark.slow
STALE = 20      # staleSeconds, by default
PROXY, SECOND, CUT = 9471, 9472, 9473
SLACK = 8       # seconds for a loaded host


@dataclass(frozen=True)
class Answer:
    began: float
    ended: float
    status: int


class Load:
    """Requests of one node, until the end of the test."""

    def __init__(self, plane: Plane, name: str) -> None:
        self.plane, self.name = plane, name
        self.node = Node(plane, name)
        assert self.node.join("v1.36.3").returncode == 0
        self.path = plane.one.state / f"load-{name}"
        self.path.unlink(missing_ok=True)
        self.process = subprocess.Popen(plane.one.command(
            ["python3", "-B", "/nodens/tests/component/guard/node_load.py", addresses.API_SERVER, f"{STATE}/pki", f"node-{name}",
             f"{STATE}/load-{name}"]), stdin=subprocess.DEVNULL)
        self.served_again()

    def answers(self, since: float = 0) -> list[Answer]:
        """Of requests that began after a moment."""
        found = []
        for line in self.path.read_text().splitlines() if self.path.exists() else []:
            words = line.split()
            if len(words) == 3 and float(words[0]) >= since:
                found.append(Answer(float(words[0]), float(words[1]), int(words[2])))
        return found

    def allowed(self, since: float) -> list[Answer]:
        return [one for one in self.answers(since) if one.status == 200]

    def served_again(self) -> None:
        moment = time.monotonic()
        wait_until(lambda: bool(self.allowed(moment)), f"an answer to node {self.name}")

    def refused(self, moment: float) -> None:
        """Waits for a denial, rather than an error, after a moment."""
        wait_until(lambda: any(one.status == 403 for one in self.answers(moment)), f"a denial of node {self.name}")

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)
        self.plane.kubectl("delete", "node", self.name, "--ignore-not-found")


@pytest.fixture(scope="module")
def cast() -> Iterator[Plane]:
    options = cluster.Options(name="guard-failures", nodes=0, images=(), webhooks=(
        Webhook("guard", "exec sleep infinity"), Webhook("authorizer", "exec sleep infinity")))
    with guarded(with_authorizer(options), allocateRanges=False) as plane:
        certificate(plane, "authorizer", "/CN=nodens-authorizer")
        plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "nodes"))
        yield plane


@contextlib.contextmanager
def loads(plane: Plane, *names: str) -> Iterator[list[Load]]:
    with contextlib.ExitStack() as stack:
        made = []
        for name in names:
            made.append(Load(plane, name))
            stack.callback(made[-1].end)
        yield made


def fall(plane: Plane, name: str) -> float:
    """A node reports an old version, by the administrator: its own reports may not arrive. Returns when the API server has it.

    The policy about reports must not refuse it, not even right after a start of the API server.
    """
    report(plane, name, "v1.29.6")
    return time.monotonic()


def programs(pid: int) -> Iterator[int]:
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield int(child)
        yield from programs(int(child))


def inner(process: subprocess.Popen[bytes], name: str) -> int:
    """The process of a program that was started in a chroot."""
    return next(pid for pid in programs(process.pid) if Path(f"/proc/{pid}/comm").read_text().strip() == name)


@contextlib.contextmanager
def frozen(process: subprocess.Popen[bytes], name: str = "nodens-guard") -> Iterator[None]:
    """A program that does nothing. nsenter(1), which may be its parent, stops with it and must be continued, too."""
    pid = inner(process, name)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        os.kill(process.pid, signal.SIGCONT)


def api_server_answers(plane: Plane) -> None:
    wait_until(lambda: switch.answers(plane.one, "kube-apiserver"), "the API server")


def kube_system_works(plane: Plane) -> None:
    """An administrator, and a pod in kube-system, with or without guards."""
    plane.kubectl("create", "configmap", "probe", "-n", "kube-system", "--dry-run=server")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "kube-system"},
           "spec": {"hostNetwork": True, "containers": [{"name": "c", "image": "x", "securityContext": {"privileged": True}}]}}
    plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))


IS_READY = """
import ssl, sys, urllib.request
urllib.request.urlopen(sys.argv[1], context=ssl._create_unverified_context(), timeout=10)
"""


def is_ready(plane: Plane) -> bool:
    done = plane.one.run(["python3", "-c", IS_READY, f"https://127.0.0.1:{PORT}/readyz"])
    return done.returncode == 0


REVIEW = """
import http.client, json, ssl, sys
context = ssl._create_unverified_context()
context.load_cert_chain(f"{sys.argv[1]}/apiserver-kubelet.crt", f"{sys.argv[1]}/apiserver-kubelet.key")
connection = http.client.HTTPSConnection("127.0.0.1", int(sys.argv[2]), context=context, timeout=20)
connection.request("POST", "/authorize", json.dumps({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
    "user": f"system:node:{sys.argv[3]}", "groups": ["system:nodes"],
    "resourceAttributes": {"verb": "list", "resource": "pods", "version": "v1"}}}), {"Content-Type": "application/json"})
print(json.dumps(json.loads(connection.getresponse().read())["status"]))
"""


def verdict(plane: Plane, name: str) -> dict[str, Any]:
    """The authorizer's own answer, as to an API server."""
    done = plane.one.run(["python3", "-c", REVIEW, f"{STATE}/pki", str(PORT), name])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_watch_that_expired_is_read_again(cast: Plane) -> None:
    """The API server answers 410 to the version that the authorizer has."""
    with authorizing(cast) as process, loads(cast, "expires", "stays") as (falls, stays):
        old = json.loads(cast.kubectl("get", "node", "expires", "-o", "json"))["metadata"]["resourceVersion"]
        with frozen(process):
            moment = fall(cast, "expires")
            cast.one.start_again("kube-apiserver")
            api_server_answers(cast)
            told = cast.kubectl("get", "--raw", f"/api/v1/nodes?watch=1&timeoutSeconds=5&resourceVersion={old}")
            assert '"code":410' in told, told
            kube_system_works(cast)
            wait_until(lambda: time.monotonic() - moment > STALE + 1, "the age of stale data")
        stays.served_again()
        falls.refused(moment)
        assert not falls.allowed(moment), "a node below the floor was allowed"
        assert process.poll() is None


def test_without_an_api_server_all_nodes_are_locked_until_it_is_back(cast: Plane) -> None:
    with authorizing(cast) as process, loads(cast, "falls", "stays") as (falls, stays):
        assert "denied" not in verdict(cast, "stays")
        moment = fall(cast, "falls")
        falls.refused(moment)
        moment = time.monotonic()
        for pid in cast.one.run(["pgrep", "-x", "kube-apiserver"]).stdout.split():
            cast.one.run(["kill", "-9", pid])
        wait_until(lambda: not is_ready(cast), "an authorizer that is not ready")
        wait_until(lambda: verdict(cast, "stays").get("denied") is True, "the lock of all nodes")
        assert "not known" in verdict(cast, "stays")["reason"]
        cast.one.start_again("kube-apiserver")
        api_server_answers(cast)
        stays.served_again()
        falls.refused(time.monotonic())
        assert not falls.allowed(moment) and process.poll() is None
        kube_system_works(cast)


@contextlib.contextmanager
def proxied(plane: Plane, name: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The kubeconfig NAME with a proxy in front of the API server, in the place of its own."""
    path = plane.one.state / f"{name}.kubeconfig"
    direct = path.read_text()
    config = json.loads(direct)
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
    path.write_text(json.dumps(config))
    proxy = subprocess.Popen(plane.one.command(["python3", "-B", "/nodens/tests/component/guard/cut_proxy.py", str(port), "6443",
                                                f"{STATE}/never"]), stdin=subprocess.DEVNULL)
    try:
        wait_until(lambda: plane.one.run(["sh", "-c", f"ss -ltn | grep -q ':{port} '"]).returncode == 0, "the proxy")
        yield proxy
    finally:
        proxy.terminate()
        proxy.wait(timeout=20)
        path.write_text(direct)


def test_data_that_are_a_minute_old_allow_nothing(cast: Plane) -> None:
    """The authorizer's own connections are silent; the API server still reaches it."""
    with proxied(cast, "authorizer", PROXY) as proxy, authorizing(cast) as process, loads(cast, "falls", "stays") as (falls, stays):
        with frozen(proxy, "python3"):
            moment = fall(cast, "falls")
            wait_until(lambda: time.monotonic() - moment > 60, "a minute")
            late = moment + STALE + SLACK
            assert falls.answers(late) and not falls.allowed(late), "a node below the floor was allowed by old data"
            assert stays.answers(late) and not stays.allowed(late), "no verdict is made from old data"
            kube_system_works(cast)
        stays.served_again()
        falls.refused(time.monotonic())
        assert not falls.allowed(late) and process.poll() is None
        allowed = falls.allowed(moment)
        print(f"\na silent connection: the last wrong answer {max((one.ended for one in allowed), default=moment) - moment:.1f} s after "
              f"the report, staleSeconds is {STALE}")


def test_a_namespace_list_that_is_a_minute_old_admits_nothing(cast: Plane) -> None:
    """A namespace that begins to enforce constraints, while the guard's connections are silent."""
    cast.namespace("cut-off", mode=None)
    state = cast.one.state
    shutil.copy(state / "guard.kubeconfig", state / "stale.kubeconfig")
    guard_config(state, "stale", port=SECOND, allocateRanges=False, kubeconfig=f"{STATE}/stale.kubeconfig")

    def allowed() -> bool:
        done = cast.one.run(["python3", "-B", "/nodens/tests/component/guard/talk.py", "privileged", str(SECOND)], timeout=60)
        assert done.returncode == 0, done.stderr
        return bool(json.loads(done.stdout)["allowed"])

    with proxied(cast, "stale", CUT) as proxy, guard_running(cast, state, "stale", SECOND) as process:
        wait_until(allowed, "a namespace without constraints")
        with frozen(proxy, "python3"):
            cast.kubectl("label", "namespace", "cut-off", "security.nodens.io/constraints=enforce")
            moment = time.monotonic()
            while time.monotonic() - moment < 60:
                assert not allowed() or time.monotonic() - moment < STALE + SLACK, "a pod was admitted by an old list"
                time.sleep(0.5)
            kube_system_works(cast)
        assert not allowed() and process.poll() is None
        wait_until(lambda: cast.metrics(SECOND)["nodens_guard_ready"] == 1, "a guard that is ready again")
        assert not allowed()


def test_a_killed_guard_holds_the_floor_back_until_its_lease_ends(cast: Plane) -> None:
    guard_config(cast.one.state, "second", port=SECOND, allocateRanges=False, staleSeconds=5)
    with authorizing(cast), guard_running(cast, cast.one.state, "second", SECOND) as process:
        leases = ("get", "leases", "-n", "nodens-system", "-l", "security.nodens.io/guard=guard", "-o", "name")
        wait_until(lambda: len(cast.kubectl(*leases).split()) >= 2, "the Lease of the second guard")
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=PATIENCE)
        began = time.monotonic()
        cast.set_floor("1.31.0")
        wait_until(lambda: "does not act on it yet" in json.dumps(cast.floor().get("status", {})), "a floor that waits")
        assert cast.floor()["status"]["minimumKubeletVersion"] == "1.30.0"
        cast.settled("1.31.0")
        took = time.monotonic() - began
        assert took > 10, f"its Lease is valid for 25 s: {took:.1f}"
        cast.set_floor("1.30.0")
        cast.settled("1.30.0")


# ---- rotation ----

def authority(plane: Plane, name: str) -> None:
    """Another authority, and a certificate of the authorizer by it."""
    script = f"""cd {STATE}/pki && umask 077 &&
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={name} \
    -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature -keyout {name}.key -out {name}.crt &&
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authorizer -CA {name}.crt -CAkey {name}.key \
    -addext extendedKeyUsage=serverAuth -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1 \
    -keyout {name}-leaf.key -out {name}-leaf.crt"""
    done = plane.inside.capture(["sh", "-c", script])
    assert done.returncode == 0, done.stderr


def reloads(plane: Plane) -> float:
    text = plane.kubectl("get", "--raw", "/metrics")
    return sum(float(line.split()[-1]) for line in text.splitlines()
               if line.startswith("apiserver_authorization_config_controller_automatic_reloads_total{") and 'status="success"' in line)


def give_authorities(plane: Plane, number: int, *names: str) -> None:
    """A kubeconfig with these authorities, under another name, which makes the API server read it. No restart."""
    bundle = "".join((plane.one.state / f"pki/{name}.crt").read_text() for name in names)
    (plane.one.state / f"authorizer-ca-{number}.crt").write_text(bundle)
    text = (OUTSIDE / "kubeconfig").read_text().replace(f"{STATE}/pki/ca.crt", f"{STATE}/authorizer-ca-{number}.crt")
    assert f"authorizer-ca-{number}" in text
    (plane.one.state / f"authorizer-{number}.conf").write_text(text)
    before = reloads(plane)
    config = (OUTSIDE / "authorization.yaml").read_text().replace(f"{INSIDE}/kubeconfig", f"{STATE}/authorizer-{number}.conf")
    (plane.one.state / "authorization.yaml").write_text(config)
    wait_until(lambda: reloads(plane) > before, "an API server that has read its authorization again", 150)


def serial(plane: Plane) -> str:
    done = plane.one.run(["python3", "-B", "/nodens/tests/component/guard/talk.py", "serial", str(PORT)])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["serial"]


def test_the_authority_of_the_authorizer_is_replaced_under_load(cast: Plane) -> None:
    """Two authorities overlap: first the API server accepts both, then the certificate is replaced, then the old one goes."""
    authority(cast, "next-ca")
    pki = cast.one.state / "pki"
    kept = {end: (pki / f"webhook-authorizer.{end}").read_text() for end in ("crt", "key")}
    with authorizing(cast) as process, loads(cast, "falls", "stays") as (falls, stays):
        falls.refused(fall(cast, "falls"))
        moment, before = time.monotonic(), serial(cast)
        give_authorities(cast, 1, "ca", "next-ca")
        for end in ("key", "crt"):
            (pki / f"webhook-authorizer.{end}").write_text((pki / f"next-ca-leaf.{end}").read_text())
        wait_until(lambda: serial(cast) != before, "the new certificate")
        give_authorities(cast, 2, "next-ca")
        stays.served_again()
        falls.refused(time.monotonic())
        served = stays.answers(moment)
        failed = [one for one in served if one.status != 200]
        assert not falls.allowed(moment) and process.poll() is None
        print(f"\nrotation: {len(served)} requests of a node, {len(failed)} failed: {sorted({one.status for one in failed})}")
        assert len(served) > 30 and not failed
        for end, text in kept.items():
            (pki / f"webhook-authorizer.{end}").write_text(text)
        wait_until(lambda: serial(cast) == before, "the former certificate")
        give_authorities(cast, 3, "ca")


def test_a_cold_start_ends_without_a_person(cast: Plane) -> None:
    """Guard, authorizer and API server are killed at once. The API server comes back first, then the authorizer, then the guard."""
    name = cast.namespace("cold")
    with authorizing(cast) as process, loads(cast, "falls", "stays") as (falls, stays):
        falls.refused(fall(cast, "falls"))
        moment = time.monotonic()
        for one in (process, cast.guard):
            one.send_signal(signal.SIGKILL)
            one.wait(timeout=PATIENCE)
        for pid in cast.one.run(["pgrep", "-x", "kube-apiserver"]).stdout.split():
            cast.one.run(["kill", "-9", pid])
        cast.one.start_again("kube-apiserver")
        api_server_answers(cast)
        kube_system_works(cast)
        wait_until(lambda: any(one.status == 500 for one in stays.answers(moment)), "nodes that are denied without the authorizer")
        assert "failed calling webhook" in cast.create(name, {}, ok=False), "admission is closed"
        ready = time.monotonic()
        assert not [one for one in stays.allowed(moment) if one.began > moment + 5], "no node is allowed without the authorizer"
        with authorizing(cast):
            stays.served_again()
            print(f"\ncold start: a node is served {time.monotonic() - ready:.1f} s after the start of the authorizer")
            with guard_running(cast, cast.one.state):
                cast.eventually(lambda pod: bool(pod), "an admitted pod", name, {})
                falls.refused(time.monotonic())
                assert not falls.allowed(moment)
