# SPDX-License-Identifier: Apache-2.0
"""Whole clusters of an ordinary user, with stock programs: `up --control-plane`, tokens, nodes that join, and attacks on all of it.

`tools/dev test rootless-cluster` runs it. The kernel has no cgroup controllers, so nodes run with --no-cgroups.
"""
import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import beta_host as beta_host
from kubernetes import program
from nodenstest import in_node, machine
from nodenstest.machine import ALPHA4, BUILD, HOME, RUNTIME, rootless, user
from nodenstest.runtimes import WITHOUT_CONTROLLERS, newest

PATIENCE = 120      # seconds: for anything on a loaded host
BUSYBOX = "registry.k8s.io/e2e-test-images/busybox:1.37.0-2"
CRUN = HOME / "engines"
DIRECTORIES = (CRUN, program("kubelet").parent)
OPTIONS = ("--programs", ":".join(str(path) for path in DIRECTORIES), "--no-cgroups")
UNPACKED = HOME / "nodens"      # our programs, as the user unpacked them: none is installed
PROGRAM = str(UNPACKED / "nodens-rootless")
NAME, NODE = "whole", "laptop"
DATA = HOME / f".local/share/nodens/{NAME}"
PLANE = DATA / "control-plane"
ADMIN = PLANE / "admin.kubeconfig"


class Cluster:
    """`up --control-plane --foreground`, and what it prints."""

    def __init__(self, name: str, *options: str) -> None:
        self.name, self.options = name, options
        self.output, self.log = Path(f"/tmp/cluster-{name}.out"), Path(f"/tmp/cluster-{name}.log")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> "Cluster":
        with self.output.open("wb") as output, self.log.open("ab") as log:
            self.process = subprocess.Popen(
                machine.as_user(PROGRAM, "up", "--foreground", "--name", self.name, *OPTIONS, *self.options, *more),
                stdout=output, stderr=log, env=machine.environment(), cwd="/", start_new_session=True)
        return self

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def wait(self, words: str = "kubeconfig: ") -> "Cluster":
        def has_said() -> bool:
            assert self.process and self.process.poll() is None, f"up ended: {self.said()} {self.log.read_text()[-4000:]}"
            return words in self.said()

        try:
            machine.wait_for(has_said, PATIENCE, words)
        except AssertionError:
            print("\n".join(line[:300] for line in self.log.read_text(errors="replace").splitlines() if "mirror pod" not in line)[-20000:])
            raise
        return self

    def down(self) -> None:
        rootless("down", "--name", self.name, check=False)
        if self.process:
            self.process.wait(machine.LIMIT)

    def shell(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return rootless("shell", "--name", self.name, "--", *words, **more)


def kubectl(*words: str, stdin: str = "", check: bool = True, kubeconfig: Path = ADMIN) -> str:
    done = user(str(program("kubectl")), "--kubeconfig", str(kubeconfig), "--request-timeout=30s", *words, input=stdin, check=False)
    assert not check or done.returncode == 0, f"kubectl {words}: {done.stdout}{done.stderr}"
    return done.stdout if check else done.stdout + done.stderr


@pytest.fixture(scope="session", autouse=True)
def place() -> Iterator[None]:
    CRUN.mkdir(exist_ok=True)
    # this kernel's only controller is hugetlb, and nothing enables it for pods without --cgroups-per-qos
    (CRUN / "crun").write_text(WITHOUT_CONTROLLERS.read_text().replace("present = file.read().split()", "present = []"))
    (CRUN / "crun").chmod(0o755)
    archives = sorted((BUILD.parent / "package").glob("nodens-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    UNPACKED.mkdir(exist_ok=True)
    machine.run("tar", "-xzf", str(archives[-1]), "--strip-components=1", "-C", str(UNPACKED))
    machine.run("chown", "-R", f"{machine.UID}:{machine.UID}", str(UNPACKED))
    # the kubelet puts a taint on a node whose disk is nearly full, as the host's may be
    state = HOME / ".local"
    state.mkdir(exist_ok=True)
    machine.run("mount", "-t", "tmpfs", "-o", f"size=3g,mode=0700,uid={machine.UID},gid={machine.UID}", "tmpfs", str(state))
    with in_node.delegated_cgroup() as cgroup:
        (cgroup / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            (cgroup.parent / "cgroup.procs").write_text(str(os.getpid()))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster(NAME, "--control-plane", "--node-name", NODE)
    try:
        yield made.start().wait()
    finally:
        made.down()


def test_one_command_makes_a_cluster(cluster: Cluster) -> None:
    print(cluster.said())
    assert kubectl("get", "--raw", "/readyz") == "ok"


def pod(name: str, *command: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"terminationGracePeriodSeconds": 0, **spec, "containers": [
                {"name": "c", "image": BUSYBOX, "imagePullPolicy": "Never", "command": list(command or ("sleep", "100000"))}]}}


def apply(*objects: dict[str, Any]) -> None:
    kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(one) for one in objects))


def wait_ready(name: str) -> None:
    said = kubectl("wait", "--for=condition=Ready", f"pod/{name}", f"--timeout={PATIENCE}s", check=False)
    assert "condition met" in said, said + kubectl("describe", "pod", name)


@pytest.fixture(scope="module")
def images(cluster: Cluster) -> None:
    """The runtime of the node has the images."""
    archive = newest("images/e2e/*") / "archive.tar"
    here = HOME / "archive.tar"
    shutil.copy(archive, here)
    os.chown(here, machine.UID, machine.UID)
    script = f"cat >/var/lib/archive.tar; {UNPACKED}/nodens import /var/lib/archive.tar; rm /var/lib/archive.tar"
    with here.open("rb") as stream:
        done = subprocess.run(machine.as_user(machine.PROGRAM, "shell", "--name", NAME, "--", "sh", "-ec", script),
                              stdin=stream, capture_output=True, text=True, env=machine.environment(), cwd="/")
    here.unlink()
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout[-300:])


