# SPDX-License-Identifier: Apache-2.0
"""Nodes on a bridge of the host, attached by LXC's set-user-ID program."""
import json
from collections.abc import Iterator

import pytest
from nodenstest import machine
from nodenstest.machine import BRIDGE4, ECHO, ROUTER4, ROUTER6, client, node, node_run, python, rootless, user, wait_for

NET = ("--net=lxc-user-nic",)


@pytest.fixture(scope="module", autouse=True)
def on_a_bridge(the_machine: None) -> Iterator[None]:
    with machine.bridge():
        yield


@pytest.mark.parametrize("address", [ROUTER4, ROUTER6])
@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_a_node_has_egress_with_its_own_address(address: str, kind: str) -> None:
    seen = node_run(*python(client(address, ECHO, kind)), options=NET).stdout.strip()
    assert seen.startswith("fd03::" if ":" in address else "10.0.3."), seen
    assert seen not in (BRIDGE4, machine.BRIDGE6)


def test_dry_run_shows_the_network_of_the_node() -> None:
    shown = rootless("run", "--dry-run", "--name", "shown", *NET).stdout
    address = next(line.split()[1] for line in shown.splitlines() if line.startswith("address   10.0.3."))
    assert "network   lxc-user-nic, MTU 1500" in shown
    assert f"gateway   {BRIDGE4}" in shown
    links = json.loads(node_run("ip", "-json", "addr", "show", "dev", "tap0", options=("--name", "shown", *NET)).stdout)
    assert address in [f"{a['local']}/{a['prefixlen']}" for a in links[0]["addr_info"]]
    assert links[0]["mtu"] == 1500


def test_the_name_server_is_at_the_bridge_if_the_host_uses_its_own() -> None:
    assert "nameserver" in node_run("cat", "/etc/resolv.conf", options=NET).stdout
    assert "127.0.0" not in node_run("cat", "/etc/resolv.conf", options=NET).stdout


def test_the_link_outlives_the_launcher_and_ports_work() -> None:
    with node("bridged", *NET) as made:
        before = made.shell("cat", "/sys/class/net/tap0/ifindex").stdout
        rootless("ports", "--name", "bridged", "add", "8081:5001")
        made.shell("sh", "-c", "setsid python3 -m http.server -d /etc 5001 >/dev/null 2>&1 &")
        ask = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8081/hostname', timeout=60).read().decode().strip())"
        wait_for(lambda: user(*python(ask), check=False).stdout.strip() == "bridged", what="the port is forwarded to the node")
        assert made.process
        machine.kill(made.process.pid)
        made.process.wait()
        assert made.python(client(ROUTER4)).startswith("10.0.3.")
        made.start()
        assert made.shell("cat", "/sys/class/net/tap0/ifindex").stdout == before
        assert made.python(client(ROUTER4)).startswith("10.0.3.")


def test_the_hosts_loopback_is_not_reachable() -> None:
    assert node_run(*python(client("127.0.0.1", machine.SECRET)), options=NET).stdout.strip() == "ConnectionRefusedError"


def test_without_a_line_for_the_user_the_error_shows_the_command_to_add_it() -> None:
    list_of = machine.Path("/tmp/over-etc/lxc/lxc-usernet")
    list_of.write_text("another veth lxcbr0 20\n# worker veth lxcbr0 20\n")
    try:
        done = node_run("true", options=NET, check=False)
    finally:
        list_of.write_text("worker veth lxcbr0 20\n")
    assert done.returncode == 1
    assert "as root: echo 'worker veth lxcbr0 10' >>/etc/lxc/lxc-usernet" in done.stderr
