# SPDX-License-Identifier: Apache-2.0
"""The chart and the Kustomize base of deploy/, rendered without a cluster. `tools/dev test guard-chart` installs the chart."""
import functools
import json
import subprocess
from typing import Any

import pytest
from nodensdev.env import chroot, goprograms
from nodensdev.project import TOP

Object = dict[str, Any]
CHART, BASE = TOP / "deploy/chart", TOP / "deploy/kustomize/base"
NAMESPACE = "nodens-system"
KUBERNETES = "1.36.3"
READ = "import json, sys, yaml; json.dump([one for one in yaml.safe_load_all(sys.stdin) if one], sys.stdout)"


@functools.cache
def program(name: str, of: str) -> str:
    return str(goprograms.ensure(of) / name)


def objects(text: str) -> dict[str, Object]:
    with chroot.prepared(chroot.Chroot()) as inside:
        done = subprocess.run(inside.command(["python3", "-c", READ]), input=text, capture_output=True, text=True, check=True)
    return {"/".join((one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])): one for one in json.loads(done.stdout)}


def template(*values: str, ok: bool = True) -> str:
    words = [word for value in values for word in ("--set", value)]
    done = subprocess.run([program("helm", "helm"), "template", "nodens-guard", str(CHART), "-n", NAMESPACE, "--include-crds",
                           "--kube-version", KUBERNETES, *words], capture_output=True, text=True)
    assert (done.returncode == 0) == ok, done.stderr
    return done.stdout if ok else done.stderr


def kustomize(directory: str) -> str:
    return subprocess.run([program("kubectl", "kubernetes"), "kustomize", directory], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def chart() -> dict[str, Object]:
    return objects(template())


def test_the_chart_with_default_values_is_the_kustomize_base(chart: dict[str, Object]) -> None:
    base = objects(kustomize(str(BASE)))
    assert base.pop(f"Namespace//{NAMESPACE}")["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    # Helm would delete it after the guard, which then cannot answer whether it is in use
    assert chart["NodeVersionFloor//cluster"]["metadata"].pop("annotations", None) == {"helm.sh/resource-policy": "keep"}
    assert chart == base and len(chart) > 40


def test_helm_finds_nothing_wrong_with_the_chart() -> None:
    done = subprocess.run([program("helm", "helm"), "lint", "--strict", "--kube-version", KUBERNETES, str(CHART)], capture_output=True,
                          text=True)
    assert done.returncode == 0 and "0 chart(s) failed" in done.stdout, done.stdout + done.stderr


def test_defaults_are_those_of_a_production_cluster(chart: dict[str, Object]) -> None:
    deployment = chart[f"Deployment/{NAMESPACE}/nodens-guard"]["spec"]
    pod = deployment["template"]["spec"]
    assert deployment["replicas"] == 2 and pod["priorityClassName"] == "system-cluster-critical"
    assert "podAntiAffinity" in pod["affinity"] and pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                       "capabilities": {"drop": ["ALL"]}}
    assert chart[f"PodDisruptionBudget/{NAMESPACE}/nodens-guard"]["spec"]["minAvailable"] == 1
    assert chart[f"NetworkPolicy/{NAMESPACE}/nodens-guard"]["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": 9443}]}]
    config = chart[f"ConfigMap/{NAMESPACE}/nodens-guard"]["data"]
    assert config == {"guard.yaml": "certificate: cluster\nclientCA: cluster\nclientNames:\n- kube-apiserver-kubelet-client\n"
                      "drainSeconds: 10\n"}
    assert pod["terminationGracePeriodSeconds"] == 30 and "lifecycle" not in pod["containers"][0]