def test_kubectl_run_works_at_once(cluster: Cluster, images: None) -> None:
    began = time.monotonic()
    kubectl("run", "first", f"--image={BUSYBOX}", "--image-pull-policy=Never", "--", "sh", "-c", "echo hello; sleep 100000")
    wait_ready("first")
    print(f"pod Ready after {time.monotonic() - began:.1f} s")
    machine.wait_for(lambda: kubectl("logs", "first") == "hello\n", PATIENCE, "its log")
    assert kubectl("exec", "first", "--", "id", "-u") == "0\n"


def test_the_cluster_is_complete(cluster: Cluster) -> None:
    machine.wait_for(lambda: json.loads(kubectl("get", "node", NODE, "-o", "json"))["metadata"]["labels"].get(
        "kubernetes.io/running-in-user-namespace") == "true", PATIENCE, "the controller has labelled the node")
    states = {one["name"]: one["state"] for one in json.loads(rootless("status", "--json", "--name", NAME).stdout)[0]["components"]}
    assert states == dict.fromkeys(("apiserver", "controller-manager", "etcd", "kubelet", "proxy", "runtime", "scheduler"), "ready")
    published = json.loads(rootless("ports", "--json", "--name", NAME).stdout)
    assert [(one["spec"]["parentIP"], one["spec"]["parentPort"]) for one in published] == [("127.0.0.1", 6443)]


def test_a_pod_reaches_the_api_server_by_its_service(cluster: Cluster, images: None) -> None:
    code = "wget -q -O - --no-check-certificate https://10.96.0.1/readyz"
    machine.wait_for(lambda: kubectl("exec", "first", "--", "sh", "-c", code, check=False) == "ok", PATIENCE, "the Service kubernetes")


# ---- attacks by another user of the host

BOB = 1400
STRANGER = ("setpriv", f"--reuid={BOB}", f"--regid={BOB}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")


def bob(code: str) -> str:
    """What Python code prints as another user of the host."""
    done = subprocess.run(machine.within("alpha", *STRANGER, *machine.python(code)), capture_output=True, text=True, cwd="/")
    return (done.stdout + done.stderr.strip().split("\n")[-1]).strip()


REQUEST = """
import ssl, urllib.request, urllib.error
context = ssl._create_unverified_context()
for path in {paths}:
    try: print(urllib.request.urlopen("https://127.0.0.1:6443" + path, context=context, timeout=20).status, end=" ")
    except urllib.error.HTTPError as error: print(error.code, end=" ")
"""
CLOSED = ["/", "/version", "/api", "/api/v1/secrets", "/api/v1/namespaces/kube-system/configmaps", "/metrics", "/openapi/v2",
          "/api/v1/namespaces/kube-public/configmaps"]


