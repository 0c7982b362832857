# SPDX-License-Identifier: Apache-2.0
"""Set up for the CRI's tests, inside the Debian root: a real registry, nodens-cri and containerd, each in a directory of its own.

`tools/dev test cri` sees to it that programs, images and the CRI's messages are in the cache; here the newest of each is taken.
"""
import atexit
import contextlib
import functools
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nodensdev.cri_client import CriClient, Messages, messages_from
from nodensdev.project import TOP

from . import registry_server

BUILD = TOP / "build" / os.environ.get("NODENS_VARIANT", "gcc")
SANITIZED = BUILD.name == "asan"     # the daemon's memory is not meaningful then
CACHE = Path("/cache")
SCRATCH = Path(os.environ.get("NODENS_SCRATCH", "/var/tmp"))
SECOND = "second.nodens.test"        # another name for the same registry, as mirrors have them
STARTUP = 120.0

REPORTS = BUILD / "reports"
if SANITIZED:   # leaks are the unit tests' to find: the pull helper's jail does not let itself be traced
    os.environ["ASAN_OPTIONS"] = f"detect_leaks=0:log_path={REPORTS}/asan"

CONTAINERD_CONFIG = """\
version = 3
root = '{directory}/root'
state = '{directory}/state'
disabled_plugins = ['io.containerd.nri.v1.nri']
[grpc]
  address = '{socket}'
[ttrpc]
  address = '{socket}.ttrpc'
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '{pause}'
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '{certificates}'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = {restricted}
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = 'crun'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun.options]
  BinaryName = '{crun}'
  SystemdCgroup = {systemd}
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
  conf_dir = '{directory}/cni'
"""
# Debian's conmon and crun; a pod's exit files, sockets and pinned namespaces in the runtime's own directory.
CRIO_CONFIG = """\
[crio]
root = '{directory}/storage'
runroot = '{directory}/run'
storage_driver = 'overlay'
log_dir = '{directory}/logs'
version_file = '{directory}/version'
clean_shutdown_file = '{directory}/clean'
[crio.api]
listen = '{socket}'
[crio.runtime]
conmon = '/usr/bin/conmon'
conmon_cgroup = '{monitor_cgroup}'
cgroup_manager = '{cgroup_driver}'
decryption_keys_path = '{directory}/keys'
namespaces_dir = '{directory}'
container_exits_dir = '{directory}/exits'
container_attach_socket_dir = '{directory}/attach'
pinns_path = '{pinns}'
hooks_dir = []
irqbalance_config_restore_file = 'disable'
default_runtime = 'crun'
[crio.runtime.runtimes.crun]
runtime_path = '{crun}'
runtime_root = '{directory}/crun'
monitor_path = '/usr/bin/conmon'
monitor_cgroup = '{monitor_cgroup}'
[crio.image]
pause_image = '{pause}'
signature_policy = '{directory}/policy.json'
signature_policy_dir = '{directory}/policies'
[crio.network]
network_dir = '{directory}/cni'
plugin_dirs = ['/usr/lib/cni']
[crio.nri]
enable_nri = false
"""
CAP_SYS_RESOURCE = 24
WITHOUT_CONTROLLERS = Path(__file__).with_name("crun-without-controllers")
bridges = itertools.count(1)


def pod_network(state: Path) -> dict[str, object]:
    """A bridge of the runtime's own. Host ports only if there is NAT: portmap needs iptables."""
    number = next(bridges)
    bridge = {"type": "bridge", "bridge": f"nodens{os.getpid() % 10000}x{number}", "isGateway": True, "hairpinMode": True,
              "ipam": {"type": "host-local", "dataDir": str(state), "ranges": [[{"subnet": f"10.{90 + number}.0.0/16"}]],
                       "routes": [{"dst": "0.0.0.0/0"}]}}
    ports = {"type": "portmap", "backend": "nftables" if shutil.which("nft") else "iptables", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": f"test{number}", "plugins": [bridge, ports] if translates() else [bridge]}


@functools.cache
def translates() -> bool:
    """Whether this kernel has NAT: User-mode Linux has none."""
    program = "add table ip nodens-probe; add chain ip nodens-probe nat { type nat hook postrouting priority 100; }"
    return shutil.which("nft") is not None and subprocess.run(["unshare", "-n", "nft", program], capture_output=True).returncode == 0


def rootless() -> bool:
    """Whether these tests run as root of a rootless node (in_node.py)."""
    return os.stat("/proc/self/ns/user").st_ino != 0xEFFFFFFD


def systemd() -> bool:
    """Whether systemd runs here: then it is the cgroup driver that a kubelet would use."""
    return Path("/run/systemd/system").is_dir()


def has_controllers() -> bool:
    return "memory" in Path("/sys/fs/cgroup/cgroup.controllers").read_text().split()


def make_state_writable() -> None:
    """A chroot's root is read-only, and CNI keeps what it did in /var/lib/cni. The mount is this chroot's own."""
    if os.statvfs("/var/lib").f_flag & os.ST_RDONLY:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/var/lib"], check=True)


def may_lower_oom_score() -> bool:
    status = Path("/proc/self/status").read_text()
    bounding = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))
    return bool(int(bounding, 16) >> CAP_SYS_RESOURCE & 1)


