package controllers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

func newGateway(namespace, name, class string) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: gatewayv1.ObjectName(class)},
	}
}

func newClass(name string, controller gatewayv1.GatewayController) *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gatewayv1.GatewayClassSpec{ControllerName: controller}}
}

// TestServers: who serves each parent of a route, by what may be read.
func TestServers(t *testing.T) {
	const gone = "Gateway shop/gone does not exist: create it, or take it out of the route's parentRefs"
	byClass := func(name string, controller gatewayv1.GatewayController) route.Server {
		return route.Server{Controllers: []gatewayv1.GatewayController{controller}, Source: `GatewayClass "` + name + `"`}
	}
	byFlag := route.Server{Controllers: []gatewayv1.GatewayController{"a.io/a", "b.io/b"}, Source: "--gateway-controllers"}
	doubt := func(key string) route.Server {
		return route.Server{Doubt: "the controller cannot read who serves Gateway " + key + ", so any report on it counts: name the gateway's controller in --gateway-controllers"}
	}
	all := readable{gateways: true, classes: true}
	for _, tc := range []struct {
		name      string
		readable  readable
		namespace string // the only one looked at
		flag      []gatewayv1.GatewayController
		ref       string
		want      route.Server
	}{
		{"its own namespace", all, "", nil, "public", byClass("traefik", "traefik.io/gateway-controller")},
		{"another namespace", all, "", nil, "infra/public", byClass("istio", "istio.io/gateway-controller")},
		{"the class is known, so the flag is not asked", all, "", byFlag.Controllers, "public", byClass("traefik", "traefik.io/gateway-controller")},
		{"no Gateway", all, "", byFlag.Controllers, "gone", route.Server{Problem: gone}},
		{"no class", all, "", byFlag.Controllers, "classless", route.Server{Problem: `Gateway shop/classless has the GatewayClass "absent", which does not exist: install the gateway that it stands for, or correct the Gateway's gatewayClassName`}},
		{"classes cannot be read", readable{gateways: true}, "", nil, "public", doubt("shop/public")},
		{"classes cannot be read, but the Gateway can", readable{gateways: true}, "", byFlag.Controllers, "gone", route.Server{Problem: gone}},
		{"classes cannot be read, and the flag", readable{gateways: true}, "", byFlag.Controllers, "public", byFlag},
		{"nothing can be read", readable{}, "", nil, "gone", doubt("shop/gone")},
		{"nothing can be read, and the flag", readable{}, "", byFlag.Controllers, "gone", byFlag},
		{"a namespace that is not looked at", all, "shop", nil, "infra/public", doubt("infra/public")},
		{"a namespace that is not looked at, and the flag", all, "shop", byFlag.Controllers, "infra/public", byFlag},
		{"the namespace that is looked at", all, "shop", byFlag.Controllers, "public", byClass("traefik", "traefik.io/gateway-controller")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := reconcilerWith(t, newGateway("shop", "public", "traefik"), newGateway("shop", "classless", "absent"), newGateway("infra", "public", "istio"),
				newClass("traefik", "traefik.io/gateway-controller"), newClass("istio", "istio.io/gateway-controller"))
			r.readable, r.GatewayControllers = tc.readable, tc.flag
			if tc.namespace != "" {
				r.Namespaces = []string{tc.namespace}
			}
			key := client.ObjectKey{Namespace: "shop", Name: tc.ref}
			if namespace, name, ok := strings.Cut(tc.ref, "/"); ok {
				key = client.ObjectKey{Namespace: namespace, Name: name}
			}
			got, err := r.serverOf(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAcceptedByItsServers: each parent of a route is asked about by itself, a Service has
// no server, and a cache that does not answer is no confirmation.
func TestAcceptedByItsServers(t *testing.T) {
	r := reconcilerWith(t, newGateway("shop", "gw", "traefik"), newClass("traefik", "traefik.io/gateway-controller"))
	r.readable = readable{gateways: true, classes: true}
	service := gatewayv1.ParentReference{Group: new(gatewayv1.Group), Kind: new(gatewayv1.Kind("Service")), Name: "web"}
	refs := []gatewayv1.ParentReference{{Name: "gw"}, service, {Name: "gone"}}
	o := &route.Object{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1}}
	for _, ref := range refs {
		o.Parents = append(o.Parents, gatewayv1.RouteParentStatus{ParentRef: ref, ControllerName: "traefik.io/gateway-controller", Conditions: []metav1.Condition{
			{Type: "Accepted", Status: metav1.ConditionTrue, ObservedGeneration: 1}, {Type: "ResolvedRefs", Status: metav1.ConditionTrue, ObservedGeneration: 1},
		}})
	}
	for n, want := range map[int]route.AcceptanceState{1: route.Confirmed, 2: route.Confirmed, 3: route.Pending} {
		o.ParentRefs = refs[:n]
		got, err := r.accepted(t.Context(), o)
		if err != nil || got.State != want {
			t.Errorf("with %d parents: %+v, %v, want %s", n, got, err, want)
		}
	}
	r.intercepted(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("no answer")
	}})
	if got, err := r.accepted(t.Context(), o); err == nil || err.Error() != "read Gateway shop/gw: no answer" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestFindReadable: a right that is missing, and a kind that the cluster does not serve,
// are found out at the start. Any other fault ends it.
func TestFindReadable(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no right"))
	noKind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: gatewayv1.GroupName, Kind: "Gateway"}}
	for _, tc := range []struct {
		name              string
		namespaces        []string
		gateways, classes map[string]error // by namespace
		want              readable
		fails             bool
	}{
		{"all", nil, nil, nil, readable{true, true}, false},
		{"no classes", []string{"a", "b"}, nil, map[string]error{"": forbidden}, readable{gateways: true}, false},
		{"no Gateways in one of two namespaces", []string{"a", "b"}, map[string]error{"b": forbidden}, nil, readable{}, false},
		{"not served", nil, map[string]error{"": noKind}, nil, readable{}, false},
		{"no answer about Gateways", nil, map[string]error{"": errors.New("no answer")}, nil, readable{}, true},
		{"no answer about classes", nil, nil, map[string]error{"": errors.New("no answer")}, readable{gateways: true}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := reconcilerWith(t)
			var asked []string
			r.intercepted(t, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				o := (&client.ListOptions{}).ApplyOptions(opts)
				if o.Limit != 1 {
					t.Errorf("a list of %d", o.Limit)
				}
				if _, ok := list.(*gatewayv1.GatewayClassList); ok {
					return tc.classes[o.Namespace]
				}
				asked = append(asked, o.Namespace)
				return tc.gateways[o.Namespace]
			}})
			r.Live, r.Namespaces = r.Client, tc.namespaces
			err := r.findReadable(t.Context())
			if (err != nil) != tc.fails || r.readable != tc.want {
				t.Errorf("%+v, %v, want %+v", r.readable, err, tc.want)
			}
			if want := append(tc.namespaces, "")[:max(1, len(tc.namespaces))]; !slices.Equal(asked, want) {
				t.Errorf("asked about %q, want %q", asked, want)
			}
		})
	}
}

