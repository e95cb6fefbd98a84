// Package manifest reads a WeightedRollout from a file and does, without a
// cluster, what the API server would do with it: it refuses unknown and repeated
// fields, fills in the defaults, and checks the schema and the rules of the
// CustomResourceDefinition. It says what is wrong in the API server's own
// sentences, all of them at once, and adds a cure where those have none.
package manifest
