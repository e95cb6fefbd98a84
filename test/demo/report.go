package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// outcome is the line that closes a scenario.
func (s *screen) outcome(r *result) string {
	if r.good() {
		return s.green(fmt.Sprintf("  %s ended as it should: %s", r.scenario.name, r.phase))
	}
	return s.red(fmt.Sprintf("  %s did not go as it should: %s; see below", r.scenario.name, orNone(string(r.phase))))
}

// report prints the tables of the scenarios.
func (s *screen) report(results []*result) {
	for _, r := range results {
		s.say("")
		s.say("%s", s.bold(fmt.Sprintf("%s %s: %s after %s", r.scenario.name, r.scenario.revision, r.phase, clock(r.lasted))))
		if r.phase == v1alpha1.PhaseRolledBack {
			s.paragraph("  ", r.why)
		}
		s.say("%s", s.dim("  stage    began  lasted  share on the route        measured   canary requests"))
		for _, row := range r.rows {
			s.say("  %-7s %6s %6.1fs  %-25s %8s %17.0f", row.weight, clock(row.began), row.lasted.Seconds(),
				strings.Join(row.shares, " "), measured(row.measured), row.counted.tracks[canary].requests)
		}
		s.say("  at the gateway  stable %6.0f requests, %4.0f errors", r.gateway.tracks[stable].requests, r.gateway.tracks[stable].errors)
		s.say("                  canary %6.0f requests, %4.0f errors", r.gateway.tracks[canary].requests, r.gateway.tracks[canary].errors)
		s.say("  at the client   %s", clientLine(r.client))
		if line := refusedLine(r); line != "" {
			s.say("                  %s", line)
		}
		if r.phase == v1alpha1.PhaseRolledBack {
			s.say("  the %s canary had traffic for %.1fs, at most %s of it", r.scenario.key, r.exposed.Seconds(), percent(r.highest))
		}
		for _, problem := range r.problems {
			s.paragraph("  ", "not as it should be: "+problem)
		}
		if r.busy {
			s.paragraph("  ", "stable, which nothing is wrong with, was slow at times too: this machine was too busy; run the demo again when it is not")
		}
	}
	s.say("")
	s.say("%s", s.dim("  measured: the canary's share of what the gateway counted while the route had"))
	s.say("%s", s.dim("  the stage's own share. Errors at the gateway are answers of 500 and above,"))
	s.say("%s", s.dim("  failures at the client those of 400 and above."))
}

// paragraph prints a text that may be long.
func (s *screen) paragraph(indent, text string) {
	for _, line := range wrap(text, defaultWidth-1-len(indent)) {
		s.say("%s%s", indent, line)
	}
}

func measured(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", share)
}

func clientLine(c clientCount) string {
	rate := 0.0
	if c.total() > 0 {
		rate = 100 * float64(c.failed) / float64(c.total())
	}
	return fmt.Sprintf("%d requests, %d failed (%.2f %%)", c.total(), c.failed, rate)
}

// refusedLine says why a client saw more failures than the gateway counted errors;
// empty if it did not.
func refusedLine(r *result) string {
	errors := r.gateway.tracks[stable].errors + r.gateway.tracks[canary].errors
	if r.client.refused == 0 || errors >= float64(r.client.failed) {
		return ""
	}
	return fmt.Sprintf("%d of those were answers of 4xx, which do not count", r.client.refused)
}
