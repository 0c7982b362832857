# SPDX-License-Identifier: Apache-2.0
"""Load on nodens-guard with a large cluster, over keep-alive connections.

The server has one core, load and cluster the others.

    tools/dev bench guard          runs this in the Debian root, prints the figures and writes them
                                   into docs/guard-benchmarks.md
"""
import argparse
import contextlib
import json
import os
import random
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
API_PORT, GUARD_PORT = 19444, 19443
CONNECTIONS, RATE = 25, 5000
REVIEWS, TEAMS = 4000, 2000
GUARD_CPU = 0


def all_cpus() -> str:
    return ",".join(map(str, sorted(os.sched_getaffinity(0))))


def other_cpus() -> str:
    return ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)) if cpu != GUARD_CPU) or "0"


def certificate(where: Path) -> None:
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=guard",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(where / "key"), "-out", str(where / "crt")], check=True,
                   capture_output=True)


def pod(rng: random.Random, team: int) -> dict[str, Any]:
    """An ordinary pod of a Deployment: 3 kB with the API server's additions."""
    managed = [{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {
        "f:metadata": {"f:labels": {f"f:l{one}": {} for one in range(4)}}, "f:spec": {f"f:s{one}": {} for one in range(10)}}}]
    containers = [{"name": f"c{one}", "image": f"registry.example/image-{rng.randrange(100)}:v1", "imagePullPolicy": "IfNotPresent",
                   "env": [{"name": f"VARIABLE_{number}", "value": "some text"} for number in range(8)], "terminationMessagePolicy": "File",
                   "terminationMessagePath": "/dev/termination-log", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                   "volumeMounts": [{"name": "kube-api-access", "readOnly": True,
                                     "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
                   "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1,
                                     "periodSeconds": 10}}
                  for one in range(rng.choice([1, 2]))]
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"generateName": "web-7d9f-", "namespace": f"team-{team}", "labels": {"app": "web"},
                                                          "managedFields": managed},
            "spec": {"containers": containers, "serviceAccountName": "default", "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
                     "schedulerName": "default-scheduler",
                     "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                         {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                         {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}}],
                     **rng.choice([{}, {}, {"hostUsers": False}])}}


def review(rng: random.Random, number: int) -> dict[str, Any]:
    team = rng.randrange(TEAMS)
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": f"00000000-0000-0000-0000-{number:012d}", "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": f"team-{team}", "operation": "CREATE",
        "userInfo": {"username": f"user-{team}", "groups": [f"group-{team}", "system:authenticated"]}, "object": pod(rng, team),
        "oldObject": None,
        "dryRun": False, "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}}}


def fill(asked: dict[str, Any]) -> dict[str, Any]:
    """The same review after restricted-v2 or -v3 has filled the pod, for the validating webhook."""
    spec, team = asked["request"]["object"]["spec"], int(asked["request"]["namespace"].removeprefix("team-"))
    user = 1000 if spec.get("hostUsers") is False else 1_000_000_000 + team * 10_000
    spec["securityContext"] = {"fsGroup": user, "seLinuxOptions": {"level": f"s0:c{team % 500 + 1},c{team % 300}"},
                               "seccompProfile": {"type": "RuntimeDefault"}}
    if user == 1000:
        spec["securityContext"]["supplementalGroups"] = [1000]
    for container in spec["containers"]:
        container["securityContext"] = {"runAsUser": user, "runAsNonRoot": True, "allowPrivilegeEscalation": False,
                                        "capabilities": {"drop": ["ALL"]}}
    return asked


def write_reviews(path: Path, filled: bool) -> int:
    rng = random.Random(7)
    made = [review(rng, number) for number in range(REVIEWS)]
    lines = [json.dumps(fill(one) if filled else one, separators=(",", ":")) for one in made]
    path.write_text("\n".join(lines) + "\n")
    return sum(map(len, lines)) // len(lines)


def write_config(where: Path, rbac_only: bool) -> None:
    (where / "kubeconfig").write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{API_PORT}", "certificate-authority": str(where / "crt")}}],
        "users": [{"name": "u", "user": {"token": "t"}}]}))
    (where / "guard.yaml").write_text(json.dumps({
        "clientCA": "none",
        "address": "127.0.0.1", "port": GUARD_PORT, "certificate": str(where / "crt"), "key": str(where / "key"),
        "kubeconfig": str(where / "kubeconfig"), "allocateRanges": False, "rbacOnly": rbac_only, "drainSeconds": 0}))


