# SPDX-License-Identifier: Apache-2.0
"""The daemon's own metrics, as Prometheus would read them."""
import socket
import stat
from pathlib import Path

import pytest
from conftest import Subject
from nodenstest import runtimes
from nodenstest.pods import Pods, eventually, refused
from nodenstest.scrape import ask, scrape


@pytest.fixture
def metrics(subject: Subject) -> Path:
    if subject.name != "nodens-cri" or subject.runtime is None:
        pytest.skip("these are nodens-cri's own")
    return subject.runtime.directory / "metrics.sock"


def test_calls_pods_and_the_self_test_are_counted(pods: Pods, metrics: Path) -> None:
    users = "pod" if pods.users else "host"
    before = scrape(metrics)
    pod = pods.run()
    pod.container()
    refused(lambda: pods.run(linux={"sysctls": {"kernel.core_pattern": "x"}}))
    after = scrape(metrics)

    def grew(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grew('nodens_cri_rpc_total{method="RunPodSandbox",code="OK"}') == 1
    assert grew('nodens_cri_rpc_duration_seconds_count{method="RunPodSandbox"}') == 2
    assert grew('nodens_cri_rpc_duration_seconds_bucket{method="RunPodSandbox",le="+Inf"}') == 2
    assert 0 < grew('nodens_cri_rpc_duration_seconds_sum{method="StartContainer"}') < 60
    assert grew(f'nodens_cri_pods_started_total{{users="{users}"}}') == 1
    assert grew(f'nodens_cri_pods_failed_total{{users="{users}"}}') == 1
    assert grew('nodens_cri_sandboxes{state="ready"}') == 1
    assert grew('nodens_cri_containers{state="running"}') == 1
    assert after['nodens_cri_selftest{handler="crun",feature="engine"}'] == 1
    assert after['nodens_cri_selftest{handler="crun",feature="userNamespaces"}'] == 1
    assert 1 << 20 < after["process_resident_memory_bytes"] and (runtimes.SANITIZED or after["process_resident_memory_bytes"] < 64 << 20)


def test_pulls_are_counted(plain_pods: Pods, metrics: Path, subject: Subject) -> None:
    before = scrape(metrics)
    plain_pods.client.pull(subject.images.shell)
    refused(lambda: plain_pods.client.pull(subject.images.shell + "-which-is-not-there"))
    after = scrape(metrics)
    for result in ("pulled", "failed"):
        name = f'nodens_cri_pulls_total{{result="{result}"}}'
        assert after[name] == before[name] + 1


@pytest.mark.parametrize(("request_text", "status"), [
    ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404"), ("POST /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405"), ("nonsense\r\n\r\n", "400")])
def test_only_one_thing_is_served(metrics: Path, request_text: str, status: str) -> None:
    assert ask(metrics, request_text).split()[1] == status


def test_only_root_can_connect(metrics: Path) -> None:
    assert stat.S_IMODE(metrics.stat().st_mode) == 0o600


def waits(one: socket.socket) -> bool:
    try:
        one.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def test_silent_clients_do_not_block_others(metrics: Path) -> None:
    def served() -> bool:
        """Whether there is an answer while clients that have not finished their requests are still there."""
        idle = []
        for _ in range(40):
            one = socket.socket(socket.AF_UNIX)
            one.connect(str(metrics))
            one.sendall(b"GET /metrics HTTP/1.1\r\n")
            one.setblocking(False)
            idle.append(one)
        assert scrape(metrics)
        left = sum(waits(one) for one in idle)
        for one in idle:
            one.close()
        return left > 0

    assert any(served() for _ in range(5))      # a slow machine may need longer than they are waited for
    eventually(lambda: scrape(metrics), what="an answer")
