# SPDX-License-Identifier: Apache-2.0
"""Slurm with three compute nodes: alpha, beta and gamma, each with its network, host name, processes, /tmp and /run/user of its own.

The controller is on the router. Programs come from the root `slurm`, home directories are shared, as on a cluster of machines.
"""
import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from nodenstest import inside, machine
from nodenstest.machine import ROUTER4

HOSTS = {"alpha": machine.ALPHA4, "beta": "10.77.0.3", "gamma": "10.77.0.4"}
WORK = Path("/var/lib/nodens-test/slurm")
SOCKET = "/run/munge/munge.socket.2"
KILL_WAIT = 30      # seconds between SIGTERM and SIGKILL: Slurm's default

CONF = f"""\
ClusterName=test
SlurmctldHost=router({ROUTER4})
SlurmUser=root
SlurmctldPidFile={WORK}/slurmctld.pid
SlurmdPidFile={WORK}/slurmd-%n.pid
SlurmdSpoolDir={WORK}/spool-%n
StateSaveLocation={WORK}/state
AuthType=auth/munge
AuthInfo=socket={SOCKET}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=2
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait={KILL_WAIT}
SlurmctldTimeout=300
SlurmdTimeout=300
""" + "".join(
    f"NodeName={name} NodeAddr={address} NodeHostname={name} CPUs=2 State=UNKNOWN\n" for name, address in HOSTS.items()) + \
    "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"

# What makes a compute node of a network namespace: as root, and without leaving anything when it is killed.
HOST = f"""
mount --make-rprivate /
hostname "$1"
mount -t tmpfs -o mode=0755 tmpfs /run/user
mkdir /run/user/{machine.UID}; chown {machine.UID}:{machine.UID} /run/user/{machine.UID}; chmod 0700 /run/user/{machine.UID}
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t proc proc /proc
exec catatonit -- slurmd -D -N "$1"
"""


def add_hosts() -> None:
    """Adds beta and gamma beside alpha: the router's link becomes a bridge."""
    run = machine.run
    run("ip", "-n", "router", "link", "add", "br0", "type", "bridge")
    run("ip", "-n", "router", "addr", "del", f"{ROUTER4}/24", "dev", "eth0")
    run("ip", "-n", "router", "link", "set", "eth0", "master", "br0")
    run("ip", "-n", "router", "link", "set", "br0", "up")
    run("ip", "-n", "router", "addr", "add", f"{ROUTER4}/24", "dev", "br0")
    for name, address in list(HOSTS.items())[1:]:
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", f"to-{name}", "netns", "router")
        run("ip", "-n", "router", "link", "set", f"to-{name}", "master", "br0", "up")
        run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", name, "link", "set", "eth0", "up")
        run("ip", "-n", name, "route", "add", "default", "via", ROUTER4)


class Daemon:
    def __init__(self, name: str, argv: list[str]) -> None:
        self.log = WORK / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def names() -> str:
    return "127.0.0.1 localhost\n" + f"{ROUTER4} router\n" + "".join(f"{address} {name}\n" for name, address in HOSTS.items())


@contextlib.contextmanager
def cluster() -> Iterator[None]:
    """A running Slurm whose three nodes are idle."""
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "state").mkdir(parents=True)
    etc = {"slurm/slurm.conf": CONF, "slurm/cgroup.conf": "CgroupPlugin=disabled\n", "hosts": names()}
    started: list[Daemon] = []
    with inside.overlaid(inside.root_of("slurm", "usr/bin/srun"), etc):
        add_hosts()
        key = WORK / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        Path(SOCKET).parent.mkdir(mode=0o755, exist_ok=True)
        try:
            started.append(Daemon("munged", ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={SOCKET}",
                                             f"--pid-file={WORK}/munged.pid", f"--seed-file={WORK}/munged.seed",
                                             f"--log-file={WORK}/munged.out"]))
            machine.wait_for(lambda: Path(SOCKET).exists(), 20, "munged listens")
            controller = ["unshare", "--uts", "sh", "-ec", "hostname router; exec slurmctld -D -i"]
            started.append(Daemon("slurmctld", machine.within("router", *controller)))
            for name in HOSTS:
                words = ["unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", HOST, "sh", name]
                started.append(Daemon(f"slurmd-{name}", machine.within(name, *words)))
            try:
                machine.wait_for(lambda: states() == {"idle"}, 60, "three nodes are idle")
            except AssertionError:
                for one in started:
                    print(one.log, one.log.read_text()[-1500:])
                raise
            yield
        finally:
            for one in reversed(started):
                one.end()


def command(*argv: str, check: bool = True, timeout: float = 60, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A command of the user on alpha, from a login outside of all jobs."""
    done = subprocess.run(machine.as_user(*argv), text=True, capture_output=True, timeout=timeout, env=env or machine.environment(),
                          cwd="/")
    assert not check or done.returncode == 0, f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done


def states() -> set[str]:
    done = command("sinfo", "--noheader", "--Node", "--format=%T", check=False)
    listed = done.stdout.split()
    return set(listed) if len(listed) == len(HOSTS) else set()


def state_of(job: str) -> str:
    return next((word.removeprefix("JobState=") for word in command("scontrol", "show", "job", job).stdout.split()
                 if word.startswith("JobState=")), "")
