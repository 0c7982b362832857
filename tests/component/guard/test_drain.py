# SPDX-License-Identifier: Apache-2.0
"""The end of a guard: after SIGTERM it is not ready, answers what still arrives, and loses no review."""
import concurrent.futures
import contextlib
import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import alone
from alone import Alone, review
from conftest import PATIENCE, PORT, Plane, guard_config, guard_running, request_end, wait_until
from nodensdev.cluster.controlplane import STATE

POD = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SERVICE, FIRST, SECOND = 9470, 9471, 9472
FINISH = 10  # seconds that reviews in progress have, GUARD_DRAIN_FINISH
CONNECTIONS = 4


def send(guard: Alone, on: http.client.HTTPSConnection, user: str = "dev") -> http.client.HTTPResponse:
    body = review(object=POD, userInfo={"username": user, "groups": ["system:authenticated"]})
    on.request("POST", "/validate", json.dumps(body), {"Content-Type": "application/json"})
    response = on.getresponse()
    response.read()
    return response


def is_open(connection: http.client.HTTPSConnection) -> bool:
    """Whether the guard has not closed an idle connection."""
    assert connection.sock
    connection.sock.settimeout(0.01)
    try:
        return connection.sock.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def asked(guard: Alone) -> Iterator[concurrent.futures.Future[http.client.HTTPResponse]]:
    """A review that waits for the API server, which does not answer before `release`."""
    guard.api.slow_users.add("slow")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(send, guard, guard.connect(timeout=60), "slow")
        wait_until(lambda: guard.api.open["slow"] > 0, "the guard's own question")
        try:
            yield future
        finally:
            guard.api.release.set()


def test_a_guard_that_ends_is_not_ready_and_answers_what_arrives(tmp_path: Path) -> None:
    with alone.running(tmp_path, drainSeconds=4) as guard:
        kept, idle = guard.connect(), guard.connect()
        assert send(guard, kept).getheader("Connection") != "close" and send(guard, idle).status == 200
        request_end(guard.process)
        wait_until(lambda: guard.ask("GET", "/readyz")[0] == 503, "the end of readiness")
        assert guard.ask("GET", "/livez")[0] == 200
        last = send(guard, kept)
        assert (last.status, last.getheader("Connection")) == (200, "close")
        new = send(guard, guard.connect())
        assert (new.status, new.getheader("Connection")) == (200, "close")
        assert is_open(idle), "it may be used until the time is over"
        wait_until(lambda: not alone.listens(guard.port), "the end of the listening socket")
        wait_until(lambda: not is_open(idle), "the end of the idle connection")
        assert guard.process.wait(timeout=PATIENCE) == 0
        assert "stopped: every review in progress was answered" in guard.log()


def test_a_review_in_progress_is_answered_after_the_port_was_closed(tmp_path: Path) -> None:
    with alone.running(tmp_path, drainSeconds=0) as guard:
        with asked(guard) as waiting:
            request_end(guard.process)
            wait_until(lambda: not alone.listens(guard.port), "the end of the listening socket")
            assert guard.process.poll() is None and not waiting.done()
        answer = waiting.result(timeout=PATIENCE)
        assert (answer.status, answer.getheader("Connection")) == (200, "close")
        assert guard.process.wait(timeout=PATIENCE) == 0
        assert "stopped: every review in progress was answered" in guard.log()


def test_a_second_signal_ends_the_guard_at_once(tmp_path: Path) -> None:
    with alone.running(tmp_path, drainSeconds=60) as guard, asked(guard) as waiting:
        request_end(guard.process)
        wait_until(lambda: guard.ask("GET", "/readyz")[0] == 503, "the end of readiness")
        request_end(guard.process)
        assert guard.process.wait(timeout=PATIENCE) == 0
        with contextlib.suppress(http.client.HTTPException, OSError):
            assert waiting.result(timeout=PATIENCE).status in (200, 503)


def test_reviews_that_do_not_end_delay_the_end_for_a_limited_time(tmp_path: Path) -> None:
    """A client never sends the rest of its body."""
    with alone.running(tmp_path, drainSeconds=0) as guard:
        half = guard.connect()
        half.putrequest("POST", "/validate")
        half.putheader("Content-Length", "1000")
        half.endheaders(b"{")
        began = time.monotonic()
        request_end(guard.process)
        assert guard.process.wait(timeout=PATIENCE) == 0
        assert time.monotonic() - began > FINISH - 1
        assert "connections did not end in time" in guard.log()


def test_a_guard_without_clients_ends_after_its_time_to_accept(tmp_path: Path) -> None:
    with alone.running(tmp_path, drainSeconds=1) as guard:
        request_end(guard.process)
        assert guard.process.wait(timeout=PATIENCE) == 0
        assert "did not end in time" not in guard.log()


@contextlib.contextmanager
def service(plane: Plane) -> Iterator[None]:
    """The webhooks lead to two guards behind one address."""
    def webhooks(port: int) -> str:
        return plane.guard_output("manifest", "webhooks", "--url", f"https://127.0.0.1:{port}", "--ca-file", f"{STATE}/pki/ca.crt")

    balancer = subprocess.Popen(plane.one.command(["python3", "-B", "/nodens/tests/component/guard/balancer.py", str(SERVICE), str(FIRST),
                                                   str(SECOND)]), stdin=subprocess.DEVNULL)
    try:
        plane.kubectl("apply", "-f", "-", stdin=webhooks(SERVICE))
        yield
    finally:
        plane.kubectl("apply", "-f", "-", stdin=webhooks(PORT))
        balancer.kill()
        balancer.wait()


@contextlib.contextmanager
def load(plane: Plane, namespace: str) -> Iterator[dict[str, Any]]:
    results: dict[str, Any] = {}
    process = subprocess.Popen(plane.inside.command(["python3", "-B", "/nodens/tests/component/guard/creates.py",
                                                     f"{STATE}/admin.kubeconfig", namespace, str(CONNECTIONS)]),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield results
        results |= json.loads(process.communicate("", timeout=PATIENCE)[0])
    finally:
        process.kill()
        process.wait()


def reviews(plane: Plane, port: int) -> float:
    return sum(value for name, value in plane.metrics(port).items() if name.startswith("nodens_guard_reviews_total"))


def test_guards_are_replaced_one_after_the_other_and_no_review_fails(plane: Plane) -> None:
    name, state = plane.namespace("drained"), plane.one.state
    for port in (FIRST, SECOND):
        guard_config(state, f"drain-{port}", port=port, allocateRanges=False, clientCA="none", drainSeconds=5)
    with contextlib.ExitStack() as guards:
        former = guards.enter_context(guard_running(plane, state, f"drain-{SECOND}", SECOND))
        with service(plane), load(plane, name) as results:
            for port in (FIRST, SECOND, FIRST):
                following = guards.enter_context(guard_running(plane, state, f"drain-{port}", port))
                # the API server keeps its connections to the former one
                wait_until(lambda p=port: reviews(plane, p) > 0 or reviews(plane, SERVICE) == 0, "the new guard behind the Service")
                request_end(former)
                assert former.wait(timeout=PATIENCE) == 0
                wait_until(lambda p=port: reviews(plane, p) > 100, "reviews of the new guard")
                former = following
    failed = {text: count for text, count in results["results"].items() if text != "admitted"}
    print(f"three replicas ended: {results['results'].get('admitted', 0)} pods in {results['seconds']:.0f} s, failed: {failed}")
    assert not failed and results["results"]["admitted"] > 300
    said = "".join((state / f"logs/drain-{port}.log").read_text() for port in (FIRST, SECOND))
    assert said.count("stopped: every review in progress was answered") == 3