// TestRolloutsOfGateway: a Gateway wakes the rollouts whose routes name it, of either kind
// and in whatever namespace, and a class those of its Gateways.
func TestRolloutsOfGateway(t *testing.T) {
	attached := func(o client.Object, namespace, name string, refs ...gatewayv1.ParentReference) client.Object {
		o.SetNamespace(namespace)
		o.SetName(name)
		switch r := o.(type) {
		case *gatewayv1.HTTPRoute:
			r.Spec.ParentRefs = refs
		case *gatewayv1.GRPCRoute:
			r.Spec.ParentRefs = refs
		}
		return o
	}
	in := func(namespace string, wr *v1alpha1.WeightedRollout) *v1alpha1.WeightedRollout {
		wr.Namespace = namespace
		return wr
	}
	infra := gatewayv1.Namespace("infra")
	r := reconcilerWith(t,
		attached(&gatewayv1.HTTPRoute{}, "shop", "web", gatewayv1.ParentReference{Name: "public", Namespace: &infra}, gatewayv1.ParentReference{Name: "own"}),
		attached(&gatewayv1.GRPCRoute{}, "shop", "web", gatewayv1.ParentReference{Name: "public", Namespace: &infra, SectionName: new(gatewayv1.SectionName("grpc"))}),
		attached(&gatewayv1.HTTPRoute{}, "infra", "web", gatewayv1.ParentReference{Name: "public"}),
		attached(&gatewayv1.HTTPRoute{}, "shop", "other", gatewayv1.ParentReference{Name: "public"}),
		attached(&gatewayv1.HTTPRoute{}, "shop", "mesh", gatewayv1.ParentReference{Name: "public", Namespace: &infra, Kind: new(gatewayv1.Kind("Service")), Group: new(gatewayv1.Group)}),
		rolloutOf("http", 0, httpRef("web")), rolloutOf("grpc", 0, grpcRef("web")), rolloutOf("other", 0, httpRef("other")), rolloutOf("mesh", 0, httpRef("mesh")),
		in("infra", rolloutOf("there", 0, httpRef("web"))),
		newGateway("infra", "public", "traefik"), newGateway("shop", "own", "istio"), newGateway("shop", "public", "idle"),
	)
	names := func(rollouts []v1alpha1.WeightedRollout) []string {
		var names []string
		for i := range rollouts {
			names = append(names, client.ObjectKeyFromObject(&rollouts[i]).String())
		}
		slices.Sort(names)
		return names
	}
	for what, tc := range map[string]struct {
		got  []v1alpha1.WeightedRollout
		want []string
	}{
		"a shared Gateway":   {r.rolloutsOfGateway(t.Context(), newGateway("infra", "public", "")), []string{"infra/there", "shop/grpc", "shop/http"}},
		"its class":          {r.rolloutsOfClass(t.Context(), newClass("traefik", "")), []string{"infra/there", "shop/grpc", "shop/http"}},
		"a Gateway of one":   {r.rolloutsOfGateway(t.Context(), newGateway("shop", "own", "")), []string{"shop/http"}},
		"another class":      {r.rolloutsOfClass(t.Context(), newClass("idle", "")), []string{"shop/other"}},
		"a Gateway of none":  {r.rolloutsOfGateway(t.Context(), newGateway("infra", "own", "")), nil},
		"a class of nothing": {r.rolloutsOfClass(t.Context(), newClass("none", "")), nil},
	} {
		if got := names(tc.got); !slices.Equal(got, tc.want) {
			t.Errorf("%s wakes %v, want %v", what, got, tc.want)
		}
	}
}