def test_no_webhook_that_refuses_reaches_kube_system_or_the_guard_itself(chart: dict[str, Object]) -> None:
    for kind in ("Mutating", "Validating"):
        for hook in chart[f"{kind}WebhookConfiguration//nodens-guard"]["webhooks"]:
            rules = [rule for rule in hook["rules"] if rule["resources"] != ["namespaces"]]
            if all(rule["scope"] == "Cluster" for rule in rules) and rules:
                assert rules[0]["resources"] in (["nodeversionfloors"], ["certificatesigningrequests"], ["nodes"])
                assert hook["failurePolicy"] == "Ignore" or rules[0]["resources"] != ["nodes"], "nodes must be able to join without a guard"
                continue
            selected = hook["namespaceSelector"]["matchExpressions"][0]
            if rules and not hook["name"].startswith("pod-security"):
                assert selected == {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}, hook
            assert hook["timeoutSeconds"] <= 5 and hook["sideEffects"] == "None"
    hooks = {hook["name"]: hook for hook in chart["ValidatingWebhookConfiguration//nodens-guard"]["webhooks"]}
    assert [name for name, hook in hooks.items() if "matchConditions" in hook] == [
        "enforce.security.nodens.io", "warn.security.nodens.io", "nodes.security.nodens.io", "node-certificates.security.nodens.io"]


def test_the_guard_may_write_only_objects_with_known_names(chart: dict[str, Object]) -> None:
    """Except for annotations of namespaces, conditions of nodes, the status of the version floor, and the objects that guards share."""
    rules = [rule for key in ("ClusterRole//nodens:guard", f"Role/{NAMESPACE}/nodens:guard") for rule in chart[key]["rules"]]
    writing = [rule for rule in rules if set(rule["verbs"]) - {"get", "list", "watch"} and "resourceNames" not in rule]
    assert sorted((rule["resources"][0], tuple(sorted(set(rule["verbs"]) - {"get", "list", "watch"}))) for rule in writing) == [
        ("configmaps", ("create",)), ("leases", ("create",)), ("leases", ("delete", "patch")), ("namespaces", ("patch",)),
        ("nodes/status", ("patch",)), ("nodeversionfloors/status", ("patch",)), ("subjectaccessreviews", ("create",))]
    assert not [rule for rule in rules if "secrets" in rule["resources"] and rule.get("resourceNames") != ["nodens-guard-tls"]]


def test_only_the_synchronization_of_labels_lists_service_accounts(chart: dict[str, Object]) -> None:
    def lists(found: dict[str, Object]) -> bool:
        return any(rule["resources"] == ["serviceaccounts"] and rule["verbs"] == ["list"]
                   for rule in found["ClusterRole//nodens:guard"]["rules"])

    assert not lists(chart) and "podSecurityLabelSync" not in chart[f"ConfigMap/{NAMESPACE}/nodens-guard"]["data"]["guard.yaml"]
    for mode in ("dry-run", "on"):
        made = objects(template(f"podSecurityLabelSync={mode}"))
        assert lists(made)
        assert f"podSecurityLabelSync: {mode}" in made[f"ConfigMap/{NAMESPACE}/nodens-guard"]["data"]["guard.yaml"].replace('"', "")


@pytest.mark.parametrize("mode", ["warn", "enforce", "off"])
def test_each_default_mode_has_its_own_webhooks(mode: str, chart: dict[str, Object]) -> None:
    made = objects(template(f"defaultMode={mode}"))
    assert set(made) == set(chart)
    text = made[f"ConfigMap/{NAMESPACE}/nodens-guard"]["data"]["guard.yaml"]
    assert (f"defaultMode: {mode}" in text.replace('"', "")) == (mode != "warn")
    labels = [one for one in made["ValidatingWebhookConfiguration//nodens-guard"]["webhooks"][0]["namespaceSelector"]["matchExpressions"]
              if one["operator"] == "Exists"]
    assert bool(labels) == (mode != "enforce")


