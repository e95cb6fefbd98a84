// Package workload says what the workloads behind the two tracks tell: which
// revision a pod template is, whether a workload has rolled out, how many replicas a
// share of the traffic needs, and which patches scale a workload, give the scale
// back, and bring the canary's version over to stable.
//
// Everything here is pure: it reads the objects that it is given, changes none of
// them, and returns values and JSON Patches (RFC 6902) for the caller to send. Every
// patch names the resourceVersion that it was computed from, so that the API server
// answers a stale one with a conflict.
package workload
