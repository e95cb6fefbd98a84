package workload

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func autoscaler(name, apiVersion, kind, target string) autoscalingv2.HorizontalPodAutoscaler {
	return autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "7"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: target},
			MinReplicas:    new(int32(2)), MaxReplicas: 8,
		},
	}
}

func TestAutoscaler(t *testing.T) {
	elsewhere := autoscaler("elsewhere", "apps/v1", "Deployment", "web")
	elsewhere.Namespace = "other"
	among := []autoscalingv2.HorizontalPodAutoscaler{
		elsewhere,
		autoscaler("other-group", "example.com/v1", "Deployment", "web"),
		autoscaler("no-group", "", "Deployment", "web"),
		autoscaler("no-version", "a/b/c", "Deployment", "web"),
		autoscaler("other-kind", "apps/v1", "StatefulSet", "web"),
		autoscaler("other-name", "apps/v1", "Deployment", "web-canary"),
		autoscaler("old-version", "apps/v1beta1", "Deployment", "web"),
		autoscaler("z", "apps/v1", "Deployment", "twice"),
		autoscaler("a", "apps/v1", "Deployment", "twice"),
	}
	for name, want := range map[string]string{"web": "old-version", "none": ""} {
		got, err := Autoscaler(among, Reference{"apps/v1", "Deployment", "shop", name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if want == "" && got != nil || want != "" && (got == nil || got.Name != want) {
			t.Errorf("%s: %v, want %q", name, got, want)
		}
	}
	_, err := Autoscaler(among, Reference{"apps/v1", "Deployment", "shop", "twice"})
	if want := "2 HorizontalPodAutoscalers scale Deployment shop/twice (a and z): remove all but one"; err == nil || err.Error() != want {
		t.Errorf("two autoscalers: %v, want %q", err, want)
	}
}

func TestRaiseMinimum(t *testing.T) {
	for _, tt := range []struct {
		name   string
		min    *int32
		needed int32
		want   int32 // 0: no patch
	}{
		{"raised", new(int32(2)), 5, 5},
		{"raised to the maximum", new(int32(2)), 8, 8},
		{"raised from none", nil, 2, 2},
		{"raised from 0", new(int32(0)), 1, 1},
		{"as high already", new(int32(5)), 5, 0},
		{"never lowered", new(int32(6)), 5, 0},
		{"1 without a number", nil, 1, 0},
		{"nothing needed", nil, 0, 0},
	} {
		h := autoscaler("web", "apps/v1", "Deployment", "web")
		h.Spec.MinReplicas = tt.min
		patch, err := RaiseMinimum(&h, tt.needed)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if (patch == nil) != (tt.want == 0) {
			t.Errorf("%s: the patch is %s", tt.name, patch)
		} else if patch != nil {
			if got := *applied(t, &h, patch).Spec.MinReplicas; got != tt.want {
				t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
			}
			if !strings.Contains(string(patch), `"/metadata/resourceVersion","value":"7"`) {
				t.Errorf("%s: %s does not say what it was computed from", tt.name, patch)
			}
		}
	}
}

func TestRaiseMinimumFails(t *testing.T) {
	owned := autoscaler("web", "apps/v1", "Deployment", "web")
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "ScaledObject", Name: "web", Controller: new(true)}}
	unread := autoscaler("web", "apps/v1", "Deployment", "web")
	unread.ResourceVersion = ""
	free := autoscaler("web", "apps/v1", "Deployment", "web")
	for _, tt := range []struct {
		name   string
		h      *autoscalingv2.HorizontalPodAutoscaler
		needed int32
		says   string
	}{
		{"above the maximum", &free, 9, "HorizontalPodAutoscaler shop/web allows at most 8 replicas, and 9 are needed: raise its spec.maxReplicas to 9"},
		{"it belongs to another", &owned, 3, "belongs to ScaledObject web, so raise the minimum there"},
		{"no resourceVersion", &unread, 3, "HorizontalPodAutoscaler shop/web has no resourceVersion"},
		{"none", nil, 3, "no HorizontalPodAutoscaler"},
	} {
		if patch, err := RaiseMinimum(tt.h, tt.needed); err == nil || !strings.Contains(err.Error(), tt.says) || patch != nil {
			t.Errorf("%s: %s, %v, want an error that says %q", tt.name, patch, err, tt.says)
		}
	}
	if patch, err := RaiseMinimum(&owned, 2); patch != nil || err != nil {
		t.Errorf("one that is high enough, whoever it belongs to: %s, %v", patch, err)
	}
	if patch, err := RestoreMinimum(nil, 5, 2); patch != nil || err == nil {
		t.Errorf("giving back to none: %s, %v", patch, err)
	}
}

