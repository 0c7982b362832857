# SPDX-License-Identifier: Apache-2.0
"""A node whose user has no delegated cgroup."""
from nodenstest import machine
from test_pods import Kubelet


def test_a_node_that_cannot_create_cgroups_is_not_ready_and_says_why() -> None:
    with machine.node("bare", "--net", "none", "--bind", "/nodens:ro,/cache:ro") as node:
        kubelet = Kubelet(node.name)
        try:
            status = kubelet.ask("status")
            assert status["conditions"] == {"RuntimeReady": False, "NetworkReady": True}
            assert "this node may not create any: start it with a delegated cgroup" in status["messages"]["RuntimeReady"]
        finally:
            kubelet.end()