def test_certificates_from_cert_manager_are_the_same_in_both(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = objects(template("certificates.mode=cert-manager"))
    # kustomize takes components only by relative paths
    work = TOP / "build/kustomize-test"
    work.mkdir(parents=True, exist_ok=True)
    (work / "kustomization.yaml").write_text(
        "resources: [../../deploy/kustomize/base]\ncomponents: [../../deploy/kustomize/cert-manager]\n")
    other = objects(kustomize(str(work)))
    del other[f"Namespace//{NAMESPACE}"]
    del made["NodeVersionFloor//cluster"]["metadata"]["annotations"]
    for one in (made, other):   # a component cannot remove one rule of a role
        one["ClusterRole//nodens:guard"]["rules"] = [rule for rule in one["ClusterRole//nodens:guard"]["rules"] if "admission" not in
                                                     rule["apiGroups"][0]]
        one[f"Role/{NAMESPACE}/nodens:guard"]["rules"] = [rule for rule in one[f"Role/{NAMESPACE}/nodens:guard"]["rules"]
                                                          if rule["resources"] != ["secrets"]]
        sources = one[f"Deployment/{NAMESPACE}/nodens-guard"]["spec"]["template"]["spec"]["volumes"][0]["projected"]["sources"]
        sources.sort(key=json.dumps)
    assert made == other
    assert made["MutatingWebhookConfiguration//nodens-guard"]["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": f"{NAMESPACE}/nodens-guard-tls"}
    assert f"Secret/{NAMESPACE}/nodens-guard-tls" not in made and f"Certificate/{NAMESPACE}/nodens-guard-tls" in made


def test_values_reach_the_objects() -> None:
    made = objects(template("image.digest=sha256:0123", "networkPolicy.apiServers={10.0.0.1/32,10.0.0.2/32}", "replicas=1",
                            "clientAuthentication.ca=none", "config.staleSeconds=30", "podAnnotations.a=b", "tolerations[0].key=x",
                            "drainSeconds=25"))
    pod = made[f"Deployment/{NAMESPACE}/nodens-guard"]["spec"]["template"]
    assert pod["spec"]["containers"][0]["image"] == "registry.example/nodens-guard@sha256:0123"
    assert pod["metadata"]["annotations"]["a"] == "b" and pod["spec"]["tolerations"] == [{"key": "x"}]
    assert made[f"NetworkPolicy/{NAMESPACE}/nodens-guard"]["spec"]["ingress"][0]["from"] == [
        {"ipBlock": {"cidr": "10.0.0.1/32"}}, {"ipBlock": {"cidr": "10.0.0.2/32"}}]
    assert pod["spec"]["terminationGracePeriodSeconds"] == 45
    text = made[f"ConfigMap/{NAMESPACE}/nodens-guard"]["data"]["guard.yaml"]
    assert "drainSeconds: 25\n" in text
    assert "clientCA: none\n" in text and "staleSeconds: 30\n" in text
    assert f"PodDisruptionBudget/{NAMESPACE}/nodens-guard" not in made and "RoleBinding/kube-system/nodens:guard" not in made


@pytest.mark.parametrize(("value", "reason"), [
    ("certificates.mode=own", "it must be self-managed, cert-manager or secret"),
    ("certificates.mode=secret", "set certificates.caBundle"),
    ("podSecurityLabelSync=yes", "it must be \"off\", dry-run or \"on\""),
    ("config.podSecurityLabelSync=on", "config.podSecurityLabelSync: the chart's objects depend on it"),
    ("drainSeconds=61", "it must be a number from 0 to 60"),
    ("config.drainSeconds=5", "config.drainSeconds: the chart's objects depend on it"),
    ("defaultMode=on", "it must be warn, enforce or off"),
    ("clientAuthentication.ca=/etc/ca.crt", "must be cluster, none, or certificates"),
    ("config.port=8443", "config.port: the chart's objects depend on it"),
    ("config.podSecurity.labels=standard", "config.podSecurity: the chart's")])
def test_values_that_would_not_work_are_refused(value: str, reason: str) -> None:
    assert reason in template(value, ok=False)
