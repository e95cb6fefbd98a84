package manifest

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/config/crd"
)

// definition is the CustomResourceDefinition of this build, ready to check by.
type definition struct {
	structural *structuralschema.Structural
	schema     schemavalidation.SchemaValidator
	rules      *schemacel.Validator
}

// theDefinition is made once: its rules are programs that must be compiled.
var theDefinition = sync.OnceValues(newDefinition)

func newDefinition() (*definition, error) {
	data, err := crd.Bases.ReadFile("bases/weightedrollout.dev_weightedrollouts.yaml")
	if err != nil {
		return nil, fmt.Errorf("the definition of %s is not in this program: %w", kind, err)
	}
	var external apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &external); err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", kind, err)
	}
	for _, version := range external.Spec.Versions {
		if version.Name == v1alpha1.GroupVersion.Version && version.Schema != nil {
			return compile(version.Schema.OpenAPIV3Schema)
		}
	}
	return nil, fmt.Errorf("the definition of %s has no version %s", kind, v1alpha1.GroupVersion.Version)
}

func compile(external *apiextensionsv1.JSONSchemaProps) (*definition, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(external, props, nil); err != nil {
		return nil, fmt.Errorf("convert the schema of %s: %w", kind, err)
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s is not structural: %w", kind, err)
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, fmt.Errorf("the defaults of %s: %w", kind, err)
	}
	validator, _, err := schemavalidation.NewSchemaValidator(props)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", kind, err)
	}
	return &definition{
		structural: structural,
		schema:     validator,
		rules:      schemacel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}
