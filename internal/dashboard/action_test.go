package dashboard_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/internal/dashboard"
)

// TestOrder: an order is given at what the page showed, or not at all.
func TestOrder(t *testing.T) {
	for name, test := range map[string]struct {
		body  string
		fails error
		want  int
		says  string
		given []given
	}{
		"as shown":         {body: order, want: http.StatusOK, says: "abort is written for attempt 3", given: []given{{"abort", "shop/checkout", 3}}},
		"another attempt":  {body: strings.Replace(order, `"attempt":3`, `"attempt":2`, 1), want: http.StatusConflict, says: "moved on meanwhile, to attempt 3"},
		"another stage":    {body: strings.Replace(order, `"stage":1`, `"stage":0`, 1), want: http.StatusConflict, says: "stage 2/4"},
		"another revision": {body: strings.Replace(order, "2.4.1", "2.4.0", 1), want: http.StatusConflict, says: `revision "2.4.1"`},
		"another object":   {body: strings.Replace(order, "uid-1", "uid-0", 1), want: http.StatusConflict, says: "nothing was written"},
		"nothing shown":    {body: `{"rollout":"shop/checkout","verb":"abort"}`, want: http.StatusConflict, says: "nothing was written"},
		"makes no sense":   {body: strings.Replace(order, "abort", "retry", 1), want: http.StatusConflict, says: "it is under way"},
		"no such order":    {body: strings.Replace(order, "abort", "delete", 1), want: http.StatusBadRequest, says: `no order "delete"`},
		"no such rollout":  {body: strings.Replace(order, "shop/checkout", "shop/gone", 1), want: http.StatusNotFound, says: "shop/gone"},
		"refused":          {body: order, fails: errors.New("you may not abort"), want: http.StatusConflict, says: "you may not abort"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &orders{err: test.fails}
			s := open(t, newCluster(checkout(t)), o)
			next(s.listen("/api/stream"), "rows", whatever[dashboard.Rows])
			got := s.do(http.MethodPost, "/api/order", test.body, map[string]string{"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", "Origin": "http://" + s.host})
			if got.status != test.want || !strings.Contains(strings.ReplaceAll(got.body, `\"`, `"`), test.says) {
				t.Errorf("%d %s, want %d with %q", got.status, got.body, test.want, test.says)
			}
			if diff := cmp.Diff(append([]given{}, test.given...), o.all()); diff != "" {
				t.Errorf("orders (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadOnly: without orders the page only shows.
func TestReadOnly(t *testing.T) {
	s := open(t, newCluster(checkout(t)), nil)
	page := s.listen("/api/stream?rollout=shop/checkout")
	if d := next(page, "detail", func(d dashboard.Detail) bool { return !d.Missing }); len(d.Orders) != 0 {
		t.Errorf("orders: %+v", d.Orders)
	}
	got := s.do(http.MethodPost, "/api/order", order, map[string]string{"Content-Type": "application/json"})
	if got.status != http.StatusForbidden || !strings.Contains(got.body, "--allow-actions") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
