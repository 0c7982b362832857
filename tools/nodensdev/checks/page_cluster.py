# SPDX-License-Identifier: Apache-2.0
"""A guest that is a whole cluster, for pages whose commands need a kubelet, an API server or both on one host.

Files are where kubeadm puts them: /etc/kubernetes/pki, /etc/kubernetes/admin.conf, /var/lib/kubelet/config.yaml. The control plane runs as
systemd units; containerd and the kubelet are units that do not run yet. A registry on the loopback serves images of registry.k8s.io.

User-mode Linux has no NAT: `<!-- do: without_nat FILE -->` takes the parts that need it out of a CNI configuration. Debian's kernel under
QEMU has NAT, but an API server takes more than five minutes to start there.

Pages bring the cluster into the state that they assume by `<!-- do: node containerd -->`, `<!-- do: node nodens -->` and
`<!-- do: guard -->`.
"""
import json
import shutil
from pathlib import Path

from .. import registry
from ..cluster import addresses, controlplane, node, pki
from ..cluster.options import Options
from ..env import chroot, goprograms, guest, root

ETCD = "usr/bin/etcd"
BINARIES = Path("/usr/local/bin")
PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
MIRROR = f"https://127.0.0.1:{registry.PORT}"
KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
PRELUDE = f"""\
cp -a --no-preserve=ownership /share/root/. /
cp -r /share/state /run/cluster
install /share/bin/* {BINARIES}
hostname node1
ip link set lo up
ip link add eth0 type dummy
ip addr add {addresses.CONTROL_PLANE}/24 dev eth0
ip addr add {addresses.node(1)}/24 dev eth0
ip link set eth0 up
ip route add default via 10.88.0.254
systemctl daemon-reload
systemctl start etcd registry
systemctl start kube-apiserver kube-controller-manager kube-scheduler
export KUBECONFIG=/etc/kubernetes/admin.conf
wait_until() {{
        local try
        for try in $(seq 300); do "$@" >/dev/null 2>&1 && return 0; sleep 1; done
        echo "not within 300 s: $*"
        return 1
}}
wait_until kubectl get --raw /readyz
wait_until kubectl get serviceaccount default
node() {{
        [ "$1" = containerd ] || {{
                dpkg -i ./nodens_*.deb ./nodens-cri_*.deb >/dev/null 2>&1
                sed -i 's|^containerRuntimeEndpoint:.*|containerRuntimeEndpoint: unix:///run/nodens/cri.sock|' {KUBELET_CONFIG}
        }}
        [ "$1" = nodens ] || systemctl start containerd
        systemctl start kubelet
        wait_until kubectl wait --for=condition=Ready node/node1 --timeout=1s
}}
without_nat() {{
        python3 -c 'import json, sys
path = sys.argv[1]
network = json.load(open(path))
network["plugins"] = [plugin | {{"ipMasq": False}} for plugin in network["plugins"] if plugin["type"] == "bridge"]
json.dump(network, open(path, "w"))' "$1"
}}
guard() {{
        local files=/etc/nodens/guard server
        server=$(kubectl config view --minify -o jsonpath='{{.clusters[0].cluster.server}}')
        dpkg -i ./nodens_*.deb ./nodens-guard_*.deb >/dev/null 2>&1
        nodens-guard manifest crd | kubectl apply -f - >/dev/null
        wait_until kubectl wait --for=condition=Established crd/securitycontextconstraints.security.nodens.io \\
                crd/nodeversionfloors.security.nodens.io --timeout=1s
        nodens-guard manifest constraints rbac | kubectl apply -f - >/dev/null
        nodens-guard certificate --address 127.0.0.1 >/dev/null
        ln -s /etc/kubernetes/pki/ca.crt $files/client-ca.crt
        nodens-guard manifest guard-kubeconfig --server "$server" >$files/kubeconfig
        nodens-guard manifest admission >/etc/kubernetes/nodens-guard-admission.yaml
        nodens-guard manifest kubeconfig --url https://127.0.0.1:9443 >/etc/kubernetes/nodens-guard.kubeconfig
        apiserver --admission-control-config-file=/etc/kubernetes/nodens-guard-admission.yaml
        wait_until kubectl get securitycontextconstraints,nodeversionfloors
        systemctl start nodens-guard-token.service
        systemctl start nodens-guard
        nodens-guard manifest webhooks --url https://127.0.0.1:9443 --ca-file $files/ca.crt | kubectl apply -f - >/dev/null
        wait_until sh -c "systemctl show -p StatusText nodens-guard | grep -q 'ready: .*constraints'"
        wait_until kubectl wait nodeversionfloor/cluster --for=condition=Settled --timeout=1s
}}
apiserver() {{
        sed -i "s|^ExecStart=.*|& $*|" /etc/systemd/system/kube-apiserver.service
        systemctl daemon-reload
        systemctl restart kube-apiserver
        wait_until kubectl get --raw /readyz
}}
"""


