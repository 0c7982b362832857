# SPDX-License-Identifier: Apache-2.0
"""Nodes inside containers of rootless podman (`up --inside`): what they need, what they refuse, and what their root can reach.

Needs `tools/dev root podman`; the tests with Kubernetes need `tools/dev gobin kubernetes` and `tools/dev images own` as well.
"""
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import native
import pytest
from nodenstest import in_node, inside, machine
from nodenstest.inside import DATA, LEAST, container
from nodenstest.machine import ECHO, HOME, PROGRAM, ROUTER4, client, python

UNMASK, SECCOMP, TUN = LEAST[:2], LEAST[2:4], LEAST[4:]


@pytest.fixture(scope="module", autouse=True)
def with_podman(the_machine: None) -> Iterator[None]:
    with inside.overlaid(inside.root_of("podman", "usr/bin/podman"), {}):
        inside.make_image()
        # A kubelet watches how full its disk is.
        machine.run("mount", "-t", "tmpfs", "-o", "size=1g,mode=0755", "tmpfs", str(inside.VOLUME))
        os.chown(inside.VOLUME, machine.UID, machine.UID)
        yield


def node_run(*command: str, options: tuple[str, ...] = LEAST, node: tuple[str, ...] = (),
             check: bool = True) -> subprocess.CompletedProcess[str]:
    return inside.run(PROGRAM, "run", "--inside", *node, "--", *command, options=options, check=check)


def refusal(*options: str, node: tuple[str, ...] = ()) -> str:
    done = node_run("true", options=options, node=node, check=False)
    assert done.returncode != 0, f"started with {options} {node}"
    return done.stderr


# ---- what a node has


def test_a_node_in_a_container_has_its_ids_and_namespaces_of_its_own() -> None:
    script = "cat /proc/self/uid_map; echo $$; hostname; for n in user mnt pid ipc uts cgroup net; do readlink /proc/self/ns/$n; done"
    shown = inside.run("sh", "-c", f"{script} >/tmp/outer; cat /tmp/outer; {PROGRAM} run --inside --name inner -- sh -c '{script}'").stdout
    lines = shown.splitlines()
    half = len(lines) // 2
    outer, inner = lines[:half], lines[half:]
    assert outer[1].split() == ["1", str(machine.SUBID), str(machine.SUBIDS)]
    assert [line.split() for line in inner[:2]] == [["0", "0", "1"], ["1", "1", str(machine.SUBIDS)]]
    assert inner[3] == "inner"
    assert not set(outer[4:]) & set(inner[4:]), "a namespace is shared"


def test_a_node_in_a_container_reaches_the_network_through_the_containers() -> None:
    assert node_run(*python(client(ROUTER4, ECHO))).stdout.strip() == machine.ALPHA4


def test_a_node_in_a_container_stays_and_ends_with_it() -> None:
    with container("stays") as made:
        assert "node 'default' is running" not in made.log()
        assert made.shell("sh", "-c", "cat /proc/1/comm").stdout.strip() == "nodens-holder"
        made.shell("sh", "-c", "setsid sleep 4711 >/dev/null 2>&1 &")
        machine.wait_for(lambda: processes("sleep 4711"), what="a process of the node runs")
        inside.podman("stop", "--time=30", "stays")
        assert not processes("sleep 4711") and not processes("nodens-rootless up")
        assert "exited" in inside.podman("inspect", "--format={{.State.Status}}", "stays").stdout


