# SPDX-License-Identifier: Apache-2.0
"""The kubelet's own CRI client (k8s.io/cri-client on grpc-go) at work on nodens-cri's images."""
import subprocess
from collections.abc import Iterator

import pytest
from nodenstest import runtimes

IMAGE = "e2e-test-images/busybox:1.37.0-2"


@pytest.fixture
def served(messages: runtimes.Messages) -> Iterator[tuple[runtimes.NodensCri, runtimes.registry_server.Site]]:
    with runtimes.registry() as site, runtimes.scratch() as directory:
        runtime = runtimes.NodensCri(directory / "r", messages)
        runtimes.trust(site, runtime.certificates)
        runtime.start().close()
        yield runtime, site
        assert runtime.stop() == 0, runtime.tail()


def test_the_kubelets_client_works_with_images(served: tuple[runtimes.NodensCri, runtimes.registry_server.Site]) -> None:
    runtime, site = served
    client = runtimes.newest("go/criclient/*") / "criclient"
    done = subprocess.run([client, "images", runtime.socket, f"{site.name}/{IMAGE}"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "not ok" not in done.stdout and done.stdout.count("ok - ") >= 6, done.stdout + done.stderr
