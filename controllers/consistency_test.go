package controllers

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestErrorLog: the last write to a route says how it ended, until the next one.
func TestErrorLog(t *testing.T) {
	var l errorLog
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	route, other := routeKey{v1alpha1.HTTPRouteKind, "web"}, routeKey{v1alpha1.GRPCRouteKind, "web"}
	l.set(web, other, errors.New("refused"))
	for _, tc := range []struct {
		err       error
		says      string
		overtaken bool
	}{
		{errors.New("no"), "no", false},
		{apierrors.NewConflict(route.resource(), "web", errors.New("newer")), "", true},
		{errors.New("no"), "no", false},
		{apierrors.NewNotFound(route.resource(), "web"), "", false},
		{apierrors.NewConflict(route.resource(), "web", errors.New("newer")), "", true},
		{nil, "", false},
	} {
		l.set(web, route, tc.err)
		if says, overtaken := l.of(web, route), l.isOvertaken(web, route); says != tc.says || overtaken != tc.overtaken {
			t.Errorf("after %v: %q, %t", tc.err, says, overtaken)
		}
	}
	if l.of(web, other) != "refused" {
		t.Error("another route's is forgotten")
	}
	l.set(web, route, apierrors.NewConflict(route.resource(), "web", errors.New("newer")))
	l.forget(web)
	if l.of(web, other) != "" || l.isOvertaken(web, route) {
		t.Error("a rollout that is gone is not forgotten")
	}
}