func TestRestoreMinimum(t *testing.T) {
	for _, tt := range []struct {
		name        string
		now         *int32
		set, before int32
		want        int32 // -1: no patch
	}{
		{"given back", new(int32(5)), 5, 2, 2},
		{"given back to 0", new(int32(5)), 5, 0, 0},
		{"somebody raised it", new(int32(6)), 5, 2, -1},
		{"somebody lowered it", new(int32(3)), 5, 2, -1},
		{"somebody took it away", nil, 5, 2, -1},
		{"nothing was set", new(int32(2)), 2, 2, -1},
		{"never raised", new(int32(2)), 2, 5, -1},
	} {
		h := autoscaler("web", "apps/v1", "Deployment", "web")
		h.Spec.MinReplicas = tt.now
		patch, err := RestoreMinimum(&h, tt.set, tt.before)
		if err != nil || (patch == nil) != (tt.want == -1) {
			t.Errorf("%s: %s, %v", tt.name, patch, err)
		} else if patch != nil {
			if got := *applied(t, &h, patch).Spec.MinReplicas; got != tt.want {
				t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
			}
		}
	}
}

func TestReplicas(t *testing.T) {
	scale := func(replicas int32) *autoscalingv1.Scale {
		return &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: "7"},
			Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
		}
	}
	raise := func(needed int32) func(*autoscalingv1.Scale) ([]byte, error) {
		return func(s *autoscalingv1.Scale) ([]byte, error) { return RaiseReplicas(s, needed) }
	}
	restore := func(set, before int32) func(*autoscalingv1.Scale) ([]byte, error) {
		return func(s *autoscalingv1.Scale) ([]byte, error) { return RestoreReplicas(s, set, before) }
	}
	for _, tt := range []struct {
		name  string
		now   int32
		patch func(*autoscalingv1.Scale) ([]byte, error)
		want  int32 // -1: no patch
	}{
		{"raised", 2, raise(5), 5},
		{"raised from 0", 0, raise(1), 1},
		{"as many already", 5, raise(5), -1},
		{"never lowered", 6, raise(5), -1},
		{"given back", 5, restore(5, 2), 2},
		{"given back to 0", 5, restore(5, 0), 0},
		{"somebody scaled it", 4, restore(5, 2), -1},
		{"never raised", 5, restore(5, 7), -1},
	} {
		s := scale(tt.now)
		patch, err := tt.patch(s)
		if err != nil || (patch == nil) != (tt.want == -1) {
			t.Errorf("%s: %s, %v", tt.name, patch, err)
		} else if patch != nil {
			if got := applied(t, s, patch).Spec.Replicas; got != tt.want {
				t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
			}
		}
	}
	unread := scale(1)
	unread.ResourceVersion = ""
	if _, err := RaiseReplicas(unread, 2); err == nil || !strings.Contains(err.Error(), "scale of shop/web has no resourceVersion") {
		t.Errorf("no resourceVersion: %v", err)
	}
	for _, f := range []func(*autoscalingv1.Scale) ([]byte, error){raise(1), restore(2, 1)} {
		if patch, err := f(nil); err == nil || patch != nil {
			t.Errorf("no scale: %s, %v", patch, err)
		}
	}
}
