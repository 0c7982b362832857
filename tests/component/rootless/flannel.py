# SPDX-License-Identifier: Apache-2.0
"""flannel 0.26.7 in two rootless nodes, beside a stock API server: pods of two hosts reach each other.

`tools/dev test rootless-flannel` runs it; it needs `tools/dev gobin kubernetes` and `tools/dev gobin flannel`.
"""
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import overlay
import pytest
from kubernetes import TOKEN, call, control_plane
from nodenstest import machine
from nodenstest.machine import HOME, LIMIT, ROUTER4, node, wait_for
from overlay import ALPHA_PODS, BETA_PODS, HOSTS4, in_pod, make_pod, ping
from test_ports import add

PROGRAMS = HOME / "flannel"
MTU = 1450
KUBECONFIG = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
              "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
              "clusters": [{"name": "c", "cluster": {"server": f"https://{ROUTER4}:6443", "insecure-skip-tls-verify": True}}],
              "users": [{"name": "u", "user": {"token": TOKEN}}]}
# EnableNFTables: flannel calls nft, not iptables. MTU: flannel would take that of tap0, which is larger than the host's link.
NETWORK = {"Network": "10.244.0.0/16", "EnableNFTables": True, "Backend": {"Type": "vxlan", "Port": 8472, "MTU": MTU}}


@pytest.fixture(scope="module", autouse=True)
def prepared(the_machine: None) -> Iterator[None]:
    found = sorted(Path("/cache/go/flannel").glob("*/flannel"), key=lambda path: path.stat().st_mtime)
    assert found, "`tools/dev gobin flannel` has not been run"
    PROGRAMS.mkdir(exist_ok=True)
    shutil.copy(found[-1], PROGRAMS / "flanneld")
    for name, content in (("kubeconfig", KUBECONFIG), ("net-conf.json", NETWORK)):
        (PROGRAMS / name).write_text(json.dumps(content))
    for path in (PROGRAMS, *PROGRAMS.iterdir()):
        os.chown(path, machine.UID, machine.UID)
    overlay.make_hosts()
    with control_plane():
        yield
    shutil.rmtree(PROGRAMS)


def start(made: machine.Node, host: str, network: str) -> None:
    """As docs/rootless-nodes.md says: the port is published, and flannel runs as root of the node."""
    call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": made.name},
                                   "spec": {"podCIDR": f"{network}.0/24", "podCIDRs": [f"{network}.0/24"]}})
    add(made, "8472:8472/udp")
    made.shell("sh", "-c", f"NODE_NAME={made.name} setsid {PROGRAMS}/flanneld --kube-subnet-mgr --kubeconfig-file={PROGRAMS}/kubeconfig "
               f"--net-config-path={PROGRAMS}/net-conf.json --iface=tap0 --public-ip={HOSTS4[host]} --ip-masq --iptables-forward-rules=false "
               ">/run/flannel.log 2>&1 &")


def log(made: machine.Node) -> str:
    return made.shell("cat", "/run/flannel.log").stdout


def test_pods_of_two_hosts_reach_each_other_by_flannel() -> None:
    with node("flannel-alpha", "--bind", f"{PROGRAMS}:ro") as alpha, node("flannel-beta", "--bind", f"{PROGRAMS}:ro", host="beta") as beta:
        for made, host, network in ((alpha, "alpha", ALPHA_PODS), (beta, "beta", BETA_PODS)):
            start(made, host, network)
            wait_for(lambda made=made: "Running backend" in log(made), LIMIT, log(made))
            make_pod(made, network, MTU)
        for made, other in ((alpha, BETA_PODS), (beta, ALPHA_PODS)):
            wait_for(lambda made=made, other=other: f"{other}.0/24" in made.shell("ip", "route").stdout, LIMIT, log(made))
        assert f"mtu {MTU}" in alpha.shell("ip", "link", "show", "flannel.1").stdout
        for made, own, other in ((alpha, ALPHA_PODS, BETA_PODS), (beta, BETA_PODS, ALPHA_PODS)):
            for kind in ("tcp", "udp"):
                assert in_pod(made, *machine.python(machine.client(f"{other}.2", 5000, kind))) == f"{own}.2", log(made)
        assert ping(alpha, f"{BETA_PODS}.2", MTU - 28, whole=True) == "reply"
        assert in_pod(alpha, *machine.python(machine.client(ROUTER4, machine.ECHO))) == machine.ALPHA4, "masqueraded"
