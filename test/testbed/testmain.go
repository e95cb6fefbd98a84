package testbed

import (
	"context"
	"fmt"
	"os"
	"time"
)

// startPatience bounds the start of a bed for the tests of a package.
const startPatience = 3 * time.Minute

// RunTests starts a bed for the tests of a package, runs them, and stops it; the logs are
// kept where a test has failed. It returns the exit code, for TestMain.
func RunTests(m interface{ Run() int }, options Options, bed **Bed) int {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	started, err := Start(ctx, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "run `make test-e2e`, which builds what is needed:", err)
		return 1
	}
	*bed = started
	code := m.Run()
	if code != 0 {
		started.Keep()
		fmt.Fprintln(os.Stderr, "logs are in", started.LogDir())
	}
	if err := started.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
