package workloads

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/internal/workload"
)

// templates are pod templates as people write them. Between them they have every field
// that the API server fills in.
var templates = map[string]string{
	"least": `
spec: {containers: [{name: web, image: web}]}
`,
	"probes and ports": `
metadata: {annotations: {checksum/config: abc, empty: ""}}
spec:
  serviceAccount: web
  containers:
  - name: web
    image: registry.example:5000/web:v1
    ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]
    livenessProbe: {httpGet: {port: 80}}
    readinessProbe: {grpc: {port: 9000}, timeoutSeconds: 3}
    startupProbe: {tcpSocket: {port: 80}, failureThreshold: 30}
    lifecycle: {postStart: {httpGet: {port: 80}}, preStop: {sleep: {seconds: 5}}}
  - name: exec
    image: exec@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    livenessProbe: {exec: {command: ["true"]}}
`,
	"environment and resources": `
spec:
  initContainers:
  - {name: proxy, image: "proxy:latest", restartPolicy: Always, securityContext: {}}
  containers:
  - name: web
    image: web:v1
    env:
    - {name: EMPTY, value: ""}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
    - {name: FILE, valueFrom: {fileKeyRef: {volumeName: env, path: env, key: k}}}
    envFrom: [{configMapRef: {name: c}}]
    volumeMounts: [{name: env, mountPath: /env}]
    resources:
      limits: {cpu: "1.5000001", memory: 1024Mi, example.com/gpu: 1}
      requests: {cpu: 100001u, memory: "1e9"}
  overhead: {cpu: 100001u}
  resources: {requests: {cpu: "2.0000001"}, limits: {cpu: "2.0000001"}}
  volumes: [{name: env, emptyDir: {}}]
`,
	"volumes": `
spec:
  containers:
  - {name: web, image: "web:v1", volumeMounts: [{name: c, mountPath: /c}, {name: none, mountPath: /n}]}
  volumes:
  - {name: none}
  - {name: empty, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1024Mi}}
  - {name: c, configMap: {name: c}}
  - {name: s, secret: {secretName: s, items: [{key: a, path: a}]}}
  - {name: h, hostPath: {path: /var}}
  - {name: d, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: d-empty, downwardAPI: {}}
  - {name: p-empty, projected: {}}
  - name: p
    projected:
      sources:
      - {serviceAccountToken: {path: token}}
      - {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
      - {clusterTrustBundle: {signerName: example.com/ca, labelSelector: {}, path: ca}}
  - {name: image, image: {reference: "data:v1"}}
  - name: claim
    ephemeral:
      volumeClaimTemplate:
        metadata: {labels: {a: ""}}
        spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: "1073741824.0001"}, limits: {storage: "2147483648.0001"}}}
`,
	"volumes of networks": `
spec:
  containers: [{name: web, image: "web:v1"}]
  volumes:
  - {name: iscsi, iscsi: {targetPortal: "192.0.2.1:3260", iqn: "iqn.2001-04.com.example:storage", lun: 0}}
  - {name: rbd, rbd: {monitors: ["192.0.2.1"], image: i}}
  - {name: azure, azureDisk: {diskName: d, diskURI: "https://example.com/d.vhd"}}
  - {name: scaleio, scaleIO: {gateway: "https://example.com", system: s, secretRef: {name: s}, volumeName: v}}
  - {name: csi, csi: {driver: d.example.com, volumeAttributes: {a: ""}}}
`,
	"placement": `
metadata: {labels: {version: ""}}
spec:
  nodeSelector: {gpu: ""}
  hostNetwork: true
  enableServiceLinks: true
  shareProcessNamespace: false
  securityContext: {runAsNonRoot: false, fsGroup: 2000000000}
  tolerations: [{operator: Exists}]
  containers:
  - {name: web, image: "web:v1", args: ["", "-v"], ports: [{containerPort: 80}], securityContext: {runAsUser: 0}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}
  - {maxSkew: 1, topologyKey: host, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web, version: ""}}, matchLabelKeys: [pod-template-hash]}
  affinity:
    nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, podAffinityTerm: {topologyKey: host, labelSelector: {}, namespaceSelector: {}}}
  dnsConfig: {options: [{name: ndots, value: "2"}]}
  readinessGates: [{conditionType: example.com/ready}]
`,
}

