package workload

import "github.com/weightedrollout/weightedrollout/internal/weights"

// Needed returns how many replicas a track needs for a share of the traffic, if it
// needs of replicas (1 at least) for all of it: rounded up, so that no replica gets
// more than it would with all of them. It is 0 for no traffic, and else from 1 to of.
// A share outside ShareNone to ShareAll is clamped.
func Needed(share weights.Share, of int32) int32 {
	all := int64(weights.ShareAll)
	part := int64(share.Clamp()) * int64(max(of, 1))
	return int32((part + all - 1) / all) //nolint:gosec // at most of, which is an int32
}
