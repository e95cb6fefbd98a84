package testcluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const auditLog = `{"auditID":"1","stage":"ResponseStarted","verb":"watch","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"httproutes","apiGroup":"gateway.networking.k8s.io"},"responseStatus":{"code":200}}
{"auditID":"1","stage":"ResponseComplete","verb":"watch","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"httproutes","apiGroup":"gateway.networking.k8s.io"},"responseStatus":{"code":200}}
{"auditID":"2","stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"weightedrollouts","apiGroup":"weightedrollout.dev","subresource":"status"},"responseStatus":{"code":409}}
{"auditID":"3","stage":"ResponseComplete","verb":"patch","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"weightedrollouts","apiGroup":"weightedrollout.dev","subresource":"status"},"responseStatus":{"code":200}}
{"auditID":"4","stage":"ResponseComplete","verb":"get","requestURI":"/version?timeout=1s","user":{"username":"system:serviceaccount:ns:us"},"responseStatus":{"code":200}}
{"auditID":"5","stage":"ResponseComplete","verb":"list","requestURI":"/api/v1/secrets","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":403,"message":"no"}}
{"auditID":"6","stage":"ResponseComplete","verb":"list","requestURI":"/api/v1/secrets","user":{"username":"system:serviceaccount:ns:another"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":403}}
{"auditID":"7","stage":"ResponseComplete","verb":"list","requestURI":"/api/v1/secrets","requestReceivedTimestamp":"2026-11-30T12:00:01.500000Z","user":{"username":"system:serviceaccount:ns:us"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":403}}
{"auditID":"8","stage":"Resp`

func TestReadAudit(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 1, 0, time.UTC)
	starts := []period{{start, start.Add(time.Second)}}
	audit, err := readAudit(strings.NewReader(auditLog), "system:serviceaccount:ns:us", starts)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, use := range audit.Sorted() {
		got[use.String()] = audit.Uses[use]
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
	if diff := cmp.Diff([]string{"403 list secrets /api/v1/secrets: no"}, audit.Denied); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	if audit.DeniedAtStart != 1 {
		t.Errorf("%d requests were denied while the API server was starting, want 1", audit.DeniedAtStart)
	}
	if _, err := readAudit(strings.NewReader("no JSON\n"), "x", nil); err == nil {
		t.Error("a log that is no audit log was read without an error")
	}
}
