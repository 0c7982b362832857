# SPDX-License-Identifier: Apache-2.0
"""The Helm chart: the guard's objects, with values of values.yaml in the place of the defaults that they stand for.

`helm template` with default values gives the objects of the Kustomize base (tests/component/guard/test_deploy.py).
"""
import copy
from typing import Any

from . import yaml
from .kustomize import CHECKSUM, HEAD, TLS, certificate, own_issuer
from .objects import MODES, NAMESPACE, Object, Objects
from .yaml import Block, Expression, When

SELF, CERT_MANAGER = '(eq .Values.certificates.mode "self-managed")', '(eq .Values.certificates.mode "cert-manager")'
FROM_CLUSTER = '(eq .Values.clientAuthentication.ca "cluster")'
OWN_ISSUER = f'if and {CERT_MANAGER} (not .Values.certificates.issuerRef)'
HELPERS = r"""{{- /* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* Written by `tools/dev deploy`; do not edit. */}}
{{- define "nodens-guard.check" -}}
{{- if not (has .Values.certificates.mode (list "self-managed" "cert-manager" "secret")) }}
{{- fail (printf "certificates.mode is '%s'; it must be self-managed, cert-manager or secret" .Values.certificates.mode) }}
{{- end }}
{{- if and (eq .Values.certificates.mode "secret") (not .Values.certificates.caBundle) }}
{{- fail "certificates.mode is secret: set certificates.caBundle to the authority of the Secret nodens-guard-tls, PEM (--set-file)" }}
{{- end }}
{{- if not (has .Values.defaultMode (list "warn" "enforce" "off")) }}
{{- fail (printf "defaultMode is '%s'; it must be warn, enforce or off" .Values.defaultMode) }}
{{- end }}
{{- if or (lt (int .Values.drainSeconds) 0) (gt (int .Values.drainSeconds) 60) }}
{{- fail (printf "drainSeconds is %v; it must be a number from 0 to 60" .Values.drainSeconds) }}
{{- end }}
{{- if not (has .Values.podSecurityLabelSync (list "off" "dry-run" "on")) }}
{{- fail (printf "podSecurityLabelSync is '%v'; it must be \"off\", dry-run or \"on\", in quotes" .Values.podSecurityLabelSync) }}
{{- end }}
{{- $ca := .Values.clientAuthentication.ca }}
{{- if not (or (has $ca (list "cluster" "none")) (contains "BEGIN CERTIFICATE" $ca)) }}
{{- fail "clientAuthentication.ca must be cluster, none, or certificates in PEM (--set-file clientAuthentication.ca=FILE)" }}
{{- end }}
{{- range list "certificate" "key" "clientCA" "clientNames" "metricsNames" "drainSeconds" "podSecurityLabelSync" "defaultMode" "group" "port" "podSecurity" "namespace" "service" }}
{{- if hasKey $.Values.config . }}
{{- fail (printf "config.%s: the chart's objects depend on it; use a value of the chart, or `nodens-guard manifest`" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- define "nodens-guard.config" -}}
{{- $config := dict "clientNames" .Values.clientAuthentication.names "drainSeconds" (int .Values.drainSeconds) }}
{{- if eq .Values.certificates.mode "self-managed" }}{{ $_ := set $config "certificate" "cluster" }}{{ end }}
{{- if has .Values.clientAuthentication.ca (list "cluster" "none") }}{{ $_ := set $config "clientCA" .Values.clientAuthentication.ca }}{{ end }}
{{- if .Values.clientAuthentication.metricsNames }}{{ $_ := set $config "metricsNames" .Values.clientAuthentication.metricsNames }}{{ end }}
{{- if ne .Values.defaultMode "warn" }}{{ $_ := set $config "defaultMode" .Values.defaultMode }}{{ end }}
{{- if ne .Values.podSecurityLabelSync "off" }}{{ $_ := set $config "podSecurityLabelSync" .Values.podSecurityLabelSync }}{{ end }}
{{- toYaml (merge $config .Values.config) }}
{{- end }}
"""


def in_release(value: Any) -> Any:
    """The same with the release's namespace."""
    if isinstance(value, dict):
        return {key: in_release(one) for key, one in value.items()}
    if isinstance(value, list):
        return [in_release(one) for one in value]
    if value == NAMESPACE:
        return Expression(".Release.Namespace")
    if isinstance(value, str) and f".{NAMESPACE}." in value:
        head, tail = value.split(NAMESPACE)
        return Expression(f'printf "{head}%s{tail}" .Release.Namespace')
    return value


def document(value: Object, condition: str = "") -> str:
    text = yaml.document(in_release(value))
    return f"{{{{- {condition} }}}}\n---\n{text}{{{{- end }}}}\n" if condition else f"---\n{text}"


def config_map(one: Object) -> str:
    one["data"] = {"client-ca.crt": When('if contains "BEGIN CERTIFICATE" .Values.clientAuthentication.ca',
                                         Expression(".Values.clientAuthentication.ca | quote")),
                   "guard.yaml": Expression('printf "%s\\n" (include "nodens-guard.config" .) | quote')}
    return document(one)


