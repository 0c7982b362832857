# SPDX-License-Identifier: Apache-2.0
"""User scenarios on a real cluster with a stock kubelet: `tools/dev test stories`, or against a cluster that is up with --cluster NAME."""
import os
import uuid
from collections.abc import Iterator

import pytest
from nodensdev import cluster
from nodensdev.project import TOP
from nodenstest.people import Person
from nodenstest.scenario import namespace_of, running_cluster

# So that a story need not wait for hours: logs rotate early, images are garbage at once, and
# pressure ends as soon as its cause does.
KUBELET = {"containerLogMaxSize": "64Ki", "containerLogMaxFiles": 3, "containerLogMonitorInterval": "3s",
           "evictionPressureTransitionPeriod": "5s",
           "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1Gi"}, "imageMinimumGCAge": "1s"}
# What docs/kubelet.md asks for, and what a pod on the host's network with users of its own needs.
GATES = ("UserNamespacesHostNetworkSupport=true", "PodAndContainerStatsFromCRI=true")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", help="a cluster that is up already, with this name")
    parser.addoption("--runtime", default="nodens", help="of the cluster that is started (default: nodens)")
    parser.addoption("--cgroup-driver", default="cgroupfs", help="likewise (default: cgroupfs)")
    parser.addoption("--kernel", default="uml", help="likewise (default: uml)")
    parser.addoption("--copy-mib", type=int, default=64, help="how much kubectl cp copies each way (default: 64)")
    parser.addoption("--figures", help="where to write what was measured, as JSON")
    parser.addoption("--kubelets", help="which older kubelets, divided by commas (default: all)")
    parser.addoption("--kills", type=int, default=1, help="of each part of a rootless node (default: 1)")
    parser.addoption("--api-away", type=int, default=30, help="seconds that the API server does not answer a rootless node (default: 30)")
    parser.addoption("--flannel", action="store_true", help="connect pods of two rootless nodes by flannel, not by a list")
    parser.addoption("--ooms", type=int, default=100, help="containers that are killed for their memory (default: 100)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gate: part of the short form that CI runs; `tools/dev test stories-short`, `versions-short`")
    config.addinivalue_line("markers", "reboot: starts the node anew; `tools/dev test reboot`")
    config.addinivalue_line("markers", "versions: starts clusters with older kubelets; `tools/dev test versions`")
    config.addinivalue_line("markers", "rootless: on a rootless node; `tools/dev test rootless-node`")
    config.addinivalue_line("markers", "nested: engines in pods, with images of their own; `tools/dev test nested`")
    config.addinivalue_line("markers", "storage: volumes on NFS and S3; `tools/dev test storage-node`")
    config.addinivalue_line("markers", "pair: on two rootless nodes; `tools/dev test rootless-nodes`")
    config.addinivalue_line("markers", "throughput: starts two clusters to compare; `tools/dev test throughput`")


@pytest.fixture(scope="session")
def running(request: pytest.FixtureRequest) -> Iterator[cluster.Cluster]:
    options = cluster.Options(name=f"stories-{os.getpid()}", runtime=request.config.getoption("--runtime"),
                              kernel=request.config.getoption("--kernel"), memory="6G",
                              cgroup_driver=request.config.getoption("--cgroup-driver"), kubelet_config=KUBELET, feature_gates=GATES,
                              registry="none")
    logs = TOP / "build/stories" / f"{options.runtime}-{options.cgroup_driver}"
    with running_cluster(request.config.getoption("--cluster"), options, logs) as made:
        yield made


@pytest.fixture
def person(running: cluster.Cluster) -> Iterator[Person]:
    """A user with a namespace, in which nothing runs any more afterwards."""
    one = Person(running, f"story-{uuid.uuid4().hex[:8]}")
    with namespace_of(one, "deployments,jobs,pods"):
        yield one


@pytest.fixture(params=[True, False], ids=["host users", "user namespace"])
def host_users(request: pytest.FixtureRequest) -> bool:
    """The same story with both kinds of pods."""
    return bool(request.param)
