package pick

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

const (
	// NodesPerUnit is the number of virtual nodes of a backend whose weight is the
	// ring's unit. The arcs between random points vary like exponential variables, so
	// with v nodes a backend's share has a relative standard deviation of about
	// 1/sqrt(v): 4.4 % at 512. A share that is 1.3 times too large is then more than
	// six deviations off. With 160 nodes, as libketama has, it would be fewer than
	// four, and with 40 it would be common.
	NodesPerUnit = 512
	// MaxNodes is the largest number of virtual nodes of a ring: 12 MiB of them.
	MaxNodes = 1 << 20
)

// Ring is consistent hashing: each backend has virtual nodes on a ring of 2^64
// points, in proportion to its weight, and a key goes to the first node at or after
// it, as described by Karger et al.
//
// A node's point depends on the backend's name and the node's number, and the
// number of nodes on the backend's own weight and the ring's unit. Neither the
// order of the backends nor the other backends matter. For rings with the same unit
// this follows:
//
//   - when a backend comes, or its weight rises, keys move only to it;
//   - when one goes, or its weight falls, keys move only away from it;
//   - so no key moves between two backends that did not change.
//
// A pick is a binary search among the nodes. At most MaxNodes of them make it
// O(log n) in the number of backends.
type Ring struct {
	unit   int64
	points []uint64
	owners []int32
}

// node is a virtual node: a point and the index of its backend.
type node struct {
	point uint64
	owner int32
}

// NewRing makes a ring on which a backend has NodesPerUnit virtual nodes for each
// unit of its weight, rounded, and at least 1 unless its weight is 0.
//
// A unit of 0 lets the ring choose: the smallest weight above 0, or, where the
// lighter ones must do with fewer nodes to stay within MaxNodes, the smallest unit
// that does. Up to 2040 equal weights therefore choose their weight, however many
// they are. Where other backends or weights come and go, take the Unit of the first
// ring for the later ones. It fails on a negative unit, on one too small for MaxNodes,
// and on backends that no picker can use.
func NewRing(backends []Backend, unit int64) (*Ring, error) {
	sum, err := check(backends)
	if err != nil {
		return nil, err
	}
	if unit, err = unitFor(backends, sum, unit); err != nil {
		return nil, err
	}
	var nodes []node
	for i, b := range backends {
		nodes = appendNodes(nodes, b.Name, int32(i), nodeCount(b.Weight, unit))
	}
	return newRing(unit, nodes, backends), nil
}

// Unit returns the weight that has NodesPerUnit virtual nodes.
func (r *Ring) Unit() int64 { return r.unit }

// Pick returns the owner of the first node at or after the key, round the ring.
func (r *Ring) Pick(key uint64) int {
	i, _ := slices.BinarySearch(r.points, key)
	if i == len(r.points) {
		i = 0
	}
	return int(r.owners[i])
}

// unitFor returns the unit that was asked for, or chooses one for 0.
func unitFor(backends []Backend, sum, unit int64) (int64, error) {
	// Rounding up, and the one node that each backend has at least, add at most
	// MaxBackends nodes.
	const budget = MaxNodes - MaxBackends
	least := (sum*NodesPerUnit + budget - 1) / budget
	switch {
	case unit < 0:
		return 0, fmt.Errorf("the ring's unit %d is negative: use 0 to have it chosen", unit)
	case unit == 0:
		return max(least, smallest(backends)), nil
	case unit < least:
		return 0, fmt.Errorf("the ring's unit %d asks for more than %d virtual nodes: use %d or more", unit, MaxNodes, least)
	default:
		return unit, nil
	}
}

// newRing sorts the nodes. Where two share a point the one with the first name
// comes first and takes the keys; the other one takes over when the first leaves.
func newRing(unit int64, nodes []node, backends []Backend) *Ring {
	slices.SortFunc(nodes, func(a, b node) int {
		if c := cmp.Compare(a.point, b.point); c != 0 {
			return c
		}
		return strings.Compare(backends[a.owner].Name, backends[b.owner].Name)
	})
	r := &Ring{unit: unit, points: make([]uint64, len(nodes)), owners: make([]int32, len(nodes))}
	for i, n := range nodes {
		r.points[i], r.owners[i] = n.point, n.owner
	}
	return r
}

// appendNodes appends a backend's nodes. A backend with more of them has those of
// one with fewer and some besides.
func appendNodes(nodes []node, name string, owner int32, count int64) []node {
	seed := append([]byte(name), make([]byte, 8)...)
	number := seed[len(name):]
	for j := range count {
		binary.LittleEndian.PutUint64(number, uint64(j))
		nodes = append(nodes, node{point: xxhash.Sum64(seed), owner: owner})
	}
	return nodes
}

// nodeCount is NodesPerUnit*weight/unit, rounded.
func nodeCount(weight int32, unit int64) int64 {
	if weight == 0 {
		return 0
	}
	return max(1, (int64(weight)*NodesPerUnit+unit/2)/unit)
}

// smallest returns the smallest weight above 0 of backends that have one.
func smallest(backends []Backend) int64 {
	least := int32(math.MaxInt32)
	for _, b := range backends {
		if b.Weight > 0 {
			least = min(least, b.Weight)
		}
	}
	return int64(least)
}
