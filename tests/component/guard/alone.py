# SPDX-License-Identifier: Apache-2.0
"""nodens-guard with an API server under the test's control: its lists, its watches, its silence.

Everything is on the host's loopback, on ports that the kernel chose. No cluster is needed, so
attacks on the guard take seconds.
"""
import contextlib
import http.client
import http.server
import json
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conftest import GUARD, wait_until
from nodensdev.env import chroot

INSIDE = Path("/run/alone")
CLIENT = "kube-apiserver-kubelet-client"
RANGES = {"openshift.io/sa.scc.uid-range": "1000650000/10000", "openshift.io/sa.scc.mcs": "s0:c26,c5"}
SCCS = "/apis/security.nodens.io/v1/securitycontextconstraints"
FLOORS = "/apis/security.nodens.io/v1/nodeversionfloors"
GATES = ("PodSecurityRelaxation", "RootInUserNamespace", "NestedContainer", "UnmaskedProcMount", "WideIDs")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Api(http.server.ThreadingHTTPServer):
    """An API server.

    `items` are its lists by path, `may` decides who may use which constraint, `hold` stops its
    answers.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.items: dict[str, list[dict[str, Any]]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.count: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.open: Counter[str] = Counter()
        self.hold = threading.Event()  # no answers, and no events on watches
        self.quiet = threading.Event()  # no events on watches
        self.silent: set[str] = set()  # paths whose watches begin and never send an event
        # users whose access reviews are not answered before `release`
        self.slow_users: set[str] = set()
        self.release = threading.Event()
        self.may: Any = lambda user, constraint: constraint in ("restricted-v2", "restricted-v3")
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients disconnect."""

    def namespace(self, name: str, mode: str | None = "enforce", **labels: str) -> None:
        own = {"security.nodens.io/constraints": mode} if mode else {}
        listed = self.items.setdefault("/api/v1/namespaces", [])
        listed[:] = [one for one in listed if one["metadata"]["name"] != name]
        listed.append({"metadata": {"name": name, "resourceVersion": "1", "labels": own | labels, "annotations": RANGES}})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Api

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def answer(self, body: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def wait_while_held(self) -> None:
        while self.server.hold.is_set():
            time.sleep(0.05)

    def do_GET(self) -> None:
        address = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(address.query)
        self.server.count[f"GET {address.path}"] += 1
        self.wait_while_held()
        if "watch" in query:
            self.server.count[f"WATCH {address.path}"] += 1
            self.watch(address.path)
        elif address.path in self.server.pods:
            self.answer(self.server.pods[address.path])
        elif address.path.startswith("/api/v1/namespaces/") and not address.path.endswith("/pods"):
            found = [one for one in self.server.items.get("/api/v1/namespaces", [])
                     if one["metadata"]["name"] == address.path.split("/")[4]]
            self.answer(found[0] if found else {"kind": "Status", "code": 404}, 200 if found else 404)
        else:
            self.answer({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"},
                         "items": self.server.items.get(address.path, [])})

    def watch(self, path: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while True:
            self.wait_while_held()
            while self.server.quiet.is_set() or path in self.server.silent:
                time.sleep(0.05)
            data = json.dumps({"type": "BOOKMARK", "object": {"kind": "x", "metadata": {"resourceVersion": "1"}}}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
            time.sleep(0.5)

    def do_PATCH(self) -> None:
        """Leases of guards, and statuses: as if they existed."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wait_while_held()
        self.server.count[f"PATCH {self.path}"] += 1
        self.answer({"metadata": {"resourceVersion": "2"}})

    def do_POST(self) -> None:
        spec = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["spec"]
        user, constraint = spec["user"], spec["resourceAttributes"]["name"]
        with self.server.lock:
            self.server.count["reviews"] += 1
            self.server.open[user] += 1
            self.server.most[user] = max(self.server.most[user], self.server.open[user])
        if user in self.server.slow_users:
            self.server.release.wait()
        with self.server.lock:
            self.server.open[user] -= 1
        self.answer({"kind": "SubjectAccessReview", "status": {"allowed": bool(self.server.may(user, constraint))}}, 201)


class Pki:
    """Certificate authorities and certificates, made by the root's openssl in one directory."""

    def __init__(self, inside: chroot.Prepared, directory: Path) -> None:
        self.inside, self.directory = inside, directory
        self.authority("ca")
        self.leaf("guard", "/CN=guard", san="IP:127.0.0.1", usage="serverAuth")
        self.leaf("client", f"/CN={CLIENT}")

    def openssl(self, *words: str) -> None:
        done = self.inside.capture(["sh", "-c", 'cd /run/alone && exec openssl "$@"', "openssl", *words])
        assert done.returncode == 0, done.stderr

    def authority(self, name: str) -> None:
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                     "-keyout", f"{name}.key", "-out", f"{name}.crt", "-addext", "keyUsage=critical,keyCertSign")

    def leaf(self, name: str, subject: str, ca: str = "ca", san: str = "", usage: str = "clientAuth", until: str = "") -> None:
        more = ["-addext", f"subjectAltName={san}"] if san else []
        more += ["-addext", f"extendedKeyUsage={usage}"] if usage else []
        more += ["-not_after", until] if until else ["-days", "2"]
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-multivalue-rdn", "-CA",
                     f"{ca}.crt", "-CAkey", f"{ca}.key",
                     "-subj", subject, "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", f"{name}.key", "-out", f"{name}.crt",
                     *more)

    def context(self, name: str | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.directory / "ca.crt"))
        if name:
            context.load_cert_chain(str(self.directory / f"{name}.crt"), str(self.directory / f"{name}.key"))
        return context


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Alone:
    """A running guard, its API server, and client certificates."""

    def __init__(self, api: Api, pki: Pki, directory: Path) -> None:
        self.api, self.pki, self.directory = api, pki, directory
        self.port = free_port()
        self.process: subprocess.Popen[bytes]        # from running()

    def log(self) -> str:
        return (self.directory / "log").read_text()

    def connect(self, client: str | None = "client", timeout: float = 30) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.port, context=self.pki.context(client), timeout=timeout)

    def ask(self, method: str, path: str, body: Any = None, client: str | None = "client",
            on: http.client.HTTPSConnection | None = None) -> tuple[int, str]:
        """Status and text; 0 if the guard closed the connection."""
        connection = on or self.connect(client)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (ConnectionError, ssl.SSLError, http.client.HTTPException, TimeoutError) as error:
            return 0, str(error)
        finally:
            if not on:
                connection.close()

    def decide(self, path: str, client: str | None = "client", **request: Any) -> dict[str, Any]:
        """The response to one review of pods."""
        status, text = self.ask("POST", path, review(**request), client)
        assert status == 200, (status, text)
        return json.loads(text)["response"]

    def metric(self, name: str) -> float:
        lines = dict(line.rsplit(" ", 1) for line in self.ask("GET", "/metrics")[1].splitlines() if not line.startswith("#"))
        return float(lines[name])


