package manifest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest/yamltext"
)

// choose picks the object with the name, or the only one.
func choose(all []document, name string) (document, error) {
	var rollouts []document
	for _, d := range all {
		if d.isRollout() {
			rollouts = append(rollouts, d)
		}
	}
	if len(rollouts) == 0 {
		return document{}, noRollout(all)
	}
	if name == "" {
		if len(rollouts) == 1 {
			return rollouts[0], nil
		}
		return document{}, &SeveralError{names(rollouts)}
	}
	named := slices.DeleteFunc(slices.Clone(rollouts), func(d document) bool { return d.name() != name })
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		return document{}, fmt.Errorf("the manifest holds no WeightedRollout %q, but %s", name, listed(names(rollouts)))
	}
	places := make([]string, len(named))
	for i, d := range named {
		places[i] = fmt.Sprintf("document %d", d.number)
	}
	return document{}, fmt.Errorf("the manifest holds %d WeightedRollouts with the name %q (%s): leave one of them", len(named), name, listed(slices.Compact(places)))
}

func noRollout(all []document) error {
	if len(all) == 0 {
		return errors.New("the manifest is empty: it must hold a WeightedRollout")
	}
	found := make([]string, len(all))
	for i, d := range all {
		found[i] = d.String()
	}
	return fmt.Errorf("the manifest holds no WeightedRollout with apiVersion %s: it has %s", v1alpha1.GroupVersion, listed(found))
}

// names lists the quoted names of the objects.
func names(rollouts []document) []string {
	var all []string
	for _, d := range rollouts {
		all = append(all, yamltext.Clip(fmt.Sprintf("%q", d.name())))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// admit does what the API server does with an object that is to be created.
func admit(d document) (*v1alpha1.WeightedRollout, error) {
	if d.apiVersion() != v1alpha1.GroupVersion.String() {
		return nil, fmt.Errorf("%s: this program knows only apiVersion %s", d, v1alpha1.GroupVersion)
	}
	def, err := theDefinition()
	if err != nil {
		return nil, err
	}
	// A new object has no status, whatever the file says.
	delete(d.content, "status")

	problems := slices.Clone(d.repeated)
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(d.content, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, newInvalid(d, []string{"metadata: " + err.Error()})
	}
	unknown = append(unknown, pruning.PruneWithOptions(d.content, def.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	for _, path := range unknown {
		problems = append(problems, fmt.Sprintf("unknown field %q: remove it or correct its name", path))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(d.content, def.structural)
	defaulting.Default(d.content, def.structural)
	found, incomplete := def.validate(d.content, meta)
	if problems = append(problems, found...); len(problems) > 0 {
		invalid := newInvalid(d, problems)
		invalid.Incomplete = incomplete
		return nil, invalid
	}
	return typed(d.content)
}

// validate checks metadata, schema and rules. Rules are left out, and what was found is
// incomplete, where the object's shape is so wrong that they would mislead.
func (def *definition) validate(content map[string]any, meta *metav1.ObjectMeta) (problems []string, incomplete bool) {
	shape := schemavalidation.ValidateCustomResource(nil, content, def.schema)
	shape = append(shape, listtype.ValidateListSetsAndMaps(nil, def.structural, content)...)
	problems = def.sentences(content, validateMeta(meta), shape)
	if slices.ContainsFunc(shape, misleads) {
		return problems, true
	}
	broken, _ := def.rules.Validate(context.Background(), nil, def.structural, content, nil, celconfig.RuntimeCELCostBudget)
	return append(problems, def.sentences(content, broken)...), false
}

// sentences puts errors in words, each list in order of the fields: the validators go
// through them in any.
func (def *definition) sentences(content map[string]any, lists ...field.ErrorList) []string {
	var all []string
	for _, list := range lists {
		slices.SortStableFunc(list, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	}
	for _, e := range slices.Concat(lists...) {
		text := e.Error()
		if cure := def.cure(e, content); cure != "" {
			text += ": " + cure
		}
		all = append(all, text)
	}
	return all
}

// validateMeta checks the object's metadata. What the request and the API server
// themselves bring is filled in: the namespace, and the end of a generated name.
func validateMeta(meta *metav1.ObjectMeta) field.ErrorList {
	if meta == nil {
		meta = &metav1.ObjectMeta{}
	}
	meta = meta.DeepCopy()
	meta.ManagedFields = nil
	if meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault
	}
	if meta.Name == "" && meta.GenerateName != "" {
		meta.Name = meta.GenerateName + "00000"
	}
	return validation.ValidateObjectMeta(meta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// misleads tells whether rules cannot be trusted on an object with this error.
func misleads(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid, field.ErrorTypeNotSupported:
		return true
	default:
		return false
	}
}

func typed(content map[string]any) (*v1alpha1.WeightedRollout, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("write the object as JSON: %w", err)
	}
	rollout := &v1alpha1.WeightedRollout{}
	if err := json.Unmarshal(data, rollout); err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	return rollout, nil
}