def test_another_user_cannot_use_the_api_server_without_a_credential(cluster: Cluster) -> None:
    assert bob(REQUEST.format(paths=CLOSED)) == " ".join(["401"] * len(CLOSED))
    assert bob(REQUEST.format(paths=["/readyz", "/api/v1/namespaces/kube-public/configmaps/cluster-info"])) == "200 200"


def test_another_user_cannot_reach_etcd(cluster: Cluster) -> None:
    for name in ("etcd.sock", "etcd-peers:0"):
        assert (RUNTIME / "nodens" / NAME / name).is_socket()
        assert "PermissionError" in bob(f"import socket; socket.socket(socket.AF_UNIX).connect('{RUNTIME}/nodens/{NAME}/{name}')")
    listening = machine.run(*machine.within("alpha", "ss", "-Hltn")).stdout
    assert ":2379" not in listening and ":2380" not in listening, listening
    assert [line.split()[3] for line in listening.splitlines() if ":6443" in line] == ["127.0.0.1:6443"], listening


def test_another_user_cannot_read_keys_even_in_an_open_home(cluster: Cluster) -> None:
    """Directories above the control plane's may be open: the files themselves are not."""
    for path in (PLANE, *PLANE.rglob("*")):
        status = path.stat()
        assert status.st_uid == machine.UID and status.st_mode & 0o077 == 0, path
    HOME.chmod(0o755)
    try:
        for name in ("ca.key", "sa.key", "admin.kubeconfig", "etcd/member/snap/db"):
            assert "PermissionError" in bob(f"open('{PLANE}/{name}')"), name
    finally:
        HOME.chmod(0o700)


# ---- attacks by root of the node and by pods

SECRETS = ("ca.key", "sa.key", "admin.kubeconfig", "controller-manager.kubeconfig", "node.kubeconfig", "controller.kubeconfig",
           "etcd.sock", "db")


def test_root_of_the_node_finds_no_key_and_no_socket_of_the_control_plane(cluster: Cluster) -> None:
    words = [word for name in SECRETS for word in ("-o", "-name", name)][1:]
    found = cluster.shell("find", "/etc", "/run", "/var", "/root", "/home", "/tmp", "(", *words, ")", check=False).stdout
    assert found == "", found
    marker = (PLANE / "ca.key").read_text().split("\n")[1][:40]
    assert cluster.shell("grep", "-rl", marker, "/etc", "/run", "/var/lib/kubelet", "/root", check=False).stdout == ""


def test_root_of_the_node_sees_no_process_of_the_control_plane(cluster: Cluster) -> None:
    names = cluster.shell("sh", "-c", "cat /proc/[0-9]*/comm").stdout.split()
    assert "kubelet" in names and not {"etcd", "kube-apiserver", "kube-controller", "kube-scheduler"} & set(names), names


def test_no_program_of_the_control_plane_listens_on_an_abstract_address(cluster: Cluster) -> None:
    """Root of the node could connect to it: such addresses belong to the network namespace."""
    listening = [line.split() for line in cluster.shell("cat", "/proc/net/unix").stdout.splitlines()[1:]]
    assert not [words[-1] for words in listening if words[3] == "00010000" and words[-1].startswith("@")], listening


def test_the_memory_of_init_has_no_key_of_the_authority(cluster: Cluster) -> None:
    """Root of the node can read init's memory, and init is a clone of the launcher."""
    pid = json.loads(rootless("status", "--json", "--name", NAME).stdout)[0]["pid"]
    wanted = [line.encode() for name in ("ca.key", "sa.key", "admin.key") for line in (PLANE / name).read_text().split("\n")[1:2]]
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            first, last = (int(word, 16) for word in line.split()[0].split("-"))
            if "r" not in line.split()[1] or "[v" in line:
                continue
            memory.seek(first)
            with contextlib.suppress(OSError):
                data = memory.read(last - first)
                assert not any(one in data for one in wanted), line