def review(**request: Any) -> dict[str, Any]:
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "n", "name": "p",
        "userInfo": {"username": "dev", "groups": ["system:authenticated"]}, **request}}


def floor(minimum: str, status: str | None = None) -> dict[str, Any]:
    """A version floor, settled unless its status differs."""
    status = minimum if status is None else status
    return {"metadata": {"name": "cluster", "uid": "f", "generation": 1, "resourceVersion": "1"},
            "spec": {"minimumKubeletVersion": minimum}, "status": {
                "minimumKubeletVersion": status, "observedGeneration": 1,
                "featureGates": [{"name": gate, "requiredMinimumVersion": "1.30.0", "enabled": status != ""} for gate in GATES],
                "conditions": [{"type": "Settled", "status": "True", "message": ""}]}}


def default_constraints(inside: chroot.Prepared) -> list[dict[str, Any]]:
    done = inside.capture([GUARD, "manifest", "--json", "constraints"])
    assert done.returncode == 0, done.stderr
    made = [json.loads(one) for one in done.stdout.split("\n---\n")]
    return [one | {"metadata": one["metadata"] | {"resourceVersion": "1"}} for one in made if one["kind"] == "SecurityContextConstraints"]


@contextlib.contextmanager
def running(tmp: Path, wait: bool = True, verb: str = "serve", items: dict[str, list[dict[str, Any]]] | None = None,
            **config: Any) -> Iterator[Alone]:
    """A guard that requires client certificates, as in the unit, unless configured otherwise."""
    place = chroot.Chroot(root="build", binds=(chroot.Bind(tmp, INSIDE),))
    with chroot.prepared(place) as inside:
        api = Api()
        alone = Alone(api, Pki(inside, tmp), tmp)
        api.items[SCCS] = default_constraints(inside)
        api.items[FLOORS] = [floor("1.30.0")]
        api.items |= items or {}
        api.namespace("n")
        (tmp / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{api.server_port}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}]}))
        settings = {"address": "127.0.0.1", "port": alone.port, "certificate": f"{INSIDE}/guard.crt", "key": f"{INSIDE}/guard.key",
                    "clientCA": f"{INSIDE}/ca.crt", "kubeconfig": f"{INSIDE}/kubeconfig", "allocateRanges": False,
                    "drainSeconds": 0, **config}
        (tmp / "guard.yaml").write_text(json.dumps({key: value for key, value in settings.items() if value is not None}))
        with (tmp / "log").open("ab") as log:
            alone.process = subprocess.Popen(inside.command([GUARD, verb, "--config", f"{INSIDE}/guard.yaml"]), stdin=subprocess.DEVNULL,
                                             stdout=log, stderr=subprocess.STDOUT)
        try:
            if wait:
                wait_until(lambda: alone.process.poll() is not None or listens(alone.port) and alone.ask("GET", "/readyz")[0] == 200,
                           "the guard's readiness")
                assert alone.process.poll() is None, alone.log()
            yield alone
        finally:
            api.release.set()
            api.hold.clear()
            api.quiet.clear()
            alone.process.terminate()
            alone.process.wait(timeout=20)
            api.shutdown()
            api.server_close()
            assert "SUMMARY: " not in alone.log() and "runtime error: " not in alone.log(), alone.log()[-6000:]


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
