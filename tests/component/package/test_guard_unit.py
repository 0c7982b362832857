# SPDX-License-Identifier: Apache-2.0
"""nodens-guard from its package, as a unit: what its user can read, what the journal and `systemctl status` say, and that it
never gives up. No API server is needed for that."""
import grp
import json
import os
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nodenstest import runtimes

FILES = Path("/etc/nodens/guard")
UNIT = "nodens-guard.service"
PACKAGES = runtimes.TOP / "packages"


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def show(name: str, unit: str = UNIT) -> str:
    return run("systemctl", "show", "--value", "-p", name, unit).strip()


def journal(unit: str = UNIT) -> str:
    """As a person reads it: lines without fields."""
    return run("journalctl", "-u", unit, "-o", "cat", "--no-pager")


def eventually(condition: Callable[[], bool], what: str, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen; the journal:\n{journal()[-3000:]}"
        time.sleep(0.2)


def file_of_root(name: str, text: str) -> None:
    """As `sudo tee` and nodens-guard-token.service write it: the directory gives the group."""
    previous = os.umask(0o027)
    try:
        (FILES / f".{name}").write_text(text)
        os.rename(FILES / f".{name}", FILES / name)
    finally:
        os.umask(previous)


@pytest.fixture(scope="module")
def installed() -> Iterator[None]:
    run("dpkg", "-i", str(sorted(PACKAGES.glob("nodens-guard_*.deb"))[0]))
    yield
    subprocess.run(["systemctl", "stop", UNIT, "nodens-guard-token.timer", "nodens-guard-token.service"], capture_output=True)
    run("dpkg", "-P", "nodens-guard")
    assert not FILES.exists(), "keys and token stay behind"


def test_the_package_makes_a_directory_that_only_root_and_the_guard_read(installed: None) -> None:
    found = FILES.stat()
    assert stat.S_IMODE(found.st_mode) == 0o2750 and found.st_uid == 0 and grp.getgrgid(found.st_gid).gr_name == "nodens-guard"
    assert show("ActiveState") == "inactive", "it has no files yet"


def test_systemd_finds_nothing_wrong_in_the_units(installed: None) -> None:
    units = [f"/usr/lib/systemd/system/{name}" for name in (UNIT, "nodens-guard-token.service", "nodens-guard-token.timer")]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=120)
    about = [line for line in done.stderr.splitlines() if "nodens-guard" in line]
    assert not about, about


def test_the_unit_never_gives_up_and_starts_once_its_files_are_there(installed: None) -> None:
    quick = Path(f"/run/systemd/system/{UNIT}.d/quick.conf")
    quick.parent.mkdir(parents=True, exist_ok=True)
    quick.write_text("[Service]\nRestartSec=100ms\n")
    run("systemctl", "daemon-reload")
    subprocess.run(["systemctl", "start", UNIT], capture_output=True, timeout=120)
    eventually(lambda: int(show("NRestarts")) >= 8, "the eighth restart")
    assert show("Result") != "start-limit-hit" and show("ActiveState") == "activating"
    assert "no kubeconfig in '/etc/nodens/guard' (CREDENTIALS in nodens-guard(8) says how to make one)" in journal()

    file_of_root("kubeconfig", run("nodens-guard", "manifest", "guard-kubeconfig", "--server", "https://127.0.0.1:1", "--cluster-ca",
                                   f"{FILES}/ca.crt"))
    run("nodens-guard", "certificate", "--address", "127.0.0.1")
    (FILES / "client-ca.crt").symlink_to("ca.crt")
    file_of_root("token", "first")
    assert stat.S_IMODE((FILES / "tls.key").stat().st_mode) == 0o640 and stat.S_IMODE((FILES / "ca.key").stat().st_mode) == 0o600
    eventually(lambda: show("ActiveState") == "active", "the start with all files")
    eventually(lambda: "no contact with the API server https://127.0.0.1:1" in show("StatusText"), "the reason in the unit's status")
    assert "no contact with the API server https://127.0.0.1:1" in journal() and "check that it runs" in journal()
    assert show("User") == "nodens-guard" and Path(f"/proc/{show('MainPID')}").stat().st_uid != 0
    quick.unlink()
    run("systemctl", "daemon-reload")