def newest(pattern: str) -> Path:
    """The entry of the cache that was asked for last."""
    found = [path for path in CACHE.glob(pattern) if path.is_dir()]
    if not found:
        raise FileNotFoundError(f"nothing in the cache at {pattern}; `tools/dev test cri` makes it")
    return max(found, key=lambda path: path.with_name(path.name + ".lock").stat().st_mtime)


@functools.cache
def program(path: str) -> Path:
    """A copy of one of our programs, made at first use: a build during the run does not disturb a test."""
    copy = Path(tempfile.mkdtemp(prefix="programs-", dir=SCRATCH)) / Path(path).name
    shutil.copy(BUILD / path, copy)
    atexit.register(shutil.rmtree, copy.parent, True)
    return copy


def messages() -> Messages:
    return messages_from(newest("deps/cri-proto/*") / "api.proto")


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory on the disk, short enough for the sockets in it."""
    number = 0
    while True:
        path = SCRATCH / f"nd{os.getpid()}-{number}"
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o711)
            break
        number += 1
    try:
        yield path
    finally:
        unmount_below(path)
        shutil.rmtree(path, ignore_errors=True)


def unmount_below(top: Path) -> None:
    """A runtime's pins and roots outlive it, as they should, and stand in the way of removing its directories."""
    places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for place in reversed(places):
        if place.startswith(f"{top}/"):
            subprocess.run(["umount", "-l", place], check=False, stderr=subprocess.DEVNULL)


def free_ports() -> int:
    """A free port whose successor is free, too. Outside of the ephemeral range; the network is the suite's own."""
    for port in range(20000, 30000, 2):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", port + 1)):
            return port
    raise OSError("no free ports")


@contextlib.contextmanager
def registry(auth: str = "none", images: bool = True) -> Iterator[registry_server.Site]:
    """The real registry with TLS; with the testbed's images in it, or empty."""
    with scratch() as directory, registry_server.resolvable(directory):
        site = registry_server.Site(directory / "site", "127.0.0.1", free_ports(), auth)
        site.prepare(newest("registry-storage/e2e-own/*") / "storage" if images else None)
        with contextlib.ExitStack() as stack:
            for number, command in enumerate(site.commands()):
                log = stack.enter_context(open(site.directory / f"log{number}", "wb"))
                stack.enter_context(running(command, log, cwd=site.directory))
            site.wait()
            yield site


@contextlib.contextmanager
def running(command: list[str], log: object, **more: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **more)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def trust(site: registry_server.Site, certificates: Path, address: str | None = None, names: tuple[str, ...] = ()) -> None:
    """The hosts.toml files by which a runtime finds the registry under its names, and under more of them."""
    address = address or f"https://{site.name}"
    text = (f'server = "{address}"\nca = "{site.authority}"\n[host."{address}"]\n'
            f'  capabilities = ["pull", "resolve"]\n  ca = "{site.authority}"\n')
    for name in (f"{registry_server.testbed.HOST}_{site.port}_", SECOND, *names):
        (certificates / name).mkdir(parents=True, exist_ok=True)
        (certificates / name / "hosts.toml").write_text(text)


