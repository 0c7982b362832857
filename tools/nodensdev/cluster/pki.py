# SPDX-License-Identifier: Apache-2.0
"""The cluster's certificates and keys: one CA, made anew for every cluster, by openssl in the testbed root."""
import base64
import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from . import addresses
from .options import Options

DAYS = 30
NEW_KEY_AND_CERTIFICATE = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-days", str(DAYS))


@dataclass(frozen=True)
class Certificate:
    """A certificate signed by the CA: pki/NAME.crt and pki/NAME.key."""

    name: str
    subject: str
    hosts: tuple[str, ...] = ()       # serving names and addresses; none: a client certificate

    def command(self) -> str:
        usage = "serverAuth,clientAuth" if self.hosts else "clientAuth"
        names = ",".join(f"{'IP' if host[0].isdigit() else 'DNS'}:{host}" for host in self.hosts)
        arguments = [*NEW_KEY_AND_CERTIFICATE, "-CA", "ca.crt", "-CAkey", "ca.key", "-subj", self.subject, "-addext",
                     f"extendedKeyUsage={usage}",
                     "-addext", "basicConstraints=critical,CA:FALSE",
                     "-keyout", f"{self.name}.key", "-out", f"{self.name}.crt"]
        return shlex.join(arguments + (["-addext", f"subjectAltName={names}"] if names else []))


def certificates(options: Options) -> list[Certificate]:
    here = (addresses.CONTROL_PLANE, "127.0.0.1", "localhost")
    api_names = tuple(f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc", ".default.svc.cluster.local"))
    found = [
        Certificate("apiserver", "/CN=kube-apiserver", (*here, addresses.FIRST_SERVICE, *api_names)),
        Certificate("apiserver-kubelet", "/O=system:masters/CN=kube-apiserver-kubelet-client"),
        Certificate("admin", "/O=system:masters/CN=admin"),
        Certificate("controller-manager", "/CN=system:kube-controller-manager"),
        Certificate("scheduler", "/CN=system:kube-scheduler"),
        Certificate("proxy", "/CN=system:kube-proxy"),
        Certificate("aggregator", "/CN=aggregator"),
    ]
    if options.rootless:
        found.append(Certificate("rootless-controller", "/CN=nodens-rootless-controller"))
    for number in range(1, options.nodes + 1):
        name = addresses.node_name(number)
        found.append(Certificate(name, f"/O=system:nodes/CN=system:node:{name}", (name, addresses.node(number))))
    return found + [Certificate(f"webhook-{hook.name}", f"/CN={hook.name}", (*here, hook.name)) for hook in options.webhooks]


def script(options: Options) -> str:
    """Shell commands that make everything, to be run in the pki directory."""
    authority = [*NEW_KEY_AND_CERTIFICATE, "-subj", "/CN=nodens-testbed", "-addext",
                 "keyUsage=critical,keyCertSign,cRLSign,digitalSignature",
                 "-keyout", "ca.key", "-out", "ca.crt"]
    lines = ["set -e", "umask 077", shlex.join(authority), *[one.command() for one in certificates(options)]]
    lines += ["openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out sa.key",
              "openssl pkey -in sa.key -pubout -out sa.pub",
              "ssh-keygen -q -t ed25519 -N '' -C testbed -f ssh", "ssh-keygen -q -t ed25519 -N '' -C node -f ssh-host"]
    return "\n".join(lines)


def kubeconfig(pki: Path, name: str) -> str:
    """A kubeconfig with everything inside (JSON, which YAML contains)."""
    def encoded(file: str) -> str:
        return base64.b64encode((pki / file).read_bytes()).decode()

    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "testbed",
        "clusters": [{"name": "testbed", "cluster": {
            "server": addresses.API_SERVER, "certificate-authority-data": encoded("ca.crt")}}],
        "users": [{"name": name, "user": {
            "client-certificate-data": encoded(f"{name}.crt"), "client-key-data": encoded(f"{name}.key")}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": name}}],
    }, indent=1)
