# SPDX-License-Identifier: Apache-2.0
"""Attacks on nodens-guard: each tries to get an answer, an admission or the guard's time that it should not have."""
import contextlib
import json
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from alone import CLIENT, Alone, review, running
from conftest import wait_until

POD = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ROOM = 8 << 20


def pod(name: str = "p", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, "annotations": annotations or {}}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    with running(tmp_path_factory.mktemp("alone"), clientNames=[CLIENT, "spiffe://cluster/api"]) as made:
        yield made


# ---- certificates

def test_a_certificate_made_for_servers_is_not_a_clients(alone: Alone) -> None:
    """A serving certificate of the same authority, with the right name, asks for a review."""
    alone.pki.leaf("server", f"/CN={CLIENT}", usage="serverAuth")
    assert alone.ask("POST", "/mutate", review(object=POD), client="server")[0] == 401


def test_a_second_common_name_does_not_count(alone: Alone) -> None:
    """A signer that looks at one common name lets a certificate with two of them through; the guard must not take the other."""
    alone.pki.leaf("two", f"/CN=dev/CN={CLIENT}")
    alone.pki.leaf("two-turned", f"/CN={CLIENT}/CN=dev")
    for client in ("two", "two-turned"):
        assert alone.ask("POST", "/mutate", review(object=POD), client=client)[0] in (401, 403)


def test_a_name_is_compared_as_a_whole(alone: Alone) -> None:
    """Certificates whose names begin or end like an allowed one, differ in case, or are an e-mail address of that name ask for reviews."""
    attempts = {"longer": f"/CN={CLIENT}2", "shorter": f"/CN={CLIENT[:-1]}", "case": f"/CN={CLIENT.upper()}", "group": f"/O={CLIENT}/CN=dev"}
    for name, subject in attempts.items():
        alone.pki.leaf(name, subject)
    alone.pki.leaf("mail", "/CN=dev", san=f"email:{CLIENT}@x")
    alone.pki.leaf("uri", "/CN=dev", san="URI:spiffe://cluster/api/../api")
    for client in (*attempts, "mail", "uri"):
        assert alone.ask("POST", "/mutate", review(object=POD), client=client)[0] == 403, client


def test_a_client_cannot_be_its_own_authority(alone: Alone) -> None:
    """A certificate that a client's certificate has signed, sent with it as a chain, asks for a review."""
    alone.pki.leaf("dev", "/CN=dev")
    alone.pki.leaf("child", f"/CN={CLIENT}", ca="dev")
    chain = (alone.directory / "child.crt").read_text() + (alone.directory / "dev.crt").read_text()
    (alone.directory / "child.crt").write_text(chain)
    assert alone.ask("POST", "/mutate", review(object=POD), client="child")[0] == 401


def test_a_certificate_that_ends_does_not_count_on_an_open_connection(alone: Alone) -> None:
    """A client keeps its connection beyond the end of its certificate."""
    until = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=4)
    alone.pki.leaf("short", f"/CN={CLIENT}", until=until.strftime("%Y%m%d%H%M%SZ"))
    connection = alone.connect("short")
    assert alone.ask("POST", "/mutate", review(object=POD), on=connection)[0] == 200
    wait_until(lambda: datetime.now(timezone.utc) > until + timedelta(seconds=1), "the end of the certificate")
    assert alone.ask("POST", "/mutate", review(object=POD), on=connection)[0] in (401, 403)
    connection.close()


def test_another_authority_counts_on_open_connections_too(tmp_path: Path) -> None:
    """A client of an authority that was replaced goes on asking on the connection that it has."""
    with running(tmp_path) as alone:
        alone.pki.authority("new")
        connection = alone.connect()
        assert alone.ask("GET", "/metrics", on=connection)[0] == 200
        shutil.copy(tmp_path / "ca.crt", tmp_path / "server-ca.crt")
        shutil.copy(tmp_path / "new.crt", tmp_path / "ca.crt.new")
        (tmp_path / "ca.crt.new").rename(tmp_path / "ca.crt")
        wait_until(lambda: "took a new certificate" in alone.log(), "the new authority")
        assert alone.ask("POST", "/mutate", review(object=POD), on=connection)[0] in (401, 403)
        connection.close()


def test_probes_are_not_a_way_to_the_rest(alone: Alone) -> None:
    """Paths that look like a probe's, other methods, and a second request behind a probe on one connection, all without a certificate."""
    for path in ("/healthz/../validate", "/readyz/", "//healthz", "/healthz%2f..%2fmetrics", "/livez/x", "/metrics?/healthz", "/HEALTHZ"):
        assert alone.ask("GET", path, client=None)[0] == 401, path
    connection = alone.connect(None)
    assert alone.ask("GET", "/healthz", on=connection)[0] == 200
    assert alone.ask("POST", "/validate", review(object=POD), on=connection)[0] == 401


# ---- room

def raw(alone: Alone, client: str | None) -> ssl.SSLSocket:
    return alone.pki.context(client).wrap_socket(socket.create_connection(("127.0.0.1", alone.port), timeout=30), server_hostname="127.0.0.1")


def test_one_address_without_certificates_does_not_take_all_connections(tmp_path: Path) -> None:
    """A peer opens connections and says nothing, until the guard takes no more of it; API servers that were there before still connect."""
    with running(tmp_path, connections=64) as alone, contextlib.ExitStack() as held:
        assert alone.ask("GET", "/metrics")[0] == 200       # the API server's address, which is the attacker's as well here: the harder case
        open_ones = 0
        for _ in range(200):
            plain = held.enter_context(socket.create_connection(("127.0.0.1", alone.port), timeout=30))
            plain.sendall(b"\x16\x03\x01\x02\x00")
            open_ones += 1
        assert open_ones == 200         # the kernel takes them; the guard closes what is beyond its limit
        wait_until(lambda: alone.ask("GET", "/metrics")[0] == 200, "a place for the API server", 60)


def test_half_sent_bodies_of_strangers_take_no_memory(alone: Alone) -> None:
    """Peers without a certificate send large bodies and stop before the end."""
    def resident() -> int:
        return sum(int(line.split()[1]) for one in family(alone.process.pid) for line in Path(f"/proc/{one}/status").read_text().splitlines()
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
    assert len(held) == 24 and after - before < 32 << 20, (before, after)
    assert alone.ask("GET", "/healthz", client=None)[0] == 200


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


def test_one_client_does_not_take_all_questions_to_the_api_server(tmp_path: Path) -> None:
    """A peer asks about hundreds of users whose reviews the API server does not answer; another peer's review is decided meanwhile."""
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
        secure = ssl._create_unverified_context().wrap_socket(socket.create_connection(("127.0.0.1", alone.port), timeout=30, source_address=(source, 0)))
        body = json.dumps(review(object=POD, userInfo={"username": "dev", "groups": ["system:authenticated"]})).encode()
        secure.sendall(b"POST /mutate HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        answer = b"".join(iter(lambda: secure.recv(65536), b"")).decode()
        assert '"allowed": true' in answer and time.monotonic() - began < 1, (time.monotonic() - began, answer)
        alone.api.release.set()
        for thread in threads:
            thread.join(timeout=30)


def ask_as(alone: Alone, user: str) -> None:
    alone.ask("POST", "/mutate", review(object=POD, userInfo={"username": user}), client=None)
