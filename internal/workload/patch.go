package workload

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// operation is one step of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// removal is the one step that has no value.
type removal struct {
	Op   string `json:"op"`
	Path string `json:"path"`
}

// guarded encodes the steps behind one that replaces the resourceVersion by the one
// that was read, so that the API server answers a stale patch with a conflict.
func guarded(kind string, object metav1.Object, steps ...any) ([]byte, error) {
	version := object.GetResourceVersion()
	if version == "" {
		return nil, fmt.Errorf("%s has no resourceVersion, so a stale write could not be told: read it from the API server", title(kind, object))
	}
	guard := operation{Op: "replace", Path: "/metadata/resourceVersion", Value: version}
	patch, err := json.Marshal(append([]any{guard}, steps...))
	if err != nil {
		return nil, fmt.Errorf("%s: encode the patch: %w", title(kind, object), err)
	}
	return patch, nil
}

// title names an object in messages.
func title(kind string, object metav1.Object) string {
	return fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
}

// errNothing is what a patch of nil fails with.
func errNothing(kind string) error {
	return errors.New("there is no " + kind + " to patch: read it from the API server first")
}
