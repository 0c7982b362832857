# SPDX-License-Identifier: Apache-2.0
"""nodens-guard beside a stock API server: a control plane on the host itself, as root.

`tools/dev test guard` has no nodes, `guard-node` has one.
"""
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nodensdev import cluster
from nodensdev.cluster.controlplane import STATE
from nodensdev.cluster.options import Webhook
from nodensdev.env import chroot
from nodensdev.project import TOP

BUILD = f"/nodens/build/{os.environ.get('NODENS_VARIANT', 'gcc')}"
SANITIZED = BUILD.endswith("/asan")  # figures of memory mean little then
GUARD = f"{BUILD}/src/guard/nodens-guard"
PORT = 9443
PATIENCE = 120  # timeout in seconds for anything on a loaded host


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gate: part of the short form that CI runs; `tools/dev test guard-node-short`")
    config.addinivalue_line("markers", "node: needs a node; `tools/dev test guard-node`")
    config.addinivalue_line("markers", "image: builds the guard's image; `tools/dev test guard-image`")
    config.addinivalue_line("markers", "slow: takes more than a minute; not in `tools/dev test guard-asan`, which CI runs")


@dataclass
class Plane:
    """A control plane with the guard."""

    one: Any
    inside: chroot.Prepared
    guard: Any = None       # its process

    def kubectl(self, *arguments: str, stdin: str | None = None, user: str | None = None, ok: bool = True) -> str:
        """kubectl's output, or its error if it is expected to fail."""
        who = ["--as", user, "--as-group", "system:authenticated"] if user else []
        done = self.one.kubectl(*who, *arguments, stdin=stdin)
        assert (done.returncode == 0) == ok, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr if ok else done.stderr

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(one) for one in objects))

    def guard_output(self, *arguments: str) -> str:
        done = self.inside.capture([GUARD, *arguments])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def namespace(self, name: str, mode: str | None = "enforce", **annotations: str) -> str:
        labels = {"security.nodens.io/constraints": mode} if mode else {}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "labels": labels, "annotations": {
                "openshift.io/sa.scc.uid-range": "1000650000/10000", "openshift.io/sa.scc.mcs": "s0:c26,c5", **annotations}}})
        self.grant(name, "edit", "alice")
        self.namespace_known(name)
        self.may("alice", "create", "pods", name)
        return name

    def namespace_known(self, name: str) -> None:
        """Waits for the service account of a namespace, and for its labels in the guard's watch."""
        wait_until(lambda: self.one.kubectl("get", "serviceaccount", "default", "-n", name).returncode == 0, "the service account")
        wait_until(lambda: self.metrics()["nodens_guard_namespaces"] == len(self.kubectl("get", "namespaces", "-o", "name").split()),
                   "the namespace in the guard's cache")

    def may(self, user: str, verb: str, resource: str, namespace: str, *more: str) -> None:
        """Waits until the API server allows a user to do something."""
        wait_until(lambda: self.one.kubectl("auth", "can-i", verb, resource, *more, "--as", user, "-n", namespace).returncode == 0,
                   f"the right of {user} to {verb} {resource}")

    def metrics(self, port: int = PORT) -> dict[str, float]:
        done = self.one.run(["python3", "-B", "/nodens/tests/component/guard/talk.py", "metrics", str(port)], timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def grant(self, namespace: str, role: str, user: str, name: str | None = None) -> None:
        self.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                    "metadata": {"name": name or f"{user}-{role}".replace(":", "-"), "namespace": namespace},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})

    def create(self, namespace: str, spec: dict[str, Any], user: str = "alice", ok: bool = True,
               annotations: dict[str, str] | None = None, name: str = "p", dry_run: bool = True,
               context: dict[str, Any] | None = None) -> Any:
        """The pod as admitted by the API server, or its denial. A dry run by default."""
        container = {"name": "c", "image": "x"} | ({"securityContext": context} if context else {})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}},
               "spec": {"containers": [container], "restartPolicy": "Never"} | spec}
        flags = ["--dry-run=server"] if dry_run else []
        output = self.kubectl("create", *flags, "-f", "-", "-o", "json", stdin=json.dumps(pod), user=user, ok=ok)
        return json.loads(output[output.index("{"):output.rindex("}") + 1]) if ok else output

    def floor(self) -> dict[str, Any]:
        return json.loads(self.kubectl("get", "nodeversionfloor", "cluster", "-o", "json"))

    def set_floor(self, minimum: str, ok: bool = True, **spec: Any) -> str:
        return self.kubectl("patch", "nodeversionfloor", "cluster", "--type=merge", "-p",
                            json.dumps({"spec": {"minimumKubeletVersion": minimum, **spec}}), ok=ok)

    def settled(self, minimum: str) -> None:
        """Waits until the version floor has this status."""
        def done() -> bool:
            floor = self.floor()
            return (floor.get("status", {}).get("minimumKubeletVersion") == minimum
                    and floor["status"].get("observedGeneration") == floor["metadata"]["generation"])

        wait_until(done, f"a version floor of '{minimum}'")

    def eventually(self, condition: Any, what: str, *arguments: Any, ok: bool = True, **more: Any) -> Any:
        """Calls create() until the guard's watches have the objects it needs.

        The condition gets the pod, or the denial.
        """
        last: Any = None

        def judged() -> bool:
            nonlocal last
            try:
                last = self.create(*arguments, ok=ok, **more)
            except AssertionError as error:
                last = error
                return False
            return bool(condition(last))

        try:
            wait_until(judged, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; the last answer: {last}") from None
        return last


def wait_until(condition: Any, what: str, seconds: float = PATIENCE) -> None:
    """Allows at least PATIENCE, for loaded hosts."""
    seconds = max(seconds, PATIENCE)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.1)


