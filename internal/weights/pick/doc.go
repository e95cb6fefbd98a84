// Package pick chooses a backend for one request, by weight.
//
// A weight is a promise about the long run. The pickers here all keep it, or say
// why they do not, and differ in the short run:
//
//	round-robin      each in turn, whatever its weight
//	naive            a backend's whole turn at once: 5:3:2 gives AAAAABBBCC
//	smooth           spread out: 5:3:2 gives ABCAABACBA
//	random           right in expectation only
//	consistent-hash  the same key, the same backend; a change moves few keys
//	buckets          the same key, the same backend; a raise moves keys one way
//
// They are pure: no clock, no client, and no randomness that the caller did not
// pass in. Every picker is safe for concurrent use, and no pick allocates.
package pick