// TestTrimGateways: the cache keeps what says who serves a Gateway, and no more.
func TestTrimGateways(t *testing.T) {
	full := metav1.ObjectMeta{
		Namespace: "shop", Name: "gw", UID: "u", ResourceVersion: "7", Generation: 3,
		Annotations: map[string]string{"a": "b"}, Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
	kept := metav1.ObjectMeta{Namespace: "shop", Name: "gw", UID: "u", ResourceVersion: "7", Generation: 3}
	for _, tc := range []struct{ in, want any }{
		{
			&gatewayv1.Gateway{ObjectMeta: full, Spec: gatewayv1.GatewaySpec{GatewayClassName: "c", Listeners: []gatewayv1.Listener{{Name: "l"}}}, Status: gatewayv1.GatewayStatus{Conditions: []metav1.Condition{{}}}},
			&gatewayv1.Gateway{ObjectMeta: kept, Spec: gatewayv1.GatewaySpec{GatewayClassName: "c"}},
		},
		{
			&gatewayv1.GatewayClass{ObjectMeta: full, Spec: gatewayv1.GatewayClassSpec{ControllerName: "c", Description: new("d")}},
			&gatewayv1.GatewayClass{ObjectMeta: kept, Spec: gatewayv1.GatewayClassSpec{ControllerName: "c"}},
		},
		{"a text", "a text"},
	} {
		got, err := Trim(tc.in)
		if diff := gocmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}