def test_programs_of_the_control_plane_have_no_capability_in_the_node(cluster: Cluster) -> None:
    found = 0
    for path in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            fields = dict(line.split(":\t", 1) for line in path.read_text().splitlines())
            if fields["Name"] in ("etcd", "kube-apiserver", "kube-controller", "kube-scheduler"):
                found += 1
                assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}, fields
                assert fields["NoNewPrivs"] == "1"
    assert found == 4


def inside_kubectl(cluster: Cluster, *words: str) -> str:
    """kubectl as root of the node, with the kubelet's credential."""
    done = cluster.shell(str(program("kubectl")), "--kubeconfig", "/etc/kubernetes/kubelet.kubeconfig", "--request-timeout=30s", *words,
                         check=False)
    return done.stdout + done.stderr


def test_the_kubelets_credential_is_that_of_a_node(cluster: Cluster) -> None:
    kubectl("create", "secret", "generic", "treasure", "--from-literal=a=b")
    for words in (("get", "secret", "treasure"), ("get", "secrets", "-A"), ("delete", "node", NODE),
                  ("label", "node", NODE, "node-restriction.kubernetes.io/a=b"), ("create", "token", "default"),
                  ("get", "configmaps", "-n", "kube-system")):
        said = inside_kubectl(cluster, *words)
        assert "forbidden" in said.lower() or "can only" in said, f"{words}: {said}"


def test_root_of_the_node_cannot_request_a_certificate_of_an_administrator(cluster: Cluster) -> None:
    """The controller manager has the authority's key, and signs what is approved only."""
    request = machine.run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                          "/dev/null", "-subj", "/O=system:masters/CN=mallory").stdout
    body = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "mallory"}, "spec": {
        "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
        "request": base64.b64encode(request.encode()).decode()}}
    done = cluster.shell(str(program("kubectl")), "--kubeconfig", "/etc/kubernetes/kubelet.kubeconfig", "create", "-f", "-",
                         input=json.dumps(body), check=False)
    assert "system:masters" in done.stdout + done.stderr and done.returncode != 0
    assert "NotFound" in kubectl("get", "csr", "mallory", check=False)


def test_a_hostile_pod_finds_no_key_of_the_control_plane(cluster: Cluster, images: None) -> None:
    hostile = pod("hostile", hostNetwork=True, hostPID=True, volumes=[{"name": "host", "hostPath": {"path": "/"}}])
    hostile["spec"]["containers"][0] |= {"securityContext": {"privileged": True}, "volumeMounts": [{"name": "host", "mountPath": "/host"}]}
    apply(hostile)
    wait_ready("hostile")
    names = " -o ".join(f"-name {name}" for name in SECRETS[:-1])
    script = f"find /host/etc /host/run /host/var /host/root \\( {names} \\) 2>/dev/null || true"
    assert kubectl("exec", "hostile", "--", "sh", "-c", script) == ""
    sockets = kubectl("exec", "hostile", "--", "cat", "/proc/net/tcp", "/proc/net/tcp6").splitlines()
    listening = {int(line.split()[1].split(":")[1], 16) for line in sockets if line.split()[3] == "0A"}
    assert 6443 in listening and not listening & {2379, 2380}, listening
    assert "401" in kubectl("exec", "hostile", "--", "sh", "-c",
                            "wget -q -O - --no-check-certificate https://127.0.0.1:6443/api/v1/secrets 2>&1 || true")
    kubectl("delete", "pod", "hostile", "--wait=false")


# ---- the life of a cluster

def test_each_part_that_is_killed_comes_back_and_pods_stay(cluster: Cluster, images: None) -> None:
    before = json.loads(kubectl("get", "pod", "first", "-o", "json"))["status"]["containerStatuses"][0]
    for name in ("scheduler", "controller-manager", "apiserver", "etcd"):
        state = {one["name"]: one["pid"] for one in json.loads(rootless("status", "--json", "--name", NAME).stdout)[0]["components"]}
        machine.kill(state[name])

        def back(name: str = name, old: int = state[name]) -> bool:
            now = {one["name"]: one for one in json.loads(rootless("status", "--json", "--name", NAME).stdout)[0]["components"]}
            return now[name]["ready"] and now[name]["pid"] != old

        machine.wait_for(back, PATIENCE, f"{name} has been restarted")
    machine.wait_for(lambda: kubectl("get", "--raw", "/readyz", check=False) == "ok", PATIENCE, "the API server is ready")
    after = json.loads(kubectl("get", "pod", "first", "-o", "json"))["status"]["containerStatuses"][0]
    assert before["containerID"] == after["containerID"] and after["restartCount"] == 0


