// Command kubectl-weightedrollout is the kubectl plugin: kubectl weightedrollout.
package main

import (
	"os"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/weightedrollout/weightedrollout/internal/cli"
)

// What the program was made from. The linker sets it; commit and date (of the commit)
// for releases only.
var version, commit, date = "dev", "", ""

func main() {
	// Whatever goes wrong, a command says so itself; client-go would say it once more.
	klog.SetLogger(logr.Discard())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	if commit != "" {
		version += ", commit " + commit + ", " + date
	}
	os.Exit(cli.Main(os.Args[1:], version, streams))
}
