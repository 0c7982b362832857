# SPDX-License-Identifier: Apache-2.0
"""The guard's credentials and certificates on a stock API server: what the log, /readyz, the metrics and
`systemctl status` say when they expire or are wrong, and that renewed ones are used without a restart."""
import base64
import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import GUARD, Plane, guard_config, wait_until

STATE = "/run/cluster"
USER = "nodens-guard"


class Running:
    """A guard that may not be ready, and what it sends to systemd."""

    def __init__(self, plane: Plane, name: str, port: int, process: subprocess.Popen[bytes], notify: socket.socket) -> None:
        self.plane, self.name, self.port, self.process, self.notify = plane, name, port, process, notify
        self.sent: list[str] = []

    def log(self) -> str:
        return (self.plane.one.state / f"logs/{self.name}.log").read_text()

    def says(self, text: str) -> None:
        try:
            wait_until(lambda: text in self.log(), f"'{text}' in the log")
        except AssertionError as error:
            raise AssertionError(f"{error}; the log:\n{self.log()[-3000:]}") from None

    def is_ready(self) -> bool:
        code = ("import ssl, sys, urllib.request as r; "
                "r.urlopen(sys.argv[1], context=ssl._create_unverified_context(), timeout=10)")
        return self.plane.one.run(["python3", "-c", code, f"https://127.0.0.1:{self.port}/readyz"]).returncode == 0

    def status(self) -> str:
        """The last STATUS=."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self.sent += self.notify.recv(65536).decode().splitlines()
        return next((line.removeprefix("STATUS=") for line in reversed(self.sent) if line.startswith("STATUS=")), "")

    def refusals(self) -> float:
        return self.plane.metrics(self.port)["nodens_guard_api_unauthorized_total"]


@contextlib.contextmanager
def started(plane: Plane, name: str, port: int, config: dict[str, Any] | None = None, user: dict[str, Any] | None = None,
            server: str | None = None) -> Iterator[Running]:
    """A guard with its own kubeconfig."""
    state: Path = plane.one.state
    if user is not None or server is not None:
        kubeconfig = json.loads((state / "guard.kubeconfig").read_text())
        kubeconfig["users"][0]["user"] = user if user is not None else kubeconfig["users"][0]["user"]
        kubeconfig["clusters"][0]["cluster"]["server"] = server or kubeconfig["clusters"][0]["cluster"]["server"]
        (state / f"{name}.kubeconfig").write_text(json.dumps(kubeconfig))
    guard_config(state, name, **{"port": port, "allocateRanges": False, "kubeconfig": f"{STATE}/{name}.kubeconfig", **(config or {})})
    (state / f"{name}.notify").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(state / f"{name}.notify"))
        notify.setblocking(False)
        with (state / f"logs/{name}.log").open("wb") as log:
            process = subprocess.Popen(plane.inside.command(["env", f"NOTIFY_SOCKET={STATE}/{name}.notify", GUARD, "serve", "--config",
                                                             f"{STATE}/{name}.yaml"]),
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        running = Running(plane, name, port, process, notify)
        try:
            yield running
        finally:
            process.terminate()
            process.wait(timeout=60)
            assert "SUMMARY: " not in running.log() and "runtime error: " not in running.log(), running.log()[-6000:]


def replace(path: Path, text: str) -> None:
    """As a renewal does: at once."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text)
    new.chmod(0o644)
    os.rename(new, path)


