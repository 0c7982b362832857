# SPDX-License-Identifier: Apache-2.0
"""The OCI bundle of a container: its config.json has the container's variables, with secrets in them.

createContainer hooks read it as the container's root. In a pod with a user namespace this is an ordinary user of the host, and
of those users the only one who can.
"""
import subprocess
from pathlib import Path

import pytest
from conftest import Subject
from nodenstest import runtimes
from nodenstest.cdi import Define, hook
from nodenstest.pods import Container, Pod, Pods

SECRET = "the-secret-of-one-container"
SCRIPT = """#!/bin/sh
root=$(sed 's/.*"root": *"\\([^"]*\\)".*/\\1/')
{ id -u; head -n 1 /proc/self/uid_map; grep -c SECRET config.json; } > "$root/from-hook" 2>&1
""".replace("SECRET", SECRET)


def give(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def bundle_of(subject: Subject, one: Container) -> Path:
    if not isinstance(subject.runtime, runtimes.NodensCri):
        pytest.skip("about the directories of nodens-cri")
    return subject.runtime.directory / "state/pods" / one.pod.id / "containers" / one.id


def as_user(uid: int, gid: int, *command: str) -> subprocess.CompletedProcess[str]:
    """A process of the host with these IDs, without other groups and capabilities."""
    return subprocess.run(["setpriv", "--reuid", str(uid), "--regid", str(gid), "--clear-groups", *command],
                          capture_output=True, text=True, timeout=60)


def container_with_hook(pod: Pod, define: Define, stage: str = "createContainer") -> Container:
    program = give(pod.pods.directory / "hook", SCRIPT)
    return pod.container(envs=[pod.pods.pb.KeyValue(key="PASSWORD", value=SECRET.encode())], **define(hooks=[hook(program, stage=stage)]))


def test_a_hook_in_the_container_reads_the_bundle(pods: Pods, define: Define) -> None:
    one = container_with_hook(pods.run(), define)
    user, mapping, found = one.output("cat /from-hook").splitlines()
    assert (user, found) == ("0", "1")
    assert int(mapping.split()[1]) == (one.pod.block or int(Path("/proc/self/uid_map").read_text().split()[1]))


@pytest.mark.skipif(runtimes.rootless(), reason="a rootless node does not have the host's users")
def test_other_users_cannot_read_the_bundle(plain_pods: Pods, subject: Subject, define: Define) -> None:
    """Another pod's root, a user of the host, and users of the same pod who are not in its group 0."""
    one, other = container_with_hook(plain_pods.run(userns=True), define), plain_pods.run(userns=True)
    config = bundle_of(subject, one) / "config.json"
    root = one.pod.host_root
    assert SECRET in config.read_text()
    assert as_user(root, root, "cat", str(config)).stdout == config.read_text()
    for uid, gid in ((other.host_root, other.host_root), (1000, 1000), (65534, 65534), (root + 1000, root + 1000), (root + 1, root - 1)):
        done = as_user(uid, gid, "cat", str(config))
        assert done.returncode != 0 and "Permission denied" in done.stderr, f"{uid}:{gid} {done}"


def test_the_pods_root_cannot_change_the_bundle(plain_pods: Pods, subject: Subject, define: Define) -> None:
    """It could make the daemon kill another cgroup, and mislead it with links."""
    one = container_with_hook(plain_pods.run(userns=True), define)
    bundle, root = bundle_of(subject, one), one.pod.host_root
    before = (bundle / "config.json").read_bytes()
    for attack in ("echo x >> config.json", "chmod 666 config.json", "chown $(id -u) config.json",
                   "rm -f config.json && ! test -e config.json", "mv config.json old",
                   "ln -s /etc/shadow config.json.new", "ln config.json ../again",
                   "ls .", "ls ..", "ls ../..", "cat container.json", "cat container.pb", "cat ../../sandbox.pb"):
        done = as_user(root, root, "sh", "-c", f"cd {bundle} && {{ {attack}; }}")
        assert done.returncode != 0, f"{attack}: {done}"
    assert (bundle / "config.json").read_bytes() == before and not list(bundle.parent.glob("again"))
    found = (bundle / "config.json").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (0, root, 0o640)


def test_the_container_does_not_see_its_bundle(pods: Pods, subject: Subject, define: Define) -> None:
    one = container_with_hook(pods.run(), define)
    assert one.execute(f"test -e {bundle_of(subject, one)} -o -e {bundle_of(subject, one)}/config.json").code != 0
    assert one.execute("find / -xdev -name config.json | grep .").code != 0


@pytest.mark.parametrize("stage", ["none", "createRuntime", "startContainer", "poststop"])
def test_without_a_hook_that_needs_it_only_root_reads_the_bundle(plain_pods: Pods, subject: Subject, stage: str, define: Define) -> None:
    pod = plain_pods.run(userns=True)
    program = give(plain_pods.directory / "nothing", "#!/bin/true\n")
    if stage == "startContainer":
        program = Path("/bin/true")    # of the container
    one = pod.container() if stage == "none" else pod.container(**define(hooks=[hook(program, stage=stage)]))
    found = (bundle_of(subject, one) / "config.json").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (0, 0, 0o600)


def test_with_host_users_only_root_reads_the_bundle(plain_pods: Pods, subject: Subject, define: Define) -> None:
    one = container_with_hook(plain_pods.run(), define)
    found = (bundle_of(subject, one) / "config.json").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (0, 0, 0o600)
