package workload

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// revisionLength is the length of a revision in characters of 5 bits each. That any
// two of a million templates share one has a probability below one in a million.
const revisionLength = 12

// Revision names a pod template: 12 characters from a-z and 2-7, fit for the value of
// a label. Two templates have the same one if their labels, annotations and specs say
// the same.
//
// What does not count: a value that the API server would fill in (so that a template
// as a person wrote it and the same one as the API server stores it agree), an empty
// map or list, the order of a map's keys, and the annotations that tools add (see
// counts). Everything else counts, the order of lists too: a later variable of a
// container may refer to an earlier one, and arguments have their places.
//
// It is empty for a nil template, and for one that JSON cannot express, which no API
// server gives out. A field that the Kubernetes API of this build does not know is not
// seen.
func Revision(t *corev1.PodTemplateSpec) string {
	if t == nil {
		return ""
	}
	text, ok := canonical(map[string]any{
		"labels":      t.Labels,
		"annotations": counting(t.Annotations),
	}, &t.Spec)
	if !ok {
		return ""
	}
	sum := sha256.Sum256(text)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:revisionLength]
}

// SameSpec says whether two pod templates have the same spec and annotations, by the
// rules of Revision. Labels may differ, since they carry the selector of the workload,
// and so may the references of the spec to them: where a label selector of the spec
// asks for a label that both templates have, each with a value of its own, the two
// values are taken for the same, as CopyOver writes them. A nil template is the same as
// no other.
func SameSpec(a, b *corev1.PodTemplateSpec) bool {
	if a == nil || b == nil {
		return false
	}
	encode := func(t *corev1.PodTemplateSpec) ([]byte, bool) {
		spec := t.Spec.DeepCopy()
		relabel(spec, shared(a.Labels, b.Labels))
		return canonical(map[string]any{"annotations": counting(t.Annotations)}, spec)
	}
	first, ok := encode(a)
	if !ok {
		return false
	}
	second, ok := encode(b)
	return ok && bytes.Equal(first, second)
}

// canonical writes a pod spec beside other members as JSON, in the one form that all
// ways to say the same share.
func canonical(members map[string]any, spec *corev1.PodSpec) ([]byte, bool) {
	spec = spec.DeepCopy()
	unsetStandards(spec)
	members["spec"] = spec
	text, err := json.Marshal(members)
	if err != nil {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a float would not hold every int64
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		return nil, false
	}
	text, err = json.Marshal(pruned(tree)) // the keys of maps are sorted
	return text, err == nil
}

// emptySays names the members in which an empty map is not the same as none: an empty
// selector selects everything, and these kinds of volume have no member that must be
// given.
var emptySays = map[string]bool{
	"labelSelector": true, "namespaceSelector": true, "selector": true,
	"projected": true, "downwardAPI": true, "image": true,
}

// pruned returns a JSON value without the null members and the empty maps and lists
// below it; nil if nothing is left. The elements of a list keep their places. An empty
// text stays: the encoder leaves it out wherever it is the same as none.
func pruned(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, member := range value {
			if left := pruned(member); left != nil {
				kept[key] = left
			} else if _, isMap := member.(map[string]any); isMap && emptySays[key] {
				kept[key] = map[string]any{}
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		if len(value) == 0 {
			return nil
		}
		kept := make([]any, len(value))
		for i, element := range value {
			kept[i] = pruned(element)
		}
		return kept
	default:
		return value
	}
}
