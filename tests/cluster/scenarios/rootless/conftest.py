# SPDX-License-Identifier: Apache-2.0
"""Use of a rootless node in a cluster: `tools/dev test rootless-node`, or against a cluster that is up with --cluster NAME."""
import os
import uuid
from collections.abc import Iterator

import pytest
from alice import Alice
from nodensdev import cluster
from nodensdev.project import TOP


@pytest.fixture(scope="session")
def running(request: pytest.FixtureRequest) -> Iterator[cluster.Cluster]:
    given = request.config.getoption("--cluster")
    if given:
        yield cluster.find(given)
        return
    kernel = request.config.getoption("--kernel")
    options = cluster.Options(name=f"rootless-{os.getpid()}", runtime=request.config.getoption("--runtime"),
                              kernel="uml-nft" if kernel == "uml" else kernel, rootless=True, timeout=900)
    made = cluster.up(options)
    try:
        yield made
    finally:
        made.copy_logs(TOP / "build/rootless-node" / options.runtime)
        made.end()


@pytest.fixture
def alice(running: cluster.Cluster) -> Iterator[Alice]:
    """The owner of the node, with a namespace of the cluster in which nothing runs afterwards."""
    one = Alice(running, f"story-{uuid.uuid4().hex[:8]}")
    one.kubectl("create", "namespace", one.namespace)
    yield one
    one.kubectl("delete", "deployments,services,pods", "--all", "--cascade=foreground", "--timeout=300s", timeout=330)
    one.kubectl("delete", "namespace", one.namespace, "--wait=false")


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How often each part is killed."""
    return int(request.config.getoption("--kills"))


@pytest.fixture
def api_away(request: pytest.FixtureRequest) -> int:
    """For how many seconds the API server does not answer."""
    return int(request.config.getoption("--api-away"))
