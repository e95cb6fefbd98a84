// Package balance finds the weights of backends that are unequal or change, inside
// one track: from their hardware and a load test (Static), from their health
// (HealthScaled), or from their response times (ByResponseTime at once, Group step by
// step).
//
// Everything here is pure: no clock, no client, no randomness. When to look is the
// caller's business: one observation per sampling window, of 30 to 60 s, since faster
// only chases noise. NaN, an infinity, a negative or an empty number never makes a
// weight. It is refused, or left out by a rule that its function states.
package balance
