# SPDX-License-Identifier: Apache-2.0
"""Installs nodens-cri from its package, runs pods, and upgrades it while they run."""
import json
import subprocess
from pathlib import Path

from nodensdev.cri_client import CriClient
from nodenstest import pods as pods_module
from nodenstest import runtimes, validation
from nodenstest.pods import Pods, eventually

PACKAGES = runtimes.TOP / "packages"
SOCKET = "/run/nodens/cri.sock"


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def install(version: str) -> None:
    run("dpkg", "-i", *map(str, sorted(PACKAGES.glob(f"*_{version}_amd64.deb"))))


def version_of(package: str) -> str:
    return run("dpkg-query", "-W", "-f", "${Version}", package)


def test_a_package_is_installed_upgraded_with_running_pods_and_removed(site: runtimes.registry_server.Site, tmp_path: Path) -> None:
    old, new = sorted({path.name.split("_")[1] for path in PACKAGES.glob("nodens-cri_*.deb")})
    install(old)
    assert run("systemctl", "is-active", "nodens-cri").strip() == "active" and version_of("nodens-cri") == old
    runtimes.trust(site, Path("/etc/nodens/certs.d"))
    Path("/etc/cni/net.d").mkdir(parents=True, exist_ok=True)
    Path("/etc/cni/net.d/10-test.conflist").write_text(json.dumps(runtimes.pod_network(tmp_path / "addresses")))
    client = CriClient(SOCKET, runtimes.messages())
    eventually(client.network_ready, 30, "a network")

    world = Pods(client, f"{site.name}/{validation.SHELL}", tmp_path, "systemd")
    kept = [world.run(userns=userns, name=f"kept-{userns}").container("i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done")
            for userns in (True, False)]
    pids = [one.pid() for one in kept]
    daemon = pods_module.peer_pid(SOCKET)
    install(new)
    eventually(lambda: answers(client), 30, "a response after the upgrade")
    assert version_of("nodens-cri") == new and pods_module.peer_pid(SOCKET) != daemon
    assert [one.pid() for one in kept] == pids and all(one.state == world.pb.CONTAINER_RUNNING for one in kept)
    for one in kept:
        assert one.output("echo still here") == "still here"
        grown = len(one.log())
        eventually(lambda one=one, grown=grown: len(one.log()) > grown, what="more lines in the log")
        one.stop()
        assert [text for _, text in one.log()] == [str(number) for number in range(len(one.log()))], "log lines are missing"
    world.run(name="after").container()
    world.clean()
    run("dpkg", "-r", "nodens-cri")
    assert subprocess.run(["systemctl", "is-active", "nodens-cri"], capture_output=True).returncode != 0
    assert Path("/etc/nodens/cri.yaml").exists(), "removing the package keeps its settings"
    assert any(Path("/var/lib/nodens/images").iterdir()), "removing the package keeps the images"


def answers(client: CriClient) -> bool:
    import grpc
    try:
        return client.network_ready()
    except grpc.RpcError:
        return False
