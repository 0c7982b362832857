# SPDX-License-Identifier: Apache-2.0
"""A plain line of `journalctl -u`, without fields, names the object, the cause and the remedy of each failure; `systemctl status` shows
it as long as it lasts."""
import os
import socket
import subprocess
from pathlib import Path

from nodensdev.cri_client import CriClient, Pod
from nodenstest import runtimes
from nodenstest.pods import eventually, refused
from unit_journal import NETWORK, PATIENCE, STATE, Runtime, UserUnits, run

CONFIG_PATH = "/etc/nodens/cri.yaml"
SOCKET = "/run/nodens/cri.sock"


def names(line: str, *parts: str) -> None:
    """Object, cause and remedy, in this one line."""
    missing = [part for part in parts if part not in line]
    assert not missing, f"{missing} are not in: {line}"


def active() -> bool:
    return run("systemctl", "is-active", "nodens-cri", check=False).strip() == "active"


def test_a_ready_runtime_summarizes_the_node(cri: Runtime) -> None:
    cri.started()
    summary = "ready: 0 pods, 0 containers; user namespaces yes; network 10-pods.conflist"
    assert cri.line("ready: ").startswith(f"{summary} (socket=/run/nodens/cri.sock")
    assert cri.shows("ready") == summary
    assert f'Status: "{summary}"' in cri.status()
    assert not [line for line in cri.lines() if "took over" in line], "there were no pods to take over"


def test_the_status_follows_pods_and_a_restart_counts_them(cri: Runtime) -> None:
    cri.started()
    client = CriClient(SOCKET, runtimes.messages())
    pod = Pod("seen", host_network=True, cgroup_parent="")
    sandbox = client.run_sandbox(pod)
    cri.shows("ready: 1 pod, 0 containers")
    run("systemctl", "restart", "nodens-cri")
    assert cri.line("took over").startswith("took over 1 pod with 0 containers of the previous daemon")
    client.close()
    client = CriClient(SOCKET, runtimes.messages())
    client.runtime.StopPodSandbox(client.pb.StopPodSandboxRequest(pod_sandbox_id=sandbox), timeout=60)
    client.runtime.RemovePodSandbox(client.pb.RemovePodSandboxRequest(pod_sandbox_id=sandbox), timeout=60)
    cri.shows("ready: 0 pods")
    client.close()


def test_a_missing_network_configuration(cri: Runtime) -> None:
    (NETWORK / "10-pods.conflist").unlink()
    NETWORK.rmdir()
    cri.started()
    names(cri.line("CNI"), "pods cannot start, except on the host's network", "no valid CNI configuration in '/etc/cni/net.d'",
          "install a CNI network plugin", f"set cniConfig in {CONFIG_PATH}")
    assert cri.shows("ready").endswith("network none")


def test_a_missing_network_plugin(cri: Runtime) -> None:
    (NETWORK / "10-pods.conflist").write_text('{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "nosuch"}]}')
    cri.started()
    names(cri.line("nosuch"), "pods cannot start", "10-pods.conflist' needs the CNI plugin 'nosuch'", "/usr/lib/cni", "install it",
          "cniPlugins")


def test_a_busy_metrics_port_does_not_stop_the_runtime(cri: Runtime) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        cri.configure(f"metrics: {address}\n")
        cri.started()
        names(cri.line("metrics"), "metrics are not served; retrying", f"address={address}", "Address already in use", "ss -lntp",
              f"metrics in {CONFIG_PATH}")
        assert active() and CriClient(SOCKET, runtimes.messages()).version().runtime_name == "nodens"
    assert cri.line("metrics are served") == f"metrics are served (address={address})"
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), 30) as one:
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert one.recv(15) == b"HTTP/1.1 200 OK"


