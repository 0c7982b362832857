# SPDX-License-Identifier: Apache-2.0
"""Persistent nodes: up, status, shell, down; and which processes survive the death of others."""
import json
import os
import subprocess
import time
import uuid
from pathlib import Path

import pytest
from nodenstest import machine
from nodenstest.machine import ALPHA4, ECHO, HOME, ROUTER4, node, rootless


def test_up_status_shell_and_down() -> None:
    with node("first") as made:
        state = made.state()
        assert state and state["net"] == "pasta" and state["helper"] > 0 and state["ids"] == 1 + machine.SUBIDS
        assert made.shell("hostname").stdout.strip() == "first"
        assert made.shell("sh", "-c", "exit 9", check=False).returncode == 9
        assert made.python(machine.client(ROUTER4)) == ALPHA4
        assert "first" in rootless("status").stdout
        rootless("down", "--name", "first")
        assert made.process and made.process.wait(machine.LIMIT) == 0
        assert made.state() is None and not machine.alive(state["pid"])
        machine.wait_for(lambda: not machine.alive(state["helper"]), what="the helper has exited, too")


def test_terminating_the_foreground_stops_the_node() -> None:
    with node("polite") as made:
        state = made.state()
        assert state and made.process
        made.process.terminate()
        assert made.process.wait(machine.LIMIT) == 0 and not machine.alive(state["pid"])


def test_processes_in_a_node_are_terminated_gracefully() -> None:
    with node("graceful") as made:
        made.shell("sh", "-c",
                   "(trap 'echo bye >/var/lib/farewell; exit' TERM; touch /run/ready; while :; do sleep 0.05; done) >/dev/null 2>&1 & "
                               "while ! test -e /run/ready; do sleep 0.02; done")
        rootless("down", "--name", "graceful")
        assert (HOME / ".local/share/nodens/graceful/lib/farewell").read_text() == "bye\n"


def test_the_data_directory_is_persistent() -> None:
    for round_number in (1, 2):
        with node("keeper") as made:
            made.shell("sh", "-c", f"echo {round_number} >>/var/lib/kept; mkdir -p /var/log/pods; chown 1000:1000 /var/lib/kept")
    kept = HOME / ".local/share/nodens/keeper/lib/kept"
    assert kept.read_text() == "1\n2\n" and kept.stat().st_uid == machine.SUBID + 999


def test_purge_removes_files_of_subordinate_ids() -> None:
    with node("purged") as made:
        made.shell("sh", "-ec",
                   "mkdir -p /var/lib/deep/er; touch /var/lib/deep/er/x; chown -R 70000:70000 /var/lib/deep; chmod 0 /var/lib/deep")
        done = rootless("purge", "--name", "purged", check=False)
        assert done.returncode != 0 and "another process" in done.stderr, "not while it runs"
    data = HOME / ".local/share/nodens/purged"
    assert (data / "lib/deep").stat().st_uid == machine.SUBID + 69999
    rootless("purge", "--name", "purged")
    assert not data.exists() and not (machine.RUNTIME / "nodens/purged").exists()


@pytest.mark.parametrize("where", ["/var/lib", "/tmp"])
def test_overlays_can_be_mounted_in_a_node_and_in_a_pods_user_namespace(where: str) -> None:
    with node("layers", "--net", "none") as made:
        script = f"""
mkdir -p {where}/o/low {where}/o/up {where}/o/work {where}/o/all; echo layer >{where}/o/low/file
chown -R 65536:65536 {where}/o
mount -t overlay overlay -o userxattr,lowerdir={where}/o/low,upperdir={where}/o/up,workdir={where}/o/work {where}/o/all
cat {where}/o/all/file; echo changed >{where}/o/all/file; cat {where}/o/up/file; umount {where}/o/all
unshare --user --map-users=0:65536:65536 --map-groups=0:65536:65536 --setuid 0 --setgid 0 --mount sh -ec '
mount -t overlay overlay -o userxattr,lowerdir={where}/o/low,upperdir={where}/o/up,workdir={where}/o/work {where}/o/all; cat {where}/o/all/file'
"""
        assert made.shell("sh", "-ec", script).stdout.split() == ["layer", "changed", "changed"]


