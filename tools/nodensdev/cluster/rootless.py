# SPDX-License-Identifier: Apache-2.0
"""A rootless node: a guest with the user alice, whose nodens-rootless joins the cluster.

The guest is prepared as an administrator would do it: the programs are installed, alice has subordinate IDs, lingering and delegated
controllers. Everything else is done as alice, without privileges: `join` in her home directory starts the node.
"""
import base64
import json
import shlex
import shutil
from pathlib import Path

from .. import build, images, registry
from ..command import Failure
from ..env import cache, chroot, disk, goprograms, guest, kernel, provision
from ..project import BUILD, INSIDE, TOP
from . import addresses, runtime
from .options import KUBELETS, Options

USER, UID = "alice", 1000
HOME = f"/home/{USER}"
FIRST_ID = 100000          # of alice's subordinate IDs, as adduser gives them
POD_NETWORK = "10.244.{}.0/24"
LINK_MTU, FLANNEL_PORT = 1500, 8472
PROFILE = "/usr/local/etc/apparmor.d/nodens-rootless"
PROGRAMS = ("kubelet", "kube-proxy", "kubectl")
OTHER_PROGRAMS = f"{HOME}/kubernetes"      # those of another version than the control plane's
CONTAINERD = ("containerd", "containerd-shim-runc-v2", "ctr")
# The name of a runtime, as `nodens-rootless up --runtime` has it.
RUNTIMES = {"nodens": "nodens-cri", "containerd": "containerd"}

# Runs a command as alice, as a session of hers would.
AS_USER = f"""\
#!/bin/sh
cd {HOME} && exec setpriv --reuid={UID} --regid={UID} --init-groups env -i \\
        PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin \\
        HOME={HOME} USER={USER} LOGNAME={USER} SHELL=/bin/bash LANG=C.UTF-8 XDG_RUNTIME_DIR=/run/user/{UID} \\
        DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/{UID}/bus "$@"
"""

ACCOUNT = f"""\
if ! id {USER} >/dev/null 2>&1; then useradd --uid {UID} --create-home --shell /bin/bash {USER}; fi
echo '{USER}:{FIRST_ID}:{{ids}}' | tee /etc/subuid >/etc/subgid
"""

SCRIPT = """\
#!/bin/sh
# Makes this guest the host {name}, on which {user} runs a rootless node.
set -eu
cp -a --no-preserve=ownership /exchange/in/root/. /
hostname {name}
ip link set lo up
for _ in $(seq 300); do [ -e /sys/class/net/{nic} ] && break; sleep 0.1; done # its driver may be a module
ip link set {nic} up
ip addr add {address}/24 dev {nic}
ip route add default via {gateway}
{account}
chown {user}: {home} && chown -R {user}: {home}/.config {home}/.ssh {home}/join {home}/join.kubeconfig
chmod 0600 {home}/join.kubeconfig
systemctl daemon-reload
if [ -d /sys/kernel/security/apparmor ]; then apparmor_parser --replace {profile}; fi
systemctl start --no-block ssh.service
loginctl enable-linger {user}
for _ in $(seq 600); do [ -S /run/user/{uid}/systemd/private ] && break; sleep 0.1; done
{join}
echo "host {name} is set up"
"""

# Host ports of pods are published only if the user allows them.
SETTINGS = "NODENS_HOST_PORTS=18000-18999\n"
# A device that tests ask for (tests/cluster/scenarios/rootless/test_volumes.py).
CDI = f"{HOME}/cdi"
CDI_FILE = {"cdiVersion": "0.6.0", "kind": "story.example/device", "devices": [{"name": "one", "containerEdits": {
    "deviceNodes": [{"path": "/dev/fuse"}], "env": ["STORY=from-cdi"]}}]}
DELEGATION = "[Service]\nDelegate=cpu cpuset io memory pids\n"