def test_an_unknown_key_of_the_configuration(cri: Runtime) -> None:
    cri.configure("cgroupDrivr: systemd\n")
    # Processes of the unit that stay alive, as monitors do: systemd writes a line about each at every end.
    cri.drop_in("[Service]\nExecStartPre=sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do setsid sleep 1000 & done'\n")
    try:
        cri.start()
        names(cri.line("cgroupDrivr"), "cannot start", CONFIG_PATH, "unknown key 'cgroupDrivr'", "nodens-cri(8)")
        names(cri.shows("cgroupDrivr"), "cannot start", CONFIG_PATH, "unknown key 'cgroupDrivr'", "nodens-cri(8)")

        def displaced() -> bool:
            status, _, log = cri.status().partition("\n\n")
            return "cgroupDrivr" in status and "cgroupDrivr" not in log and "remains running" in log
        eventually(displaced, PATIENCE, "a status whose log has only lines about processes")
    finally:
        run("systemctl", "stop", "nodens-cri")
        run("systemctl", "kill", "--kill-whom=all", "-s", "KILL", "nodens-cri", check=False)
    checked = subprocess.run(["nodens-cri", "--check-config"], capture_output=True, text=True)
    assert checked.returncode == 1 and checked.stderr == (
        f"error: {CONFIG_PATH}: unknown key 'cgroupDrivr'; see nodens-cri(8) for the keys\n")


