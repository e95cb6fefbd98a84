//go:build !race

package rollout_test

// leastHistories is how many histories are tried at least.
const leastHistories = 1600
