package yamltext

import goyaml "go.yaml.in/yaml/v3"

// aliases measures how much longer a text becomes when its aliases are followed.
type aliases struct {
	// room is by how many bytes it may still grow; below 0 it has grown too much.
	room int
	// sizes are those of the nodes with an anchor.
	sizes map[*goyaml.Node]int
	// loop is an anchor that stands for a node which contains itself, or "".
	loop string
}

// size returns about how many bytes of JSON a node takes with its aliases followed,
// and takes those of the aliases from the room. Where there is none left it stops, so
// that a text that grows with every line costs no time.
func (a *aliases) size(n *goyaml.Node) int {
	if a.room < 0 {
		return 0
	}
	if n.Kind == goyaml.AliasNode {
		// An anchor stands before its aliases, so one without a size is still under way.
		size, ok := a.sizes[n.Alias]
		if !ok {
			a.loop = n.Value
		}
		a.room -= size
		return size
	}
	// Quotes or brackets, and a comma or a colon.
	size := len(n.Value) + 3
	for _, child := range n.Content {
		size += a.size(child)
	}
	if n.Anchor != "" {
		if a.sizes == nil {
			a.sizes = map[*goyaml.Node]int{}
		}
		a.sizes[n] = size
	}
	return size
}
