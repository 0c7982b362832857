# SPDX-License-Identifier: Apache-2.0
"""Attacks on nodens-guard: each tries to get a response, an admission or too much of its time."""
import contextlib
import json
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alone import CLIENT, Alone, review, running
from conftest import SANITIZED, wait_until

POD = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ROOM = 8 << 20


def pod(name: str = "p", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    with running(tmp_path_factory.mktemp("alone"), clientNames=[CLIENT, "spiffe://cluster/api"]) as made:
        yield made


# ---- certificates

def test_a_server_certificate_is_not_accepted_from_a_client(alone: Alone) -> None:
    """A serving certificate of the same CA, with an allowed name, requests a review."""
    alone.pki.leaf("server", f"/CN={CLIENT}", usage="serverAuth")
    assert alone.ask("POST", "/mutate", review(object=POD), client="server")[0] == 401


def test_a_second_common_name_does_not_count(alone: Alone) -> None:
    """A signer that checks one common name accepts a certificate that has two of them.

    The guard must not use the other one.
    """
    alone.pki.leaf("two", f"/CN=dev/CN={CLIENT}")
    alone.pki.leaf("two-turned", f"/CN={CLIENT}/CN=dev")
    for client in ("two", "two-turned"):
        assert alone.ask("POST", "/mutate", review(object=POD), client=client)[0] in (401, 403)


def test_a_name_is_compared_as_a_whole(alone: Alone) -> None:
    """Certificates with names similar to an allowed one request reviews.

    The names begin or end like it, differ in case, or are an e-mail address of that name.
    """
    attempts = {"longer": f"/CN={CLIENT}2", "shorter": f"/CN={CLIENT[:-1]}", "case": f"/CN={CLIENT.upper()}",
                "group": f"/O={CLIENT}/CN=dev"}
    for name, subject in attempts.items():
        alone.pki.leaf(name, subject)
    alone.pki.leaf("mail", "/CN=dev", san=f"email:{CLIENT}@x")
    alone.pki.leaf("uri", "/CN=dev", san="URI:spiffe://cluster/api/../api")
    for client in (*attempts, "mail", "uri"):
        assert alone.ask("POST", "/mutate", review(object=POD), client=client)[0] == 403, client


def test_a_client_cannot_be_its_own_authority(alone: Alone) -> None:
    """A certificate signed by a client's certificate, sent as a chain, requests a review."""
    alone.pki.leaf("dev", "/CN=dev")
    alone.pki.leaf("child", f"/CN={CLIENT}", ca="dev")
    chain = (alone.directory / "child.crt").read_text() + (alone.directory / "dev.crt").read_text()
    (alone.directory / "child.crt").write_text(chain)
    assert alone.ask("POST", "/mutate", review(object=POD), client="child")[0] == 401


def test_an_expired_certificate_is_refused_on_an_open_connection(alone: Alone) -> None:
    """A client keeps its connection after its certificate has expired."""
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=4)
    alone.pki.leaf("short", f"/CN={CLIENT}", until=until.strftime("%Y%m%d%H%M%SZ"))
    connection = alone.connect("short")
    assert alone.ask("POST", "/mutate", review(object=POD), on=connection)[0] == 200
    wait_until(lambda: datetime.now(UTC) > until + timedelta(seconds=1), "the end of the certificate")
    assert alone.ask("POST", "/mutate", review(object=POD), on=connection)[0] in (401, 403)
    connection.close()


def test_a_replaced_authority_applies_to_open_connections(tmp_path: Path) -> None:
    """A client of a replaced CA sends further requests on its open connection."""
    with running(tmp_path) as alone:
        alone.pki.authority("new")
        connection = alone.connect()
        assert alone.ask("GET", "/metrics", on=connection)[0] == 200
        shutil.copy(tmp_path / "ca.crt", tmp_path / "server-ca.crt")
        shutil.copy(tmp_path / "new.crt", tmp_path / "ca.crt.new")
        (tmp_path / "ca.crt.new").rename(tmp_path / "ca.crt")
        wait_until(lambda: "loaded a new certificate" in alone.log(), "the new authority")
        assert alone.ask("POST", "/mutate", review(object=POD), on=connection)[0] in (401, 403)
        connection.close()


