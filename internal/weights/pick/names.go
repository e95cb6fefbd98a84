package pick

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Options are what some pickers need beside the backends.
type Options struct {
	// Source is where the picker random draws from; the others do not use it. The
	// picker is its only user from then on.
	Source rand.Source
	// Salt is what the picker buckets hashes along with the key, such as a rollout's
	// name; the others do not use it.
	Salt string
	// MaxFails is how many failures take a backend of the picker smooth out. 0
	// ignores failures. The others do not use it.
	MaxFails int
}

// kinds are the pickers in the order in which they are listed: the plain ones
// first, then the weighted ones, then those that look at the key.
var kinds = []struct {
	name string
	make func([]Backend, Options) (Picker, error)
}{
	{"round-robin", func(b []Backend, _ Options) (Picker, error) { return NewRoundRobin(b) }},
	{"naive", func(b []Backend, _ Options) (Picker, error) { return NewNaive(b) }},
	{"smooth", func(b []Backend, o Options) (Picker, error) { return NewSmooth(b, o.MaxFails) }},
	{"random", func(b []Backend, o Options) (Picker, error) { return NewRandom(b, o.Source) }},
	{"consistent-hash", func(b []Backend, _ Options) (Picker, error) { return NewRing(b, 0) }},
	{"buckets", func(b []Backend, o Options) (Picker, error) { return NewBuckets(b, o.Salt) }},
}

// Names lists the names that New knows.
func Names() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// New makes the picker of that name. It fails on an unknown name, with the list of
// those that there are, and on backends or options that the picker cannot use.
func New(name string, backends []Backend, options Options) (Picker, error) {
	for _, k := range kinds {
		if k.name != name {
			continue
		}
		p, err := k.make(backends, options)
		if err != nil {
			return nil, fmt.Errorf("picker %s: %w", name, err)
		}
		return p, nil
	}
	return nil, fmt.Errorf("there is no picker %q: use one of %s", name, strings.Join(Names(), ", "))
}
