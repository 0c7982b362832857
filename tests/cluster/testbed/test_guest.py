# SPDX-License-Identifier: Apache-2.0
"""Guests run commands, and leave nothing behind when killed."""
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import TOP, Dev

Script = Callable[[str], str]


def test_output_files_and_exit_code_come_back(dev: Dev, script: Script, tmp_path: Path) -> None:
    done = dev.run("vm", "run", "--files", str(tmp_path / "files"), script("echo out; echo err >&2; echo kept >$FILES/note; exit 42"))
    assert done.returncode == 42
    assert done.stdout.splitlines() == ["out", "err"]
    assert (tmp_path / "files/note").read_text() == "kept\n"


def test_a_guest_is_debian_13_with_systemd_and_cgroup_v2_controllers(dev: Dev, script: Script) -> None:
    done = dev.run("vm", "run", script(
        ". /etc/os-release; echo $VERSION_CODENAME; ps -o comm= 1; cat /sys/fs/cgroup/cgroup.controllers; "
        "systemctl --failed --quiet --no-legend"))
    assert done.returncode == 0
    codename, init, controllers, *failed = done.stdout.splitlines()
    assert (codename, init) == ("trixie", "systemd")
    assert {"cpu", "memory", "pids", "io"} <= set(controllers.split())
    assert failed == []


def test_limits_are_debians_own(dev: Dev, script: Script) -> None:
    done = dev.run("vm", "run", script("cat /proc/sys/fs/inotify/max_user_instances; ulimit -Sn"))
    assert done.stdout.split()[:2] == ["128", "1024"]


def test_a_shared_directory_is_seen_by_both(dev: Dev, script: Script, tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    (tmp_path / "share/question").write_text("why?")
    done = dev.run("vm", "run", "--share", str(tmp_path / "share"), script("cat /share/question; echo because >/share/answer"))
    assert done.stdout == "why?"
    assert (tmp_path / "share/answer").read_text() == "because\n"


def test_the_disk_is_kept_over_a_reboot_and_unsynced_data_lost_in_a_power_cut(dev: Dev, script: Script) -> None:
    # Without periodic writeback, and judged by its content: another process's fsync() commits the name of the new file, too.
    first = script("echo 0 >/proc/sys/vm/dirty_writeback_centisecs; echo a >/root/synced; sync; echo b >/root/unsynced; "
                   "cat /proc/sys/kernel/random/boot_id")
    second = script("grep -qs a /root/synced && echo synced; grep -qs b /root/unsynced && echo unsynced; "
                    "cat /proc/sys/kernel/random/boot_id")
    kept = dev.run("vm", "run", first, second).stdout.splitlines()
    assert kept[1:3] == ["synced", "unsynced"]
    assert kept[0] != kept[3]
    cut = dev.run("vm", "run", "--cut", first, second).stdout.splitlines()
    assert cut[1:2] == ["synced"]
    assert "unsynced" not in cut


def test_guests_do_not_share_their_disk(dev: Dev, script: Script) -> None:
    assert dev.run("vm", "run", script("touch /root/mine")).returncode == 0
    assert dev.run("vm", "run", script("test ! -e /root/mine")).returncode == 0


def test_a_hanging_script_ends_by_the_deadline_with_the_console_in_the_report(dev: Dev, script: Script) -> None:
    for deadline in ("15", "60", "240"):     # a loaded machine may need longer to boot
        done = dev.run("vm", "run", "--deadline", deadline, script("echo before; sleep 1000"))
        assert done.returncode == 124
        assert f"did not finish within {deadline} s" in done.stderr
        if "before" in done.stdout:
            break
    assert "before" in done.stdout
    assert "systemd" in done.stderr


def test_a_kernel_panic_is_reported_with_the_console(dev: Dev, script: Script) -> None:
    done = dev.run("vm", "run", script("echo c >/proc/sysrq-trigger; sleep 1000"))
    assert done.returncode == 125
    assert "died before its script ended" in done.stderr
    assert "sysrq triggered crash" in (TOP / "build/vm/console.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_command_leaves_nothing(dev: Dev, script: Script, number: signal.Signals) -> None:
    process = dev.start("vm", "run", script("sleep 1000"))
    dev.wait_for_process("linux.uml mem=")
    process.send_signal(number)
    process.wait(120)


def test_a_script_without_an_interpreter_is_refused(dev: Dev, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("echo hi\n")
    done = dev.run("vm", "run", str(tmp_path / "script"))
    assert done.returncode == 1
    assert "#! line" in done.stderr


def test_the_prompt_is_a_terminal(dev: Dev) -> None:
    """`script` gives tools/dev a terminal; the guest's shell must have one too, and its exit code is ours."""
    command = ["script", "-qec", "tools/dev vm shell", "/dev/null"]
    done = subprocess.run(command, input="tty; uname -r; exit 9\n", capture_output=True, text=True, timeout=600,
                          cwd=TOP, env=dev.environment())
    assert done.returncode == 9, done.stdout
    assert "/dev/tty1" in done.stdout


@pytest.mark.slow
def test_debians_own_kernel_has_what_user_mode_linux_lacks(dev: Dev, script: Script, tmp_path: Path) -> None:
    (tmp_path / "share").mkdir()
    done = dev.run("vm", "run", "--kernel", "debian", "--share", str(tmp_path / "share"), "--files", str(tmp_path / "files"), script(
        "uname -r; cat /sys/module/apparmor/parameters/enabled; head -c 4 /proc/pressure/cpu; echo; "
        "nft add table inet t && nft list tables; cat /sys/fs/cgroup/cgroup.controllers; echo x >/share/y; echo z >$FILES/f; exit 3"))
    assert done.returncode == 3
    release, apparmor, pressure, table, controllers = done.stdout.splitlines()
    assert release.startswith("6.12.")
    assert (apparmor, pressure, table) == ("Y", "some", "table inet t")
    assert "cpuset" in controllers.split()
    assert (tmp_path / "share/y").read_text() == "x\n"
    assert (tmp_path / "files/f").read_text() == "z\n"


@pytest.mark.slow
def test_a_panic_of_debians_own_kernel_is_reported(dev: Dev, script: Script) -> None:
    done = dev.run("vm", "run", "--kernel", "debian", script("echo c >/proc/sysrq-trigger; sleep 1000"))
    assert done.returncode == 125
    assert "died before its script ended" in done.stderr
