package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"text/template"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

//go:embed manifests.yaml.tmpl
var manifestsText string

// manifests returns the route and the rollout of a scenario.
func manifests(s scenario) (*gatewayv1.HTTPRoute, *v1alpha1.WeightedRollout, error) {
	tmpl, err := template.New("manifests").Parse(manifestsText)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the manifests: %w", err)
	}
	var text bytes.Buffer
	err = tmpl.Execute(&text, map[string]any{
		"Name": s.name, "Namespace": namespace, "Gateway": gatewayName,
		"Host": s.host(), "Port": testbed.BackendPort, "Revision": s.revision,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("writing the manifests of %s: %w", s.name, err)
	}
	routeText, rolloutText, _ := bytes.Cut(text.Bytes(), []byte("\n---\n"))
	route, rollout := &gatewayv1.HTTPRoute{}, &v1alpha1.WeightedRollout{}
	if err := yaml.UnmarshalStrict(routeText, route); err != nil {
		return nil, nil, fmt.Errorf("reading the HTTPRoute of %s: %w", s.name, err)
	}
	if err := yaml.UnmarshalStrict(rolloutText, rollout); err != nil {
		return nil, nil, fmt.Errorf("reading the WeightedRollout of %s: %w", s.name, err)
	}
	return route, rollout, nil
}