def test_check_config_judges_a_file_without_starting(cri: Runtime, tmp_path: Path) -> None:
    def check(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(["nodens-cri", *arguments], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("cgroupDriver: cgroupfs\n")
    bad.write_text("cgroupDriver: v1\n")
    assert check("--check-config") == (0, f"{CONFIG_PATH} does not exist: all settings have their defaults\n")
    assert check("--check-config", str(good)) == check("--config", str(good), "--check-config") == (0, f"{good} is valid\n")
    code, text = check("--check-config", str(bad))
    assert code == 1 and "cgroupDriver must be systemd or cgroupfs" in text and str(bad) in text
    assert check("--check-config", str(tmp_path / "none"))[0] == 1
    assert check(str(good))[0] == check("--check-config", str(good), str(bad))[0] == 64
    assert not Path(SOCKET).exists()


def fill(mounted: Path, size: str) -> None:
    """A small filesystem there, without room for another byte."""
    mounted.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", f"size={size},mode=0711", "tmpfs", str(mounted))
    with open(mounted / "ballast", "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError as error:
            assert error.errno == 28, error


def test_a_full_disk_at_start(cri: Runtime) -> None:
    fill(STATE, "64k")
    cri.started()
    names(cri.line("No space left"), "a feature does not work on this node", f"in '{STATE}/selftest/", "No space left on device",
          "no container of this handler can start", "free space", "df -h", CONFIG_PATH)
    cri.shows("no container can start")
    run("mount", "-o", "remount,size=64M", str(STATE))
    run("systemctl", "restart", "nodens-cri")
    cri.shows("ready")


def test_a_disk_without_inodes_at_start(cri: Runtime) -> None:
    STATE.mkdir()
    run("mount", "-t", "tmpfs", "-o", "nr_inodes=1,mode=0711", "tmpfs", str(STATE))
    cri.start()
    names(cri.line("No space left"), "cannot start", str(STATE), "No space left on device", "free space", "df -i", CONFIG_PATH)
    names(cri.shows("No space left"), "cannot start", str(STATE))
    run("mount", "-o", "remount,nr_inodes=10000", str(STATE))
    cri.shows("ready")       # it is restarted until there is space


def test_a_full_disk_when_a_pod_starts(cri: Runtime) -> None:
    STATE.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=64M,mode=0711", "tmpfs", str(STATE))
    cri.started()
    with open(STATE / "ballast", "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(1 << 16))
        except OSError:
            pass
    client = CriClient(SOCKET, runtimes.messages())
    refused(lambda: client.run_sandbox(Pod("full", host_network=True, cgroup_parent="")))
    client.close()
    names(cri.line("No space left"), "request failed (rpc=RunPodSandbox", "pod default/full", str(STATE), "No space left on device",
          "free space", "df -h")


def test_a_missing_oci_runtime(cri: Runtime) -> None:
    cri.configure("crun: /nosuch/crun\n")
    cri.started()
    names(cri.line("feature=containers"), "a feature does not work on this node (handler=crun feature=containers)",
          "OCI runtime '/nosuch/crun' not found", "install it (Debian: crun)", CONFIG_PATH, "no container of this handler can start")
    assert cri.shows("0 pods").startswith("no container can start: ")


def test_a_self_test_that_fails(cri: Runtime) -> None:
    cri.configure("init: /nosuch/catatonit\n")
    cri.started()
    names(cri.line('feature="user namespaces"'), "a feature does not work on this node", "/nosuch/catatonit", "No such file or directory",
          "pods with hostUsers: false are refused", "nodens check")


def test_another_cgroup_driver_than_the_kubelets(cri: Runtime) -> None:
    cri.configure("cgroupDriver: systemd\n")
    cri.started()
    client = CriClient(SOCKET, runtimes.messages())
    refused(lambda: client.run_sandbox(Pod("driver", host_network=True, cgroup_parent="/kubepods/besteffort/podx")))
    client.close()
    names(cri.line("cgroup parent"), "request failed (rpc=RunPodSandbox", "pod default/driver",
          "'/kubepods/besteffort/podx' is not a slice", "the cgroup driver is systemd", f"set cgroupDriver in {CONFIG_PATH}")


def test_failures_of_a_pod_are_found_by_its_name(cri: Runtime) -> None:
    """docs/kubelet.md: `journalctl -u nodens-cri POD=web-0`. That an image or a directory is missing is a failure as well."""
    cri.started()
    client = CriClient(SOCKET, runtimes.messages())
    pod = Pod("wanted", host_network=True, cgroup_parent="")
    sandbox = client.run_sandbox(pod)
    refused(lambda: client.create_container(sandbox, pod, "one", "example.org/absent:1", ["true"]))
    refused(lambda: client.run_sandbox(Pod("other", host_network=True, cgroup_parent="/not/a/slice")))
    client.stop_sandbox(sandbox)
    client.remove_sandbox(sandbox)
    client.close()
    cri.line("cgroup parent")
    found = run("journalctl", "-u", "nodens-cri", "--no-pager", "-o", "cat", "POD=wanted", f"--after-cursor={cri.cursor}")
    assert "request failed (rpc=CreateContainer" in found and "image 'example.org/absent:1' not found" in found, found
    assert "other" not in found, found


def test_a_missing_seccomp_profile(cri: Runtime) -> None:
    cri.configure("seccompProfile: /nosuch/seccomp.json\n")
    cri.started()
    names(cri.line("seccomp"), "containers with the seccomp profile RuntimeDefault cannot start (file=/nosuch/seccomp.json)",
          "No such file or directory", "install it (Debian: golang-github-containers-common)", "seccompProfile")


def test_another_daemon_has_the_socket(cri: Runtime) -> None:
    Path(SOCKET).parent.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(SOCKET)
        other.listen()
        cri.start()
        names(cri.line("listens on"), "cannot start", f"another process ({os.getpid()}) listens on '{SOCKET}'", "stop it first")
        names(cri.shows("listens on"), "cannot start", SOCKET)


def test_a_rootless_node_without_delegated_controllers(user: UserUnits) -> None:
    user.run("systemctl", "--user", "start", "nodens-node@default.service", "nodens-node-net@default.service",
             "nodens-node-api@default.service")
    line = user.line("nodens-node@default.service", "resource limits")
    names(line, "pods in the node have no resource limits (node=default)", "controllers not delegated to its cgroup: cpu",
          "as root: mkdir -p /etc/systemd/system/user@.service.d", "then log in again")
    assert user.shows("nodens-node@default.service", "ready").startswith("ready: node default, process ")
    assert user.shows("nodens-node-net@default.service", "ready: network pasta, helper is process ")
    assert user.shows("nodens-node-api@default.service", "ready: 0 published ports")
    user.run("systemctl", "--user", "stop", "nodens-node@default.service")


def test_a_rootless_node_that_cannot_start(user: UserUnits) -> None:
    settings = Path(f"/home/{user.NAME}/.config/nodens/broken.conf")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("NODENS_NET=nosuch\n")
    user.run("systemctl", "--user", "start", "nodens-node@broken.service", check=False)
    line = user.line("nodens-node@broken.service", "nosuch")
    assert user.shows("nodens-node@broken.service", "nosuch").startswith("cannot start: ")
    names(line, "nosuch", "pasta", "slirp4netns")
