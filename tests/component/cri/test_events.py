# SPDX-License-Identifier: Apache-2.0
"""GetContainerEvents: what a kubelet with the gate EventedPLEG lives from."""
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from nodenstest import runtimes
from nodenstest.pods import SLEEP, TIMEOUT, Pods, eventually, peer_pid

CREATED, STARTED, STOPPED, DELETED = range(4)


class Follower:
    """Collects events in a thread of its own."""

    def __init__(self, pods: Pods) -> None:
        self.stream = pods.runtime.GetContainerEvents(pods.pb.GetEventsRequest())
        self.found: list[Any] = []
        self.error: grpc.RpcError | None = None
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self) -> None:
        try:
            self.found.extend(iter(self.stream))
        except grpc.RpcError as error:
            self.error = error

    def of(self, wanted: str) -> list[int]:
        return [event.container_event_type for event in list(self.found) if event.container_id == wanted]

    def last(self, wanted: str, kind: int) -> Any:
        return [event for event in self.found if event.container_id == wanted and event.container_event_type == kind][-1]


@contextlib.contextmanager
def following(pods: Pods) -> Iterator[Follower]:
    follower = Follower(pods)
    if pods.client.version().runtime_name == "containerd":      # which does not say when it has begun to listen
        time.sleep(0.3)
    else:
        follower.stream.initial_metadata()
    try:
        yield follower
    finally:
        follower.stream.cancel()
        follower.thread.join(TIMEOUT)


def test_events_of_a_pod_have_its_status(pods: Pods) -> None:
    with following(pods) as follower:
        pod = pods.run()
        one = pod.container(SLEEP)
        eventually(lambda: follower.of(one.id) == [CREATED, STARTED], what="the start")
        event = follower.last(one.id, STARTED)
        assert event.created_at > 0
        assert event.pod_sandbox_status.id == pod.id
        assert event.pod_sandbox_status.metadata.uid == pod.config.metadata.uid
        assert event.pod_sandbox_status.state == pods.pb.SANDBOX_READY
        assert [status.id for status in event.containers_statuses] == [one.id]
        assert event.containers_statuses[0].state == pods.pb.CONTAINER_RUNNING
        one.stop()
        eventually(lambda: follower.of(one.id) == [CREATED, STARTED, STOPPED], what="the end")
        status = follower.last(one.id, STOPPED).containers_statuses[0]
        assert (status.state, status.exit_code) == (pods.pb.CONTAINER_EXITED, 137)
        one.remove()
        eventually(lambda: follower.of(one.id) == [CREATED, STARTED, STOPPED, DELETED], what="the removal")
        assert not follower.last(one.id, DELETED).containers_statuses
        pod.stop()
        pod.remove()
        eventually(lambda: follower.of(pod.id) == [CREATED, STARTED, STOPPED, DELETED], what="the pod's removal")


def test_the_deletion_of_a_pod_names_it(pods: Pods) -> None:
    """Without the pod's uid in it a kubelet cannot find the cache entry to drop, and logs that."""
    with following(pods) as follower:
        pod = pods.run()
        pod.stop()
        pod.remove()
        eventually(lambda: DELETED in follower.of(pod.id), what="the removal")
        assert follower.last(pod.id, DELETED).pod_sandbox_status.metadata.uid == pod.config.metadata.uid


def test_an_exit_by_itself_is_an_event(plain_pods: Pods) -> None:
    with following(plain_pods) as follower:
        one = plain_pods.run().container("exit 7")
        eventually(lambda: STOPPED in follower.of(one.id), what="the end")
        assert follower.last(one.id, STOPPED).containers_statuses[0].exit_code == 7


def test_two_followers_hear_the_same(plain_pods: Pods) -> None:
    with following(plain_pods) as one, following(plain_pods) as other:
        pod = plain_pods.run()
        eventually(lambda: one.of(pod.id) == [CREATED, STARTED] and other.of(pod.id) == [CREATED, STARTED], what="both to hear of it")


def test_a_slow_reader_delays_no_other_and_gets_the_latest_state(plain_pods: Pods, subject: Any) -> None:
    """An unread stream: the daemon goes on, keeps its memory bounded, and sends the current state when it is read at last."""
    if subject.name != "nodens-cri":
        pytest.skip("containerd keeps every event for its followers")
    options = [("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0)]
    with grpc.insecure_channel(f"unix:{subject.socket}", options=options) as channel:
        path = "/runtime.v1.RuntimeService/GetContainerEvents"
        stream = channel.unary_stream(path, request_serializer=bytes,
                                      response_deserializer=plain_pods.pb.ContainerEventResponse.FromString)(b"")
        stream.initial_metadata()
        before = resident(subject.socket)
        annotations = {f"key-{number}": "x" * 4000 for number in range(48)}    # each event is about 200 kB
        pod = plain_pods.run(annotations=annotations)
        containers = [pod.container(SLEEP, start=False, name=f"c{number}") for number in range(12)]
        for one in containers:
            one.remove()
        assert runtimes.SANITIZED or resident(subject.socket) - before < 4 << 20
        newest = {}
        for event in stream:
            newest[event.container_id] = event.container_event_type
            if len(newest) == 13 and all(newest[one.id] == DELETED for one in containers):
                break
        stream.cancel()


def resident(socket: str) -> int:
    with open(f"/proc/{peer_pid(socket)}/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))
