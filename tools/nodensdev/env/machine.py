# SPDX-License-Identifier: Apache-2.0
"""What the machine under us offers: programs, its Debian mirror, its environment."""
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from ..command import Failure

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
GO_HOME = Path("/usr/local/go/bin")  # where Go's own installer puts it; not in every PATH


def say(text: str) -> None:
    """A line about what is going on, apart from the command's own output."""
    print(f"tools/dev: {text}", file=sys.stderr, flush=True)


def need_root(purpose: str) -> None:
    if os.geteuid() != 0:
        raise Failure(f"{purpose} needs root (mounts and namespaces); run it again with sudo")


def need_program(name: str, package: str) -> None:
    """Makes sure that a program is there; as root on Debian it is installed."""
    if not shutil.which(name, path=program_path()):
        install(package, f"'{name}' is missing")


def install(package: str, why: str) -> None:
    """Installs a Debian package on the machine; fails with the reason if it cannot."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Failure(f"{why}; install the Debian package {package}")
    say(f"{why}: installing the Debian package {package}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-q"], ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]):
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"`{' '.join(command)}` failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def program_path() -> str:
    """The caller's PATH, completed with the standard directories and Go's."""
    parts = os.environ.get("PATH", "").split(":")
    standard = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", str(GO_HOME)]
    return ":".join([part for part in parts if part] + [part for part in standard if part not in parts])


def go_environment() -> dict[str, str]:
    """An environment in which `go` works, also where a CI runner has set next to nothing."""
    environment = os.environ | {"PATH": program_path(), "GOTOOLCHAIN": "local"}
    environment.setdefault("HOME", "/root" if os.geteuid() == 0 else str(Path.home()))
    environment.setdefault("GOFLAGS", "-buildvcs=false")
    return environment


@dataclass(frozen=True)
class Source:
    """One line of the machine's apt configuration."""

    uri: str
    suites: tuple[str, ...]


def apt_sources() -> list[Source]:
    """The machine's apt sources, of both formats, in the order of the files."""
    base = Path("/etc/apt")
    found: list[Source] = []
    for path in [base / "sources.list", *sorted(base.glob("sources.list.d/*.list"))]:
        if path.exists():
            found += parse_one_line_sources(path.read_text())
    for path in sorted(base.glob("sources.list.d/*.sources")):
        found += parse_deb822_sources(path.read_text())
    return found


def parse_one_line_sources(text: str) -> list[Source]:
    pattern = re.compile(r"^\s*deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)", re.MULTILINE)
    return [Source(match[1], (match[2],)) for match in pattern.finditer(text)]


def parse_deb822_sources(text: str) -> list[Source]:
    found = []
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for paragraph in re.split(r"\n\s*\n", kept):
        fields = dict(re.findall(r"^(\S+):\s*((?:.*(?:\n[ \t]+.*)*))", paragraph, re.MULTILINE))
        if "deb" in fields.get("Types", "").split() and fields.get("Enabled", "yes").strip() != "no":
            found += [Source(uri, tuple(fields.get("Suites", "").split())) for uri in fields.get("URIs", "").split()]
    return found


def codename() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=", 1)[1].strip('"')
    return ""


def mirror() -> str:
    """The Debian mirror: $NODENS_MIRROR, or the one that the machine itself was installed from."""
    chosen = os.environ.get("NODENS_MIRROR")
    if chosen:
        return chosen.rstrip("/")
    for source in apt_sources():
        if codename() in source.suites and is_archive(source.uri, codename()):
            return source.uri.rstrip("/")
    raise Failure("no Debian mirror in this machine's apt configuration; set NODENS_MIRROR to the URI of one")


def security_mirror() -> str | None:
    """The mirror of Debian's security updates, if the machine has one."""
    if os.environ.get("NODENS_MIRROR"):
        return None
    for source in apt_sources():
        if f"{codename()}-security" in source.suites:
            return source.uri.rstrip("/")
    return None


def is_archive(uri: str, suite: str) -> bool:
    """Whether a suite is really there."""
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/dists/{suite}/InRelease", timeout=20):
            return True
    except (urllib.error.URLError, OSError, ValueError):
        return False


def debian_sources(suite: str) -> list[str]:
    """sources.list lines for a suite with its updates, as far as the mirror has them."""
    main = mirror()
    lines = [f"deb [signed-by={KEYRING}] {main} {suite} main"]
    if is_archive(main, f"{suite}-updates"):
        lines.append(f"deb [signed-by={KEYRING}] {main} {suite}-updates main")
    security = security_mirror()
    if security and is_archive(security, f"{suite}-security"):
        lines.append(f"deb [signed-by={KEYRING}] {security} {suite}-security main")
    return lines


def apt_options() -> list[str]:
    """The machine's own way to the mirror (proxies, validity checks), to be kept inside a root."""
    if not shutil.which("apt-config"):
        return []
    wanted = ("Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::Check-Valid-Until")
    dump = subprocess.run(["apt-config", "dump", *wanted], capture_output=True, text=True, check=True).stdout
    return [line.rstrip(";") for line in dump.splitlines() if not line.endswith('"";')]
