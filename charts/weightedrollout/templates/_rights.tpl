{{/*
The rules of the controller's role whose API groups are for the whole cluster, as a YAML
list: with them it asks the API server who may read its metrics.
*/}}
{{- define "weightedrollout.clusterRules" -}}
{{- $rules := list -}}
{{- range (include "weightedrollout.managerRules" . | fromYamlArray) -}}
{{- if or (has "authentication.k8s.io" .apiGroups) (has "authorization.k8s.io" .apiGroups) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end }}

{{/* All others that can be given in a namespace: GatewayClasses are in none. */}}
{{- define "weightedrollout.namespacedRules" -}}
{{- $rules := list -}}
{{- range (include "weightedrollout.managerRules" . | fromYamlArray) -}}
{{- if not (or (has "authentication.k8s.io" .apiGroups) (has "authorization.k8s.io" .apiGroups)) -}}
{{- $rules = append $rules (set . "resources" (without .resources "gatewayclasses")) -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end }}

{{/* The rules of the generated ClusterRole, which files/role.yaml is a copy of. */}}
{{- define "weightedrollout.managerRules" -}}
{{- range (.Files.Get "files/role.yaml" | trimPrefix "---\n" | splitList "\n---\n") -}}
{{- $role := fromYaml . -}}
{{- if eq $role.kind "ClusterRole" -}}
{{- toYaml $role.rules -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The rules of the generated Role, for the controller's own namespace. */}}
{{- define "weightedrollout.ownNamespaceRules" -}}
{{- range (.Files.Get "files/role.yaml" | trimPrefix "---\n" | splitList "\n---\n") -}}
{{- $role := fromYaml . -}}
{{- if eq $role.kind "Role" -}}
{{- toYaml $role.rules -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
Binds a ClusterRole to the controller where a value says so. It takes the context as
"root", the ClusterRole's name as "role", and as "where" false, true or a list of
namespaces; "value" is how that value is called.
*/}}
{{- define "weightedrollout.bindWhere" -}}
{{- $root := .root -}}
{{- $role := .role -}}
{{- $namespaces := list -}}
{{- if kindIs "slice" .where -}}
{{- $namespaces = .where -}}
{{- if .root.Values.namespaces -}}
{{- $value := .value -}}
{{- range $namespaces -}}
{{- if not (has . $root.Values.namespaces) -}}
{{- fail (printf "%s: %s is not in namespaces: the controller does nothing there; add it to namespaces, or take it out of %s" $value . $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- else if .where -}}
{{- $namespaces = .root.Values.namespaces -}}
{{- end -}}
{{- if and (eq (toString .where) "true") (not .root.Values.namespaces) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $role }}
  labels:
    {{- include "weightedrollout.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $role }}
subjects:
  - kind: ServiceAccount
    name: {{ include "weightedrollout.serviceAccountName" $root }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- range $namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $role }}
  namespace: {{ . }}
  labels:
    {{- include "weightedrollout.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $role }}
subjects:
  - kind: ServiceAccount
    name: {{ include "weightedrollout.serviceAccountName" $root }}
    namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- end }}
