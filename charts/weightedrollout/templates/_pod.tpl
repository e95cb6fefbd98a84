{{/* What the standard "restricted" for pods asks for. */}}
{{- define "weightedrollout.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "weightedrollout.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
{{- end }}

{{/* The controller's flags, as a YAML list. */}}
{{- define "weightedrollout.args" -}}
{{- $args := list "--leader-elect=true" "--health-probe-bind-address=:8081" "--metrics-bind-address=:8443" -}}
{{- with .Values.namespaces -}}
{{- $args = append $args (printf "--namespaces=%s" (join "," .)) -}}
{{- end -}}
{{- $args = concat $args (include "weightedrollout.prometheusArgs" . | fromYamlArray) -}}
{{- $args = append $args (include "weightedrollout.allowArg" .) -}}
{{- $args = concat $args (include "weightedrollout.notifyArgs" . | fromYamlArray) -}}
{{- $args = append $args (printf "--confirm=%s" .Values.confirm) -}}
{{- with .Values.gatewayControllers -}}
{{- $args = append $args (printf "--gateway-controllers=%s" (join "," .)) -}}
{{- end -}}
{{- $args = append $args (printf "--workers=%d" (int .Values.workers)) -}}
{{- $args = append $args (printf "--zap-log-level=%v" .Values.log.level) -}}
{{- $args = append $args (printf "--zap-encoder=%s" .Values.log.encoder) -}}
{{- $args = append $args (printf "--zap-time-encoding=%s" .Values.log.timeEncoding) -}}
{{- toYaml (concat $args .Values.extraArgs) -}}
{{- end }}

{{/* Those that are about the controller's own Prometheus. */}}
{{- define "weightedrollout.prometheusArgs" -}}
{{- $args := list -}}
{{- with .Values.prometheus -}}
{{- if and (not .address) (or .bearerTokenSecret.name .caSecret.name) -}}
{{- fail "prometheus.bearerTokenSecret and prometheus.caSecret are for the server of prometheus.address: set that too" -}}
{{- end -}}
{{- if and .caSecret.name (not (hasPrefix "https://" .address)) -}}
{{- fail "prometheus.caSecret is for an https address: change prometheus.address, or leave prometheus.caSecret.name empty" -}}
{{- end -}}
{{- if .address -}}
{{- $args = append $args (printf "--prometheus-address=%s" .address) -}}
{{- end -}}
{{- if .bearerTokenSecret.name -}}
{{- $args = append $args (printf "--prometheus-bearer-token-file=/etc/weightedrollout/prometheus-token/%s" .bearerTokenSecret.key) -}}
{{- end -}}
{{- if .caSecret.name -}}
{{- $args = append $args (printf "--prometheus-ca-file=/etc/weightedrollout/prometheus-ca/%s" .caSecret.key) -}}
{{- end -}}
{{- $args = append $args (printf "--prometheus-timeout=%s" .timeout) -}}
{{- end -}}
{{- toYaml $args -}}
{{- end }}

{{/*
The one that says which metrics servers may be asked. What the schema cannot tell of an
address is checked here.
*/}}
{{- define "weightedrollout.allowArg" -}}
{{- range .Values.metricsAddressAllow -}}
{{- if regexMatch "[^/]/[.]{1,2}(/|$)" . -}}
{{- fail (printf "metricsAddressAllow: %s has . or .. in its path: write the path that is meant" .) -}}
{{- end -}}
{{- if regexMatch "//[*]([.][0-9]{1,3}){4}(:|/|$)" . -}}
{{- fail (printf "metricsAddressAllow: %s has a * before an IP address, which has no names below it: leave the * out" .) -}}
{{- end -}}
{{- if gt (regexReplaceAll "^https?://[^/]*:([0-9]+)(/.*)?$" . "${1}" | int) 65535 -}}
{{- fail (printf "metricsAddressAllow: %s has a port that is not from 1 to 65535: correct it" .) -}}
{{- end -}}
{{- end -}}
{{- printf "--metrics-address-allow=%s" (join "," .Values.metricsAddressAllow) -}}
{{- end }}

{{/* Those that are about notifications; none where nobody is told. */}}
{{- define "weightedrollout.notifyArgs" -}}
{{- $args := list -}}
{{- with .Values.notifications -}}
{{- if .secretName -}}
{{- $args = append $args "--notify-url-file=/etc/weightedrollout/notifications/url" -}}
{{- with .tokenKey -}}
{{- $args = append $args (printf "--notify-bearer-token-file=/etc/weightedrollout/notifications/%s" .) -}}
{{- end -}}
{{- $args = append $args (printf "--notify-format=%s" .format) -}}
{{- $args = append $args (printf "--notify-level=%s" .level) -}}
{{- else if .tokenKey -}}
{{- fail "notifications.tokenKey is a key of the Secret notifications.secretName: set that too" -}}
{{- end -}}
{{- end -}}
{{- toYaml $args -}}
{{- end }}

{{/* The volumes of the pods, as a YAML list. */}}
{{- define "weightedrollout.volumes" -}}
{{- /* Optional: a Secret that is missing must not keep the controller from starting. */ -}}
{{- $volumes := list -}}
{{- with .Values.prometheus.bearerTokenSecret.name -}}
{{- $volumes = append $volumes (dict "name" "prometheus-token" "secret" (dict "secretName" . "optional" true)) -}}
{{- end -}}
{{- with .Values.prometheus.caSecret.name -}}
{{- $volumes = append $volumes (dict "name" "prometheus-ca" "secret" (dict "secretName" . "optional" true)) -}}
{{- end -}}
{{- with .Values.notifications.secretName -}}
{{- $volumes = append $volumes (dict "name" "notifications" "secret" (dict "secretName" . "optional" true)) -}}
{{- end -}}
{{- with concat $volumes .Values.extraVolumes -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}

{{/* Where they are mounted, as a YAML list. */}}
{{- define "weightedrollout.volumeMounts" -}}
{{- $mounts := list -}}
{{- if .Values.prometheus.bearerTokenSecret.name -}}
{{- $mounts = append $mounts (dict "name" "prometheus-token" "mountPath" "/etc/weightedrollout/prometheus-token" "readOnly" true) -}}
{{- end -}}
{{- if .Values.prometheus.caSecret.name -}}
{{- $mounts = append $mounts (dict "name" "prometheus-ca" "mountPath" "/etc/weightedrollout/prometheus-ca" "readOnly" true) -}}
{{- end -}}
{{- if .Values.notifications.secretName -}}
{{- $mounts = append $mounts (dict "name" "notifications" "mountPath" "/etc/weightedrollout/notifications" "readOnly" true) -}}
{{- end -}}
{{- with concat $mounts .Values.extraVolumeMounts -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}
