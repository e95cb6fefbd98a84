package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// rich is a pod template as a person writes it, with something of everything.
const rich = `
metadata:
  labels: {app: web, track: canary}
  annotations: {checksum/config: abc}
spec:
  serviceAccountName: web
  hostname: web
  initContainers:
  - name: migrate
    image: registry.example:5000/web/migrate
  containers:
  - name: web
    image: registry.example/web:2.4.1
    args: [serve, --fast]
    env:
    - {name: A, value: "1"}
    - {name: B, value: "2"}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    ports:
    - {name: http, containerPort: 8080}
    resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}
    readinessProbe: {httpGet: {port: http}}
    livenessProbe: {grpc: {port: 9000}, failureThreshold: 5}
    lifecycle: {preStop: {httpGet: {path: /bye, port: http}}}
    volumeMounts:
    - {name: config, mountPath: /config}
  - name: proxy
    image: registry.example/proxy@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app: web, track: canary}}
  volumes:
  - {name: config, configMap: {name: web}}
  - name: work
  - name: token
    projected: {sources: [{serviceAccountToken: {path: token}}]}
`

// stored is the same template as the API server gives it back.
const stored = `
metadata:
  creationTimestamp: null
  labels: {track: canary, app: web}
  annotations:
    checksum/config: abc
    kubectl.kubernetes.io/restartedAt: "2026-01-01T00:00:00Z"
    cattle.io/timestamp: "2026-01-01T00:00:00Z"
spec:
  serviceAccount: web
  serviceAccountName: web
  hostname: web
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  terminationGracePeriodSeconds: 30
  securityContext: {}
  initContainers:
  - name: migrate
    image: registry.example:5000/web/migrate
    imagePullPolicy: Always
    resources: {}
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
  containers:
  - name: web
    image: registry.example/web:2.4.1
    imagePullPolicy: IfNotPresent
    args: [serve, --fast]
    env:
    - {name: A, value: "1"}
    - {name: B, value: "2"}
    - {name: NODE, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}}}
    ports:
    - {name: http, containerPort: 8080, protocol: TCP}
    resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 500m}}
    readinessProbe:
      httpGet: {path: /, port: http, scheme: HTTP}
      timeoutSeconds: 1
      periodSeconds: 10
      successThreshold: 1
      failureThreshold: 3
    livenessProbe:
      grpc: {port: 9000, service: ""}
      timeoutSeconds: 1
      periodSeconds: 10
      successThreshold: 1
      failureThreshold: 5
    lifecycle: {preStop: {httpGet: {path: /bye, port: http, scheme: HTTP}}}
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    volumeMounts:
    - {name: config, mountPath: /config}
  - name: proxy
    image: registry.example/proxy@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    imagePullPolicy: IfNotPresent
    resources: {}
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector: {matchLabels: {app: web, track: canary}}
  volumes:
  - {name: config, configMap: {name: web, defaultMode: 420}}
  - {name: work, emptyDir: {}}
  - name: token
    projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: token, expirationSeconds: 3600}}]}
`

func template(t testing.TB, text string) *corev1.PodTemplateSpec {
	t.Helper()
	result := &corev1.PodTemplateSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), result); err != nil {
		t.Fatalf("the test's template: %v", err)
	}
	return result
}
