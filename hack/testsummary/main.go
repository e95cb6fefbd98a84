// Command testsummary reads what "go test -json" prints and shows it to a
// person: a line for each package as it ends, the output of what failed, a sign
// of life when nothing has ended for a while, and at the end how many tests
// passed, failed and were skipped, with the reason of each skip. Packages whose
// path contains the -stream text show their output as it comes.
//
// With -cases it also counts which of the numbered cases of a document have a test.
//
// It exits with 1 if a test failed, a package did not build or did not end, no test ran
// at all, or a case has no test that passed.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// quiet is how long nothing may be printed before a sign of life is.
const quiet = 30 * time.Second

func main() {
	stream := flag.String("stream", "", "show the output of packages whose path contains this as it comes")
	casesIn := flag.String("cases", "", "count the tests of the cases that this document numbers, and fail if one has none that passed")
	flag.Parse()

	// go test gets the terminal's Ctrl-C itself; what it still prints counts.
	signal.Ignore(os.Interrupt)

	s := newSummary(os.Stdout, *stream)
	if *casesIn != "" {
		var err error
		if s.cases, err = readCases(*casesIn); err != nil {
			fmt.Fprintln(os.Stderr, "testsummary:", err)
			os.Exit(1)
		}
	}
	follow(s, readLines(os.Stdin))
	if !s.finish() {
		os.Exit(1)
	}
}

// readLines sends each line of r, without its end, and closes the channel at
// the end of r.
func readLines(r io.Reader) <-chan []byte {
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// follow feeds the lines to s until they end, with a sign of life in between.
func follow(s *summary, lines <-chan []byte) {
	start := time.Now()
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return
			}
			if s.line(line) {
				timer.Reset(quiet)
			}
		case <-timer.C:
			fmt.Fprintf(s.out, "... %d s: %s\n", int(time.Since(start).Seconds()), s.doing())
			timer.Reset(quiet)
		}
	}
}
