// Package simulate runs a rollout before it is run: the controller's own decisions
// under a virtual clock, on routes in memory, against synthetic traffic.
//
// The decisions are those of internal/rollout, the verdicts those of
// internal/health, and the routes are read, patched and confirmed by internal/route.
// Only the world around them is made up: requests, failures and response times that
// a Scenario describes, a gateway that confirms after a while, pods that come and
// go, a metrics server that can fail, and people who give commands.
//
// Requests come at an even rate. Each goes to the backend that a picker chooses by the
// weights that the gateway serves at that moment; whether it fails and how long it
// takes is drawn, or, in an exact simulation, replaced by what is to be expected.
//
// Nothing here reads a real clock or a global source of randomness: the same spec,
// scenario and options give the same result, byte for byte.
package simulate
