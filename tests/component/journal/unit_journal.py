# SPDX-License-Identifier: Apache-2.0
"""The units of the tree, installed in this guest with the programs of the build, and what the journal says of them."""
import shutil
import subprocess
from pathlib import Path

from nodenstest import runtimes
from nodenstest.pods import eventually

CONFIG = Path("/etc/nodens/cri.yaml")
NETWORK = Path("/etc/cni/net.d")
STATE = Path("/var/lib/nodens")
DROP_IN = Path("/run/systemd/system/nodens-cri.service.d/test.conf")
PATIENCE = 120.0


def run(*command: str, check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def install_unit(name: str, directory: Path, programs: str) -> None:
    text = (runtimes.TOP / "units" / f"{name}.in").read_text()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text.replace("@sbindir@", programs).replace("@bindir@", programs))


class Runtime:
    """nodens-cri.service. Lines are those of plain `journalctl -u`, without fields, since the last reset."""

    def __init__(self) -> None:
        self.cursor = ""

    def install(self) -> None:
        for path, target in (("src/nodens-cri", "/usr/sbin"), ("src/nodens", "/usr/bin")):
            shutil.copy(runtimes.BUILD / path, target)
        # where the build's prefix has the helpers
        for helper in ("src/mon/nodens-mon", "src/pull/nodens-fetch", "src/pull/nodens-unpack"):
            for directory in ("/usr/libexec/nodens", "/usr/local/libexec/nodens"):
                Path(directory).mkdir(parents=True, exist_ok=True)
                shutil.copy(runtimes.BUILD / helper, directory)
        install_unit("nodens-cri.service", Path("/etc/systemd/system"), "/usr/sbin")

    def reset(self) -> None:
        """Stopped, without a configuration or state; with a network."""
        run("systemctl", "stop", "nodens-cri", check=False)
        run("systemctl", "reset-failed", "nodens-cri", check=False)
        while run("findmnt", "-n", str(STATE), check=False):
            run("umount", "-l", str(STATE))
        for path in (CONFIG.parent, STATE, Path("/run/nodens"), NETWORK, DROP_IN.parent):
            shutil.rmtree(path, ignore_errors=True)
        NETWORK.mkdir(parents=True)
        (NETWORK / "10-pods.conflist").write_text('{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "loopback"}]}')
        run("systemctl", "daemon-reload")
        run("journalctl", "--sync")
        self.cursor = run("journalctl", "-n", "1", "-o", "cat", "--show-cursor").rpartition("-- cursor: ")[2].strip()

    def configure(self, text: str) -> None:
        CONFIG.parent.mkdir(exist_ok=True)
        CONFIG.write_text(text)

    def drop_in(self, text: str) -> None:
        DROP_IN.parent.mkdir(parents=True, exist_ok=True)
        DROP_IN.write_text(text)
        run("systemctl", "daemon-reload")

    def start(self) -> None:
        """Starts it, whether it succeeds or not."""
        run("systemctl", "start", "--no-block", "nodens-cri")

    def started(self) -> None:
        run("systemctl", "start", "nodens-cri")

    def lines(self) -> list[str]:
        return run("journalctl", "-u", "nodens-cri", "--no-pager", "-o", "cat", f"--after-cursor={self.cursor}").splitlines()

    def line(self, words: str) -> str:
        """The first line with these words, as soon as there is one."""
        found = eventually(lambda: next((line for line in self.lines() if words in line), None), PATIENCE,
                           f"a line with '{words}'")
        return str(found)

    def status(self) -> str:
        """What `systemctl status` shows, of which the log is the last ten lines."""
        return run("systemctl", "status", "--no-pager", "nodens-cri", check=False)

    def shows(self, words: str) -> str:
        """The Status: of the unit, once it has the words; a unit that is restarted loses it for a moment."""
        def seen() -> str | None:
            text = run("systemctl", "show", "-P", "StatusText", "nodens-cri").strip()
            return text if words in text else None
        return str(eventually(seen, PATIENCE, f"a status with '{words}'"))


class UserUnits:
    """The units of a rootless node, in the systemd of an ordinary user."""

    ID = 1500
    NAME = "worker"

    def install(self) -> None:
        shutil.copy(runtimes.BUILD / "src/rootless/nodens-rootless", "/usr/bin")
        for name in ("nodens-node@", "nodens-node-net@", "nodens-node-forward@", "nodens-node-api@"):
            install_unit(f"{name}.service", Path("/etc/systemd/user"), "/usr/bin")
        Path("/dev/net/tun").chmod(0o666)
        run("groupadd", "-g", str(self.ID), self.NAME)
        run("useradd", "-u", str(self.ID), "-g", str(self.ID), "-m", "-s", "/bin/bash", self.NAME)
        for name in ("/etc/subuid", "/etc/subgid"):
            Path(name).write_text(f"{self.NAME}:200000:262144\n")
        # Debian delegates more; the list of an assignment is added to earlier ones.
        drop_in = Path("/etc/systemd/system/user@.service.d/delegate.conf")
        drop_in.parent.mkdir(parents=True, exist_ok=True)
        drop_in.write_text("[Service]\nDelegate=\nDelegate=pids\n")
        run("systemctl", "daemon-reload")
        run("ip", "link", "add", "eth9", "type", "dummy")
        run("ip", "addr", "add", "10.66.0.2/24", "dev", "eth9")
        run("ip", "link", "set", "eth9", "up")
        run("ip", "route", "replace", "default", "via", "10.66.0.1")
        run("loginctl", "enable-linger", self.NAME)
        eventually(lambda: Path(f"/run/user/{self.ID}/systemd/private").exists(), PATIENCE, "the user's systemd")

    def end(self) -> None:
        run("loginctl", "disable-linger", self.NAME)

    def run(self, *command: str, check: bool = True) -> str:
        return run("setpriv", f"--reuid={self.ID}", f"--regid={self.ID}", "--init-groups", "env", "-i",
                   "PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"HOME=/home/{self.NAME}", f"USER={self.NAME}",
                   f"XDG_RUNTIME_DIR=/run/user/{self.ID}", *command, check=check)

    def line(self, unit: str, words: str) -> str:
        def seen() -> str | None:
            lines = run("journalctl", f"_UID={self.ID}", f"_SYSTEMD_USER_UNIT={unit}", "--no-pager", "-o", "cat").splitlines()
            return next((line for line in lines if words in line), None)
        return str(eventually(seen, PATIENCE, f"a line of {unit} with '{words}'"))

    def shows(self, unit: str, words: str) -> str:
        def seen() -> str | None:
            text = self.run("systemctl", "--user", "show", "-P", "StatusText", unit).strip()
            return text if words in text else None
        return str(eventually(seen, PATIENCE, f"a status of {unit} with '{words}'"))