def openssl(plane: Plane, *words: str) -> bytes:
    done = subprocess.run(plane.inside.command(["openssl", *words]), capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def token(plane: Plane) -> str:
    return plane.kubectl("create", "token", "nodens-guard", "-n", "nodens-system", "--duration=1h").strip()


def expired_token(plane: Plane) -> str:
    """The valid token with other times, signed with the API server's own key."""
    head, payload, _ = token(plane).split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    claims |= {"iat": 1700000000, "nbf": 1700000000, "exp": 1700003600}
    signed = f"{head}.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}"
    (plane.one.state / "to-sign").write_text(signed)
    signature = openssl(plane, "dgst", "-sha256", "-sign", f"{STATE}/pki/sa.key", f"{STATE}/to-sign")
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def certificate(plane: Plane, name: str, *validity: str, san: str = "", subject: str = f"/CN={USER}",
                usage: str = "clientAuth") -> None:
    """NAME.crt and NAME.key in the state directory, signed by the cluster's authority."""
    state: Path = plane.one.state
    names = ["-addext", f"subjectAltName={san}"] if san else []
    openssl(plane, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-CA", f"{STATE}/pki/ca.crt", "-CAkey",
            f"{STATE}/pki/ca.key", "-subj", subject, "-addext", "basicConstraints=critical,CA:FALSE", "-addext",
            f"extendedKeyUsage={usage}", *names, *validity, "-keyout", f"{STATE}/new.key", "-out", f"{STATE}/new.crt")
    for end in ("key", "crt"):
        os.rename(state / f"new.{end}", state / f"{name}.{end}")


EXPIRED = ("-not_before", "20200101000000Z", "-not_after", "20210101000000Z")


def test_an_expired_token_is_named_and_a_new_one_in_its_file_is_used_without_a_restart(plane: Plane) -> None:
    path = plane.one.state / "renewed.token"
    replace(path, token(plane))
    with started(plane, "renewed", 9465, user={"tokenFile": "renewed.token"}) as guard:
        wait_until(guard.is_ready, "readiness")
        assert guard.refusals() == 0 and guard.status().startswith("ready: "), guard.sent
        replace(path, expired_token(plane))
        guard.says("not ready: the API server https://")
        guard.says("refuses the guard's credentials (HTTP 401): the token in '/run/cluster/renewed.token' expired on 2023-11-14 23:13 UTC; "
                   "write a new one there, it is read again within seconds")
        assert not guard.is_ready() and guard.refusals() > 0
        assert "expired on 2023-11-14" in guard.status()
        assert plane.metrics(guard.port)["nodens_guard_credentials_expiry_timestamp_seconds"] == 1700003600
        replace(path, token(plane))
        wait_until(guard.is_ready, "readiness with the new token")
        assert guard.status().startswith("ready: ") and guard.process.poll() is None
        assert plane.metrics(guard.port)["nodens_guard_credentials_expiry_timestamp_seconds"] > time.time()


def test_a_token_that_the_api_server_does_not_know_is_named_from_the_start(plane: Plane) -> None:
    """In the kubeconfig itself, which is read again too."""
    with started(plane, "strange", 9466, user={"token": "nonsense"}) as guard:
        guard.says("refuses the guard's credentials (HTTP 401): the token in '/run/cluster/strange.kubeconfig' has expired or is not valid")
        wait_until(lambda: "HTTP 401" in guard.status(), "the reason in STATUS=")
        assert "READY=1" in guard.sent, "the API server does not hold up systemd's boot"
        assert not guard.is_ready()
        kubeconfig = json.loads((plane.one.state / "strange.kubeconfig").read_text())
        kubeconfig["users"][0]["user"] = {"token": token(plane)}
        replace(plane.one.state / "strange.kubeconfig", json.dumps(kubeconfig))
        wait_until(guard.is_ready, "readiness with the new kubeconfig")


def test_an_expired_client_certificate_is_named_and_a_new_one_is_used_without_a_restart(plane: Plane) -> None:
    plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "rbac", "--user", USER))
    certificate(plane, "own", *EXPIRED)
    with started(plane, "certified", 9467, user={"client-certificate": "own.crt", "client-key": "own.key"}) as guard:
        guard.says("(HTTP 401): the client certificate in '/run/cluster/own.crt' expired on 2021-01-01 00:00 UTC; write a new one there")
        certificate(plane, "own", "-days", "1")
        wait_until(guard.is_ready, "readiness with the new certificate")
        certificate(plane, "own", "-days", "2")
        guard.says("loaded new credentials")
        wait_until(guard.is_ready, "readiness with another certificate")


def test_the_clusters_signer_gives_the_guard_a_client_certificate(plane: Plane) -> None:
    """By the commands of docs/guard.md."""
    state = plane.one.state
    openssl(plane, "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={USER}", "-keyout",
            f"{STATE}/signed.key", "-out", f"{STATE}/signed.csr")
    plane.kubectl("create", "-f", "-", stdin=f"""
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {{name: nodens-guard}}
spec:
  request: {base64.b64encode((state / "signed.csr").read_bytes()).decode()}
  signerName: kubernetes.io/kube-apiserver-client
  usages: [client auth]
""")
    plane.kubectl("certificate", "approve", "nodens-guard")
    plane.kubectl("wait", "--for=jsonpath={.status.certificate}", "csr/nodens-guard", "--timeout=120s")
    made = plane.kubectl("get", "csr", "nodens-guard", "-o", "jsonpath={.status.certificate}")
    (state / "signed.crt").write_bytes(base64.b64decode(made))
    plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "rbac", "--user", USER))
    with started(plane, "signed", 9476, user={"client-certificate": "signed.crt", "client-key": "signed.key"}) as guard:
        wait_until(guard.is_ready, "readiness")