# Imports every archive of /share in a node of alice that has the data directory of her later node.
IMPORT = """\
#!/bin/sh
set -e
cp -a --no-preserve=ownership /share/installed/. /
cat >/usr/local/sbin/as-{user} <<'END'
{as_user}END
chmod 0755 /usr/local/sbin/as-{user}
{account}
mkdir -p /run/user/{uid} /srv/images && chown {user}: /run/user/{uid}
cp /share/*-archive.tar /srv/images
as-{user} nodens-rootless run --net none --data {home}/.local/share/nodens/default --bind /srv/images:ro -- sh -ec '{commands}'
rm -r /srv/images
"""
IMPORT_CONTAINERD = """
mkdir -p /etc/containerd
printf "version = 3\\n[plugins.\\"io.containerd.cri.v1.images\\"]\\n  snapshotter = \\"overlayfs\\"\\n" >/etc/containerd/config.toml
containerd >/tmp/log 2>&1 &
for _ in $(seq 100); do ctr version >/dev/null 2>&1 && break; sleep 0.2; done
for archive in /srv/images/*; do ctr -n k8s.io images import --all-platforms=false "$archive" || { cat /tmp/log; exit 1; }; done
ctr -n k8s.io images ls -q
kill $!; wait $! || true
"""
IMPORT_NODENS = """
/usr/local/sbin/nodens-cri >/tmp/log 2>&1 &
for _ in $(seq 100); do nodens images >/dev/null 2>&1 && break; sleep 0.2; done
for archive in /srv/images/*; do nodens import "$archive" || { cat /tmp/log; exit 1; }; done
nodens images
kill $!; wait $! || true
"""
IMPORTS = {"nodens": IMPORT_NODENS, "containerd": IMPORT_CONTAINERD}

# What the controller of a rootless node does with the API server: Services of its node, and the label of the node.
CONTROLLER_ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodens-rootless-controller}
rules:
- {apiGroups: [""], resources: [services, pods, nodes], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [nodes], verbs: [patch]}
- {apiGroups: [""], resources: [events], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodens-rootless-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodens-rootless-controller}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: nodens-rootless-controller}
"""


def node_disk(options: Options) -> Path:
    """A base disk with Kubernetes' and the runtime's programs, and the images in alice's data directory."""
    kubernetes, containerd = goprograms.ensure("kubernetes"), goprograms.ensure("containerd")
    programs = {f"usr/local/bin/{name}": kubernetes / name for name in PROGRAMS}
    programs |= {f"usr/local/bin/{name}": containerd / name for name in CONTAINERD}
    base = disk.base(additions=tuple(disk.Addition(source, target) for target, source in sorted(programs.items())))
    if not options.images:
        return base
    script = IMPORT.format(user=USER, uid=UID, home=HOME, as_user=AS_USER, account=ACCOUNT.format(ids=options.subordinate_ids),
                           commands=IMPORTS[options.runtime].replace("'", "'\\''"))
    return provision.ensure(base, f"rootless-{options.runtime}", script, [images.archive(name) for name in options.images],
                            {"installed": importers()}, "uml-nft")