// The API server fills in what a person leaves out. A template has the same revision
// before and after, or every rollout would see a change that nobody made.
func TestRevisionAsWrittenIsRevisionAsStored(t *testing.T) {
	w := newWorld(t)
	seen := map[string]string{}
	for number, name := range slices.Sorted(maps.Keys(templates)) {
		text := templates[name]
		for kind, object := range map[string]client.Object{
			"Deployment":  newDeployment(fmt.Sprintf("w%d", number), 0, withLabel(decode(t, text))),
			"StatefulSet": newStatefulSet(fmt.Sprintf("w%d", number), 0, withLabel(decode(t, text))),
		} {
			written := templateOf(object).DeepCopy()
			w.create(object)
			w.read(object.GetName(), object)
			stored := templateOf(object)
			if cmp.Equal(written, stored) {
				t.Errorf("%s, %s: the API server has filled in nothing, so that this test shows nothing", name, kind)
			}
			if a, b := workload.Revision(written), workload.Revision(stored); a != b {
				t.Errorf("%s, %s: the revision is %s as written and %s as stored:\n%s", name, kind, a, b, cmp.Diff(written, stored))
			}
			if !workload.SameSpec(written, stored) {
				t.Errorf("%s, %s: SameSpec tells the template as written from the one as stored", name, kind)
			}
			revision := workload.Revision(stored)
			if other, ok := seen[revision]; ok && other != name {
				t.Errorf("%s has the revision of %s", name, other)
			}
			seen[revision] = name
		}
	}
}

// Whatever stable runs, a patch makes it run what the canary does, and the API server
// stores just that.
func TestUpdateBringsEveryTemplateOver(t *testing.T) {
	w := newWorld(t)
	for number, name := range slices.Sorted(maps.Keys(templates)) {
		text := templates[name]
		canary := newDeployment(fmt.Sprintf("canary%d", number), 0, withLabel(decode(t, text)))
		w.create(canary)
		// What stable ran has something more of everything.
		before := template(fmt.Sprintf("stable%d", number), "web:old")
		before.Annotations = map[string]string{"gone": "1", "kubectl.kubernetes.io/restartedAt": "then"}
		before.Spec.Containers = append(before.Spec.Containers, corev1.Container{Name: "gone", Image: "gone:1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}})
		before.Spec.Volumes = []corev1.Volume{{Name: "gone"}}
		stable := newDeployment(fmt.Sprintf("stable%d", number), 0, before)
		stable.Spec.MinReadySeconds = 7
		w.create(stable)
		was := &appsv1.Deployment{}
		var patch []byte
		w.change(stable.Name, stable, func() (_ []byte, err error) {
			was = stable.DeepCopy()
			patch, err = workload.UpdateDeployment(stable, &canary.Spec.Template)
			return patch, err
		})

		want := was.Spec.DeepCopy()
		want.Template = *workload.CopyOver(&canary.Spec.Template, &was.Spec.Template)
		if diff := cmp.Diff(*want, stable.Spec); diff != "" {
			t.Errorf("%s: stable's spec (-want +got):\n%s", name, diff)
		}
		if !workload.SameSpec(&canary.Spec.Template, &stable.Spec.Template) {
			t.Errorf("%s: stable does not run what the canary does", name)
		}
		if _, restarted := stable.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; !restarted {
			t.Errorf("%s: stable's own restart is forgotten", name)
		}
		// A patch that was computed from an older version is refused.
		err := w.Client.Patch(t.Context(), was, client.RawPatch(types.JSONPatchType, patch))
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: a stale patch is answered with %v, want a conflict", name, err)
		}
	}
}

// withLabel gives a template a label to be selected by.
func withLabel(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	metav1.SetMetaDataLabel(&template.ObjectMeta, "app", "web")
	return template
}

func templateOf(object client.Object) *corev1.PodTemplateSpec {
	if s, ok := object.(*appsv1.StatefulSet); ok {
		return &s.Spec.Template
	}
	return &object.(*appsv1.Deployment).Spec.Template
}
