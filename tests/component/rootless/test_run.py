# SPDX-License-Identifier: Apache-2.0
"""`nodens-rootless run`: one command in a node of its own."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from nodenstest import machine
from nodenstest.machine import ALPHA4, ROUTER4, ROUTER6, SUBIDS, UID, node_run, python


def test_a_command_runs_as_root_of_its_own_namespaces() -> None:
    kinds = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
    inside = node_run("sh", "-c", "id -u; id -g; hostname; echo $$; readlink " + " ".join(f"/proc/self/ns/{kind}" for kind in kinds),
                      options=("--name", "alone")).stdout.split()
    assert inside[:3] == ["0", "0", "alone"]
    assert int(inside[3]) < 10, "it has process numbers of its own"
    outside = [os.readlink(f"/proc/self/ns/{kind}") for kind in kinds]
    assert not set(inside[4:]) & set(outside) and len(inside[4:]) == len(kinds)


def test_all_subordinate_ids_are_mapped_and_the_user_is_root() -> None:
    with machine.node("mapped", "--net", "none") as made:
        state = made.state()
        assert state
        outside = [Path(f"/proc/{state['pid']}/{kind}_map").read_text().split() for kind in ("uid", "gid")]
        assert outside == 2 * [["0", str(UID), "1", "1", str(machine.SUBID), str(SUBIDS)]]
        inside = [made.shell("cat", f"/proc/self/{kind}_map").stdout.split() for kind in ("uid", "gid")]
        assert inside == 2 * [["0", "0", "1", "1", "1",
                               str(SUBIDS)]], "the node's user namespace is in one of the builder's with the same IDs"


def test_the_supplementary_groups_are_gone_and_nested_maps_can_be_written() -> None:
    done = node_run("sh", "-c", "id -G; unshare --user --map-users=0:65536:65536 --map-groups=0:65536:65536 cat /proc/self/uid_map")
    assert done.stdout.split() == ["0", "0", "65536", "65536"]


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_the_exit_status_is_the_commands(script: str, code: int) -> None:
    assert node_run("sh", "-c", script, check=False).returncode == code


def test_a_missing_program_gives_127_and_its_name() -> None:
    done = node_run("no-such-program", check=False)
    assert done.returncode == 127 and "no-such-program" in done.stderr


def test_standard_streams_are_the_callers() -> None:
    done = node_run("sh", "-c", "cat; echo err >&2", input="through\n")
    assert done.stdout == "through\n" and done.stderr == "err\n"


def test_a_terminated_launcher_forwards_the_signal() -> None:
    process = subprocess.Popen(machine.as_user(machine.PROGRAM, "run", "--", "sh", "-c",
                                               "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.1; done"),
                               stdout=subprocess.PIPE, text=True, env=machine.environment(), cwd="/")
    assert process.stdout and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "got it\n" and process.wait(machine.LIMIT) == 3


def test_a_node_ends_with_its_killed_launcher() -> None:
    process = subprocess.Popen(machine.as_user(machine.PROGRAM, "run", "--name", "doomed", "--", "sh", "-c", "echo ready; exec sleep 1000"),
                               stdout=subprocess.PIPE, text=True, env=machine.environment(), cwd="/")
    assert process.stdout and process.stdout.readline() == "ready\n"
    holder = int((machine.RUNTIME / "nodens/doomed/api/child_pid").read_text())
    assert machine.alive(holder)
    process.kill()
    machine.wait_for(lambda: not machine.alive(holder), what="the holder is gone")
    assert process.stdout.read() == "", "no process holds its output any more"


def test_orphans_are_reaped_and_killed_with_the_node() -> None:
    done = node_run("sh", "-c",
                    "(sleep 0.123 &) ; (sleep 1000 &); for i in $(seq 600); do ps -e -o stat=,args= | grep -qE '^Z|^[^ ]+ +sleep 0.123' || "
                    "exec echo reaped; sleep 0.1; done")
    assert done.stdout.strip() == "reaped"


def test_rootlesskits_variables_are_set_and_socket_variables_are_not() -> None:
    env = machine.environment(SSH_AUTH_SOCK="/tmp/agent", DBUS_SESSION_BUS_ADDRESS="unix:path=/x", KEPT="yes")
    lines = dict(line.split("=", 1) for line in node_run("env", options=("--name", "vars"), env=env).stdout.splitlines())
    assert lines["ROOTLESSKIT_PARENT_EUID"] == str(UID) and lines["ROOTLESSKIT_PARENT_EGID"] == str(UID)
    assert lines["ROOTLESSKIT_STATE_DIR"] == f"{machine.RUNTIME}/nodens/vars/api"
    assert lines["KEPT"] == "yes" and "SSH_AUTH_SOCK" not in lines and "DBUS_SESSION_BUS_ADDRESS" not in lines


def test_nothing_is_left_behind() -> None:
    node_run("true", options=("--name", "tidy"))
    assert not (machine.RUNTIME / "nodens/tidy").exists()
    # A helper whose launcher was killed (see above) notices the end of its node within some
    # seconds.
    machine.wait_for(lambda: "pasta" not in machine.run("ps", "-e", "-o", "comm=").stdout, what="no helper is left")


@pytest.mark.parametrize("driver", ["pasta", "slirp4netns"])
@pytest.mark.parametrize(("address", "kind"), [(ROUTER4, "tcp"), (ROUTER4, "udp"), (ROUTER6, "tcp"), (ROUTER6, "udp")])
def test_egress_works(driver: str, address: str, kind: str) -> None:
    seen = node_run(*python(machine.client(address, kind=kind)), options=("--net", driver)).stdout.strip()
    assert seen == (ALPHA4 if address == ROUTER4 else machine.ALPHA6), "servers see the host's address"


def test_the_mtu_is_that_of_the_option() -> None:
    assert "mtu 1400" in node_run("ip", "link", "show", "tap0", options=("--mtu", "1400")).stdout


def test_without_a_network_there_is_only_lo() -> None:
    assert node_run("ls", "/sys/class/net", options=("--net", "none")).stdout.split() == ["lo"]
    assert node_run(*python(machine.client(ROUTER4)), options=("--net", "none")).stdout.strip() == "OSError"


def test_net_host_is_the_hosts_network_namespace() -> None:
    done = node_run("readlink", "/proc/self/ns/net", options=("--net", "host"))
    assert done.stdout.strip() == machine.run(*machine.within("alpha", "readlink", "/proc/self/ns/net")).stdout.strip()
    assert node_run(*python(machine.client(ROUTER4)), options=("--net", "host")).stdout.strip() == ALPHA4


def test_forwarding_and_loose_filtering_are_set() -> None:
    done = node_run("cat", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding",
                    "/proc/sys/net/ipv4/conf/all/rp_filter")
    assert done.stdout.split() == ["1", "1", "2"]


def test_a_vxlan_device_and_nat_can_be_created() -> None:
    node_run("sh", "-ec", "ip link add flannel.1 type vxlan id 1 dev tap0 dstport 8472; ip link set flannel.1 up; "
                          "nft add table ip n; nft 'add chain ip n p { type nat hook postrouting priority 100; }'; nft add rule ip n p "
                          "masquerade")


@pytest.mark.parametrize(("options", "words"), [
    (("--net", "vde"), "unknown network driver 'vde'"), (("--mtu", "100"), "invalid MTU 100"),
    (("--name", "Not/A/Name"), "invalid node name"),
    (("--data", "relative"), "absolute"), (("--bind", "/run/user"), "denied"), (("--bind", str(machine.HOME)), "denied"),
    (("--bind", "/tmp"), "denied"), (("--bind", "/"), "denied"), (("--bind", str(machine.RUNTIME)), "denied"),
])
def test_invalid_settings_are_rejected_with_an_explanation(options: tuple[str, ...], words: str) -> None:
    done = node_run("true", options=options, check=False)
    assert done.returncode != 0 and words in done.stderr


def test_root_is_rejected() -> None:
    done = subprocess.run([machine.PROGRAM, "run", "--", "true"], capture_output=True, text=True,
                          env=machine.environment(XDG_RUNTIME_DIR="/run"))
    assert done.returncode != 0 and "must not run as root" in done.stderr


@pytest.mark.parametrize("lines, inside", [("another:1:1\n", ["0 1234 1"]),
                                           ("worker:100000:2048\n", ["0 1234 1", "1 100000 2045", "65532 102045 3"])], ids=["one", "few"])
def test_a_node_runs_with_the_ids_that_there_are(lines: str, inside: list[str]) -> None:
    before = {name: Path(name).read_text() for name in ("/etc/subuid", "/etc/subgid")}
    try:
        for name in before:
            Path(name).write_text(lines)
        with machine.node("few", "--net", "none") as node:
            state = node.state()
            assert state and state["ids"] == sum(int(line.split()[2]) for line in inside) and state["podsWithUserNamespaces"] == 0
            for kind in ("uid", "gid"):
                maps = [" ".join(line.split()) for line in Path(f"/proc/{state['pid']}/{kind}_map").read_text().splitlines()]
                assert maps == inside
            assert node.shell("id", "-u").stdout == "0\n"
            assert (node.shell("cat", "/proc/self/setgroups").stdout == "deny\n") == (len(inside) == 1)
            told = machine.rootless("status", "--name", "few").stdout
            assert f"  ids        {state['ids']} ID" in told and "runAsUser, runAsGroup, fsGroup and supplementalGroups: only users" in told
    finally:
        for name, text in before.items():
            Path(name).write_text(text)


def test_a_hanging_newuidmap_is_killed_and_named_in_the_error() -> None:
    directory = machine.HOME / "bin"
    directory.mkdir(exist_ok=True)
    (directory / "newuidmap").write_text("#!/bin/sh\nexec sleep 1000\n")
    (directory / "newuidmap").chmod(0o755)
    started = time.monotonic()
    done = node_run("true", check=False, env=machine.environment(PATH=f"{directory}:{os.environ['PATH']}"))
    assert done.returncode != 0 and "newuidmap did not end in time" in done.stderr
    assert 10 < time.monotonic() - started < 60
