# SPDX-License-Identifier: Apache-2.0
"""A node: its disk, the files it finds at boot, and the script that makes it a node.

The files are a tree in the guest's exchange that the script copies over /. Nothing of Debian's limits is changed.
"""
import json
import shutil
from pathlib import Path

from .. import images, registry
from ..env import chroot, disk, goprograms, guest, kernel, provision
from . import addresses, controlplane, runtime
from .options import KUBELETS, Options

KUBELET = "/usr/local/bin/kubelet"
# cAdvisor looks for "cpu MHz", which User-mode Linux does not show. Only the kubelet may see the
# replacement: a covered /proc would keep all others from mounting proc in a user namespace.
KUBELET_ON_UML = """\
#!/bin/sh
# Starts the kubelet where /proc/cpuinfo has no clock rate.
awk '{ print } /^processor/ { print "cpu MHz\\t\\t: 1000.000" }' /proc/cpuinfo >/run/cpuinfo
exec unshare -m --propagation unchanged sh -c '
        mount --make-private /proc && mount --bind /run/cpuinfo /proc/cpuinfo && exec "$@"' sh "$@"
"""

UNIT = """\
[Unit]
Description={description}
After={after}
[Service]
ExecStart={command}
Restart=always
RestartSec=2
"""

SCRIPT = """\
#!/bin/sh
# Makes this guest the node {name}.
set -eu
cp -a --no-preserve=ownership /exchange/in/root/. /
hostname {name}
ip link set lo up
for _ in $(seq 300); do [ -e /sys/class/net/{nic} ] && break; sleep 0.1; done # its driver may be a module
ip link set {nic} up
ip addr add {address}/24 dev {nic}
ip route add default via {gateway}
{routes}
systemctl daemon-reload
systemctl start --no-block {units}
echo "node {name} is set up"
"""


def node_disk(options: Options) -> Path:
    """A base disk with Kubernetes' and the runtime's programs, and the images imported."""
    chosen = runtime.find(options.runtime)
    kubernetes = goprograms.ensure("kubernetes")
    programs = {f"usr/local/bin/{name}": kubernetes / name for name in ("kubelet", "kube-proxy", "kubectl")}
    programs |= {} if chosen.late else chosen.binaries()
    base = disk.base(additions=tuple(disk.Addition(source, target) for target, source in sorted(programs.items())))
    if not options.images:
        return base
    archives = [images.archive(name) for name in options.images]
    return provision.ensure(base, f"node-{options.runtime}", chosen.import_script, archives + chosen.import_programs())