@contextlib.contextmanager
def running(argv: list[str], cpus: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as file:
        process = subprocess.Popen(["taskset", "-c", cpus, *argv], stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextlib.contextmanager
def large_cluster(where: Path, cpus: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A fake API server with a large cluster."""
    with running([sys.executable, "-B", str(TESTS / "fake_api.py"), str(API_PORT), str(where / "crt"), str(where / "key")], cpus,
                 log) as api:
        time.sleep(1)
        yield api


def fetch(path: str, body: dict[str, Any] | None = None) -> str:
    context = ssl._create_unverified_context()
    request = urllib.request.Request(f"https://127.0.0.1:{GUARD_PORT}{path}", json.dumps(body).encode() if body else None,
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, context=context, timeout=5) as answer:
        return answer.read().decode()


def wait_ready(process: subprocess.Popen[bytes], log: Path, word: str = "ok\n", path: str = "/readyz") -> float:
    started = time.monotonic()
    while True:
        with contextlib.suppress(OSError):
            if fetch(path) == word:
                return time.monotonic() - started
        if process.poll() is not None or time.monotonic() - started > 120:
            raise SystemExit(f"the server is not ready: {log.read_text()[-6000:]}")
        time.sleep(0.2)


def memory(pid: int) -> dict[str, float]:
    """Megabytes: resident now, resident at its peak, and anonymous memory."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {name: int(fields[key].split()[0]) * 1024 / 1e6 for name,
            key in (("rss", "VmRSS"), ("peak_rss", "VmHWM"), ("anonymous", "RssAnon"))}


def server_times() -> dict[str, int]:
    """Number of reviews answered within each duration, by the guard's own clock."""
    return {edge: int(count) for edge, count in re.findall(r'review_duration_seconds_bucket{le="([^"]+)"} (\d+)', fetch("/metrics"))}


def server_percentile(before: dict[str, int], after: dict[str, int], share: float) -> int:
    """The edge, in microseconds, within which this share was answered in between."""
    counts = {edge: after[edge] - before[edge] for edge in after}
    return next(int(float(edge) * 1e6) for edge, count in counts.items() if edge != "+Inf" and count >= share * counts["+Inf"])


def peak_anonymous(pid: int, seconds: float) -> float:
    most, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, memory(pid)["anonymous"])
        time.sleep(0.005)
    return most


def load(builds: Path, path: str, reviews: Path, seconds: int, rate: int = 0) -> dict[str, Any]:
    done = subprocess.run(["taskset", "-c", other_cpus(), str(builds / "tests/component/guard/load"), str(GUARD_PORT), path, str(reviews),
                           str(CONNECTIONS),
                           str(seconds), *([str(rate)] if rate else [])], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def measure(builds: Path, where: Path, seconds: int, rbac_only: bool) -> dict[str, Any]:
    write_config(where, rbac_only)
    log = where / "log"
    found: dict[str, Any] = {}
    with large_cluster(where, other_cpus(), log) as api:
        with running([str(builds / "src/guard/nodens-guard"), "serve", "--config", str(where / "guard.yaml")], str(GUARD_CPU),
                     log) as guard:
            found["ready_seconds"] = wait_ready(guard, log)
            found["listed"] = memory(guard.pid)
            for name, path, file in (("mutate", "/mutate", "reviews"), ("validate", "/validate", "filled"),
                                     ("pod_security", "/pod-security", "filled")):
                load(builds, path, where / file, 1)
                found[name] = load(builds, path, where / file, seconds)
                if found[name]["allowed"] < found[name]["reviews"]:
                    raise SystemExit(f"{path}: {found[name]['reviews'] - found[name]['allowed']} of {found[name]['reviews']} pods were "
                                     f"denied")
            before = server_times()
            found["at_rate"] = load(builds, "/mutate", where / "reviews", seconds, RATE)
            found["at_rate"]["server_p99_us"] = server_percentile(before, server_times(), 0.99)
            found["loaded"] = memory(guard.pid)
            api.send_signal(signal.SIGUSR1)
            found["relist_anonymous"] = peak_anonymous(guard.pid, 15)
            found["relisted"] = memory(guard.pid)
            if fetch("/readyz") != "ok\n":
                raise SystemExit("the guard is not ready after a relist")
    return found


def wait_allowed(path: str, asked: dict[str, Any], allowed: bool = True, seconds: float = 120) -> None:
    """Waits until a ready server has the data it needs; before that, its reviews cost less."""
    deadline = time.monotonic() + seconds
    while json.loads(fetch(path, asked))["response"]["allowed"] != allowed:
        if time.monotonic() > deadline:
            raise SystemExit(f"the server returns the wrong verdict on a pod: {fetch(path, asked)[-1000:]}")
        time.sleep(0.5)


def measure_peer(program: Path, builds: Path, where: Path, seconds: int) -> dict[str, Any]:
    """Kubernetes' own webhook of pod security, with the same cluster, core and reviews."""
    write_config(where, True)
    log = where / "log"
    flags = ["--bind-address", "127.0.0.1", "--secure-port", str(GUARD_PORT), "--tls-cert-file", str(where / "crt"),
             "--tls-private-key-file", str(where / "key"),
             "--kubeconfig", str(where / "kubeconfig"), "--client-qps-limit", "1000", "--client-qps-burst", "1000"]
    os.environ["KUBE_FEATURE_WatchListClient"] = "false"    # the cluster lists page by page
    with large_cluster(where, other_cpus(), log):
        with running([str(program), *flags], str(GUARD_CPU), log) as peer:
            found: dict[str, Any] = {"ready_seconds": wait_ready(peer, log, "ok")}
            wait_allowed("/", fill(review(random.Random(7), 0)))
            load(builds, "/", where / "filled", 1)
            found["pod_security"] = load(builds, "/", where / "filled", seconds)
            if found["pod_security"]["allowed"] < found["pod_security"]["reviews"]:
                raise SystemExit("the webhook of pod security denied valid pods")
            found["at_rate"] = load(builds, "/", where / "filled", seconds, RATE)
            found["loaded"] = memory(peer.pid)
    return found


KYVERNO = {"KYVERNO_NAMESPACE": "kyverno", "KYVERNO_POD_NAME": "kyverno-0", "KYVERNO_DEPLOYMENT": "kyverno-admission-controller",
           "KYVERNO_SVC": "kyverno-svc",
           "KYVERNO_SERVICEACCOUNT_NAME": "kyverno-admission-controller", "KYVERNO_ROLE_NAME": "kyverno:admission-controller",
           "INIT_CONFIG": "kyverno",
           "METRICS_CONFIG": "kyverno-metrics", "TUF_ROOT": "/tmp/sigstore"}


def measure_kyverno(program: Path, builds: Path, kubeconfig: Path, where: Path, seconds: int) -> dict[str, Any]:
    """Kyverno with one rule of pod security, on the same core, with the same reviews.

    tools/nodensdev/bench/kyverno.py has its cluster.
    """
    log = where / "log"
    flags = [f"--kubeconfig={kubeconfig}", f"--serverIP=127.0.0.1:{GUARD_PORT}", "--webhookServerHost=127.0.0.1",
             f"--webhookServerPort={GUARD_PORT}",
             "--caSecretName=kyverno-svc.kyverno.svc.kyverno-tls-ca", "--tlsSecretName=kyverno-svc.kyverno.svc.kyverno-tls-pair",
             "--tlsKeyAlgorithm=ECDSA",
             "--admissionReports=false", "--enableReporting=", "--omitEvents=PolicyApplied,PolicySkipped,PolicyViolation,PolicyError",
             "--disableMetrics=true",
             "--controllerRuntimeMetricsAddress=0", "--generateValidatingAdmissionPolicy=false", "--v=0"]
    os.environ |= KYVERNO
    with running([str(program), *flags], str(GUARD_CPU), log) as peer:
        found: dict[str, Any] = {"ready_seconds": wait_ready(peer, log, "", "/health/readiness")}
        forbidden = review(random.Random(7), 0)
        forbidden["request"]["object"]["spec"]["hostPID"] = True
        wait_allowed("/validate/fail", forbidden, False)
        found["ready"] = memory(peer.pid)
        load(builds, "/validate/fail", where / "filled", 1)
        found["pod_security"] = load(builds, "/validate/fail", where / "filled", seconds)
        if found["pod_security"]["allowed"] < found["pod_security"]["reviews"]:
            raise SystemExit("Kyverno denied valid pods")
        found["loaded"] = memory(peer.pid)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--builds", type=Path, default=Path("build/release"))
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--peer", type=Path, help="Kubernetes' webhook of pod security")
    parser.add_argument("--kyverno", type=Path, help="Kyverno's program: measures only Kyverno")
    parser.add_argument("--kubeconfig", type=Path, help="its API server")
    parser.add_argument("result", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        certificate(where)
        write_reviews(where / "filled", True)
        found: dict[str, Any] = {"review_bytes": write_reviews(where / "reviews", False), "cpus": len(os.sched_getaffinity(0))}
        if args.kyverno:
            args.result.write_text(json.dumps(measure_kyverno(args.kyverno, args.builds, args.kubeconfig, where, args.seconds)))
            return 0
        found["index"] = measure(args.builds, where, args.seconds, True)
        found["asking"] = measure(args.builds, where, args.seconds, False)
        if args.peer:
            found["peer"] = measure_peer(args.peer, args.builds, where, args.seconds)
    args.result.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