def scc(pod: dict[str, Any]) -> str:
    return pod["metadata"].get("annotations", {}).get("security.nodens.io/scc", "")


def guard_kubeconfig(plane: Plane, state: Path) -> None:
    """The guard uses its own service account, whose permissions come from its manifest."""
    token = plane.kubectl("create", "token", "nodens-guard", "-n", "nodens-system", "--duration=24h").strip()
    admin = json.loads((state / "admin.kubeconfig").read_text())
    admin["users"] = [{"name": "admin", "user": {"tokenFile": "guard.token"}}]
    (state / "guard.token").write_text(token)
    (state / "guard.kubeconfig").write_text(json.dumps(admin))


def guard_config(state: Path, name: str = "guard", **more: Any) -> None:
    (state / f"{name}.yaml").write_text(json.dumps({
        "address": "127.0.0.1", "port": PORT, "certificate": f"{STATE}/pki/webhook-guard.crt", "key": f"{STATE}/pki/webhook-guard.key",
        "clientCA": f"{STATE}/pki/ca.crt", "kubeconfig": f"{STATE}/guard.kubeconfig", "userNamespacesHostNetwork": True,
        "drainSeconds": 0, **more}))


def with_client_certificate(options: cluster.Options) -> cluster.Options:
    """The API server presents a certificate to the guard, by files of `nodens-guard manifest`."""
    outside, inside = TOP / "build/guard-admission", "/nodens/build/guard-admission"
    outside.mkdir(parents=True, exist_ok=True)
    words = ["--url", f"https://127.0.0.1:{PORT}", "--kubeconfig", f"{inside}/kubeconfig", "--client-certificate",
             f"{STATE}/pki/apiserver-kubelet.crt",
             "--client-key", f"{STATE}/pki/apiserver-kubelet.key"]
    with chroot.prepared(chroot.Chroot(root="build")) as prepared:
        for part in ("admission", "kubeconfig"):
            done = prepared.capture([GUARD, "manifest", part, *words])
            assert done.returncode == 0, done.stderr
            (outside / part).write_text(done.stdout)
    return dataclasses.replace(options, apiserver_args=(*options.apiserver_args, f"--admission-control-config-file={inside}/admission"))


