# SPDX-License-Identifier: Apache-2.0
"""The control plane's processes in the cluster's namespaces, and their order."""
import json
import os
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import addresses
from .options import Options

STATE = Path("/run/cluster")   # the cluster's state, as seen in its namespaces
PKI = STATE / "pki"


@dataclass(frozen=True)
class Service:
    """One process that the supervisor keeps. The next one starts when `ready` answers: a TCP port or an https URL."""

    name: str
    argv: list[str]
    ready: str = ""
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = "/"
    console: bool = False     # a guest: standard error is its console


def network(options: Options) -> list[list[str]]:
    """Commands that lay the cluster's network."""
    commands = [
        "ip link set lo up",
        f"ip link add {addresses.BRIDGE} type bridge",
        f"ip addr add {addresses.CONTROL_PLANE}/24 dev {addresses.BRIDGE}",
        f"ip link set {addresses.BRIDGE} up",
        "sysctl -q -w net.ipv4.ip_forward=1",
        # A pod that asks for a service on its own node comes back over the port it came from.
        # That must be routed, not bridged.
        "sysctl -q -e -w net.bridge.bridge-nf-call-iptables=0",
        "sysctl -q -w net.ipv4.conf.all.send_redirects=0",
        f"sysctl -q -w net.ipv4.conf.{addresses.BRIDGE}.send_redirects=0",
        f"ip route add {addresses.SERVICES} dev {addresses.BRIDGE}",
    ]
    for number in range(1, options.nodes + 1):
        tap = addresses.tap(number)
        commands += [f"ip tuntap add {tap} mode tap", f"ip link set {tap} master {addresses.BRIDGE} up",
                     f"ip route add {addresses.pods(number)} via {addresses.node(number)}"]
    return [shlex.split(command) for command in commands]


def services(options: Options, binaries: Path) -> list[Service]:
    """In the order in which they start."""
    hooks = [Service(f"webhook-{hook.name}", ["sh", "-c", hook.command], env=webhook_environment(hook.name), cwd="/nodens")
             for hook in options.webhooks]
    plane = [etcd(), *hooks, api_server(options, binaries), controller_manager(options, binaries), scheduler(options, binaries)]
    return [*plane, proxy(binaries)] if options.nodes and not options.rootless else plane


def webhook_environment(name: str) -> dict[str, str]:
    return {"TLS_CERT": f"{PKI}/webhook-{name}.crt", "TLS_KEY": f"{PKI}/webhook-{name}.key", "TLS_CA": f"{PKI}/ca.crt"}


def etcd() -> Service:
    flags = ["--name=testbed", f"--data-dir={STATE}/etcd", "--unsafe-no-fsync", "--log-level=warn",
             "--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
             "--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
             "--initial-cluster=testbed=http://127.0.0.1:2380"]
    return Service("etcd", ["etcd", *flags], ready="tcp:127.0.0.1:2379")


def gates(options: Options) -> list[str]:
    return [f"--feature-gates={','.join(options.feature_gates)}"] if options.feature_gates else []


def api_server(options: Options, binaries: Path) -> Service:
    flags = [
        "--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", "--secure-port=6443",
        f"--advertise-address={addresses.CONTROL_PLANE}", f"--service-cluster-ip-range={addresses.SERVICES}",
        f"--tls-cert-file={PKI}/apiserver.crt", f"--tls-private-key-file={PKI}/apiserver.key",
        f"--client-ca-file={PKI}/ca.crt",
        "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={PKI}/sa.pub",
        f"--service-account-signing-key-file={PKI}/sa.key",
        f"--kubelet-client-certificate={PKI}/apiserver-kubelet.crt", f"--kubelet-client-key={PKI}/apiserver-kubelet.key",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={PKI}/ca.crt", "--requestheader-allowed-names=aggregator",
        "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={PKI}/aggregator.crt", f"--proxy-client-key-file={PKI}/aggregator.key",
        "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true", *gates(options),
    ]
    if not options.rootless:    # the kubelet of a rootless node signs its own certificate
        flags.append(f"--kubelet-certificate-authority={PKI}/ca.crt")
    if options.authorization_config:
        flags.append(f"--authorization-config={STATE}/authorization.yaml")
    else:
        flags.append("--authorization-mode=Node,RBAC")
    return Service("kube-apiserver", [str(binaries / "kube-apiserver"), *flags, *options.apiserver_args],
                   ready=f"{addresses.API_SERVER}/readyz")


def controller_manager(options: Options, binaries: Path) -> Service:
    config = f"{STATE}/controller-manager.kubeconfig"
    flags = [f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
             f"--service-account-private-key-file={PKI}/sa.key", f"--root-ca-file={PKI}/ca.crt",
             f"--cluster-signing-cert-file={PKI}/ca.crt", f"--cluster-signing-key-file={PKI}/ca.key",
             "--use-service-account-credentials", "--leader-elect=false", "--bind-address=127.0.0.1", *gates(options)]
    return Service("kube-controller-manager", [str(binaries / "kube-controller-manager"), *flags])


def scheduler(options: Options, binaries: Path) -> Service:
    config = f"{STATE}/scheduler.kubeconfig"
    flags = [f"--kubeconfig={config}", f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}",
             "--leader-elect=false", "--bind-address=127.0.0.1", *gates(options)]
    return Service("kube-scheduler", [str(binaries / "kube-scheduler"), *flags])


def proxy(binaries: Path) -> Service:
    """Service addresses for packets through the control plane's namespace, the nodes' gateway.

    User-mode Linux has no NAT, so the service addresses are translated here. Answers must come back the same way,
    hence the masquerading of everything.
    """
    return Service("kube-proxy", [str(binaries / "kube-proxy"), f"--config={STATE}/proxy.json"])


def proxy_configuration(kubeconfig: Path, host: str, masquerade_all: bool) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)}, "hostnameOverride": host,
        "nftables": {"masqueradeAll": masquerade_all}, "conntrack": {"maxPerCore": 0},
        "clusterCIDR": "10.89.0.0/16",
        "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
    }


def write_plan(path: Path, setup: list[list[str]], every: list[Service]) -> None:
    """Hands the supervisor its work."""
    replace_plan(path, {"setup": setup, "services": [asdict(service) for service in every]})


def replace_plan(path: Path, plan: dict[str, Any]) -> None:
    partial = path.with_suffix(".new")
    partial.write_text(json.dumps(plan, indent=1))
    os.replace(partial, path)
