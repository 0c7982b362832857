# SPDX-License-Identifier: Apache-2.0
"""`nodens-guard manifest`: what it refuses to print, and that a stock API server takes the rest."""
import json
import re
import subprocess
from typing import Any

import pytest
from conftest import GUARD, PORT, Plane

STATE = "/run/cluster"
CA = f"{STATE}/pki/ca.crt"
URL = f"https://127.0.0.1:{PORT}"
DEPLOYMENT = ("deployment", "--image", "registry.example/nodens-guard:1", "--client-ca-file", CA)


def error(plane: Plane, *arguments: str) -> str:
    done = plane.inside.capture([GUARD, *arguments])
    assert done.returncode in (1, 64) and not done.stdout, done.stdout
    return done.stderr


def documents(plane: Plane, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in plane.guard_output("manifest", "--json", *arguments).split("\n---\n")]


@pytest.mark.parametrize("url", ["127.0.0.1:9443", "http://127.0.0.1:9443", "https://", "https://:9443", "https://127.0.0.1:9443/",
                                 "https://127.0.0.1:port", "https://127.0.0.1:0", "https://127.0.0.1:65536", "https://a b:9443",
                                 "https://user@127.0.0.1:9443", "https://127.0.0.1:9443/x?y=1", "https://127.0.0.1:9443#x",
                                 "https://[::1:9443", "https://[guard]:9443", "HTTPS://127.0.0.1:9443"])
def test_odd_urls_are_refused(plane: Plane, url: str) -> None:
    assert f"--url: '{url}' is not of the form https://ADDRESS:PORT" in error(plane, "manifest", "webhooks", "--ca-file", CA, "--url", url)
    assert "--server: " in error(plane, "manifest", "guard-kubeconfig", "--server", url)


@pytest.mark.parametrize("url", [URL, "https://guard.example", "https://[fd00::1]:9443", "https://guard.example/prefix"])
def test_ordinary_urls_are_taken(plane: Plane, url: str) -> None:
    made = documents(plane, "webhooks", "--ca-file", CA, "--url", url)
    assert made[0]["webhooks"][0]["clientConfig"]["url"] == f"{url}/mutate/enforce"


def test_webhooks_without_an_authority_are_refused(plane: Plane) -> None:
    assert "webhooks needs --ca-file, the authority of the guard's certificate" in error(plane, "manifest", "webhooks", "--url", URL)
    assert "webhooks needs --ca-file" in error(plane, "manifest", "crd", "webhooks"), "nothing is printed before an error"
    assert "No such file" in error(plane, "manifest", "webhooks", "--ca-file", f"{STATE}/nosuch")
    assert "contains a private key" in error(plane, "manifest", "webhooks", "--ca-file", both(plane))
    assert "not a certificate" in error(plane, "manifest", "webhooks", "--ca-file", f"{STATE}/guard.yaml")
    assert "caBundle" not in plane.guard_output("manifest", "webhooks", "--ca-file", "none")


def both(plane: Plane) -> str:
    pki = plane.one.state / "pki"
    (plane.one.state / "both.pem").write_text((pki / "webhook-guard.crt").read_text() + (pki / "webhook-guard.key").read_text())
    return f"{STATE}/both.pem"


def test_webhooks_fit_a_review_by_eye(plane: Plane) -> None:
    """YAML, with one rule for resources that are handled alike; the API server takes it."""
    text = plane.guard_output("manifest", "webhooks", "--url", URL, "--ca-file", CA)
    lines = [line for line in text.splitlines() if "caBundle" not in line]
    assert len(lines) < 240 and max(map(len, lines)) <= 160, f"{len(lines)} lines"
    rule = '  - {apiGroups: [""], apiVersions: [v1], resources: [pods/exec, pods/attach], operations: [CONNECT], scope: Namespaced}'
    assert rule in lines
    plane.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)


def test_every_part_is_taken_by_the_api_server(plane: Plane) -> None:
    text = plane.guard_output("manifest", "crd", "constraints", "rbac", "network", *DEPLOYMENT, "--api-servers", "10.0.0.1/32",
                              "--user", "nodens-guard")
    said = plane.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
    for what in ("customresourcedefinition", "securitycontextconstraints", "clusterrole", "deployment.apps", "service/nodens-guard",
                 "poddisruptionbudget", "networkpolicy", "configmap/nodens-guard", "serviceaccount/nodens-guard"):
        assert what in said, said


