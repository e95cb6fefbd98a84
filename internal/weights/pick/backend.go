package pick

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// MaxBackends is the largest number of backends of one picker. With it every sum
// of weights and every running value stays far inside an int64.
const MaxBackends = 4096

// Backend is one of the places that a request can go to.
type Backend struct {
	// Name tells backends apart and is unique among them. Hashing depends on it, so
	// that an order or a position never does.
	Name string
	// Weight is the backend's part relative to the others, 0 or more. A backend with
	// weight 0 is never picked. The Gateway API allows up to 1,000,000; every int32
	// is safe here.
	Weight int32
}

// Picker chooses a backend for each request. It is safe for concurrent use.
type Picker interface {
	// Pick returns the index of the backend that takes the request, or -1 when none
	// can. The key says whose request it is and comes from Key; pickers that do not
	// hash ignore it.
	Pick(key uint64) int
}

// Key hashes what identifies a user, a session or a request, with xxHash64. The
// pickers that hash rely on a key's bits being well mixed; pass them this and not a
// number of your own.
func Key(s string) uint64 { return xxhash.Sum64String(s) }

// check returns the sum of the weights. It fails, naming the backend and the cure,
// on more than MaxBackends, an empty or repeated name and a negative weight, and
// with weights.ErrNoWeight when no weight is above 0.
func check(backends []Backend) (int64, error) {
	if len(backends) > MaxBackends {
		return 0, fmt.Errorf("%d backends are too many: at most %d share one picker", len(backends), MaxBackends)
	}
	seen := make(map[string]int, len(backends))
	var sum int64
	for i, b := range backends {
		if b.Name == "" {
			return 0, fmt.Errorf("backend %d has no name: give each one a name of its own", i)
		}
		if first, ok := seen[b.Name]; ok {
			return 0, fmt.Errorf("backends %d and %d are both named %q: give each one a name of its own", first, i, b.Name)
		}
		if b.Weight < 0 {
			return 0, fmt.Errorf("backend %q has the negative weight %d: use 0 to send it nothing", b.Name, b.Weight)
		}
		seen[b.Name] = i
		sum += int64(b.Weight)
	}
	if sum == 0 {
		return 0, fmt.Errorf("%w: give at least one backend a weight of 1", weights.ErrNoWeight)
	}
	return sum, nil
}
