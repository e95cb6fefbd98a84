{{/*
The start of all names: weightedrollout, for a release of that name. A release's name may
have dots and begin with a digit; that of a Service may not.
*/}}
{{- define "weightedrollout.fullname" -}}
{{- $release := .Release.Name | replace "." "-" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if regexMatch "^[0-9]" $release -}}
{{- fail (printf "the release's name %s begins with a digit, which the name of a Service must not do: choose another one, or set fullnameOverride" .Release.Name) -}}
{{- else if contains .Chart.Name $release -}}
{{- $release | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" $release .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/*
Refuses a second release in a namespace: the two controllers would share a lease, so that
one of them never worked, and each one's Service would lead to both. Where Helm does not
ask the cluster (helm template), nothing is refused.
*/}}
{{- define "weightedrollout.refuseSecond" -}}
{{- if .Release.IsInstall -}}
{{- $own := printf "%s-manager" (include "weightedrollout.fullname" .) -}}
{{- range (lookup "apps/v1" "Deployment" .Release.Namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $manager := and (eq (get $labels "app.kubernetes.io/name") "weightedrollout") (eq (get $labels "app.kubernetes.io/component") "manager") -}}
{{- if and $manager (ne .metadata.name $own) (not .metadata.deletionTimestamp) -}}
{{- fail (printf "the namespace %s has a controller already, the Deployment %s: upgrade that one, or install the release %s in a namespace of its own, with namespaces that the other one does not look after" $.Release.Namespace .metadata.name $.Release.Name) -}}
{{- end -}}
{{- end -}}
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