def processes(pattern: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if pattern in words and str(os.getpid()) != path.parent.name:
            found.append(words)
    return found


def test_dry_run_shows_the_mounts_of_the_node() -> None:
    assert "tmpfs        /run" in inside.run(PROGRAM, "up", "--inside", "--dry-run", f"--data={DATA}").stdout


def test_a_container_with_a_cgroup_of_its_own_divides_it() -> None:
    with in_node.delegated_cgroup() as cgroup:
        # podman starts in a cgroup of the user, as in a scope of systemd with Delegate=, and the container stays in it
        inside.ENTER[:] = ["sh", "-ec", f'echo $$ >{cgroup}/cgroup.procs; exec "$@"', "sh"]
        try:
            with container("divided", "--cgroupns=private") as made:
                assert made.shell("cat", "/proc/1/cgroup").stdout.splitlines()[-1] == "0::/holder"
                assert {"launcher", "holder"} <= set(made.shell("ls", "/sys/fs/cgroup").stdout.split())
                assert {path.name for path in cgroup.iterdir() if path.is_dir()} >= {"container", "launcher", "holder"}
        finally:
            inside.podman("system", "migrate")      # ends the process that keeps podman's own user namespace
            inside.ENTER.clear()


# ---- what is missing, with the remedy


def test_a_masked_proc_is_refused_with_the_option_of_podman() -> None:
    said = refusal(*SECCOMP, *TUN)
    assert "of the container is masked" in said and "--security-opt unmask=ALL" in said and "procMount: Unmasked" in said


def test_the_seccomp_profile_of_podman_is_refused_with_the_option_of_podman() -> None:
    said = refusal(*UNMASK, *TUN)
    assert "denies sethostname()" in said and "--security-opt seccomp=unconfined" in said


def test_without_a_tun_device_the_node_shares_the_containers_network_and_says_so() -> None:
    done = node_run("readlink", "/proc/self/ns/net", options=(*UNMASK, *SECCOMP))
    assert "the node shares the network of the container" in done.stderr and "--device /dev/net/tun" in done.stderr


def test_without_a_tun_device_kubernetes_is_refused() -> None:
    native.install()
    said = inside.run(PROGRAM, "up", "--inside", f"--data={DATA}", "--join", "/home/c", "--programs", "/home/k", "--no-cgroups",
                      options=(*UNMASK, *SECCOMP, f"--volume={native.KUBECONFIG}:/home/c:ro", f"--volume={native.PROGRAMS}:/home/k:ro"),
                      check=False)
    assert said.returncode != 0 and "so pods could have no network" in said.stderr, said.stderr


@pytest.mark.parametrize("name", ["SETUID", "SETGID", "SETFCAP"])
def test_a_missing_capability_is_refused_with_its_name(name: str) -> None:
    assert f"--cap-add {name}" in refusal(*LEAST, f"--cap-drop={name}")


def test_another_user_of_the_container_is_refused() -> None:
    assert "run 'up --inside' as root of the container" in refusal(*LEAST, "--user=1000")


def test_data_on_the_containers_overlay_is_refused_with_the_option_of_podman() -> None:
    said = inside.run("sh", "-c", f"mkdir -p /tmp/l /tmp/u /tmp/w; {PROGRAM} up --inside --data=/merged", options=(
        *LEAST, "--cap-add=SYS_ADMIN", f"--volume={HOME}/image/etc:/merged:O"), check=False)
    assert said.returncode != 0 and "--volume nodens:/merged" in said.stderr, said.stderr


def test_the_hosts_user_namespace_is_refused() -> None:
    done = machine.rootless("run", "--inside", "--", "true", check=False)
    assert done.returncode != 0 and "--inside is for user namespaces of containers" in done.stderr, done.stderr


def test_a_user_namespace_with_one_id_is_enough() -> None:
    done = machine.user("unshare", "--map-root-user", PROGRAM, "run", "--inside", "--", "cat", "/proc/self/uid_map")
    assert done.stdout.split() == ["0", "0", "1"]


def test_root_of_a_container_without_the_option_learns_of_it() -> None:
    done = inside.run(PROGRAM, "run", "--", "true", check=False)
    assert done.returncode != 0 and "--inside in a container" in done.stderr


# ---- attacks by root of the node on the container and on the user


def attack(code: str, *options: str) -> str:
    """What root of the node prints; the container has a secret that only its own root may read."""
    script = 'umask 077; echo secret-of-the-container >/root/secret; echo secret-of-the-container >/run/secret; ' \
             f'exec {PROGRAM} run --inside -- python3 -c "$0"'
    done = inside.run("sh", "-c", script, code, options=(*LEAST, *options), check=False)
    return done.stdout + done.stderr


def test_root_of_the_node_cannot_read_files_of_the_container() -> None:
    said = attack("""
import glob
for path in ("/root/secret", "/run/secret", *glob.glob("/proc/*/root/root/secret"), *glob.glob("/proc/*/root/run/secret"), "/proc/1/cwd/../root/secret"):
    try: print(open(path).read())
    except OSError as error: print(type(error).__name__)
""")
    assert "secret-of-the-container" not in said and "FileNotFoundError" in said


def test_root_of_the_node_cannot_see_or_signal_processes_of_the_container() -> None:
    said = attack("""
import glob, os
print("comms", sorted(open(path).read().strip() for path in glob.glob("/proc/[0-9]*/comm")))
for pid in range(2, 400):
    try: os.kill(pid, 0)
    except ProcessLookupError: continue
    print("alive", open(f"/proc/{pid}/comm").read().strip())
""")
    comms = next(line for line in said.splitlines() if line.startswith("comms"))
    assert "conmon" not in comms and "pasta" not in comms and "'nodens-rootless'" not in comms, said


def test_root_of_the_node_cannot_undo_read_only_mounts() -> None:
    said = attack("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print("remount", libc.mount(b"none", b"/usr", None, 32 | 4096, None), os.strerror(ctypes.get_errno()))
try: open("/usr/bin/x", "w")
except OSError as error: print("write", error.strerror)
os.unshare(os.CLONE_NEWNS)
print("again", libc.mount(b"none", b"/usr", None, 32 | 4096, None), os.strerror(ctypes.get_errno()))
""")
    assert "remount -1 Operation not permitted" in said and "again -1 Operation not permitted" in said, said
    assert "write Read-only file system" in said, said


def test_root_of_the_node_has_no_rights_over_the_containers_network() -> None:
    said = attack("""
import ctypes, glob, os
libc = ctypes.CDLL(None, use_errno=True)
for path in glob.glob("/proc/*/ns/net") + glob.glob("/proc/*/ns/user"):
    if os.readlink(path) == os.readlink(path.replace(path.split("/")[2], "self")): continue
    fd = os.open(path, os.O_RDONLY); print("foreign", path, libc.setns(fd, 0))
print("looked")
""")
    assert "foreign" not in said and "looked" in said, said


def test_root_of_the_node_cannot_map_ids_that_the_container_does_not_have() -> None:
    said = attack("""
import os
read, write = os.pipe(); back_read, back_write = os.pipe()
child = os.fork()
if child == 0:
    os.unshare(os.CLONE_NEWUSER); os.write(write, b"x"); os.read(back_read, 1); os._exit(0)
os.read(read, 1)
for text in ("0 1000000 1", "0 0 4294967294"):
    try: os.write(os.open(f"/proc/{child}/uid_map", os.O_WRONLY), text.encode()); print("mapped", text)
    except OSError as error: print("refused", error.strerror)
os.write(back_write, b"x")
""")
    assert said.count("refused") == 2 and "mapped" not in said, said


def test_the_masks_of_the_container_hold_in_the_node_where_the_container_has_them() -> None:
    """With the file systems masked, the node is refused instead of getting an unmasked /proc."""
    assert "masked" in refusal(*SECCOMP, *TUN, "--cap-add=SYS_ADMIN")


# ---- Kubernetes


def test_a_stock_kubelet_and_nodens_cri_run_a_pod_in_podman() -> None:
    native.install()
    options = [f"--volume={path}:{path}:ro" for path in (native.PROGRAMS, native.KUBECONFIG, native.ARCHIVE)]
    with native.whole_control_plane(), container("cluster", *options, node=(*native.OPTIONS, "--node-name=inner")) as made:
        try:
            machine.wait_for(lambda: native.node_ready("inner"), 300, "the node in the container is ready")
            made.shell(str(native.PROGRAMS / "nodens"), "import", str(native.ARCHIVE))
            native.make_pod(native.pod("hello", "inner", "sh", "-c", "hostname; cat /proc/self/uid_map; cat /proc/self/cgroup"))
            machine.wait_for(lambda: native.phase("hello") in ("Succeeded", "Failed"), 120, "the pod has ended")
            said = made.shell("sh", "-c", "cat /var/log/pods/*/*/*.log").stdout
            assert native.phase("hello") == "Succeeded" and "hello" in said, said
            print(said)
        except AssertionError:
            print(native.get("/api/v1/nodes/inner").get("status", {}).get("conditions"))
            print(native.get("/api/v1/namespaces/default/pods/hello").get("status"))
            print("\n".join(line[:300] for line in made.log().splitlines()[-80:] if "mirror pod" not in line))
            raise
