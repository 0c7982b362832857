{{- /* SPDX-License-Identifier: Apache-2.0 */}}
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