def test_rights_that_are_missing_are_named_with_the_way_to_get_them(plane: Plane) -> None:
    certificate(plane, "without", "-days", "1", subject="/CN=without-rights")
    with started(plane, "rightless", 9468, user={"client-certificate": "without.crt", "client-key": "without.key"}) as guard:
        guard.says('User "without-rights" cannot list resource')
        guard.says("`nodens-guard manifest rbac` prints the rights that the guard needs")
        wait_until(lambda: "without-rights" in guard.status(), "the reason in STATUS=")


@pytest.mark.slow
def test_the_reason_is_repeated_every_minute_while_the_api_server_is_away(plane: Plane) -> None:
    with started(plane, "away", 9469, server="https://127.0.0.1:1") as guard:
        guard.says("no contact with the API server https://127.0.0.1:1: Failed to connect to 127.0.0.1 port 1")
        guard.says("check that it runs, and the address in '/run/cluster/away.kubeconfig'")
        wait_until(lambda: "https://127.0.0.1:1" in guard.status(), "the reason in STATUS=")
        wait_until(lambda: guard.log().count("not ready: no contact with the API server") >= 2, "the reason twice", 300)


def test_an_expired_certificate_of_the_api_server_is_named(plane: Plane) -> None:
    certificate(plane, "outdated", *EXPIRED, san="IP:127.0.0.1", subject="/CN=api", usage="serverAuth")
    server = subprocess.Popen(plane.inside.command(["openssl", "s_server", "-quiet", "-accept", "127.0.0.1:9471", "-cert",
                                                    f"{STATE}/outdated.crt", "-key", f"{STATE}/outdated.key"]), stdin=subprocess.PIPE)
    try:
        with started(plane, "outdated", 9470, server="https://127.0.0.1:9471") as guard:
            guard.says("the certificate of the API server https://127.0.0.1:9471 has expired; renew it there, with kubeadm: "
                       "`kubeadm certs renew apiserver`")
    finally:
        server.kill()
        server.wait(timeout=20)


def test_an_expired_certificate_of_the_guard_is_named_and_renewed_by_the_command(plane: Plane) -> None:
    certificate(plane, "pki/tls", *EXPIRED, san="IP:127.0.0.1", subject="/CN=guard", usage="serverAuth")
    directory = plane.one.state / "served-pki"
    directory.mkdir(exist_ok=True)
    for end in ("crt", "key"):
        os.rename(plane.one.state / f"pki/tls.{end}", directory / f"tls.{end}")
    with started(plane, "served-expired", 9472, user={"token": token(plane)},
                 config={"certificate": f"{STATE}/served-pki/tls.crt", "key": f"{STATE}/served-pki/tls.key"}) as guard:
        guard.says("the guard's certificate '/run/cluster/served-pki/tls.crt' expired on 2021-01-01 00:00 UTC, so API servers do not "
                   "accept the guard; make a new one, with `nodens-guard certificate`")
        assert not guard.is_ready()
        plane.guard_output("certificate", "--address", "127.0.0.1", "--directory", f"{STATE}/served-pki")
        wait_until(guard.is_ready, "readiness with the new certificate")
        assert plane.metrics(guard.port)["nodens_guard_certificate_expiry_timestamp_seconds"] > time.time()