def test_mounts_of_the_node_can_be_idmapped() -> None:
    with node("idmapped", "--net", "none") as made:
        script = """
mkdir /tmp/a /tmp/b; touch /tmp/a/file; chown 7:7 /tmp/a/file
unshare --user --map-users=0:65536:65536 --map-groups=0:65536:65536 sleep 1000 &
until grep -q 65536 /proc/$!/uid_map; do sleep 0.02; done
mount --bind -o X-mount.idmap=/proc/$!/ns/user /tmp/a /tmp/b; kill $!
stat -c %u:%g /tmp/b/file
"""
        assert made.shell("sh", "-ec", script).stdout.split() == ["65543:65543"]


def test_one_name_is_one_node() -> None:
    with node("only"):
        done = rootless("up", "--foreground", "--name", "only", check=False)
        assert done.returncode != 0 and "only" in done.stderr


@pytest.mark.parametrize(("options", "said"), [
    (["--net", "nosuch"], "nosuch"), (["--mtu", "5"], "invalid MTU 5"), (["--data", "here"], "not an absolute path"),
    (["--publish", "80:x"], "80:x"), (["--name", "Web"], "invalid node name 'Web'"), (["--bind", "/nosuch/path"], "/nosuch/path"),
    (["--bind", "/tmp\nLD_PRELOAD=/tmp/x"], "/tmp"),
])
def test_up_checks_its_options_before_it_starts_a_unit(options: list[str], said: str) -> None:
    done = rootless("up", "--name", "checked", *options, check=False)
    assert done.returncode in (1, 64) and said in done.stderr and "systemctl" not in done.stderr
    assert not (machine.RUNTIME / "nodens/checked/up.conf").exists()


def test_options_of_up_reach_the_unit_s_environment_file() -> None:
    file = machine.RUNTIME / "nodens/saved/up.conf"
    rootless("up", "--name", "saved", "--net", "none", "--mtu", "1500", check=False)  # no systemd here: the start itself fails
    assert file.read_text() == 'NODENS_NET="none"\nNODENS_MTU="1500"\n'
    rootless("up", "--name", "saved", check=False)
    assert not file.exists(), "options are valid until the next up"


def test_up_refuses_new_settings_for_a_running_node() -> None:
    with node("settled", "--net", "none"):
        assert rootless("up", "--name", "settled").stdout == "node 'settled' is running\n"
        done = rootless("up", "--name", "settled", "--net", "pasta", check=False)
        assert done.returncode == 1 and "already running" in done.stderr and "nodens-rootless down --name settled" in done.stderr


def test_a_shell_without_a_node_names_the_way_to_start_one() -> None:
    done = rootless("shell", "--name", "absent", check=False)
    assert done.stderr == "nodens-rootless: node 'absent' is not running; 'nodens-rootless up --name absent' starts it\n"


def test_a_node_outlives_its_launcher_and_is_adopted() -> None:
    with node("lasting") as made:
        before = made.state()
        assert before and made.process
        made.shell("sh", "-c", "echo here >/run/mark; (setsid sleep 1000 >/dev/null 2>&1 &)")
        machine.kill(made.process.pid)
        made.process.wait()
        assert machine.alive(before["pid"]), "init runs"
        assert made.shell("cat", "/run/mark").stdout == "here\n"
        made.start()
        after = made.state()
        assert after and after["pid"] == before["pid"]
        machine.wait_for(lambda: made.python(machine.client(ROUTER4, seconds=1)) == ALPHA4, what="the network is back")
        assert made.shell("pgrep", "-x", "sleep").stdout.strip(), "processes in the node still run"


@pytest.mark.parametrize("driver", ["pasta", "slirp4netns"])
def test_a_killed_helper_is_restarted_and_tap_routes_and_overlay_stay(driver: str) -> None:
    with node("helped", "--net", driver) as made:
        made.shell("sh", "-ec", "ip link add flannel.1 type vxlan id 1 dev tap0 dstport 8472; ip addr add 10.42.0.0/32 dev flannel.1; "
                                "ip link set flannel.1 up; ip route add 10.42.1.0/24 dev flannel.1")
        def links() -> tuple[str, str]:
            return (made.shell("ip", "-o", "route").stdout.replace(" linkdown", ""),
                    made.shell("sh", "-c", "cat /sys/class/net/*/ifindex").stdout)
        before = links()
        for _ in range(3):
            helper = made.state()["helper"]  # type: ignore[index]
            machine.kill(helper)
            machine.wait_for(lambda helper=helper: (made.state() or {}).get("helper") not in (0, helper), what="another helper runs")
            machine.wait_for(lambda: made.python(machine.client(ROUTER4, seconds=1)) == ALPHA4, what="the network is back")
        assert links() == before