def test_the_deployments_pods_meet_the_restricted_level_and_renew_their_token(plane: Plane) -> None:
    made = {one["kind"]: one for one in documents(plane, *DEPLOYMENT)}
    assert set(made) == {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget"}, "a policy needs the API servers' addresses"
    spec = made["Deployment"]["spec"]["template"]["spec"]
    plane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "deployed", "labels": {
        "pod-security.kubernetes.io/enforce": "restricted"}}})
    plane.kubectl("create", "serviceaccount", "nodens-guard", "-n", "deployed")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "deployed"}, "spec": spec}
    plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
    tokens = [source["serviceAccountToken"] for volume in spec["volumes"] for source in volume["projected"]["sources"]
              if "serviceAccountToken" in source]
    assert tokens == [{"path": "token", "expirationSeconds": 3600}] and spec["automountServiceAccountToken"] is False
    container = spec["containers"][0]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz" and container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert made["Service"]["spec"]["selector"] == made["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert made["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == made["Service"]["spec"]["selector"]


def test_the_deployment_needs_an_image_and_an_authority_and_carries_the_configuration(plane: Plane) -> None:
    assert "deployment needs --image" in error(plane, "manifest", "deployment", "--client-ca-file", CA)
    assert "deployment needs --client-ca-file" in error(plane, "manifest", "deployment", "--image", "x")
    (plane.one.state / "deployed.yaml").write_text("port: 8443\ndefaultMode: enforce\n")
    made = {one["kind"]: one for one in documents(plane, *DEPLOYMENT, "--config", f"{STATE}/deployed.yaml", "--api-servers", "10.0.0.1/32")}
    assert made["ConfigMap"]["data"]["guard.yaml"] == "port: 8443\ndefaultMode: enforce\n"
    container = made["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["--config=/etc/nodens/guard/guard.yaml"] and container["ports"][0]["containerPort"] == 8443
    assert made["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0]["port"] == 8443


def test_the_guards_kubeconfig_has_a_token_file_or_a_certificate(plane: Plane) -> None:
    """kubectl reads it."""
    def view(*more: str) -> dict[str, Any]:
        text = plane.guard_output("manifest", "guard-kubeconfig", "--server", "https://10.0.0.1:6443", *more)
        (plane.one.state / "printed.kubeconfig").write_text(text)
        return json.loads(plane.kubectl("--kubeconfig", f"{STATE}/printed.kubeconfig", "config", "view", "-o", "json"))

    made = view()
    assert made["clusters"][0]["cluster"] == {"server": "https://10.0.0.1:6443", "certificate-authority": "/etc/kubernetes/pki/ca.crt"}
    assert made["users"][0]["user"] == {"tokenFile": "/etc/nodens/guard/token"}
    made = view("--client-certificate", "/c.crt", "--client-key", "/c.key", "--cluster-ca", "/ca")
    assert made["users"][0]["user"] == {"client-certificate": "/c.crt", "client-key": "/c.key"}
    assert "--server" in error(plane, "manifest", "guard-kubeconfig")
    assert "must be given together" in error(plane, "manifest", "guard-kubeconfig", "--server", URL, "--client-certificate", "/c.crt")


def test_certificates_are_for_addresses_without_scheme_and_port(plane: Plane) -> None:
    assert "--address is missing" in error(plane, "certificate")
    (plane.one.state / "refused").mkdir(exist_ok=True)
    said = error(plane, "certificate", "--address", "127.0.0.1:9443", "--directory", f"{STATE}/refused")
    assert "'127.0.0.1:9443' is neither an IP address nor a DNS name (without a scheme and without a port)" in said
    assert "No such file or directory" in error(plane, "certificate", "--address", "x", "--directory", f"{STATE}/nosuch")


def test_a_full_device_as_output_is_an_error(plane: Plane) -> None:
    done = subprocess.run(plane.inside.command(["sh", "-c", f"{GUARD} manifest crd >/dev/full"]), capture_output=True, text=True,
                          timeout=60)
    assert done.returncode != 0 and re.search(r"write to standard output: No space left", done.stderr), done