def write(options: Options, number: int, pki: Path, exchange: Path, site: registry.Site | None) -> None:
    """Puts the job into the exchange of a node's guest."""
    guest.put_job(exchange, script(options, number), "stay")
    tree = exchange / "in/root"
    for path, text in files(options, number, pki, site).items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    chosen = runtime.find(options.runtime)
    for path, source in chosen.binaries().items() if chosen.late else ():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, tree / path)
    if options.kubelet:
        (tree / KUBELET[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(goprograms.ensure(KUBELETS[options.kubelet]) / "kubelet", tree / KUBELET[1:])
    modes = {"usr/local/sbin/kubelet-on-uml": 0o755, "etc/ssh/ssh_host_ed25519_key": 0o600, "root/.ssh": 0o700, "root": 0o700}
    for path, mode in modes.items():
        (tree / path).chmod(mode)


def script(options: Options, number: int) -> str:
    routes = [f"ip route add {addresses.pods(other)} via {addresses.node(other)}"
              for other in range(1, options.nodes + 1) if other != number]
    units = ["ssh.service", runtime.find(options.runtime).unit, "kubelet.service"]
    units += ["kube-proxy.service"] if has_nat(options) else []
    return SCRIPT.format(name=addresses.node_name(number), nic=kernel.KERNELS[options.kernel].first_nic,
                         address=addresses.node(number), gateway=addresses.CONTROL_PLANE, routes="\n".join(routes), units=" ".join(units))


def has_nat(options: Options) -> bool:
    """Whether the node can translate service addresses itself."""
    return kernel.KERNELS[options.kernel].nat


def files(options: Options, number: int, pki: Path, site: registry.Site | None) -> dict[str, str]:
    name = addresses.node_name(number)
    found = {
        "etc/hostname": name + "\n", "etc/hosts": hosts(options), "etc/resolv.conf": f"nameserver {addresses.CONTROL_PLANE}\n",
        "etc/cni/net.d/10-pods.conflist": json.dumps(network(options, number), indent=1),
        "etc/kubernetes/ca.crt": (pki / "ca.crt").read_text(),
        "etc/kubernetes/kubelet.crt": (pki / f"{name}.crt").read_text(),
        "etc/kubernetes/kubelet.key": (pki / f"{name}.key").read_text(),
        "etc/kubernetes/kubelet.kubeconfig": (pki.parent / f"{name}.kubeconfig").read_text(),
        "etc/kubernetes/kubelet.json": json.dumps(kubelet_configuration(options), indent=1),
        "etc/kubernetes/manifests/.keep": "",
        "etc/kubernetes/proxy.kubeconfig": (pki.parent / "proxy.kubeconfig").read_text(),
        "etc/kubernetes/proxy.json": json.dumps(
            controlplane.proxy_configuration(Path("/etc/kubernetes/proxy.kubeconfig"), name, masquerade_all=False)),
        "etc/systemd/system/kubelet.service": kubelet_unit(options, number),
        "etc/systemd/system/kube-proxy.service": UNIT.format(
            description="kube-proxy", after="kubelet.service",
            command="/usr/local/bin/kube-proxy --config=/etc/kubernetes/proxy.json"),
        "usr/local/sbin/kubelet-on-uml": KUBELET_ON_UML,
        "root/.ssh/authorized_keys": (pki / "ssh.pub").read_text(),
        "etc/ssh/ssh_host_ed25519_key": (pki / "ssh-host").read_text(),
    }
    found |= runtime.find(options.runtime).files(options)
    return found | (registry_files(site) if site else {})


def registry_files(site: registry.Site) -> dict[str, str]:
    hosts_file = registry.hosts_toml()
    return {"etc/containerd/certs.d/ca.pem": site.authority.read_text(),
            "etc/containerd/certs.d/registry.k8s.io/hosts.toml": hosts_file,
            f"etc/containerd/certs.d/{registry.HOST}:{registry.PORT}/hosts.toml": hosts_file}


def hosts(options: Options) -> str:
    lines = ["127.0.0.1 localhost", f"{addresses.CONTROL_PLANE} control-plane {registry.HOST}"]
    lines += [f"{addresses.node(number)} {addresses.node_name(number)}" for number in range(1, options.nodes + 1)]
    return "\n".join(lines) + "\n"


def network(options: Options, number: int) -> dict[str, object]:
    """The pods' network: a bridge, routed, without NAT. Where the kernel has NAT, host ports too."""
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True,
              "ipam": {"type": "host-local", "ranges": [[{"subnet": addresses.pods(number)}]],
                       "routes": [{"dst": "0.0.0.0/0"}]}}
    host_ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, host_ports] if has_nat(options) else [bridge]}


def kubelet_gates(options: Options) -> tuple[str, ...]:
    """An older kubelet gets only its own: it does not start with a gate that it does not know."""
    if options.kubelet_gates is not None:
        return options.kubelet_gates
    return () if options.kubelet else options.feature_gates


def kubelet_configuration(options: Options) -> dict[str, object]:
    ours: dict[str, object] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": runtime.find(options.runtime).socket, "cgroupDriver": options.cgroup_driver,
        "authentication": {"x509": {"clientCAFile": "/etc/kubernetes/ca.crt"}, "webhook": {"enabled": True},
                           "anonymous": {"enabled": False}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": "/etc/kubernetes/kubelet.crt", "tlsPrivateKeyFile": "/etc/kubernetes/kubelet.key",
        "clusterDomain": "cluster.local", "clusterDNS": [addresses.CLUSTER_DNS], "staticPodPath": "/etc/kubernetes/manifests",
        "failSwapOn": False, "makeIPTablesUtilChains": False,
        "featureGates": {gate: value == "true" for gate, _, value in (text.partition("=") for text in kubelet_gates(options))},
    }
    return ours | options.kubelet_config


def kubelet_unit(options: Options, number: int) -> str:
    command = [KUBELET, "--config=/etc/kubernetes/kubelet.json", "--kubeconfig=/etc/kubernetes/kubelet.kubeconfig",
               f"--hostname-override={addresses.node_name(number)}", f"--node-ip={addresses.node(number)}",
               *options.kubelet_args]
    if not kernel.KERNELS[options.kernel].clock_rate:
        command.insert(0, "/usr/local/sbin/kubelet-on-uml")
    return UNIT.format(description="the stock kubelet", after=runtime.find(options.runtime).unit, command=" ".join(command))


def boot(options: Options, number: int, base: Path, work: Path) -> kernel.Boot:
    """How the node's guest starts; `work` is its work directory as seen in the cluster's namespaces."""
    return kernel.Boot(chroot.seen_inside(base), work / "overlay", disk.size_in_mebibytes(options.memory), options.cpus,
                       (kernel.Nic(addresses.tap(number), addresses.mac(number)),), work, number)
