// Package crd holds the CustomResourceDefinitions of this project, as they are
// generated from the API's types, so that a program can check an object by them
// without a cluster.
package crd

import "embed"

// Bases holds the generated definitions, one file each, as
// bases/<group>_<plural>.yaml.
//
//go:embed bases/*.yaml
var Bases embed.FS