def test_a_renewed_token_is_read_by_the_running_unit(installed: None) -> None:
    before = show("MainPID"), journal().count("loaded new credentials")
    file_of_root("token", "second")
    eventually(lambda: journal().count("loaded new credentials") > before[1], "the new token")
    file_of_root("token", "third")
    (FILES / "token").chmod(0o600)
    eventually(lambda: "open '/etc/nodens/guard/token': Permission denied" in journal(), "the unreadable token")
    assert show("MainPID") == before[0], "without a restart"


def test_the_timer_writes_a_token_that_the_guard_can_read(installed: None) -> None:
    """With a kubectl that only prints its arguments: the guest has no API server."""
    kubectl = Path("/usr/local/bin/kubectl")
    kubectl.parent.mkdir(parents=True, exist_ok=True)
    kubectl.write_text('#!/bin/sh\nprintf "%s " "$KUBECONFIG" "$@"\n')
    kubectl.chmod(0o755)
    try:
        run("systemctl", "start", "nodens-guard-token.service")
        assert (FILES / "token").read_text().split() == ["/etc/kubernetes/admin.conf", "create", "token", "nodens-guard", "--namespace",
                                                         "nodens-system", "--duration", "24h"]
        found = (FILES / "token").stat()
        assert stat.S_IMODE(found.st_mode) == 0o640 and grp.getgrgid(found.st_gid).gr_name == "nodens-guard"
        (FILES / "token").unlink()
        began = time.monotonic()
        run("systemctl", "start", "nodens-guard-token.timer")
        eventually(lambda: (FILES / "token").exists(), "the first token of the timer")
        assert time.monotonic() - began < 10, "the guard's unit does not start without it"
        run("systemctl", "stop", "nodens-guard-token.timer")
        kubectl.write_text("#!/bin/sh\necho no API server >&2\nexit 1\n")
        subprocess.run(["systemctl", "start", "--no-block", "nodens-guard-token.service"], check=True)
        eventually(lambda: "no API server" in journal("nodens-guard-token.service"), "the failed renewal")
        assert "create" in (FILES / "token").read_text(), "a failed renewal leaves the token"
    finally:
        subprocess.run(["systemctl", "stop", "nodens-guard-token.service"], capture_output=True)
        kubectl.unlink()


def test_a_busy_port_is_named_in_the_journal(installed: None) -> None:
    run("systemctl", "stop", UNIT)
    holder = subprocess.Popen(["python3", "-c", "import socket; s = socket.create_server(('', 9443)); print(1, flush=True); s.accept()"],
                              stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None and holder.stdout.readline()
        (FILES / "token").chmod(0o640)
        subprocess.run(["systemctl", "start", "--no-block", UNIT], check=True)
        eventually(lambda: "listen on 0.0.0.0 port 9443 (`ss -ltnp 'sport = :9443'` shows which process has it" in journal(), "the line")
        assert "Address already in use" in journal()
    finally:
        holder.kill()
        holder.wait(timeout=20)
    eventually(lambda: show("ActiveState") == "active", "the start on the free port")


def test_a_bad_kubeconfig_is_named_in_the_journal(installed: None) -> None:
    good = (FILES / "kubeconfig").read_text()
    file_of_root("kubeconfig", json.dumps({"current-context": "nosuch"}))
    eventually(lambda: "cannot use the changed credentials for the API server; keeping the current ones" in journal(), "the line")
    assert show("ActiveState") == "active"
    subprocess.run(["systemctl", "restart", "--no-block", UNIT], check=True)
    eventually(lambda: "kubeconfig '/etc/nodens/guard/kubeconfig': no context 'nosuch' is defined" in journal(), "the error at a start")
    file_of_root("kubeconfig", good)
    eventually(lambda: show("ActiveState") == "active", "the start with the good one")