def test_the_node_follows_the_hosts_address() -> None:
    with node("moving") as made:
        try:
            machine.run("ip", "-n", "alpha", "addr", "del", f"{ALPHA4}/24", "dev", "eth0")
            machine.run("ip", "-n", "alpha", "addr", "add", "10.77.0.9/24", "dev", "eth0")
            machine.run("ip", "-n", "alpha", "route", "replace", "default", "via", ROUTER4)
            machine.wait_for(lambda: "10.77.0.9" in made.shell("ip", "-o", "addr", "show", "dev", "tap0").stdout,
                             what="the tap has the new address")
            machine.wait_for(lambda: made.python(machine.client(ROUTER4, seconds=1)) == "10.77.0.9", what="and servers see it")
            assert ALPHA4 not in made.shell("ip", "-o", "addr", "show", "dev", "tap0").stdout
        finally:
            machine.run("ip", "-n", "alpha", "addr", "del", "10.77.0.9/24", "dev", "eth0")
            machine.run("ip", "-n", "alpha", "addr", "add", f"{ALPHA4}/24", "dev", "eth0")
            machine.run("ip", "-n", "alpha", "route", "replace", "default", "via", ROUTER4)


def test_slirps_network_does_not_overlap_the_hosts() -> None:
    machine.run("ip", "-n", "alpha", "addr", "add", "10.0.2.15/24", "dev", "eth0")
    try:
        shown = rootless("run", "--net", "slirp4netns", "--", "ip", "-o", "route").stdout
        assert "default via 10.213.2.2 dev tap0" in shown
    finally:
        machine.run("ip", "-n", "alpha", "addr", "del", "10.0.2.15/24", "dev", "eth0")


def test_the_directory_of_a_killed_node_is_reused() -> None:
    with node("phoenix") as made:
        state = made.state()
        assert state and made.process
        machine.kill(made.process.pid)
        machine.kill(state["pid"])
        made.process.wait()
        machine.wait_for(lambda: made.state() is None, what="status shows that it is not running")
        made.start()
        assert made.state()["pid"] != state["pid"]  # type: ignore[index]


@pytest.fixture
def delegated() -> Path:
    # unique: others may use the same cgroups
    path = Path(f"/sys/fs/cgroup/nodens-test-{uuid.uuid4().hex}")
    path.mkdir()
    os.setxattr(path, "user.delegate", b"1")
    for file in (path, path / "cgroup.procs", path / "cgroup.subtree_control", path / "cgroup.threads"):
        os.chown(file, machine.UID, machine.UID)
    yield path
    (path / "cgroup.kill").write_text("1")
    for directory in sorted((Path(entry) for entry, _, _ in os.walk(path)), reverse=True):
        machine.wait_for(lambda directory=directory: removed(directory), what=f"{directory} can be removed")


def removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except OSError:
        return False
    return True


def test_the_cgroup_namespace_is_rooted_at_the_delegated_cgroup(delegated: Path) -> None:
    script = f"echo $$ >{delegated}/cgroup.procs; exec \"$@\""
    command = ["sh", "-c", script, "sh", *machine.as_user(machine.PROGRAM, "run", "--", "sh", "-c",
               "cat /proc/self/cgroup /proc/1/cgroup; ls -d /sys/fs/cgroup/*/; mkdir /sys/fs/cgroup/pods && echo made; cat "
               "/sys/fs/cgroup/cgroup.procs")]
    done = subprocess.run(command, capture_output=True, text=True, env=machine.environment(), cwd="/", timeout=3 * machine.LIMIT)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split()
    assert [line for line in lines if line.startswith("0::")] == ["0::/command", "0::/holder"]
    assert {"/sys/fs/cgroup/command/", "/sys/fs/cgroup/holder/",
            "/sys/fs/cgroup/launcher/"} <= set(lines), "no cgroup of the host above is visible"
    assert lines[-1] == "made", "and no process is in the root, so controllers can be enabled"


def test_status_without_running_nodes() -> None:
    done = rootless("status", check=False)
    assert done.returncode == 1 and "no running nodes" in done.stdout
    assert json.loads(rootless("status", "--json", check=False).stdout) == []


@pytest.mark.nightly
def test_a_node_starts_quickly() -> None:
    times = []
    for _ in range(5):
        started = time.monotonic()
        assert rootless("run", "--", *machine.python(machine.client(ROUTER4, ECHO))).stdout.strip() == ALPHA4
        times.append(time.monotonic() - started)
    assert sorted(times)[2] < 2, "from start to one connection, in seconds; the bench has the exact figure"
