# SPDX-License-Identifier: Apache-2.0
"""What a user namespace protects after an escape: the situations after the escapes that KEP-127 names, with and without one.

The flaws themselves are fixed; the tests give a container the access that an attacker had. docs/user-namespaces.md has the results."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from nodenstest.pods import Container, Pods, eventually


@pytest.fixture
def host_files(tmp_path: Path) -> Path:
    """A piece of the host as an attacker would like it: a secret of root's, a program that root runs, a directory of root's."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.owner() == "root" and parent != Path("/"):
            parent.chmod(0o755)
    (tmp_path / "shadow").write_text("root:secret\n")
    (tmp_path / "shadow").chmod(0o600)
    shutil.copy("/bin/true", tmp_path / "crun")
    (tmp_path / "bin").mkdir(mode=0o755)
    return tmp_path


def loot(one: Container, place: str = "/host") -> dict[str, bool]:
    """The access of root inside."""
    return {"reads the secret": one.execute(f"cat {place}/shadow").code == 0,
            "overwrites the program": one.execute(f"echo evil >>{place}/crun").code == 0,
            "plants a setuid program": one.execute(f"cp /bin/busybox {place}/bin/evil && chmod 4755 {place}/bin/evil").code == 0}


def test_the_hosts_files_as_a_leaked_descriptor_shows_them(pods: Pods, host_files: Path) -> None:
    """CVE-2019-5736, CVE-2021-30465, CVE-2024-21626: a container sees files of the host unmapped.

    The first gives access to the runtime's own program, the others to a mount or a descriptor of
    the host. A mount without a mapping has the same effect.
    """
    pod = pods.run()
    one = pod.container(mounts=[pods.pb.Mount(host_path=str(host_files), container_path="/host")])
    assert set(loot(one).values()) == {not pods.users}
    assert (host_files / "crun").read_bytes().endswith(b"evil\n") == (not pods.users)


def test_a_volume_that_leads_elsewhere_is_not_contained_by_the_namespace(pods: Pods, host_files: Path) -> None:
    """CVE-2017-1002101, CVE-2021-25741: a link in a volume makes the kubelet mount elsewhere.

    The mount is mapped like any volume, so root inside is root in that directory, with a user
    namespace or without. Only safe resolution of paths in kubelet and runtime helps.
    """
    pod = pods.run()
    one = pod.container(mounts=[pod.mount(host_files, "/host")])
    assert set(loot(one).values()) == {True}


def test_a_setuid_program_that_was_planted_is_not_roots(pods: Pods, host_files: Path) -> None:
    """Files that root inside leaves in a directory of the container do not help a user of the host: their owner has no rights there."""
    one = pods.run().container("cp /bin/busybox /evil && chmod 4755 /evil; exec sleep 4321")
    planted = Path(f"/proc/{one.pid()}/root/evil")
    eventually(lambda: planted.exists() and planted.stat().st_mode & 0o4000, what="the program's planting")
    assert (planted.stat().st_uid == 0) == (not pods.users)


def test_an_escaped_process_is_unprivileged(pods: Pods) -> None:
    """On any path to the host's root directory, here through a process's own, files of root stay inaccessible."""
    secret = Path("/var/tmp/nodens-secret")
    secret.write_text("secret")
    secret.chmod(0o600)
    try:
        one = pods.run(namespaces={"pid": pods.pb.NODE}).container() if not pods.users else pods.run().container()
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{one.pid()}/status").read_text().splitlines() if ":\t" in line)
        uid = int(status["Uid"].split()[0])
        assert (uid == 0) == (not pods.users)
        assert readable_by(uid, secret) == (not pods.users)
    finally:
        secret.unlink()


def readable_by(uid: int, path: Path) -> bool:
    """Whether a process with only this ID, as on the host, can read a file."""
    who = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return subprocess.run(["setpriv", *who, "cat", str(path)], capture_output=True).returncode == 0


def test_root_inside_cannot_signal_or_trace_the_hosts_processes(pods: Pods) -> None:
    """With the host's pid namespace, which a pod in a user namespace may not even ask for: so only hosts' users get there."""
    if pods.users:
        pytest.skip("the API refuses hostPID with hostUsers: false, and so may a runtime")
    one = pods.run(namespaces={"pid": pods.pb.NODE}).container()
    assert one.execute(f"kill -0 {os.getpid()}").code == 0


def test_two_pods_have_no_access_to_each_other(pods: Pods, tmp_path: Path) -> None:
    """CVE-2016-8867 and similar ones end inside a pod.

    An unmapped file that one pod leaves in a shared directory does not belong to the other's root.
    """
    tmp_path.chmod(0o1777)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and parent != Path("/"):
            parent.chmod(0o755)
    mount = pods.pb.Mount(host_path=str(tmp_path), container_path="/shared")
    first, second = (pods.run(name=name).container(mounts=[mount]) for name in ("a", "b"))
    first.output("echo mine >/shared/file && chmod 600 /shared/file")
    assert (second.execute("cat /shared/file").code == 0) == (not pods.users)
