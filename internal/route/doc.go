// Package route finds the rules of a Gateway API route that hold both backends of
// a rollout, says what share their weights give to the canary, computes the JSON
// patch that changes it, and reads from the route's status whether the gateways
// took the route.
//
// Everything here is pure: it reads the objects that it is given, changes none of
// them, and returns values and patches for the caller to send.
package route
