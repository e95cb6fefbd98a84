package cluster

import (
	"errors"
	"io"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/auditlog"
)

// testUpgrade upgrades the release from an earlier chart in the middle of a rollout: the
// definition becomes the new one, both replicas are replaced, and the rollout goes on.
func testUpgrade(t *testing.T) {
	s := newShop(t, plan{Namespace: "e2e-upgrade", Stages: []int{10, 40, 70}, Soak: "5s", MinIncrease: 10, MaxIncrease: 10}, 60)
	before, columnsBefore := managers(t), columns(t)
	s.begin()
	s.reaches(20)
	s.say("helm upgrade at %d percent", s.last())
	args := []string{
		"upgrade", release, chart(), "--namespace=" + systemNamespace, "--reset-then-reuse-values", "--wait", "--timeout=5m",
		"--set=podAnnotations.example\\.com/upgraded=yes",
	}
	if cluster.own != nil {
		args = append(args, "--set-string=image.tag="+managerTag)
	}
	t.Log(helm(t, args...))
	s.say("helm upgrade is done at %d percent", s.last())
	if after := columns(t); after != columnsBefore+1 {
		t.Errorf("the definition had %d columns before the upgrade and has %d after it: it is still the earlier one", columnsBefore, after)
	}
	for _, now := range managers(t) {
		for _, then := range before {
			if now.Name == then.Name {
				t.Errorf("pod %s has not been replaced", now.Name)
			}
		}
	}
	s.wants(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
	s.wantPhase(v1alpha1.PhasePromoted)
	s.wantNoServerError()
}

// testUninstall takes the product away in the middle of a rollout: stable has all the
// traffic afterwards, and the rollouts are still there, but nothing waits for anybody.
func testUninstall(t *testing.T) {
	s := newShop(t, plan{Namespace: "e2e-uninstall", Stages: []int{10, 50}, Soak: "1h", MinIncrease: 10, MaxIncrease: 20}, 60)
	s.begin()
	s.reaches(10)
	grants := auditlog.Grants(hookRules(t)...)
	s.say("helm uninstall at %d percent", s.last())
	t.Log(helm(t, "uninstall", release, "--namespace="+systemNamespace, "--wait", "--timeout=5m"))
	route := &gatewayv1.HTTPRoute{}
	key := client.ObjectKey{Namespace: s.namespace, Name: "checkout"}
	must(t, cluster.Client.Get(t.Context(), key, route), "read the route")
	backends := route.Spec.Rules[0].BackendRefs
	s.say("after the uninstallation: stable %d, canary %d", *backends[0].Weight, *backends[1].Weight)
	if *backends[0].Weight != 100 || *backends[1].Weight != 0 {
		t.Errorf("the route has the weights %d and %d, want 100 and 0", *backends[0].Weight, *backends[1].Weight)
	}
	if left := managers(t); len(left) > 0 {
		t.Errorf("%d pods of the controller are left", len(left))
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(t, cluster.Client.Get(t.Context(), client.ObjectKey{Name: definition}, crd), "read the CRD")
	wr := &v1alpha1.WeightedRollout{}
	must(t, cluster.Client.Get(t.Context(), key, wr), "read the rollout")
	if len(wr.Finalizers) > 0 {
		t.Errorf("the rollout waits for somebody who is gone: finalizers %v", wr.Finalizers)
	}
	s.wantNoServerError()
	kubectl(t, "delete", "namespace", s.namespace, "--timeout=2m")
	if cluster.own == nil {
		return // there is no audit log
	}
	audit := wantNoDenial(t, standDownAccount)
	for _, grant := range audit.Unused(grants) {
		// Nobody sends this: the policy on approvals asks whether they might.
		if grant.Verb != "update" || grant.Resource != "weightedrollouts" {
			t.Errorf("granted to those who stand down, and never used: %s", grant)
		}
	}
}

// hookRules are those of the roles that the release has for the time of its removal.
func hookRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var rules []rbacv1.PolicyRule
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(helm(t, "get", "hooks", release, "--namespace="+systemNamespace)), 4096)
	for {
		role := &rbacv1.ClusterRole{}
		if err := decoder.Decode(role); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("reading the release's hooks: %v", err)
		}
		if role.Kind == "ClusterRole" {
			rules = append(rules, role.Rules...)
		}
	}
	if len(rules) == 0 {
		t.Fatal("the release's hooks have no role")
	}
	return rules
}
