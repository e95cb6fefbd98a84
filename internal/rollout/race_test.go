//go:build race

package rollout_test

// leastHistories is how many histories are tried at least. The race detector makes each
// of them ten times as slow, and has nothing to find where there is one goroutine.
const leastHistories = 240
