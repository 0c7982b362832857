# SPDX-License-Identifier: Apache-2.0
"""docs/examples/slurm-cluster.sh under a real Slurm with three nodes: a Job runs on each, and nothing is left of it, however it ends.

Needs `tools/dev root slurm`, `tools/dev gobin kubernetes` and `tools/dev images own`.
"""
import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import native
import pytest
from nodenstest import machine, slurm
from nodenstest.machine import HOME, PROGRAM

SCRIPT = "/nodens/docs/examples/slurm-cluster.sh"
OUTPUT = HOME / "job-output"
ALIVE = ("PENDING", "RUNNING", "CONFIGURING", "COMPLETING")      # states of a job that has not ended
# Imports the image on every node, then runs a pod on each.
WORKLOAD = f"""
srun --overlap --ntasks-per-node=1 nodens-rootless shell --name "job-$SLURM_JOB_ID" -- {native.PROGRAMS}/nodens import {native.ARCHIVE}
srun --overlap --nodes=1 --ntasks=1 nodens-rootless shell --name "job-$SLURM_JOB_ID" -- sh -c 'ls /run/munge {HOME}/job.json; munge -n; true'
kubectl create -f {HOME}/job.json
kubectl wait --for=condition=Complete --timeout=150s job/each
kubectl get pods --selector job-name=each -o custom-columns=NODE:.spec.nodeName,PHASE:.status.phase --no-headers
"""


@pytest.fixture(scope="module", autouse=True)
def with_slurm(the_machine: None) -> Iterator[None]:
    native.install()
    for name, path in {"kubectl": native.program("kubectl"), "nodens-rootless": Path(PROGRAM)}.items():
        shutil.copy(path, native.PROGRAMS / name)
    (native.PROGRAMS / "nodens-rootless-controller").write_bytes(Path(PROGRAM + "-controller").read_bytes())
    (native.PROGRAMS / "nodens-rootless-controller").chmod(0o755)
    (HOME / "job.json").write_text(json.dumps(job()))
    with slurm.cluster(), native.whole_control_plane():
        yield


def job() -> dict[str, Any]:
    spread = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"app": "each"}}}]
    pod = {"restartPolicy": "Never", "automountServiceAccountToken": False, "topologySpreadConstraints": spread,
           "containers": [{"name": "main", "image": native.IMAGE, "imagePullPolicy": "Never",
                           "command": ["sh", "-c", "hostname; sleep 2"]}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "each"},
            "spec": {"completions": 3, "parallelism": 3, "template": {"metadata": {"labels": {"app": "each"}}, "spec": pod}}}


@pytest.fixture(autouse=True)
def without_other_jobs(with_slurm: None) -> Iterator[None]:
    """No test inherits a job of the one before, which would hold the hosts."""
    yield
    slurm.command("scancel", "--me", check=False)
    until(lambda: slurm.states() == {"idle"}, 120, "the nodes are idle again")


def until(condition: Any, seconds: float, what: str) -> None:
    """Looks twice a second: each look starts processes, and the nodes need the machine's processors."""
    machine.wait_for(condition, seconds, what, pause=0.5)


def wait_in(number: str, condition: Any, what: str) -> None:
    """Waits while the job runs. The limit is for a job that hangs; one that ends is reported at once, with its output."""
    def reached() -> bool:
        if condition():
            return True
        assert slurm.state_of(number) in ALIVE, f"job {number} has ended before {what}"
        return False

    try:
        until(reached, 400, what)
    except AssertionError:
        print(f"job {number}: {slurm.state_of(number)}\n{OUTPUT.read_text()[-6000:] if OUTPUT.exists() else 'no output'}")
        raise


def submit(*workload: str, options: tuple[str, ...] = (), up: str = "") -> str:
    OUTPUT.unlink(missing_ok=True)
    env = machine.environment(NODENS_JOIN=str(native.KUBECONFIG), NODENS_PROGRAMS=str(native.PROGRAMS), KUBECONFIG=str(native.KUBECONFIG),
                              NODENS_UP=f"--bind {native.ARCHIVE}:ro {up}")
    done = slurm.command("sbatch", "--parsable", f"--output={OUTPUT}", *options, SCRIPT, *workload, env=env)
    return done.stdout.strip()


