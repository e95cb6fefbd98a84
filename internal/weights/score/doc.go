// Package score makes one number of several signals, and says where a signal is
// heading.
//
// A signal is a series of float64 values: an error rate, a response time, a load.
// The way to one number is: Align the signals to one period, Normalise each to 0 to
// 1 over the values seen, weigh the signals by judgement (AHP), by the data
// (Entropy) or by both (Union), and add up (Composite). Health, EMA and Trend work
// on a signal as it comes.
//
// Everything here is pure: no clock, no client, no randomness. NaN and the infinities
// are missing values. Each function says whether it leaves them out or refuses them;
// a missing value is never taken for 0, and where one must be shown, it is NaN.
package score
