# SPDX-License-Identifier: Apache-2.0
"""Who has which address. Every cluster has the same ones, each in a network namespace of its own."""
CONTROL_PLANE = "10.88.0.1"
NETWORK = "10.88.0.0/24"
API_SERVER = f"https://{CONTROL_PLANE}:6443"
SERVICES = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"      # `kubernetes`
CLUSTER_DNS = "10.96.0.10"       # without a server: the testbed has no DNS
BRIDGE = "nodes"


def node(number: int) -> str:
    return f"10.88.0.{number + 1}"


def node_name(number: int) -> str:
    return f"node{number}"


def pods(number: int) -> str:
    """The pods' network on a node."""
    return f"10.89.{number}.0/24"


def tap(number: int) -> str:
    return f"tap{number}"


def mac(number: int) -> str:
    return f"52:54:00:88:00:{number:02x}"
