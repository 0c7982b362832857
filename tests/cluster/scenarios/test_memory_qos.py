# SPDX-License-Identifier: Apache-2.0
"""MemoryQoS, on by default since Kubernetes 1.37: the kubelet's memory.min, memory.low and memory.high reach the containers' cgroups."""
import os
import uuid
from collections.abc import Iterator

import pytest
from nodensdev import cluster
from nodensdev.project import TOP
from nodenstest.people import FOREVER, Person, container
from nodenstest.scenario import namespace_of, running_cluster

pytestmark = pytest.mark.versions
MIB = 1 << 20
FACTOR = 0.5
# In MiB: request and limit; the expected memory.min, memory.low and memory.high.
CASES = {
    "guaranteed": (64, 64, 64, 0, None),
    "burstable": (64, 128, 0, 64, 64 + FACTOR * 64),
}


@pytest.fixture(scope="module", params=["cgroupfs", "systemd"])
def user(request: pytest.FixtureRequest) -> Iterator[Person]:
    options = cluster.Options(
        name=f"memory-qos-{os.getpid()}", runtime="nodens", cgroup_driver=request.param,
        kubelet_config={"memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": FACTOR})
    with running_cluster(None, options, TOP / "build/stories" / f"memory-qos-{request.param}") as made:
        one = Person(made, f"story-{uuid.uuid4().hex[:8]}")
        with namespace_of(one, "pods"):
            yield one


def figure(user: Person, name: str, file: str) -> str:
    """The file of the container's own cgroup, which is the root of its cgroup namespace."""
    return user.kubectl("exec", name, "--", "cat", f"/sys/fs/cgroup/{file}").strip()


@pytest.mark.parametrize("host_users", [False, True], ids=["own-users", "host-users"])
@pytest.mark.parametrize("name", list(CASES))
def test_requests_and_limits_become_protection_and_throttling(user: Person, name: str, host_users: bool) -> None:
    request, limit, least, low, high = CASES[name]
    pod = f"{name}-{'host' if host_users else 'own'}"
    resources = {"requests": {"memory": f"{request}Mi", "cpu": "50m"}, "limits": {"memory": f"{limit}Mi", "cpu": "50m"}}
    user.pod(pod, container(FOREVER, resources=resources), hostUsers=host_users)
    user.ready(pod)
    assert figure(user, pod, "memory.max") == str(limit * MIB)
    assert figure(user, pod, "memory.min") == str(least * MIB)
    assert figure(user, pod, "memory.low") == str(low * MIB)
    assert figure(user, pod, "memory.high") == ("max" if high is None else str(int(high * MIB)))