def test_the_api_server_accepts_the_certificate_that_the_command_makes_and_renews(plane: Plane) -> None:
    """By a webhook of one namespace, so that the guard of the other tests is not asked."""
    state, port = plane.one.state, 9473
    (state / "issued").mkdir(exist_ok=True)
    plane.guard_output("certificate", "--address", "guard.example,127.0.0.1", "--directory", f"{STATE}/issued")
    assert (state / "issued/ca.key").stat().st_mode & 0o777 == 0o600 and (state / "issued/tls.key").stat().st_mode & 0o777 == 0o600
    authority = (state / "issued/ca.crt").read_text()
    ns = plane.namespace("issued", mode="off")
    made = plane.guard_output("manifest", "--json", "webhooks", "--url", f"https://127.0.0.1:{port}", "--ca-file",
                              f"{STATE}/issued/ca.crt")
    hooks = next(one for one in map(json.loads, made.split("\n---\n")) if one["kind"] == "ValidatingWebhookConfiguration")
    hook = next(one for one in hooks["webhooks"] if one["name"].startswith("enforce."))
    hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": ns}}
    hooks |= {"metadata": {"name": "issued"}, "webhooks": [hook]}
    # the API server has a client certificate for the other guard's address only
    with started(plane, "issued", port, user={"token": token(plane)}, config={
            "clientCA": "none", "certificate": f"{STATE}/issued/tls.crt", "key": f"{STATE}/issued/tls.key"}) as guard:
        wait_until(guard.is_ready, "readiness")
        plane.apply(hooks)
        try:
            def reviews() -> float:
                return sum(number for name, number in plane.metrics(port).items() if name.startswith("nodens_guard_reviews_total"))

            def asked() -> bool:
                before = reviews()
                plane.one.kubectl("run", "p", "--image=x", "--dry-run=server", "-n", ns)
                return reviews() > before

            wait_until(asked, "a review over the certificate")
            first = (state / "issued/tls.crt").read_text()
            plane.guard_output("certificate", "--address", "127.0.0.1", "--directory", f"{STATE}/issued")
            assert (state / "issued/tls.crt").read_text() != first and (state / "issued/ca.crt").read_text() == authority
            guard.says("loaded a new certificate")
            wait_until(asked, "a review over the renewed certificate")
        finally:
            plane.kubectl("delete", "validatingwebhookconfiguration", "issued")


@pytest.mark.parametrize(("what", "kubeconfig", "expected"), [
    ("missing", None, ("/run/cluster/bad.kubeconfig': No such file or directory", "CREDENTIALS in nodens-guard(8) says how to make them")),
    ("broken", "a: [", ("kubeconfig '/run/cluster/bad.kubeconfig': line 2: did not find expected node content",
                        "CREDENTIALS in nodens-guard(8)")),
    ("no context", "apiVersion: v1", ("'/run/cluster/bad.kubeconfig': no current-context is set", "`kubectl config use-context` sets one")),
    ("plugin", json.dumps({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                           "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                           "users": [{"name": "u", "user": {"exec": {"command": "x"}}}]}),
     ("'/run/cluster/bad.kubeconfig': user 'u': 'exec' of a user is not supported", "use a client certificate or a token")),
])
def test_a_bad_kubeconfig_is_named_with_cause_and_remedy(plane: Plane, what: str, kubeconfig: str | None,
                                                         expected: tuple[str, ...]) -> None:
    path = plane.one.state / "bad.kubeconfig"
    path.unlink(missing_ok=True)
    if kubeconfig is not None:
        path.write_text(kubeconfig)
    with started(plane, "bad", 9474) as guard:
        assert guard.process.wait(timeout=120) == 1
        line = guard.log().strip().splitlines()[-1]
        assert all(words in line and words in guard.status() for words in expected), (what, line, guard.status())


def test_a_busy_port_and_missing_certificates_are_named_with_cause_and_remedy(plane: Plane) -> None:
    with started(plane, "busy", 9443, user={"token": "x"}) as guard:
        assert guard.process.wait(timeout=120) == 1
        assert "listen on 127.0.0.1 port 9443 (`ss -ltnp 'sport = :9443'` shows which process has it" in guard.log()
        assert "Address already in use" in guard.log() and "Address already in use" in guard.status()
    with started(plane, "uncertified", 9475, user={"token": "x"}, config={"certificate": f"{STATE}/no.crt"}) as guard:
        assert guard.process.wait(timeout=120) == 1
        assert "`nodens-guard certificate` makes: open '/run/cluster/no.crt': No such file or directory" in guard.log()
    with started(plane, "mismatched", 9475, user={"token": "x"}, config={"certificate": f"{STATE}/pki/ca.crt"}) as guard:
        assert guard.process.wait(timeout=120) == 1
        assert ("certificate '/run/cluster/pki/ca.crt' and key '/run/cluster/pki/webhook-guard.key': the certificate and its key do not "
                "match") in guard.log()
