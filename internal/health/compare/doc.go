// Package compare tells whether one of two tracks serves requests worse than the
// other, while it can be looked at as often as one likes.
//
// The bad requests (failed, or slow) of both tracks are counted in blocks: windows of
// time in which both had traffic at one split. Each block gives an e-value, a number
// that is 1 or less on average as long as the null hypothesis holds; the product of
// the e-values so far is the wealth of somebody who bets against the null at fair
// odds. By Ville's inequality (J. Ville, "Étude critique de la notion de collectif",
// 1939) the chance that the wealth ever reaches 1/alpha is at most alpha, if the null
// is true: the test may be read after every block and stopped at any time.
//
// Inferiority is the evidence that the canary is worse than stable, or worse by more
// than a margin; NotWorse is the evidence that it is not worse by more than a margin.
//
// Everything here is a value and pure: no clock, no client, no randomness, no panic.
// docs/comparison.md explains it in words, and says what it assumes.
package compare
