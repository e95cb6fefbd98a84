package yamltext

import (
	"fmt"

	goyaml "go.yaml.in/yaml/v3"
)

// repeated has a sentence for each key that a mapping below the node gives twice. The
// lines are counted from the beginning of the text, which has so many more before. A
// key may replace one that came by a merge key before it. Nothing may contain itself.
func repeated(n *goyaml.Node, before int) []string {
	var all []string
	if n.Kind == goyaml.MappingNode {
		all = repeatedIn(n, before)
	}
	for _, child := range n.Content {
		all = append(all, repeated(child, before)...)
	}
	return all
}

// repeatedIn is repeated for the keys of one mapping.
func repeatedIn(n *goyaml.Node, before int) []string {
	var all []string
	own := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if isMerge(key) && !own[key.Value] {
			own[key.Value] = true
			// The parser lets the later one win; by the definition of merge keys it is the own one.
			if hidden := firstMerged(n.Content[i+1], own); hidden != "" {
				all = append(all, fmt.Sprintf(`line %d: key %q comes again by the merge key "<<": write "<<" before the mapping's own keys`, key.Line+before, Clip(hidden)))
			}
			continue
		}
		name, ok := nameOf(key)
		if !ok {
			continue
		}
		if own[name] {
			all = append(all, fmt.Sprintf("line %d: key %q already set in map", key.Line+before, Clip(name)))
		}
		own[name] = true
	}
	return all
}

// nameOf returns a key as JSON has it; false if it is no scalar.
func nameOf(key *goyaml.Node) (string, bool) {
	if key.Kind == goyaml.AliasNode {
		key = key.Alias
	}
	return key.Value, key.Kind == goyaml.ScalarNode
}

func isMerge(key *goyaml.Node) bool {
	return key.Kind == goyaml.ScalarNode && key.ShortTag() == "!!merge"
}

// firstMerged returns the first key of what is merged that is among the given ones,
// or "". Nothing may contain itself.
func firstMerged(n *goyaml.Node, own map[string]bool) string {
	if n.Kind == goyaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == goyaml.SequenceNode {
		for _, child := range n.Content {
			if hidden := firstMerged(child, own); hidden != "" {
				return hidden
			}
		}
		return ""
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		hidden, ok := nameOf(key)
		if isMerge(key) {
			hidden = firstMerged(n.Content[i+1], own)
			ok = hidden != ""
		}
		if ok && own[hidden] {
			return hidden
		}
	}
	return ""
}
