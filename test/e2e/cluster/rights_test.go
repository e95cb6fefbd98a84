package cluster

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/test/auditlog"
)

const standDownAccount = "weightedrollout-stand-down"

// needed is what no rollout can do without: if it does not show in the audit log, the log
// is not about the controller.
var needed = []auditlog.Use{
	{Verb: "patch", Group: "gateway.networking.k8s.io", Resource: "httproutes"},
	{Verb: "patch", Group: "weightedrollout.dev", Resource: "weightedrollouts", Subresource: "status"},
	{Verb: "watch", Group: "discovery.k8s.io", Resource: "endpointslices"},
	{Verb: "update", Group: "coordination.k8s.io", Resource: "leases"},
}

// testRights compares what the controller has done with what it may do. That no right is
// granted in vain is for a test that can make use of all of them: see the tests of
// workloads.
func testRights(t *testing.T) {
	needsOwn(t)
	audit := wantNoDenial(t, serviceAccount)
	for _, use := range needed {
		if audit.Uses[use] == 0 {
			t.Errorf("the audit log does not have: %s", use)
		}
	}
	grants := auditlog.Grants(granted(t, serviceAccount)...)
	for _, use := range audit.Uncovered(grants) {
		t.Errorf("used without a role of the controller that grants it: %s", use)
	}
	for _, grant := range audit.Unused(grants) {
		t.Logf("granted, and not used in this run: %s", grant)
	}
}

// wantNoDenial reads the requests of one of the product's service accounts, and fails if
// one was refused for want of a right.
func wantNoDenial(t *testing.T, account string) *auditlog.Log {
	t.Helper()
	audit, err := cluster.own.Audit(systemNamespace, account)
	must(t, err, "read the audit log")
	t.Logf("the requests of %s:", account)
	for _, use := range audit.Sorted() {
		t.Logf("%6d  %s", audit.Uses[use], use)
	}
	if len(audit.Uses) == 0 {
		t.Errorf("the audit log has no request of %s", account)
	}
	if audit.DeniedAtStart > 0 {
		t.Logf("%d requests were denied while the API server was starting", audit.DeniedAtStart)
	}
	for _, line := range audit.Denied {
		t.Errorf("%s was denied: %s", account, line)
	}
	return audit
}

// granted are the rules of all roles that a service account has.
func granted(t *testing.T, account string) []rbacv1.PolicyRule {
	t.Helper()
	isOurs := func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == systemNamespace && s.Name == account
	}
	var clusterBindings rbacv1.ClusterRoleBindingList
	must(t, cluster.Client.List(t.Context(), &clusterBindings), "list the cluster role bindings")
	var bindings rbacv1.RoleBindingList
	must(t, cluster.Client.List(t.Context(), &bindings), "list the role bindings")
	var rules []rbacv1.PolicyRule
	for _, b := range clusterBindings.Items {
		if slices.ContainsFunc(b.Subjects, isOurs) {
			rules = append(rules, rulesOf(t, b.RoleRef, "")...)
		}
	}
	for _, b := range bindings.Items {
		if slices.ContainsFunc(b.Subjects, isOurs) {
			rules = append(rules, rulesOf(t, b.RoleRef, b.Namespace)...)
		}
	}
	if len(rules) == 0 {
		t.Fatalf("%s has no role", account)
	}
	return rules
}

func rulesOf(t *testing.T, ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	t.Helper()
	if ref.Kind == "Role" {
		role := &rbacv1.Role{}
		must(t, cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: ref.Name}, role), "read a role")
		return role.Rules
	}
	role := &rbacv1.ClusterRole{}
	must(t, cluster.Client.Get(t.Context(), client.ObjectKey{Name: ref.Name}, role), "read a cluster role")
	return role.Rules
}
