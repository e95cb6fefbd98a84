package manifest

import (
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest/yamltext"
)

// MaxBytes is the longest text that Decode reads, with its aliases followed: the API
// server takes no longer request.
const MaxBytes = yamltext.MaxBytes

// File is a stream of YAML documents or JSON objects that has been read.
type File struct{ documents []document }

// Read reads a stream of YAML documents or JSON objects; lists are looked into. It
// fails on a stream that cannot be read, is longer than MaxBytes, or has more than
// yamltext.MaxDocuments documents.
func Read(r io.Reader) (*File, error) {
	data, err := yamltext.Load(r)
	switch {
	case errors.Is(err, yamltext.ErrTooLong):
		return nil, fmt.Errorf("the manifest is %w, more than the API server takes: give only the file with the %s", err, kind)
	case err != nil:
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	all, err := documents(data)
	if err != nil {
		return nil, err
	}
	return &File{all}, nil
}

// Decode reads the WeightedRollout with the given name from a stream; an empty name
// stands for the only one. It is Read and Rollout in one.
func Decode(r io.Reader, name string) (*v1alpha1.WeightedRollout, error) {
	f, err := Read(r)
	if err != nil {
		return nil, err
	}
	return f.Rollout(name)
}

// Rollout returns the WeightedRollout with the given name; an empty name stands for
// the only one of the file. Every default of the API is filled in and the status is
// left out, as the API server would store a new object.
//
// It fails if there is no such object, or several, and, with an *InvalidError, on an
// object that the API server would refuse.
func (f *File) Rollout(name string) (*v1alpha1.WeightedRollout, error) {
	chosen, err := choose(f.documents, name)
	if err != nil {
		return nil, err
	}
	return admit(chosen)
}

// Place returns the number of the document that holds the WeightedRollout with the given
// name, or the only one, counted from 1 without those that are empty. It is 0 where
// Rollout would not know which one is meant.
func (f *File) Place(name string) int {
	chosen, err := choose(f.documents, name)
	if err != nil {
		return 0
	}
	return chosen.number
}

// HTTPRoute returns the HTTPRoute with the given name in the given namespace, or nil
// if the file has none that can be read. An object without a namespace is in every
// one. The route's own schema is not checked.
func (f *File) HTTPRoute(namespace, name string) *gatewayv1.HTTPRoute {
	return routeIn[gatewayv1.HTTPRoute](f, "HTTPRoute", namespace, name)
}

// GRPCRoute is HTTPRoute for a GRPCRoute.
func (f *File) GRPCRoute(namespace, name string) *gatewayv1.GRPCRoute {
	return routeIn[gatewayv1.GRPCRoute](f, "GRPCRoute", namespace, name)
}

// HTTPRoutes returns the HTTPRoutes in the given namespace that can be read, in the
// file's order.
func (f *File) HTTPRoutes(namespace string) []*gatewayv1.HTTPRoute {
	return routesIn[gatewayv1.HTTPRoute](f, "HTTPRoute", namespace, anyName)
}

// GRPCRoutes is HTTPRoutes for GRPCRoutes.
func (f *File) GRPCRoutes(namespace string) []*gatewayv1.GRPCRoute {
	return routesIn[gatewayv1.GRPCRoute](f, "GRPCRoute", namespace, anyName)
}

func anyName(string) bool { return true }

func routeIn[R any](f *File, kind, namespace, name string) *R {
	all := routesIn[R](f, kind, namespace, func(is string) bool { return is == name })
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func routesIn[R any](f *File, kind, namespace string, named func(string) bool) []*R {
	var all []*R
	for _, d := range f.documents {
		in := d.text("metadata", "namespace")
		if d.kind() != kind || d.apiVersion() != gatewayv1.GroupVersion.String() || !named(d.name()) || (in != "" && namespace != "" && in != namespace) {
			continue
		}
		read := new(R)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.content, read); err == nil {
			all = append(all, read)
		}
	}
	return all
}
