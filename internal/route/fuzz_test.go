package route_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// stored turns any bytes into the document and the object that an API server could
// hold for them; ok is false if it could not. Keys are told apart by case and each
// occurs once, as in everything that an API server stores.
func stored(data []byte) (doc []byte, r *route.Object, ok bool) {
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil || tree == nil {
		return nil, nil, false
	}
	doc, err := json.Marshal(tree)
	if err != nil {
		return nil, nil, false
	}
	if r, err = typed(doc); err != nil {
		return nil, nil, false
	}
	return doc, r, true
}

func seeds(f *testing.F) {
	f.Add([]byte(`{}`), "", 100)
	f.Add([]byte(`{"metadata":{"name":"web","namespace":"shop","resourceVersion":"7"},"spec":{"rules":[{"backendRefs":[{"name":"web-stable","port":80},{"name":"web-canary","port":80,"weight":0}]}]}}`), "", 0)
	f.Add([]byte(`{"metadata":{"namespace":"shop","resourceVersion":"7","annotations":{"weightedrollout.dev/managed-by":"api"}},"spec":{"rules":[{"name":"a","backendRefs":[{"name":"web-stable","port":80,"weight":-3},{"name":"web-canary","port":80,"weight":2147483647},{"name":"x","weight":1}]}]}}`), "a", 9999)
	f.Add([]byte(`{"metadata":{"namespace":"shop","resourceVersion":"7"},"spec":{"rules":[null,{"backendRefs":[null,{"group":"","kind":"Service","namespace":"shop","name":"web-stable","port":80,"weight":null},{"name":"web-canary","port":80}]}]}}`), "b", -1)
	f.Add([]byte(`{"kind":"GRPCRoute","metadata":{"name":"web","namespace":"shop","resourceVersion":"7"},"spec":{"rules":[{"name":"a","sessionPersistence":{},"backendRefs":[{"name":"web-canary","port":80,"filters":[]},{"name":"web-stable","port":80}]}]}}`), "a", 50)
	f.Add([]byte(`{"metadata":{"generation":3},"spec":{"parentRefs":[{"name":"gw"},null]},"status":{"parents":[{"parentRef":{"name":"gw"},"conditions":[{"type":"Accepted","status":"False","observedGeneration":3,"message":"\ufffd"}]}]}}`), "", 1)
}

// FuzzInspect checks that no route makes reading it panic, and what every answer has
// in common.
func FuzzInspect(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, name string, share int) {
		_, r, ok := stored(data)
		if !ok {
			return
		}
		var names []string
		if name != "" {
			names = []string{name}
		}
		i := route.Inspect(r, names, pair)
		low, high := i.Observed()
		if low < 0 || low > high || high > weights.ShareAll {
			t.Errorf("observed %d to %d", low, high)
		}
		if i.Problem == nil && len(i.Rules) == 0 {
			t.Error("neither a rule nor a problem")
		}
		for _, p := range []*route.Problem{i.Problem, i.Express(weights.Share(share))} {
			if p != nil {
				checkMessage(t, p.Message)
			}
		}
		for _, mode := range []route.ConfirmMode{route.ConfirmGeneration, route.ConfirmAccepted} {
			checkMessage(t, route.Accepted(r, mode, nil).Message)
			servers := make([]route.Server, len(r.ParentRefs))
			for i, ref := range r.ParentRefs {
				servers[i] = named(string(ref.Name), "example.com/gateway")
			}
			checkMessage(t, route.Accepted(r, mode, servers).Message)
		}
	})
}

func checkMessage(t *testing.T, message string) {
	t.Helper()
	if message == "" || len(message) > 500 || !utf8.ValidString(message) {
		t.Errorf("%d bytes: %q", len(message), message)
	}
}

// FuzzPatch checks, for any route, that a patch changes what it should and nothing else.
func FuzzPatch(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte, name string, share int) {
		doc, r, ok := stored(data)
		if !ok || r.ResourceVersion == "" {
			return
		}
		var names []string
		if name != "" {
			names = []string{name}
		}
		checkPatch(t, doc, names, weights.Share(share).Clamp())
	})
}
