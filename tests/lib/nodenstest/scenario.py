# SPDX-License-Identifier: Apache-2.0
"""What the fixtures of scenarios share: the cluster in which they play, and a namespace of their own."""
import contextlib
from collections.abc import Iterator
from pathlib import Path

from nodensdev import cluster

from .people import Person


@contextlib.contextmanager
def running_cluster(given: str | None, options: cluster.Options, logs: Path) -> Iterator[cluster.Cluster]:
    """The cluster of --cluster, or a new one, which ends afterwards and leaves its logs."""
    if given:
        yield cluster.find(given)
        return
    made = cluster.up(options)
    try:
        yield made
    finally:
        made.copy_logs(logs)
        made.end()


@contextlib.contextmanager
def namespace_of(one: Person, kinds: str) -> Iterator[None]:
    """Creates the namespace of a user. The objects of these kinds are gone afterwards, before the next scenario begins; the namespace
    itself takes the API server longer."""
    one.kubectl("create", "namespace", one.namespace)
    yield
    one.kubectl("delete", kinds, "--all", "--cascade=foreground", "--timeout=300s", timeout=330)
    one.kubectl("delete", "namespace", one.namespace, "--wait=false")
