package auditlog

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

const lines = `{"auditID":"1","stage":"ResponseStarted","verb":"watch","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"httproutes","apiGroup":"gateway.networking.k8s.io"},"responseStatus":{"code":200}}
{"auditID":"1","stage":"ResponseComplete","verb":"watch","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"httproutes","apiGroup":"gateway.networking.k8s.io"},"responseStatus":{"code":200}}
{"auditID":"2","stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"weightedrollouts","apiGroup":"weightedrollout.dev","subresource":"status"},"responseStatus":{"code":409}}
{"auditID":"3","stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"weightedrollouts","apiGroup":"weightedrollout.dev","subresource":"status"},"responseStatus":{"code":200}}
{"auditID":"4","stage":"ResponseComplete","verb":"get","requestURI":"/version?timeout=1s","user":{"username":"system:serviceaccount:ns:us"},"responseStatus":{"code":200}}
{"auditID":"5","stage":"ResponseComplete","verb":"list","requestURI":"/api/v1/secrets","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":403,"message":"no"}}
{"auditID":"6","stage":"ResponseComplete","verb":"list","requestURI":"/api/v1/secrets","user":{"username":"system:serviceaccount:ns:another"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":403}}
{"auditID":"7","stage":"ResponseComplete","verb":"list","requestURI":"/api/v1/secrets","requestReceivedTimestamp":"2026-11-30T12:00:01.500000Z","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":403}}
{"auditID":"8","stage":"Resp`

func TestRead(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 1, 0, time.UTC)
	starts := []Period{{start, start.Add(time.Second)}}
	log, err := read(strings.NewReader(lines), "system:serviceaccount:ns:us", starts)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, use := range log.Sorted() {
		got[use.String()] = log.Uses[use]
	}
	want := map[string]int{
		"watch httproutes.gateway.networking.k8s.io":        1,
		"patch weightedrollouts.weightedrollout.dev/status": 2,
		"get /version": 1,
		"list secrets": 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"403 list secrets /api/v1/secrets: no"}, log.Denied); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	if log.DeniedAtStart != 1 {
		t.Errorf("%d requests were denied while the API server was starting, want 1", log.DeniedAtStart)
	}
	if _, err := read(strings.NewReader("no JSON\n"), "x", nil); err == nil {
		t.Error("a log that is no audit log was read without an error")
	}
}

func TestGrantsAndUses(t *testing.T) {
	log := &Log{Uses: map[Use]int{
		{Verb: "get", Group: "apps", Resource: "replicasets", Subresource: "scale"}: 1,
		{Verb: "list", Resource: "secrets"}:                                         2,
		{Verb: "get", Path: "/version"}:                                             1,
	}}
	grants := Grants(
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*/scale"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}},
	)
	text := func(uses []Use) []string {
		lines := make([]string, 0, len(uses))
		for _, u := range uses {
			lines = append(lines, u.String())
		}
		return lines
	}
	if diff := cmp.Diff([]string{"get *.*/scale", "get secrets", "list secrets"}, text(grants)); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"get secrets"}, text(log.Unused(grants))); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{}, text(log.Uncovered(grants))); diff != "" {
		t.Errorf("uncovered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"list secrets"}, text(log.Uncovered(grants[:2]))); diff != "" {
		t.Errorf("uncovered without its grant (-want +got):\n%s", diff)
	}
}
