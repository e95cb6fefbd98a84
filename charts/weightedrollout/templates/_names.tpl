{{/* The start of all names: weightedrollout, for a release of that name. */}}
{{- define "weightedrollout.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* The labels of every object. */}}
{{- define "weightedrollout.labels" -}}
app.kubernetes.io/name: weightedrollout
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The labels by which the controller's pods are found. */}}
{{- define "weightedrollout.selectorLabels" -}}
app.kubernetes.io/name: weightedrollout
app.kubernetes.io/component: manager
{{- end }}

{{/* The controller's service account. */}}
{{- define "weightedrollout.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (printf "%s-manager" (include "weightedrollout.fullname" .)) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}

{{/* The service account that stands down before the release is uninstalled. */}}
{{- define "weightedrollout.standDownName" -}}
{{- printf "%s-stand-down" (include "weightedrollout.fullname" .) -}}
{{- end }}

{{- define "weightedrollout.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end }}
