// Package weights is the arithmetic of traffic shares and backend weights.
//
// Everything here is exact integer arithmetic and pure: no clock, no client, no
// randomness that the caller did not pass in. A share is in basis points, so
// that two decimal places of a percentage are exact, and a weight is the integer
// that a route carries.
package weights
