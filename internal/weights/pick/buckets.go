package pick

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// BucketCount is the number of hash buckets: one for each basis point, so that
// every share that a plan can hold is exact in buckets.
const BucketCount = int64(weights.ShareAll)

// Buckets keeps a user on one side. The key and a salt are hashed into one of
// BucketCount buckets, and each backend owns a range of buckets in proportion to
// its weight, by the largest remainder. A share under half a bucket may come to
// none.
//
// The ranges are laid out from the last backend to the first. With the two backends
// stable and canary the canary owns buckets 0 to w-1 and stable the rest; a bucket
// never changes with the weights. Raising the canary's share therefore only ever
// moves users from stable to canary, and lowering it only back. With more backends
// that still holds for the last one; the boundaries between the others move with it.
//
// The salt decides which users come first. With the rollout's name as the salt the
// same users are not the first of every rollout. A pick is O(1).
type Buckets struct {
	salt   uint64
	owners []int
}

// NewBuckets makes a picker for the backends, of which the last is the canary. It
// fails on backends that no picker can use.
func NewBuckets(backends []Backend, salt string) (*Buckets, error) {
	if _, err := check(backends); err != nil {
		return nil, err
	}
	given := make([]int64, len(backends))
	for i, b := range backends {
		given[i] = int64(b.Weight)
	}
	counts, err := weights.Apportion(BucketCount, given)
	if err != nil {
		return nil, err
	}
	owners := make([]int, 0, BucketCount)
	for i, count := range slices.Backward(counts) {
		for range count {
			owners = append(owners, i)
		}
	}
	return &Buckets{salt: xxhash.Sum64String(salt), owners: owners}, nil
}

// Pick returns the backend that owns the key's bucket.
func (b *Buckets) Pick(key uint64) int { return b.owners[b.bucket(key)] }

// bucket hashes the key with the salt. The hash is scaled to the number of buckets
// by its high bits; the bias is below BucketCount/2^64.
func (b *Buckets) bucket(key uint64) uint64 {
	var both [16]byte
	binary.LittleEndian.PutUint64(both[:8], b.salt)
	binary.LittleEndian.PutUint64(both[8:], key)
	bucket, _ := bits.Mul64(xxhash.Sum64(both[:]), uint64(BucketCount))
	return bucket
}
