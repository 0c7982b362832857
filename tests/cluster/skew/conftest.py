# SPDX-License-Identifier: Apache-2.0
"""Kubelets and control planes of several versions and feature gates, on one cluster: `tools/dev test skew`.

The node's kubelet and the API server are replaced under running pods. The cells that were as expected, for the tables of
docs/version-skew.md, are in build/skew.json afterwards.
"""
import os
from collections.abc import Iterator

import pytest
from nodensdev import cluster, compatibility, skew
from nodensdev.cluster import switch
from nodensdev.project import TOP
from nodenstest.people import Person
from nodenstest.scenario import running_cluster
from nodenstest.skew import HOST_NETWORK, Journal, Kubelet, create, end, new_person, outcome, spec_of

JOURNAL = Journal()
ALLOWS_HOST_NETWORK = f"--feature-gates={HOST_NETWORK}=true"
PLAIN = Kubelet("1.36")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", help="a cluster that is up already, started with --runtime nodens --feature-gates '' "
                                       "--control-plane 1.36 --kubelet 1.36")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keeps the cells whose tests have passed."""
    if JOURNAL.cells:
        skew.keep(skew.NEWEST, JOURNAL.cells, JOURNAL.node)


@pytest.fixture(scope="session")
def one(request: pytest.FixtureRequest) -> Iterator[cluster.Cluster]:
    options = cluster.Options(name=f"skew-{os.getpid()}", runtime="nodens", feature_gates=(), plane="1.36", kubelet="1.36")
    with running_cluster(request.config.getoption("--cluster"), options, TOP / "build/stories/skew") as made:
        JOURNAL.node |= compatibility.facts_of(made.node_exec(compatibility.FACTS).stdout)
        first_pod(made)
        yield made


def first_pod(one: cluster.Cluster) -> None:
    """Leaves on the node what stays after the first pod that ever ran: the bridge, directories of CNI."""
    person = new_person(one)
    create(person, "first", spec_of(hostUsers=False))
    outcome(person, "first")
    end(person)


@pytest.fixture(scope="session")
def journal() -> Journal:
    return JOURNAL


@pytest.fixture(scope="module")
def lenient(one: cluster.Cluster) -> Iterator[cluster.Cluster]:
    """An API server that admits pods with host network and hostUsers: false."""
    switch.flags(one, "kube-apiserver", ALLOWS_HOST_NETWORK)
    yield one
    switch.flags(one, "kube-apiserver")


@pytest.fixture
def plain(one: cluster.Cluster) -> Iterator[cluster.Cluster]:
    """The cluster with the control plane's own kubelet, before and after the test."""
    PLAIN.start(one)
    yield one
    PLAIN.start(one)


@pytest.fixture
def person(one: cluster.Cluster) -> Iterator[Person]:
    """A user with a namespace, which goes also after a test that failed: its pods would be traces for the next one."""
    made = new_person(one)
    yield made
    end(made)
