# SPDX-License-Identifier: Apache-2.0
"""Use of a rootless node in a cluster: `tools/dev test rootless-node`, or against a cluster that is up with --cluster NAME."""
import os
import uuid
from collections.abc import Iterator

import pytest
from alice import Alice
from nodensdev import cluster
from nodensdev.project import TOP
from nodenstest.scenario import namespace_of, running_cluster


@pytest.fixture(scope="session")
def running(request: pytest.FixtureRequest) -> Iterator[cluster.Cluster]:
    kernel = request.config.getoption("--kernel")
    options = cluster.Options(name=f"rootless-{os.getpid()}", runtime=request.config.getoption("--runtime"),
                              kernel="uml-nft" if kernel == "uml" else kernel, rootless=True, timeout=900)
    with running_cluster(request.config.getoption("--cluster"), options, TOP / "build/rootless-node" / options.runtime) as made:
        yield made


@pytest.fixture
def alice(running: cluster.Cluster) -> Iterator[Alice]:
    """The owner of the node, with a namespace of the cluster in which nothing runs afterwards."""
    one = Alice(running, f"story-{uuid.uuid4().hex[:8]}")
    with namespace_of(one, "deployments,services,pods"):
        yield one


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How often each part is killed."""
    return int(request.config.getoption("--kills"))


@pytest.fixture
def api_away(request: pytest.FixtureRequest) -> int:
    """For how many seconds the API server does not answer."""
    return int(request.config.getoption("--api-away"))
