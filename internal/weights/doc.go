// Package weights is the arithmetic of traffic shares and backend weights: what a
// route carries, and how far a share may move.
//
// Everything here is exact integer arithmetic and pure: no clock, no client, no
// randomness that the caller did not pass in. A share is in basis points, so
// that two decimal places of a percentage are exact, and a weight is the integer
// that a route carries. docs/weighting.md explains the rules.
//
// How a gateway chooses a backend is in the package pick, where the weights of
// unequal backends come from in balance, and how signals become one number in score.
package weights