def test_the_cluster_and_its_keys_are_kept_over_a_restart(cluster: Cluster) -> None:
    def digests() -> dict[str, str]:
        return {path.name: path.read_text() for path in PLANE.iterdir() if path.is_file()}

    before = digests()
    cluster.down()      # it waits for the control plane, too
    assert not [path for path in Path("/proc").glob("[0-9]*/comm") if path.read_text().strip() in ("etcd", "kube-apiserver")]
    cluster.start("--json").wait('"kubeconfig"')
    assert digests() == before
    assert kubectl("get", "secret", "treasure", "-o", "name") == "secret/treasure\n"
    lines = [json.loads(line) for line in cluster.said().splitlines()]
    steps = [line["step"] for line in lines if line["state"] == "ready"]
    assert steps == ["etcd", "apiserver", "objects", "node", "serviceaccount", "cluster"]
    assert lines[-1]["kubeconfig"] == str(ADMIN) and lines[-1]["seconds"] > 0


def test_the_first_pod_of_a_new_cluster_is_ready_within_a_minute(cluster: Cluster, images: None) -> None:
    """From the command to a Ready pod, with images at hand and without any state of a cluster."""
    cluster.down()
    shutil.rmtree(PLANE)
    for name in ("kubelet", "cni"):
        shutil.rmtree(DATA / "lib" / name, ignore_errors=True)
    began = time.monotonic()
    cluster.start().wait()
    ready = time.monotonic() - began
    kubectl("run", "first", f"--image={BUSYBOX}", "--image-pull-policy=Never", "--", "sleep", "100000")
    wait_ready("first")
    print(f"\ncluster ready after {ready:.1f} s, first pod Ready after {time.monotonic() - began:.1f} s of the command")
    print(cluster.said())
    assert time.monotonic() - began < 60


# ---- other nodes join with a token

TOKEN_LINE = re.compile(r"nodens-rootless up --bootstrap (\S+) --server (\S+) --ca-cert-hash (\S+)\n")


@pytest.fixture(scope="module")
def shared(cluster: Cluster, beta_host: None) -> Cluster:
    """The same cluster, published on all addresses of its host."""
    cluster.down()
    return cluster.start("--api-port", "0.0.0.0:6443").wait()


def create_token(*options: str) -> tuple[str, str, str]:
    said = user(PROGRAM, "token", "create", "--name", NAME, *options).stdout
    found = TOKEN_LINE.fullmatch(said)
    assert found, said
    return found[1], found[2], found[3]


def on_beta(argv: list[str]) -> list[str]:
    return [word.replace("/run/netns/alpha", "/run/netns/beta") for word in argv]