@dataclass
class Runtime:
    """A CRI runtime that is started and ended here."""

    directory: Path
    messages: Messages
    name: str = ""
    process: subprocess.Popen[bytes] | None = None
    wrapper: list[str] = field(default_factory=list)
    pause: str = "registry.k8s.io/pause:3.10.2"
    cgroup_driver: str = "cgroupfs"

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.certificates = self.directory / "certs.d"
        self.certificates.mkdir(exist_ok=True)
        self.socket = self.directory / "cri.sock"
        self.log = self.directory / "log"
        self.network = self.directory / "cni"
        self.network.mkdir(exist_ok=True)
        if not any(self.network.iterdir()):
            (self.network / "10-test.conflist").write_text(json.dumps(pod_network(self.directory / "addresses")))

    def command(self) -> list[str]:
        raise NotImplementedError

    def spawn(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*self.wrapper, *self.command()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)

    def start(self, patience: float = STARTUP) -> CriClient:
        """Starts it and returns a client when it answers."""
        import grpc
        self.spawn()
        deadline = time.monotonic() + patience
        while True:
            client = CriClient(str(self.socket), self.messages)
            try:
                client.images.ListImages(client.pb.ListImagesRequest(), timeout=5)
                return client
            except grpc.RpcError as error:
                client.close()
                assert self.process and self.process.poll() is None, f"{self.name} ended:\n{self.tail()}"
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.name} does not answer: {error}\n{self.tail()}") from error
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ends it; its processes exit soon after."""
        assert self.process
        self.process.send_signal(how)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""


@dataclass
class NodensCri(Runtime):
    name: str = "nodens-cri"
    store: Path | None = None
    settings: dict[str, object] = field(default_factory=dict)

    def command(self) -> list[str]:
        self.store = self.store or self.directory / "images"
        settings: dict[str, object] = {"socket": self.socket, "images": self.store, "certificates": self.certificates,
                                       "fetchHelper": program("src/pull/nodens-fetch"),
                    "unpackHelper": program("src/pull/nodens-unpack")}
        settings |= self.pod_settings() | self.settings
        (self.directory / "cri.yaml").write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
        return [str(program("src/nodens-cri")), "--config", str(self.directory / "cri.yaml")]

    def pod_settings(self) -> dict[str, object]:
        return {"state": self.directory / "state", "run": self.directory / "run", "networkNamespaces": self.directory / "netns",
                "cniConfig": self.network, "cgroupDriver": self.cgroup_driver,
                "metrics": self.directory / "metrics.sock", "apparmorProfiles": TOP / "apparmor/nodens-container",
                "monitor": program("src/mon/nodens-mon"), "crun": "/usr/bin/crun" if has_controllers() else WITHOUT_CONTROLLERS}


@dataclass
class Containerd(Runtime):
    name: str = "containerd"

    def command(self) -> list[str]:
        (self.directory / "config.toml").write_text(CONTAINERD_CONFIG.format(
            directory=self.directory, socket=self.socket, systemd=str(self.cgroup_driver == "systemd").lower(),
            certificates=self.certificates, pause=self.pause,
            restricted=str(not may_lower_oom_score()).lower(), crun="/usr/bin/crun" if has_controllers() else WITHOUT_CONTROLLERS))
        return [str(registry_server.program("containerd", "containerd")), "--config", str(self.directory / "config.toml")]

    def ctr(self, *arguments: str) -> str:
        done = subprocess.run([str(registry_server.program("containerd", "ctr")), "-a", str(self.socket), "-n", "k8s.io", *arguments],
                              capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0, f"ctr {' '.join(arguments)}: {done.stderr}\n{self.tail()}"
        return done.stdout


@dataclass
class CriO(Runtime):
    name: str = "cri-o"

    def command(self) -> list[str]:
        (self.directory / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        (self.directory / "crio.conf").write_text(CRIO_CONFIG.format(
            directory=self.directory, socket=self.socket, pause=self.pause, cgroup_driver=self.cgroup_driver,
            monitor_cgroup="system.slice" if self.cgroup_driver == "systemd" else "pod",
            pinns=registry_server.program("cri-o", "pinns"), crun="/usr/bin/crun" if has_controllers() else WITHOUT_CONTROLLERS))
        (self.directory / "conf.d").mkdir(exist_ok=True)
        return ["env", f"SSL_CERT_FILE={self.write_registries()}", str(registry_server.program("cri-o", "crio")),
                "--config", str(self.directory / "crio.conf"), "--config-dir", str(self.directory / "conf.d"),
                "--registries-conf", str(self.directory / "registries.conf"), "--registries-conf-dir", str(self.directory / "conf.d")]

    def start(self, patience: float = STARTUP) -> CriClient:
        """Returns when it has read the CNI configuration: it answers before."""
        client = super().start(patience)
        deadline = time.monotonic() + patience
        while not all(one.status for one in client.runtime.Status(client.pb.StatusRequest(), timeout=10).status.conditions):
            assert time.monotonic() < deadline, f"cri-o is not ready:\n{self.tail()}"
            time.sleep(0.1)
        return client

    def write_registries(self) -> str:
        """CRI-O's form of the hosts.toml files; the authority that it has to trust."""
        found = {}
        for path in self.certificates.glob("*/hosts.toml"):
            host, _, port = path.parent.name.rstrip("_").partition("_")
            found[f"{host}:{port}" if port else host] = tomllib.loads(path.read_text())
        entries = [f"[[registry]]\nprefix = '{name}'\nlocation = '{entry['server'].removeprefix('https://')}'\n"
                   for name, entry in found.items()]
        (self.directory / "registries.conf").write_text("\n".join(["unqualified-search-registries = []", *entries]))
        return next((str(entry["ca"]) for entry in found.values()), "/etc/ssl/certs/ca-certificates.crt")


KINDS = {"nodens-cri": NodensCri, "containerd": Containerd, "cri-o": CriO}
SIDE_BY_SIDE = ("nodens-cri", "containerd")     # what the CRI's cases run on unless one is chosen