def lay_out(share: Path) -> Path:
    """Fills the share; returns the disk that the guest boots from."""
    options = Options(cgroup_driver="systemd")
    make_state(share / "state", options)
    site = registry.Site(share / "registry")
    site.prepare(registry.storage.filled())
    kubernetes = goprograms.ensure("kubernetes")
    programs = [kubernetes / name for name in PLANE[1:]] + [root.ensure("testbed") / ETCD, goprograms.ensure("registry") / "registry"]
    (share / "bin").mkdir()
    for path in programs:
        shutil.copy(path, share / "bin")
    for name, text in files(options, share / "state/pki", site).items():
        (share / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (share / "root" / name).write_text(text)
    (share / "root/usr/local/sbin/kubelet-on-uml").chmod(0o755)
    return node.node_disk(options)


def make_state(state: Path, options: Options) -> None:
    """Certificates and kubeconfigs, as for a cluster of the testbed."""
    (state / "pki").mkdir(parents=True)
    place = chroot.Chroot(root="testbed", binds=(chroot.Bind(state, controlplane.STATE),), cwd=controlplane.PKI)
    with chroot.prepared(place) as inside:
        guest.checked(inside, ["sh", "-c", pki.script(options)])
    for name in ("admin", "controller-manager", "scheduler", "proxy", addresses.node_name(1)):
        (state / f"{name}.kubeconfig").write_text(pki.kubeconfig(state / "pki", name))


def files(options: Options, keys: Path, site: registry.Site) -> dict[str, str]:
    found = node.files(options, 1, keys, None)
    configuration = json.loads(found.pop("etc/kubernetes/kubelet.json"))
    found[KUBELET_CONFIG[1:]] = "".join(f"{key}: {json.dumps(value)}\n" for key, value in configuration.items())
    unit = "etc/systemd/system/kubelet.service"
    found[unit] = found[unit].replace("/etc/kubernetes/kubelet.json", KUBELET_CONFIG)
    for service in controlplane.services(options, BINARIES):
        if service.name in PLANE:
            command = [str(BINARIES / Path(service.argv[0]).name), *service.argv[1:]]
            found[f"etc/systemd/system/{service.name}.service"] = node.UNIT.format(
                description=service.name, after="network.target", command=" ".join(command))
    found["etc/systemd/system/registry.service"] = node.UNIT.format(
        description="registry", after="network.target",
        command=f"{BINARIES}/registry serve config.json\nWorkingDirectory=/share/registry")
    found["etc/kubernetes/admin.conf"] = (keys.parent / "admin.kubeconfig").read_text()
    for suffix in ("crt", "key"):
        found[f"etc/kubernetes/pki/ca.{suffix}"] = (keys / f"ca.{suffix}").read_text()
        found[f"etc/kubernetes/pki/apiserver-kubelet-client.{suffix}"] = (keys / f"apiserver-kubelet.{suffix}").read_text()
    for place in ("etc/nodens/certs.d", "etc/containerd/certs.d"):
        found[f"{place}/ca.pem"] = site.authority.read_text()
        found[f"{place}/registry.k8s.io/hosts.toml"] = registry.hosts_toml(f"/{place}/ca.pem", MIRROR)
    return found