def test_a_token_is_one_line_with_which_another_host_joins(shared: Cluster) -> None:
    token, server, digest = create_token()
    assert server == f"https://{ALPHA4}:6443" and digest.startswith("sha256:")
    said = machine.run("sh", "-c", f"openssl x509 -in {PLANE}/ca.crt -noout -pubkey | openssl pkey -pubin -outform der | sha256sum").stdout
    assert digest == f"sha256:{said.split()[0]}"
    log = Path("/tmp/second.log")
    options = ("--name", "second", "--node-name", "second", "--pod-cidr", "10.244.1.0/24", *OPTIONS)
    join = ("--bootstrap", token, "--server", server, "--ca-cert-hash", digest)
    with log.open("wb") as output, subprocess.Popen(
            on_beta(machine.as_user(PROGRAM, "up", "--foreground", *join, *options)), stdout=output, stderr=output,
            env=machine.environment(), cwd="/", start_new_session=True) as up:
        try:
            def is_ready() -> bool:
                assert up.poll() is None, log.read_text(errors="replace")[-5000:]
                found = json.loads(kubectl("get", "nodes", "-o", "json"))["items"]
                return any(one["metadata"]["name"] == "second" and one["metadata"]["labels"].get(
                    "kubernetes.io/running-in-user-namespace") == "true" and any(
                        state["type"] == "Ready" and state["status"] == "True" for state in one["status"]["conditions"]) for one in found)

            try:
                machine.wait_for(is_ready, PATIENCE, "the second node is Ready, and has its label")
            except AssertionError:
                print("\n".join(line[:300] for line in log.read_text(errors="replace").splitlines() if "mirror pod" not in line)[-15000:])
                raise
            machine.wait_for(lambda: "10.96.0.1" in rootless("shell", "--name", "second", "--", "nft", "list", "ruleset").stdout, PATIENCE,
                             "kube-proxy has its rules, with the kubelet's certificate")
            shown = {path: path.read_bytes().replace(b"\0", b" ").decode(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline")
                     if path.exists()}
            assert not [(path, words) for path, words in shown.items() if token in words or token.split(".")[1] in words]
            assert token.split(".")[1] not in log.read_text(errors="replace")
            assert token.split(".")[1] not in rootless("status", "--json", "--name", "second").stdout
            # the link to the user's own kubeconfig, which has the token, is not a copy
            kept = [path for path in (RUNTIME / "nodens/second").rglob("*")
                    if path.is_file() and not path.is_symlink() and token.encode() in path.read_bytes()]
            assert not kept, kept
        finally:
            rootless("down", "--name", "second", check=False)
            up.wait(machine.LIMIT)


def discover(token: str, server: str, digest: str, *, output: Path = HOME / "found/join", check: bool = True) -> str:
    """The program that finds a cluster, as `up` runs it."""
    done = user(str(UNPACKED / "nodens-rootless-plane"), "discover", "--server", server, "--ca-cert-hash", digest, "--output",
                str(output), input=token + "\n", check=False)
    assert check == (done.returncode == 0), done.stdout + done.stderr
    assert token.split(".")[-1] not in done.stdout + done.stderr or len(token) < 23
    return done.stderr


def test_what_a_token_permits(shared: Cluster) -> None:
    token, server, digest = create_token()
    discover(token, server, digest)
    file = HOME / "found/join"
    assert file.stat().st_mode & 0o777 == 0o600
    for words in (("get", "secrets", "-A"), ("get", "nodes"), ("create", "token", "-n", "kube-system", "default"),
                  ("get", "configmaps", "-n", "kube-system"), ("delete", "node", NODE)):
        assert "forbidden" in kubectl(*words, kubeconfig=file, check=False).lower(), words
    for words in (("get", "secrets", "-A"), ("delete", "node", NODE), ("create", "serviceaccount", "mine")):
        assert "forbidden" in kubectl("--context", "controller", *words, kubeconfig=file, check=False).lower(), words


def test_a_deleted_or_expired_or_foreign_token_is_refused(shared: Cluster) -> None:
    token, server, digest = create_token()
    identity, secret = token.split(".")
    assert "does not know the token" in discover(f"{identity}.{secret[::-1]}", server, digest, check=False)
    assert identity in user(PROGRAM, "token", "list", "--name", NAME).stdout
    user(PROGRAM, "token", "delete", identity, "--name", NAME)
    machine.wait_for(lambda: "Unauthorized" in kubectl("--token", token, "get", "nodes", kubeconfig=anonymous(), check=False), PATIENCE,
                     "the API server refuses the token")
    machine.wait_for(lambda: "no signature of token" in user(
        str(UNPACKED / "nodens-rootless-plane"), "discover", "--server", server, "--ca-cert-hash", digest, "--output",
        str(HOME / "found/join"), input=token, check=False).stderr, PATIENCE, "its signature is removed")


def anonymous() -> Path:
    """The cluster without a credential."""
    config = json.loads(ADMIN.read_text())
    config["users"][0]["user"] = {}
    path = HOME / "anonymous"
    path.write_text(json.dumps(config))
    os.chown(path, machine.UID, machine.UID)
    return path


def test_another_authority_is_refused(shared: Cluster) -> None:
    token, server, digest = create_token()
    assert "this is another cluster" in discover(token, server, digest[:-4] + "beef", check=False)


HOSTILE = """
import http.server, ssl, sys
mode, answer, certificate = sys.argv[1], open(sys.argv[2], "rb").read(), sys.argv[3]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, self.headers.get("Authorization"), flush=True)
        if mode == "redirect":
            self.send_response(302); self.send_header("Location", sys.argv[4]); self.end_headers(); return
        self.send_response(200); self.send_header("Content-Type", "application/json")
        if mode != "huge": self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if mode == "huge":
            try:
                for _ in range(4096): self.wfile.write(b"x" * 65536)
            except OSError: pass
            return
        self.wfile.write(answer)
    do_POST = do_GET
server = http.server.HTTPServer(("10.77.0.1", 7443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(certificate)
server.socket = context.wrap_socket(server.socket, server_side=True)
print("ready", flush=True); server.serve_forever()
"""


@contextlib.contextmanager
def hostile(mode: str, answer: bytes = b"{}", where: str = "") -> Iterator[Path]:
    """A server between the host and the cluster, with a certificate of its own. Yields the log of its requests."""
    pem, body, log = Path("/tmp/hostile.pem"), Path("/tmp/hostile.body"), Path("/tmp/hostile.log")
    machine.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(pem), "-out",
                "/tmp/hostile.crt", "-subj", "/CN=kubernetes", "-days", "1", "-addext", "subjectAltName=IP:10.77.0.1")
    pem.write_text(pem.read_text() + Path("/tmp/hostile.crt").read_text())
    body.write_bytes(answer)
    with log.open("w") as output, subprocess.Popen(
            machine.within("router", sys.executable, "-c", HOSTILE, mode, str(body), str(pem), where), stdout=output,
            stderr=output) as server:
        try:
            machine.wait_for(lambda: "ready" in log.read_text(), what=log.read_text())
            yield log
        finally:
            server.kill()