def test_probe_paths_give_no_access_to_other_paths(alone: Alone) -> None:
    """A peer without a certificate requests paths similar to a probe's, or uses other methods.

    It also sends a second request after a probe on one connection.
    """
    for path in ("/healthz/../validate", "/readyz/", "//healthz", "/healthz%2f..%2fmetrics", "/livez/x", "/metrics?/healthz", "/HEALTHZ"):
        assert alone.ask("GET", path, client=None)[0] == 401, path
    connection = alone.connect(None)
    assert alone.ask("GET", "/healthz", on=connection)[0] == 200
    assert alone.ask("POST", "/validate", review(object=POD), on=connection)[0] == 401


# ---- limits

def raw(alone: Alone, client: str | None) -> ssl.SSLSocket:
    return alone.pki.context(client).wrap_socket(socket.create_connection(("127.0.0.1", alone.port), timeout=30),
                                                 server_hostname="127.0.0.1")


def test_one_address_without_certificates_does_not_take_all_connections(tmp_path: Path) -> None:
    """A peer opens idle connections until the guard accepts no more from it.

    API servers that connected before still can.
    """
    with running(tmp_path, connections=64) as alone, contextlib.ExitStack() as held:
        # the API server's address is also the attacker's here: the harder case
        assert alone.ask("GET", "/metrics")[0] == 200
        open_ones = 0
        for _ in range(200):
            plain = held.enter_context(socket.create_connection(("127.0.0.1", alone.port), timeout=30))
            plain.sendall(b"\x16\x03\x01\x02\x00")
            open_ones += 1
        assert open_ones == 200  # the kernel accepts them; the guard closes those beyond its limit
        wait_until(lambda: alone.ask("GET", "/metrics")[0] == 200, "a place for the API server", 60)


