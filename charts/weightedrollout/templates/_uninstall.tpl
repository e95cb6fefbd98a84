{{/* The annotations of a hook: a list of its phases and its weight. */}}
{{- define "weightedrollout.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/*
When a Job ends that has not ended by itself, in seconds: two minutes after the command does,
so that its pod can be scheduled and its image pulled. A Job that ends so takes its log with
it.
*/}}
{{- define "weightedrollout.standDownDeadline" -}}
{{- $seconds := 120 -}}
{{- range regexFindAll "[0-9]+(ms|h|m|s)" .Values.uninstall.timeout -1 -}}
{{- $number := regexFind "^[0-9]+" . | float64 | int -}}
{{- $unit := trimPrefix (regexFind "^[0-9]+" .) . -}}
{{- $seconds = add $seconds (mul $number (get (dict "h" 3600 "m" 60 "s" 1 "ms" 0) $unit)) -}}
{{- if eq $unit "ms" -}}
{{- $seconds = add $seconds (div (add $number 999) 1000) -}}
{{- end -}}
{{- end -}}
{{- $seconds -}}
{{- end }}

{{/*
A Job that runs the command stand-down. It takes the context as "root", and the Job's
"name", "phase" and "args".
*/}}
{{- define "weightedrollout.standDownJob" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "weightedrollout.labels" .root | nindent 4 }}
    app.kubernetes.io/component: stand-down
  annotations:
    {{- include "weightedrollout.hook" (list .phase "0") | nindent 4 }}
spec:
  backoffLimit: 0
  activeDeadlineSeconds: {{ include "weightedrollout.standDownDeadline" .root }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: weightedrollout
        app.kubernetes.io/component: stand-down
        # A sidecar goes on when the command has ended, and so the Job would never end.
        sidecar.istio.io/inject: "false"
      annotations:
        linkerd.io/inject: disabled
    spec:
      serviceAccountName: {{ include "weightedrollout.standDownName" .root }}
      restartPolicy: Never
      enableServiceLinks: false
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "weightedrollout.podSecurity" . | nindent 8 }}
      containers:
        - name: stand-down
          image: {{ include "weightedrollout.image" .root | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          command:
            - /manager
          args:
            - stand-down
            {{- with .root.Values.namespaces }}
            - --namespaces={{ join "," . }}
            {{- end }}
            {{- range .args }}
            - {{ . }}
            {{- end }}
          resources:
            {{- toYaml .root.Values.resources | nindent 12 }}
          securityContext:
            {{- include "weightedrollout.containerSecurity" . | nindent 12 }}
{{- end }}