def pod_of(one: Object) -> None:
    template = one["spec"]["template"]
    template["metadata"]["annotations"] = {
        CHECKSUM: Expression('printf "%s\\n" (include "nodens-guard.config" .) | sha256sum'),
        "#extra": When("with .Values.podAnnotations", Block("."))}
    spec = template["spec"]
    spec["priorityClassName"] = Expression(".Values.priorityClassName")
    spec["terminationGracePeriodSeconds"] = Expression("add (int .Values.drainSeconds) 20")
    spec["affinity"], spec["topologySpreadConstraints"] = Block(".Values.affinity"), Block(".Values.topologySpreadConstraints")
    for name in ("imagePullSecrets", "nodeSelector", "tolerations"):
        spec[name] = When(f"if .Values.{name}", Block(f".Values.{name}"))
    container = spec["containers"][0]
    container["image"] = Expression(
        'printf "%s%s" .Values.image.repository (ternary (printf "@%s" .Values.image.digest) (printf ":%s" (.Values.image.tag | default '
        '.Chart.AppVersion)) (ne .Values.image.digest "")) | quote')
    container["imagePullPolicy"] = Expression(".Values.image.pullPolicy")
    container["resources"] = Block(".Values.resources")
    sources = next(volume for volume in spec["volumes"] if volume["name"] == "files")["projected"]["sources"]
    sources.insert(0, When(f"if not {SELF}", {"secret": {"name": TLS}}))


def deployment(one: Object) -> str:
    one["spec"]["replicas"] = Expression(".Values.replicas")
    pod_of(one)
    return document(one).replace('        "#extra":\n          {{- toYaml (.) | nindent 10 }}\n', "        {{- toYaml . | nindent 8 }}\n")


def network_policy(one: Object) -> str:
    one["spec"]["ingress"][0] = {"from": When("if .Values.networkPolicy.apiServers", "@from@"), **one["spec"]["ingress"][0]}
    cidrs = ("from:\n    {{- range .Values.networkPolicy.apiServers }}\n    - ipBlock: {cidr: {{ . | quote }}}\n    {{- end }}")
    return document(one, "if .Values.networkPolicy.enabled").replace('from: "@from@"', cidrs)


def workload(objects: Objects) -> str:
    found = []
    for one in copy.deepcopy(objects.workload()):
        if one["kind"] == "ConfigMap":
            found.append(config_map(one))
        elif one["kind"] == "Deployment":
            found.append(deployment(one))
        elif one["kind"] == "NetworkPolicy":
            found.append(network_policy(one))
        else:
            conditions = {"Secret": f"if {SELF}", "PodDisruptionBudget": "if gt (int .Values.replicas) 1"}
            found.append(document(one, conditions.get(one["kind"], "")))
    return "".join(found)


def permissions(objects: Objects) -> str:
    found = []
    for one in copy.deepcopy(objects.permissions(podSecurityLabelSync="on")):
        if "rules" in one:
            one["rules"] = [in_case(rule) for rule in one["rules"]]
        condition = f"if {FROM_CLUSTER}" if one["metadata"].get("namespace") == "kube-system" else ""
        found.append(document(one, condition))
    return "".join(found)


def in_case(rule: Object) -> Any:
    if makes_certificate(rule):
        return When(f"if {SELF}", rule)
    return When('if ne .Values.podSecurityLabelSync "off"', rule) if rule["resources"] == ["serviceaccounts"] else rule


def makes_certificate(rule: Object) -> bool:
    return rule["apiGroups"] == ["admissionregistration.k8s.io"] or rule["resources"] == ["secrets"]


def webhooks(objects: Objects, mode: str) -> str:
    found = []
    for one in copy.deepcopy(objects.webhooks(mode)):
        one["metadata"]["annotations"] = When(f"if {CERT_MANAGER}", {
            "cert-manager.io/inject-ca-from": Expression(f'printf "%s/{TLS}" .Release.Namespace')})
        for hook in one["webhooks"]:
            hook["clientConfig"]["caBundle"] = When('if eq .Values.certificates.mode "secret"',
                                                    Expression(".Values.certificates.caBundle | b64enc"))
        found.append(document(one))
    return f'{{{{- if eq .Values.defaultMode "{mode}" }}}}\n{"".join(found)}{{{{- end }}}}\n'


def certificates() -> str:
    issuer = {"name": Expression('.Values.certificates.issuerRef.name | default "nodens-guard"'),
              "kind": Expression('.Values.certificates.issuerRef.kind | default "Issuer"'),
              "group": When("with .Values.certificates.issuerRef.group", Expression("."))}
    return "".join(document(one, OWN_ISSUER) for one in own_issuer()) + document(certificate(issuer), f"if {CERT_MANAGER}")


def constraints(objects: Objects) -> str:
    """With the version floor. The guard refuses to delete one that is in use, and Helm would try that after it has deleted the guard."""
    found = copy.deepcopy(objects.constraints())
    for one in found:
        if one["kind"] == "NodeVersionFloor":
            one["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    return "".join(map(document, found))


def files(objects: Objects) -> dict[str, str]:
    chart = {"apiVersion": "v2", "name": "nodens-guard", "version": objects.version, "appVersion": objects.version,
             "description": "Admission by security context constraints and pod security, with user namespaces, for any Kubernetes",
             "type": "application", "kubeVersion": ">=1.33.0-0"}
    made = {"Chart.yaml": HEAD + yaml.document(chart), "templates/_helpers.tpl": HELPERS,
            "crds/crd.yaml": yaml.stream(objects.definitions(), HEAD),
            "templates/constraints.yaml": HEAD + constraints(objects),
            "templates/rbac.yaml": HEAD + permissions(objects), "templates/certificates.yaml": HEAD + certificates(),
            "templates/guard.yaml": HEAD + '{{- include "nodens-guard.check" . }}\n' + workload(objects)}
    return made | {f"templates/webhooks-{mode}.yaml": HEAD + webhooks(objects, mode) for mode in MODES}