def nodes(number: str) -> list[str]:
    listed = native.get(f"/api/v1/nodes?labelSelector=slurm-job={number}").get("items", [])
    return [one["metadata"]["name"] for one in listed if native.node_ready(one["metadata"]["name"])]


def wait_for_end(number: str, seconds: float) -> str:
    until(lambda: slurm.state_of(number) not in ALIVE, seconds, "the job has ended")
    until(lambda: slurm.states() == {"idle"}, 120, "the nodes are idle again")
    return slurm.state_of(number)


def processes() -> dict[int, str]:
    """Processes of the user and of its subordinate IDs, on all hosts."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            owner, words = path.stat().st_uid, (path / "cmdline").read_bytes()
            uid = int((path / "status").read_text().split("Uid:")[1].split()[0])
        except (OSError, IndexError):
            continue
        if uid == machine.UID or machine.SUBID <= uid < machine.SUBID + machine.SUBIDS or owner == machine.UID:
            found[int(path.name)] = words.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def on_hosts(script: str) -> str:
    return slurm.command("srun", "--nodes=3", "--ntasks-per-node=1", "sh", "-c", script, timeout=90).stdout


def expect_nothing() -> None:
    """No process, file, mount, cgroup or link of a node on any host."""
    end = time.monotonic() + 30
    while (left := {pid: words for pid, words in processes().items() if words}) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left, left
    found = on_hosts("find /tmp /run/user -mindepth 1 ! -path /run/user/1234; ls -d $HOME/.local/share/nodens 2>/dev/null; "
                     "grep -c '' /proc/self/mountinfo; ip -o link | wc -l")
    assert not [line for line in found.splitlines() if line.startswith("/")], found
    assert len({line for line in found.splitlines() if line.isdigit()}) <= 2, f"mounts or links differ between hosts: {found}"
    assert not list((HOME / ".local/share/nodens").glob("*")) if (HOME / ".local/share/nodens").exists() else True


def submit_with_daemons(options: tuple[str, ...] = ()) -> str:
    """A job in whose nodes root has started two daemons: one left its session by two forks, one ignores SIGTERM."""
    daemons = "setsid sh -c 'setsid nohup sleep 47110 >/dev/null 2>&1 & exit'; (trap '' TERM; exec setsid sleep 47111) >/dev/null 2>&1 &"
    return submit("sh", "-ec", f'srun --overlap --ntasks-per-node=1 nodens-rootless shell --name "job-$SLURM_JOB_ID" -- sh -c "{daemons}"; '
                  "sleep 600", options=options)


def daemons() -> int:
    return sum("sleep 4711" in words and "sh -c" not in words for words in processes().values())


def wait_for_daemons(number: str) -> None:
    wait_in(number, lambda: daemons() == 2 * len(slurm.HOSTS), "two daemons run on each host")


def test_a_job_runs_on_three_nodes_and_leaves_nothing() -> None:
    before = set(os.listdir(HOME))
    number = submit("sh", "-ec", WORKLOAD)
    assert wait_for_end(number, 400) == "COMPLETED", OUTPUT.read_text()[-6000:]
    said = OUTPUT.read_text()
    ran = {line.split()[0] for line in said.splitlines() if line.endswith("Succeeded")}
    assert ran == {f"{name}-{number}" for name in slurm.HOSTS}, said[-3000:]
    # Root of the node sees neither the munge socket, with which it could act as the user in Slurm, nor the home directory.
    assert "cannot access '/run/munge'" in said and f"cannot access '{HOME}/job.json'" in said and "MUNGE:" not in said, said[-3000:]
    expect_nothing()
    assert native.get(f"/api/v1/nodes?labelSelector=slurm-job={number}")["items"] == [], "the nodes are still in the cluster"
    assert set(os.listdir(HOME)) - before <= {OUTPUT.name, ".kube"}, "kubectl keeps a cache, nodes keep nothing"


def expect_known_to_slurm(number: str) -> None:
    """All processes of the nodes are processes of the job for Slurm, which accounts them."""
    known: set[str] = set()
    for name in slurm.HOSTS:
        listed = slurm.command("srun", f"--jobid={number}", "--overlap", f"--nodelist={name}", "--nodes=1", "--ntasks=1", "sh", "-c",
                               f"scontrol listpids {number}; ps -eo pid=,user=,args= | sed 's/^/ps /'", timeout=90).stdout
        ours = {line.split()[0] for line in listed.splitlines() if line.split()[1:2] == [number]}
        for line in listed.splitlines():
            words = line.split()
            if line.startswith("ps ") and not {"<defunct>", "sed", "sh"} & set(words) and any(
                    part in line for part in ("kubelet", "nodens-cri", "kube-proxy", "nodens-rootless", "pasta", "sleep 4711")):
                assert words[1] in ours, f"Slurm does not know of {line}"
                known.add(Path(words[3]).name)
    assert {"kubelet", "kube-proxy", "nodens-cri", "nodens-rootless", "sleep"} <= known, known
    used = slurm.command("sstat", "--noheader", "--parsable2", "--format=MaxRSS", f"--jobs={number}.0").stdout.strip()
    assert used and used != "0", "accounting has no memory of the step"


def test_processes_are_the_jobs_for_slurm_and_scancel_leaves_nothing() -> None:
    number = submit_with_daemons()
    try:
        wait_for_daemons(number)
        assert len(nodes(number)) == 3, "the command runs before all nodes are Ready"
        expect_known_to_slurm(number)
    finally:
        slurm.command("scancel", number)
        assert wait_for_end(number, 120) == "CANCELLED"
    expect_nothing()


def test_the_time_limit_leaves_nothing() -> None:
    """The limit is set when the nodes run, so that it cannot be over before, on a machine of any speed."""
    number = submit_with_daemons()
    wait_for_daemons(number)
    slurm.command("scontrol", "update", f"JobId={number}", "TimeLimit=1")
    assert wait_for_end(number, 240) == "TIMEOUT"
    expect_nothing()


def test_sigkill_leaves_no_process_and_only_records() -> None:
    number = submit_with_daemons()
    wait_for_daemons(number)
    slurm.command("scancel", "--signal=KILL", "--full", number)
    wait_for_end(number, 120)
    end = time.monotonic() + 30
    while (left := {pid: words for pid, words in processes().items() if words}) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left, left
    found = on_hosts("find /tmp /run/user -mindepth 2 -type f -size +64k; rm -rf /run/user/1234/nodens")
    assert not [line for line in found.splitlines() if line.startswith("/")], "more than the node's own records is left"
    expect_nothing()


def parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return 0


def launchers() -> list[int]:
    """The processes that Slurm started; init of a node is a copy of its launcher, with the same words."""
    found = {pid for pid, words in processes().items() if words.startswith("nodens-rootless up ")}
    return [pid for pid in found if parent(pid) not in found]


def test_a_launcher_that_is_killed_ends_its_node_and_the_job() -> None:
    number = submit_with_daemons()
    wait_for_daemons(number)
    assert len(launchers()) == len(slurm.HOSTS)
    machine.kill(launchers()[0])
    assert wait_for_end(number, 120) == "FAILED"
    assert "a node of the job has ended" in OUTPUT.read_text()
    on_hosts("rm -rf /run/user/1234/nodens")      # of the killed one
    expect_nothing()


def test_two_jobs_of_the_user_on_one_host_are_two_nodes() -> None:
    """Nodes of one host share its address: the second needs other ports, and is refused without."""
    one = ("--nodes=1", "--nodelist=alpha", "--ntasks=1", "--cpus-per-task=1")
    first = submit("sleep", "600", options=one)
    wait_in(first, lambda: len(nodes(first)) == 1, "the first node is Ready")
    refused = submit("sleep", "600", options=one)
    until(lambda: slurm.state_of(refused) == "FAILED", 120, "the second job fails")
    assert "choose other ports with --offset" in OUTPUT.read_text(), OUTPUT.read_text()[-3000:]
    second = submit("sleep", "600", options=one, up="--offset 100")
    wait_in(second, lambda: len(nodes(second)) == 1, "two nodes are Ready on one host")
    assert len(nodes(first)) == 1 and len(launchers()) == 2
    slurm.command("scancel", second)
    until(lambda: len(launchers()) == 1, 90, "one of them has ended")
    assert slurm.state_of(first) == "RUNNING"
    slurm.command("scancel", first)
    wait_for_end(first, 120)
    expect_nothing()
