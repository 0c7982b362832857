# SPDX-License-Identifier: Apache-2.0
"""Hosts, lists of nodes, pods and frames for the tests of nodes with peers.

    beta    10.78.0.2  fd78::2      a second host, behind the router
    gamma   10.79.0.2               a host that is not a peer
"""
import socket
import struct
from pathlib import Path

from nodenstest import machine
from nodenstest.machine import ALPHA4, ALPHA6, HOME

BETA4, BETA6, GAMMA4 = "10.78.0.2", "fd78::2", "10.79.0.2"
HOSTS4, HOSTS6 = {"alpha": ALPHA4, "beta": BETA4}, {"alpha": ALPHA6, "beta": BETA6}
VXLAN, VNI = 8472, 28260
ALPHA_PODS, BETA_PODS, OTHER_PODS = "10.244.1", "10.244.2", "10.244.3"
DEVICE = "nodens-vxlan"


def make_hosts() -> None:
    """Beta and gamma, each behind the router."""
    if Path("/run/netns/beta").exists():
        return
    for switch in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        machine.run(*machine.within("router", "sh", "-c", f"echo 1 >/proc/sys/net/{switch}"))
    for name, network in (("beta", "78"), ("gamma", "79")):
        machine.run("ip", "netns", "add", name)
        machine.run("ip", "-n", name, "link", "set", "lo", "up")
        machine.run("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", f"to-{name}", "netns", "router")
        for where, link, number in ((name, "eth0", 2), ("router", f"to-{name}", 1)):
            machine.run("ip", "-n", where, "addr", "add", f"10.{network}.0.{number}/24", "dev", link)
            machine.run("ip", "-n", where, "addr", "add", f"fd{network}::{number}/64", "dev", link, "nodad")
            machine.run("ip", "-n", where, "link", "set", link, "up")
        machine.run("ip", "-n", name, "route", "add", "default", "via", f"10.{network}.0.1")
        machine.run("ip", "-n", name, "-6", "route", "add", "default", "via", f"fd{network}::1")


def write_list(name: str, text: str) -> Path:
    """A list of nodes, as a file of the user."""
    path = HOME / f"{name}.nodes"
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.chmod(0o644)
    draft.rename(path)
    return path


def two_nodes(prefix: str, hosts: dict[str, str] | None = None, more: str = "", port: int = VXLAN) -> str:
    hosts = {name: f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for name, address in (hosts or HOSTS4).items()}
    return (f"{prefix}-alpha {ALPHA_PODS}.0/24 {hosts['alpha']}\n"
            f"{prefix}-beta {BETA_PODS}.0/24 {hosts['beta']}\n{more}")


PING = """
import os, socket, struct, time
def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data)); total = (total & 0xffff) + (total >> 16); return ~(total + (total >> 16)) & 0xffff
def ping(address, size, whole):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); s.settimeout(1)
    if whole: s.setsockopt(socket.IPPROTO_IP, 10, 2)     # IP_MTU_DISCOVER, IP_PMTUDISC_DO: the kernel sets DF and does not fragment
    for attempt in range(10):
        head = struct.pack("!BBHHH", 8, 0, 0, os.getpid() & 0xffff, attempt); body = bytes(size)
        packet = head[:2] + struct.pack("!H", checksum(head + body)) + head[4:] + body
        try: s.sendto(packet, (address, 0))
        except OSError as error: return error.strerror
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try: data, peer = s.recvfrom(65536)
            except TimeoutError: break
            if data[20] == 0 and data[24:26] == head[4:6] and len(data) == 28 + size: return "reply"
    return "no reply"
"""


def ping(made: machine.Node, address: str, size: int = 56, whole: bool = False) -> str:
    """Returns "reply", "no reply" or the error of the kernel; the size is without headers, whole sets DF."""
    return in_pod(made, *machine.python(PING + f"print(ping({address!r}, {size}, {whole}))"))


RECEIVER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("0.0.0.0", 5001))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(65536); print(peer[0], data[:64].decode(errors="replace"), flush=True)
"""


def make_pod(made: machine.Node, network: str, mtu: int) -> None:
    """A network namespace on a bridge, as the CNI plugin makes it: a server that replies with the client's address, and a receiver."""
    made.shell(
        "sh",
        "-ec",
        f"""
        ip link add nodens0 type bridge; ip addr add {network}.1/24 dev nodens0; ip link set nodens0 mtu {mtu} up
        touch /run/pod; unshare --net=/run/pod true; ip link add veth0 mtu {mtu} type veth peer name eth0 mtu {mtu}; ip link set veth0 master nodens0 up
        ip link set eth0 netns /run/pod
        nsenter --net=/run/pod sh -ec 'ip addr add {network}.2/24 dev eth0; ip link set eth0 up; ip link set lo up; ip route add default via {network}.1'
        """,
    )
    for file, code, word in (("server", machine.SERVER, f"{network}.2/5000"), ("received", RECEIVER, "")):
        made.shell("sh", "-c", f'setsid nsenter --net=/run/pod python3 -c "$0" {word} >/run/{file} 2>&1 & '
                   f'while ! grep -q ready /run/{file}; do sleep 0.02; done', code)


def in_pod(made: machine.Node, *command: str, check: bool = True) -> str:
    return made.shell("nsenter", "--net=/run/pod", *command, check=check).stdout.strip()


def received(made: machine.Node) -> str:
    return made.shell("cat", "/run/received").stdout


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff


def frame(source: str, destination: str, text: str, network: str = ALPHA_PODS, vni: int = VNI, port: int = 5001) -> bytes:
    """A VXLAN datagram with a UDP packet, as the kernel of a peer would send it to the node of that network."""
    data = text.encode()
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(data), 1, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(destination))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    mac = b"\x0e\x6e" + socket.inet_aton(f"{network}.0")
    ethernet = mac + b"\x0e\x6e\0\0\0\1" + b"\x08\0"
    return struct.pack("!BBHI", 8, 0, 0, vni << 8) + ethernet + head + struct.pack("!HHHH", 4000, port, 8 + len(data), 0) + data


def sender(datagram: bytes, host: str, port: int = VXLAN) -> tuple[str, ...]:
    """A command that sends a datagram three times."""
    return machine.python(f"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                          f"for i in range(3): s.sendto(bytes.fromhex({datagram.hex()!r}), ({host!r}, {port}))")


def send(network: str, datagram: bytes, host: str = ALPHA4, port: int = VXLAN) -> None:
    machine.run(*machine.within(network, *sender(datagram, host, port)))
