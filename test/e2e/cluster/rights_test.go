package cluster

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/test/testcluster"
)

const standDownAccount = "weightedrollout-stand-down"

// needed is what no rollout can do without: if it does not show in the audit log, the log
// is not about the controller.
var needed = []testcluster.Use{
	{Verb: "patch", Group: "gateway.networking.k8s.io", Resource: "httproutes"},
	{Verb: "patch", Group: "weightedrollout.dev", Resource: "weightedrollouts", Subresource: "status"},
	{Verb: "watch", Group: "discovery.k8s.io", Resource: "endpointslices"},
	{Verb: "update", Group: "coordination.k8s.io", Resource: "leases"},
}

// testRights compares what the controller has done with what it may do.
func testRights(t *testing.T) {
	audit := wantNoDenial(t, serviceAccount)
	for _, use := range needed {
		if audit.Uses[use] == 0 {
			t.Errorf("the audit log does not have: %s", use)
		}
	}
	rules := granted(t, serviceAccount)
	for _, rule := range rules {
		for _, grant := range split(rule) {
			if !slices.ContainsFunc(audit.Sorted(), func(u testcluster.Use) bool { return covers(grant, u) }) {
				t.Logf("granted, and not used in this run: %s", grant)
			}
		}
	}
	// What everybody may, such as reading /version, has no group.
	for _, use := range audit.Sorted() {
		if use.Resource == "" {
			continue
		}
		if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.ContainsFunc(split(r), func(g testcluster.Use) bool { return covers(g, use) })
		}) {
			t.Errorf("used without a role of the controller that grants it: %s", use)
		}
	}
}

// wantNoDenial reads the requests of one of the product's service accounts, and fails if
// one was refused for want of a right.
func wantNoDenial(t *testing.T, account string) *testcluster.Audit {
	t.Helper()
	audit, err := cluster.Audit(systemNamespace, account)
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

// split lists each verb on each resource that a rule grants.
func split(rule rbacv1.PolicyRule) []testcluster.Use {
	var grants []testcluster.Use
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, text := range rule.Resources {
				resource, subresource, _ := strings.Cut(text, "/")
				grants = append(grants, testcluster.Use{Verb: verb, Group: group, Resource: resource, Subresource: subresource})
			}
		}
	}
	return grants
}

// covers says whether a grant, which may have stars, allows a use.
func covers(grant, use testcluster.Use) bool {
	match := func(granted, used string) bool { return granted == "*" || granted == used }
	return match(grant.Verb, use.Verb) && match(grant.Group, use.Group) &&
		match(grant.Resource, use.Resource) && match(grant.Subresource, use.Subresource)
}
