# SPDX-License-Identifier: Apache-2.0
"""A pull that was killed goes on where it was: the second try fetches less."""
import random
import signal
import threading
import time
from pathlib import Path

import grpc
import pytest
from nodenstest import images as make
from nodenstest import runtimes
from wire import Wire

SIZE = 24 << 20


@pytest.fixture(scope="module")
def large(site: runtimes.registry_server.Site) -> str:
    """One layer that does not compress."""
    data = make.tar(make.entry("random", random.Random(1).randbytes(SIZE)))
    return site.publish(make.Image().layer(data, "none"), "store/large:1")


@pytest.mark.parametrize("victim", ["nodens-cri", "deadline"])
def test_a_pull_that_was_cut_off_is_resumed(site: runtimes.registry_server.Site, large: str, directory: Path, messages: runtimes.Messages,
                                            victim: str) -> None:
    runtime = runtimes.NodensCri(directory / "r", messages)
    with Wire(site.port, rate=4 << 20) as wire:
        runtimes.trust(site, runtime.certificates, f"https://{runtimes.registry_server.testbed.HOST}:{wire.port}")
        client = runtime.start()

        def pull() -> None:
            with pytest.raises(grpc.RpcError):
                client.images.PullImage(client.pb.PullImageRequest(image=client.pb.ImageSpec(image=large)), timeout=3
                                        if victim == "deadline" else 60)

        thread = threading.Thread(target=pull)
        thread.start()
        deadline = time.monotonic() + 60
        while victim == "nodens-cri" and wire.received < SIZE // 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        if victim == "nodens-cri":
            runtime.stop(signal.SIGKILL)
            client.close()
        thread.join()
        time.sleep(0.5)
        first, wire.received, wire.rate = wire.received, 0, 0
        if victim == "nodens-cri":
            client = runtime.start()
        client.pull(large)
        second = wire.received
        assert runtime.stop() == 0
    print(f"{victim}: {first} bytes, then {second} of {SIZE}")
    assert 0 < first < SIZE, "the first try was not cut off"
    assert second < SIZE - first // 2, f"fetched {first} bytes, and then {second} of {SIZE} again"