def test_half_sent_bodies_without_a_certificate_take_no_memory(alone: Alone) -> None:
    """Peers without a certificate send large bodies and stop before the end."""
    def resident() -> int:
        return sum(int(line.split()[1]) for one in family(alone.process.pid)
                   for line in Path(f"/proc/{one}/status").read_text().splitlines()
                   if line.startswith("VmRSS:")) * 1024

    before, held = resident(), []
    for _ in range(24):
        with contextlib.suppress(OSError):
            secure = raw(alone, None)
            held.append(secure)
            secure.sendall(b"POST /validate HTTP/1.1\r\nHost: guard\r\nContent-Length: %d\r\n\r\n" % ROOM)
            secure.sendall(b" " * (ROOM - 1))
    after = resident()
    for secure in held:
        secure.close()
    # ASan keeps freed memory
    assert len(held) == 24 and after - before < (2000 if SANITIZED else 32) << 20, (before, after)
    assert alone.ask("GET", "/healthz", client=None)[0] == 200


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def test_one_client_does_not_use_up_all_queries_of_the_api_server(tmp_path: Path) -> None:
    """A peer requests reviews of hundreds of users whose access reviews are not answered.

    Another peer's review is decided meanwhile.
    """
    with running(tmp_path, clientCA="none", address="0.0.0.0") as alone:
        alone.api.slow_users = {f"slow-{number}" for number in range(100)}
        threads = [threading.Thread(target=ask_as, args=(alone, f"slow-{number}"), daemon=True) for number in range(100)]
        for thread in threads:
            thread.start()
        wait_until(lambda: sum(alone.api.open.values()) >= 20, "the attacker's questions")
        time.sleep(0.2)
        assert sum(alone.api.open.values()) == 20, alone.api.open
        own = [found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
        began = time.monotonic()
        source = next((one for one in [*own, "127.0.0.2"] if one != "127.0.0.1"), "127.0.0.2")
        secure = ssl._create_unverified_context().wrap_socket(socket.create_connection(("127.0.0.1", alone.port), timeout=30,
                                                                                       source_address=(source, 0)))
        body = json.dumps(review(object=POD, userInfo={"username": "dev", "groups": ["system:authenticated"]})).encode()
        secure.sendall(b"POST /mutate HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        answer = b"".join(iter(lambda: secure.recv(65536), b"")).decode()
        assert '"allowed": true' in answer and time.monotonic() - began < 1, (time.monotonic() - began, answer)
        alone.api.release.set()
        for thread in threads:
            thread.join(timeout=30)


def ask_as(alone: Alone, user: str) -> None:
    alone.ask("POST", "/mutate", review(object=POD, userInfo={"username": user}), client=None)


# ---- admission

def test_a_pod_is_denied_by_a_label_that_the_watch_has_not_reported(alone: Alone) -> None:
    """A namespace begins to enforce, and the guard's watch still reports `off` or `warn`.

    The API server calls the hook that enforces.
    """
    for mode in ("off", "warn"):
        name = f"late-{mode}"
        # no watch reports it: the guard fetches it for the first review, and keeps it
        alone.api.namespace(name, mode)
        assert alone.decide("/validate/warn", namespace=name, object=pod(hostPID=True))["allowed"] is True
        alone.api.namespace(name, "enforce")
        # by the guard's cache
        assert alone.decide("/validate", namespace=name, object=pod(hostPID=True))["allowed"] is True
        for path in ("/validate/enforce", "/mutate/enforce"):
            answer = alone.decide(path, namespace=name, object=pod(hostPID=True))
            assert answer["allowed"] is False and "Host PID is not allowed" in answer["status"]["message"], (mode, path, answer)


def test_a_pod_security_label_that_the_watch_has_not_reported_is_retried(alone: Alone) -> None:
    """A namespace begins to enforce a level; a pod is created before the guard sees the label."""
    alone.api.namespace("unsafe", "off")
    privileged = pod(hostPID=True)
    assert alone.decide("/pod-security", namespace="unsafe", object=privileged)["allowed"] is True
    answer = alone.decide("/pod-security/enforce", namespace="unsafe", object=privileged)
    assert answer["allowed"] is False and answer["status"]["code"] == 503, answer


def test_a_guard_without_contact_to_the_api_server_denies(tmp_path: Path) -> None:
    """The API server stops answering without closing a connection.

    The guard's cache may be stale, and is not used for decisions.
    """
    with running(tmp_path, staleSeconds=4) as alone:
        ordinary = review(object=pod(), namespace="n")
        time.sleep(5)  # an idle cluster does not make it deny, even beyond the limit
        assert alone.ask("GET", "/readyz", client=None)[0] == 200 and alone.ask("POST", "/mutate/enforce", ordinary)[0] == 200
        alone.api.hold.set()
        wait_until(lambda: alone.ask("GET", "/readyz", client=None)[0] == 503, "the end of its readiness")
        for path in ("/mutate/enforce", "/validate/enforce", "/validate/warn", "/validate", "/pod-security"):
            assert alone.ask("POST", path, ordinary)[0] == 503, path
        assert "no contact with the API server" in alone.log() and alone.metric("nodens_guard_current") == 0
        alone.api.hold.clear()
        wait_until(lambda: alone.ask("GET", "/readyz", client=None)[0] == 200, "its readiness")
        assert alone.ask("POST", "/mutate/enforce", ordinary)[0] == 200


def test_a_watch_without_bookmarks_is_current_while_the_api_server_answers(tmp_path: Path) -> None:
    """A watch without events, of an API server that answers everything else, is not an outage."""
    with running(tmp_path, staleSeconds=4) as alone:
        alone.api.quiet.set()
        time.sleep(6)
        assert alone.ask("GET", "/readyz", client=None)[0] == 200


ROOT_POD = {"serviceAccountName": "db", "securityContext": {"seLinuxOptions": {"level": "s0:c26,c5"}},
            "containers": [{"name": "c", "image": "root-image", "securityContext": {"capabilities": {"drop": ["MKNOD"]}}}]}


@pytest.mark.parametrize("recorded", ["anyuid", "restricted-v2", "", "no-such"])
def test_exec_into_a_root_pod_needs_more_than_restricted_v2(alone: Alone, recorded: str) -> None:
    """A user with restricted-v2 only execs into a pod that leaves its user open, which is root.

    The recorded constraint makes no difference.
    """
    alone.api.pods["/api/v1/namespaces/n/pods/root"] = pod("root", {"security.nodens.io/scc": recorded} if recorded else {}, **ROOT_POD)
    for subresource in ("exec", "attach"):
        answer = alone.decide("/validate/enforce", operation="CONNECT", subResource=subresource, name="root",
                              object={"kind": "PodExecOptions"})
        assert answer["allowed"] is False and "exceeds your permissions" in answer["status"]["message"], answer
    strong = {"username": "root-user", "groups": ["system:masters"]}
    assert alone.decide("/validate/enforce", operation="CONNECT", subResource="exec", name="root", userInfo=strong,
                        object={})["allowed"] is True


def test_an_obsolete_seccomp_annotation_gives_no_access(alone: Alone) -> None:
    """An unconfined pod has the obsolete annotation runtime/default, for exec and creation."""
    context = {"fsGroup": 1000650000, "seLinuxOptions": {"level": "s0:c26,c5"}, "seccompProfile": {"type": "RuntimeDefault"}}
    container = {"name": "c", "image": "i", "securityContext": {
        "runAsUser": 1000650000, "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "Unconfined"}}}
    dead = {"container.seccomp.security.alpha.kubernetes.io/c": "runtime/default",
            "seccomp.security.alpha.kubernetes.io/pod": "runtime/default"}
    made = pod("loose", dead, securityContext=context, containers=[container])
    alone.api.pods["/api/v1/namespaces/n/pods/loose"] = made
    for request in ({"operation": "CONNECT", "subResource": "exec", "name": "loose", "object": {}}, {"object": made}):
        answer = alone.decide("/validate/enforce", **request)
        assert answer["allowed"] is False and "unconfined is not an allowed seccomp profile" in answer["status"]["message"], answer


FITTING: dict[str, Any] = {"securityContext": {"fsGroup": 1000650000, "seLinuxOptions": {"level": "s0:c26,c5"},
                                               "seccompProfile": {"type": "RuntimeDefault"}}}
CONTEXT = {"runAsUser": 1000650000, "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize("where", ["container", "init container", "pod", "annotation", "annotation of no container", "ephemeral container"])
@pytest.mark.parametrize("profile", ["unconfined", "localhost/nodens-rootless"])
def test_an_apparmor_profile_is_found_in_every_place(alone: Alone, where: str, profile: str) -> None:
    """A pod of restricted-v2 requests no AppArmor profile, or one that confines nothing."""
    field = {"type": "Unconfined"} if profile == "unconfined" else {"type": "Localhost", "localhostProfile": profile.partition("/")[2]}
    bad = {"name": "d", "image": "i", "securityContext": CONTEXT | {"appArmorProfile": field}}
    plain = {"name": "c", "image": "i", "securityContext": CONTEXT}
    made = pod(**FITTING, containers=[plain])
    assert alone.decide("/validate/enforce", object=made)["allowed"] is True
    if where == "pod":
        made = pod(**FITTING | {"securityContext": FITTING["securityContext"] | {"appArmorProfile": field}}, containers=[plain])
    elif where.startswith("annotation"):
        name = "c" if where == "annotation" else "other"
        made = pod(annotations={f"container.apparmor.security.beta.kubernetes.io/{name}": profile}, **FITTING, containers=[plain])
    else:
        made["spec"][{"container": "containers", "init container": "initContainers",
                      "ephemeral container": "ephemeralContainers"}[where]] = [bad]
    for path in ("/validate/enforce", "/mutate/enforce"):
        answer = alone.decide(path, object=made)
        assert answer["allowed"] is False and f"{profile} is not an allowed AppArmor profile" in answer["status"]["message"], answer


@pytest.mark.parametrize("spec", [
    {"os": {"name": "windows"}, "hostNetwork": True, "securityContext": {"windowsOptions": {"hostProcess": True}}},
    {"os": {"name": "windows"}, "containers": [{"name": "c", "securityContext": {"windowsOptions": {"hostProcess": True}}}]},
    {"os": {"name": "windows"}, "volumes": [{"name": "v", "hostPath": {"path": "C:\\"}}]},
    {"os": {"name": "windows"}, "containers": [{"name": "c", "ports": [{"hostPort": 80}]}]},
    {"nodeSelector": {"kubernetes.io/os": "windows"},
     "containers": [{"name": "c", "securityContext": CONTEXT | {"windowsOptions": {"hostProcess": True}}}], **FITTING},
])
def test_windows_pods_do_not_bypass_the_constraints(alone: Alone, spec: dict[str, Any]) -> None:
    """A pod that names Windows as its operating system, or a Windows node, accesses its host."""
    made = pod(**spec)
    for path in ("/validate/enforce", "/mutate/enforce"):
        assert alone.decide(path, object=made)["allowed"] is False, path
    alone.api.pods["/api/v1/namespaces/n/pods/windows"] = made
    assert alone.decide("/validate/enforce", operation="CONNECT", subResource="exec", name="windows", object={})["allowed"] is False
    assert alone.decide("/validate/enforce", object=pod(os={"name": "windows"}))["allowed"] is True