def installed() -> Path:
    """Our programs, units and profiles, as `meson install` puts them; /usr/local is its prefix."""
    target = BUILD / "release-installed"
    with chroot.prepared(chroot.Chroot()) as inside:
        directory = build.ensure(inside, "release")
        shutil.rmtree(target, ignore_errors=True)
        done = inside.capture(["meson", "install", "--no-rebuild", "-C", f"build/{directory.name}",
                               "--destdir", str(INSIDE / target.relative_to(TOP))])
    if done.returncode != 0:
        raise Failure(f"meson install failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return target


def importers() -> Path:
    """The programs that import images, kept in the cache by the sources that decide what an image store looks like."""
    def keep(entry: Path) -> None:
        shutil.copytree(installed() / "usr", entry / "usr", symlinks=True)

    return cache.ensure("programs", "rootless-import", runtime.import_key(), keep)


def write(options: Options, number: int, directory: Path, exchange: Path, site: registry.Site | None) -> None:
    """Puts the job into the exchange of a host's guest."""
    guest.put_job(exchange, script(options, number), "stay")
    tree = exchange / "in/root"
    shutil.copytree(installed(), tree, symlinks=True)
    for path, text in files(options, number, directory, site).items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    if options.kubelet:
        (tree / OTHER_PROGRAMS[1:]).mkdir(parents=True)
        found = goprograms.ensure(KUBELETS[options.kubelet])
        for program in ("kubelet", "kube-proxy"):
            if (found / program).exists():
                shutil.copy(found / program, tree / OTHER_PROGRAMS[1:])
    modes = {f"usr/local/sbin/as-{USER}": 0o755, f"{HOME[1:]}/join": 0o755, "etc/ssh/ssh_host_ed25519_key": 0o600, "root/.ssh": 0o700,
             "root": 0o700, f"{HOME[1:]}": 0o700, f"{HOME[1:]}/.ssh": 0o700}
    for path, mode in modes.items():
        (tree / path).chmod(mode)


def script(options: Options, number: int) -> str:
    return SCRIPT.format(name=addresses.node_name(number), user=USER, uid=UID, home=HOME, nic=kernel.KERNELS[options.kernel].first_nic,
                         address=addresses.node(number), gateway=addresses.CONTROL_PLANE,
                         account=ACCOUNT.format(ids=options.subordinate_ids), profile=PROFILE,
                         join=f"as-{USER} {HOME}/join" if options.join else "")


def join_command(options: Options, number: int) -> list[str]:
    programs = ["--programs", OTHER_PROGRAMS] if options.kubelet else []
    return ["nodens-rootless", "up", "--join", f"{HOME}/join.kubeconfig", "--runtime", RUNTIMES[options.runtime],
            "--node-name", addresses.node_name(number), "--node-ip", addresses.node(number),
            "--cdi", CDI, "--cluster-dns", addresses.CLUSTER_DNS, *network_arguments(options, number), *programs, *options.rootless_args]


def network_arguments(options: Options, number: int) -> list[str]:
    if options.flannel:
        return ["--cni", f"{HOME}/flannel.conflist", "--mtu", str(LINK_MTU), "--publish", f"{FLANNEL_PORT}/udp"]
    return ["--pod-cidr", POD_NETWORK.format(number), *(["--peers", f"{HOME}/nodes"] if options.nodes > 1 else [])]


def flannel_network(number: int) -> str:
    """The network of a node's pods beside flannel, which masquerades."""
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "mtu": LINK_MTU - 50,
              "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_NETWORK.format(number)}]], "routes": [{"dst": "0.0.0.0/0"}]}}
    return json.dumps({"cniVersion": "1.0.0", "name": "flannel",
                       "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]})


def peers(options: Options) -> str:
    """The list of nodes for `nodens-rootless up --peers`."""
    return "".join(f"{addresses.node_name(number)} {POD_NETWORK.format(number)} {addresses.node(number)}\n"
                   for number in range(1, options.nodes + 1))


def files(options: Options, number: int, directory: Path, site: registry.Site | None) -> dict[str, str]:
    name = addresses.node_name(number)
    key = (directory / "ssh.pub").read_text()
    found = {
        "etc/hostname": name + "\n", "etc/resolv.conf": f"nameserver {addresses.CONTROL_PLANE}\n",
        "etc/hosts": f"127.0.0.1 localhost\n{addresses.CONTROL_PLANE} control-plane {registry.HOST}\n{addresses.node(number)} {name}\n",
        "etc/systemd/system/user@.service.d/delegate.conf": DELEGATION,
        "root/.ssh/authorized_keys": key, f"{HOME[1:]}/.ssh/authorized_keys": key,
        "etc/ssh/ssh_host_ed25519_key": (directory / "ssh-host").read_text(),
        f"usr/local/sbin/as-{USER}": AS_USER,
        f"{HOME[1:]}/.config/nodens/default.conf": SETTINGS,
        f"{HOME[1:]}/join": "#!/bin/sh\nexec " + shlex.join(join_command(options, number)) + "\n",
        f"{HOME[1:]}/join.kubeconfig": kubeconfig(directory, name),
        f"{HOME[1:]}/nodes": peers(options),
        f"{HOME[1:]}/flannel.conflist": flannel_network(number),
        f"{CDI[1:]}/story.json": json.dumps(CDI_FILE),
    }
    return found | (registry_files(site, options.runtime) if site else {})


def registry_files(site: registry.Site, runtime_name: str) -> dict[str, str]:
    directory = f"etc/{runtime_name}/certs.d"
    # by its address: the host's /etc/hosts is not the node's, and there is no DNS server
    hosts_file = registry.hosts_toml(f"/{directory}/ca.pem", f"https://{addresses.CONTROL_PLANE}:{registry.PORT}")
    return {f"{directory}/ca.pem": site.authority.read_text(), f"{directory}/registry.k8s.io/hosts.toml": hosts_file,
            f"{directory}/{registry.HOST}:{registry.PORT}/hosts.toml": hosts_file}


def kubeconfig(directory: Path, name: str) -> str:
    """One file with a context for each part of the node."""
    def encoded(file: str) -> str:
        return base64.b64encode((directory / file).read_bytes()).decode()

    users = {"kubelet": name, "kube-proxy": "proxy", "controller": "rootless-controller"}
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "kubelet",
        "clusters": [{"name": "testbed", "cluster": {
            "server": addresses.API_SERVER, "certificate-authority-data": encoded("ca.crt")}}],
        "users": [{"name": part, "user": {"client-certificate-data": encoded(f"{file}.crt"), "client-key-data": encoded(f"{file}.key")}}
                  for part, file in users.items()],
        "contexts": [{"name": part, "context": {"cluster": "testbed", "user": part}} for part in users],
    }, indent=1)