@contextlib.contextmanager
def guard_running(plane: Plane, state: Path, name: str = "guard", port: int = PORT,
                  patience: float = PATIENCE) -> Iterator[subprocess.Popen[bytes]]:
    with (state / f"logs/{name}.log").open("ab") as log:
        process = subprocess.Popen(plane.inside.command([GUARD, "serve", "--config", f"{STATE}/{name}.yaml"]),
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    ready = ["python3", "-c",
             "import ssl, sys, urllib.request as r; r.urlopen(sys.argv[1], context=ssl._create_unverified_context(), timeout=10)",
             f"https://127.0.0.1:{port}/readyz"]
    try:
        try:
            wait_until(lambda: process.poll() is not None or plane.one.run(ready).returncode == 0, "the guard's readiness", patience)
        except AssertionError as error:
            raise AssertionError(f"{error}; its log:\n{(state / f'logs/{name}.log').read_text()[-3000:]}") from None
        assert process.poll() is None, (state / f"logs/{name}.log").read_text()
        yield process
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        said = (state / f"logs/{name}.log").read_text()
        assert "SUMMARY: " not in said and "runtime error: " not in said, f"sanitizer report:\n{said[-6000:]}"


def request_end(process: subprocess.Popen[bytes]) -> None:
    """Sends SIGTERM to a guard in a chroot: the process that started the chroot would kill it instead."""
    found, waiting = [], [process.pid]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(OSError):
            waiting += [int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()]
            if Path(f"/proc/{pid}/comm").read_text().startswith("nodens-guard"):
                found.append(pid)
    assert len(found) == 1, found
    os.kill(found[0], signal.SIGTERM)


def await_webhooks(plane: Plane) -> None:
    """Waits until the API server's own watches have delivered the webhook configurations."""
    name = plane.namespace("webhooks")

    def asked() -> bool:
        plane.create(name, {}, user="")
        return all(plane.metrics()[f'nodens_guard_reviews_total{{flow="{flow}",verdict="allowed"}}'] > 0 for flow in ("mutate", "validate"))

    wait_until(asked, "a review of each kind")


@contextlib.contextmanager
def guarded(options: cluster.Options, **config: Any) -> Iterator[Plane]:
    """A cluster with a guard for its API server, in a chroot of the control plane's network."""
    one = cluster.up(with_client_certificate(options))
    try:
        place = chroot.Chroot(root="build", netns=one.netns, binds=(chroot.Bind(one.state, STATE),))
        with chroot.prepared(place) as inside:
            plane = Plane(one, inside)
            guard_config(one.state, **config)
            plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "crd"))
            plane.kubectl("wait", "--for=condition=Established", "crd/securitycontextconstraints.security.nodens.io",
                          "crd/nodeversionfloors.security.nodens.io")
            plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "constraints", "rbac"))
            guard_kubeconfig(plane, one.state)
            with guard_running(plane, one.state) as plane.guard:
                plane.kubectl("apply", "-f", "-", stdin=plane.guard_output(
                    "manifest", "webhooks", "--url", f"https://127.0.0.1:{PORT}", "--ca-file", f"{STATE}/pki/ca.crt"))
                await_webhooks(plane)
                plane.settled("1.30.0")
                yield plane
    finally:
        log = one.state / "logs/guard.log"
        if log.is_file():
            print(log.read_text()[-4000:])
        one.end()


@pytest.fixture(scope="session")
def plane() -> Iterator[Plane]:
    options = cluster.Options(name=os.environ.get("NODENS_GUARD_CLUSTER", "guard-tests"), nodes=0, images=(), webhooks=(
        Webhook("guard", "exec sleep infinity"), Webhook("injector", "exec python3 -B tests/component/guard/injector.py")), apiserver_args=(
        "--audit-policy-file=/nodens/tests/component/guard/audit.yaml", f"--audit-log-path={STATE}/logs/audit.log"))
    # test_ranges.py has guards of its own for that
    with guarded(options, allocateRanges=False) as made:
        yield made


@pytest.fixture(scope="session")
def node(plane: Plane) -> str:
    """A node object that offers user namespaces."""
    plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "offers"}})
    status = {"status": {"nodeInfo": {"kubeletVersion": "v1.36.3"},
                         "runtimeHandlers": [{"name": "", "features": {"userNamespaces": True}}]}}
    plane.kubectl("patch", "node", "offers", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    name = plane.namespace("offered")
    plane.kubectl("label", "namespace", name, "security.nodens.io/user-namespaces=require")
    plane.eventually(lambda pod: pod["spec"].get("hostUsers") is False, "the node in the guard's cache", name, {})
    return "offers"