def test_a_hostile_discovery_server_does_not_get_the_token_and_is_not_believed(shared: Cluster) -> None:
    token, server, digest = create_token()
    genuine = json.loads(kubectl("get", "--raw", "/api/v1/namespaces/kube-public/configmaps/cluster-info"))
    forged = json.loads(json.dumps(genuine))
    forged["data"]["kubeconfig"] = genuine["data"]["kubeconfig"].replace(ALPHA4, "10.77.0.1")
    cases = {"the genuine object by a server with another certificate": ("answer", json.dumps(genuine).encode(), "certificate"),
             "an object that the token did not sign": ("answer", json.dumps(forged).encode(), "does not know the token"),
             "a huge body": ("huge", b"", ""), "a redirect": ("redirect", b"", ""), "no object": ("answer", b"[" * 100000, "")}
    for name, (mode, answer, words) in cases.items():
        with hostile(mode, answer, f"{server}/api/v1/namespaces/kube-public/configmaps/cluster-info") as log:
            said = discover(token, "https://10.77.0.1:7443", digest, output=HOME / "hostile/join", check=False)
            assert words in said, f"{name}: {said}"
            assert "Bearer" not in log.read_text(), name
            assert not (HOME / "hostile/join").exists(), name


# ---- the directory of the control plane

def test_links_and_open_files_in_the_directory_are_refused_and_not_replaced(cluster: Cluster) -> None:
    cluster.down()
    outside = HOME / "outside"
    outside.write_text("precious")
    os.chown(outside, machine.UID, machine.UID)
    key, kept = PLANE / "ca.key", (PLANE / "ca.key").read_text()

    def refusal() -> str:
        done = user(PROGRAM, "up", "--foreground", "--name", NAME, *OPTIONS, *cluster.options, check=False, timeout=60)
        assert done.returncode != 0
        return done.stderr

    key.unlink()
    assert "'ca.crt' is there and 'ca.key' is not" in refusal()
    key.symlink_to(outside)
    assert "'ca.key' must be a file of user" in refusal()
    assert outside.read_text() == "precious" and key.is_symlink()
    key.unlink()
    key.write_text(kept)
    os.chown(key, machine.UID, machine.UID)
    key.chmod(0o644)
    assert "'ca.key' must be a file of user" in refusal()
    key.chmod(0o600)
    PLANE.chmod(0o755)
    assert "not accessible to others" in refusal()
    PLANE.chmod(0o700)
    moved = PLANE.with_name("moved")
    PLANE.rename(moved)
    PLANE.symlink_to(moved)
    assert "control-plane" in refusal()
    PLANE.unlink()
    moved.rename(PLANE)


def test_purge_removes_the_control_plane(cluster: Cluster) -> None:
    cluster.down()
    rootless("purge", "--name", NAME)
    assert not DATA.exists()
