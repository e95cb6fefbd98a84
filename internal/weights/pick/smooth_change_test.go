package pick_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// What happens in mid-cycle. Each step picks and compares, then changes something.
func TestSmoothChanges(t *testing.T) {
	update := func(list ...pick.Backend) func(*pick.Smooth) error {
		return func(s *pick.Smooth) error { return s.Update(list) }
	}
	ab := func(a, b int32) func(*pick.Smooth) error { return update(backends(a, b)...) }
	type step struct {
		picks string
		then  func(*pick.Smooth) error
	}
	for _, tc := range []struct {
		name  string
		given []int32
		steps []step
	}{
		{"smaller weights of the same ratio change nothing", []int32{1000, 1000}, []step{{"A", ab(1, 1)}, {"BABABA", nil}}},
		{"larger weights of the same ratio change nothing", []int32{1, 1}, []step{{"A", ab(1_000_000, 1_000_000)}, {"BABABA", nil}}},
		{"the same weights again change nothing", []int32{5, 3, 2}, []step{{"ABCA", update(backends(5, 3, 2)...)}, {"ABACBA", nil}}},
		{"a canary raised does not catch up", []int32{99, 1}, []step{{"AAAAAAAAAA", ab(1, 1)}, {"BABABABA", nil}}},
		{"a canary lowered does not catch up", []int32{1, 1}, []step{{"A", ab(3, 1)}, {"BAAABAAABAAA", nil}}},
		{"set to 0", []int32{2, 1}, []step{{"AB", ab(2, 0)}, {"AAAA", ab(1, 1)}, {"ABABAB", nil}}},
		{"the only one left", []int32{1, 1}, []step{{"A", update(pick.Backend{Name: "A", Weight: 7})}, {"AAAA", nil}}},
		{"one comes", []int32{1}, []step{{"AAA", ab(1, 1)}, {"ABABAB", nil}}},
		{"one goes", []int32{1, 1, 1}, []step{{"AB", ab(1, 1)}, {"ABABAB", nil}}},
		{"another order", []int32{1, 1}, []step{
			{"A", update(pick.Backend{Name: "B", Weight: 1}, pick.Backend{Name: "A", Weight: 1})},
			{"AABABA", nil}, // index 0 is B now: it is B's turn, and then it is the first of equals
		}},
		{"a bad list changes nothing", []int32{3, 1}, []step{
			{"AA", func(s *pick.Smooth) error {
				if err := s.Update(backends(0, 0)); err == nil {
					return fmt.Errorf("an update without weights did not fail")
				}
				return nil
			}},
			{"BAAABA", nil},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := smooth(t, backends(tc.given...))
			for i, step := range tc.steps {
				if got := letters(s, len(step.picks)); got != step.picks {
					t.Errorf("step %d picks %s, want %s", i, got, step.picks)
				}
				if step.then == nil {
					continue
				}
				if err := step.then(s); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestSmoothHealth(t *testing.T) {
	s, err := pick.NewSmooth(backends(10, 10), 4)
	if err != nil {
		t.Fatal(err)
	}
	times := func(n int, what func(string), name string) func() {
		return func() {
			for range n {
				what(name)
			}
		}
	}
	picks := func(n int) func() { return func() { letters(s, n) } }
	for _, step := range []struct {
		name string
		do   func()
		want []int32
	}{
		{"at the start", func() {}, []int32{10, 10}},
		{"a failure lowers by weight/maxFails", times(1, s.Failed, "A"), []int32{8, 10}},
		{"a pick raises by 1", picks(1), []int32{9, 10}},
		{"up to the weight", picks(3), []int32{10, 10}},
		{"a second failure", times(1, s.Failed, "A"), []int32{8, 10}},
		{"two successes are not enough", times(2, s.Succeeded, "A"), []int32{8, 10}},
		{"a failure breaks the row", times(1, s.Failed, "A"), []int32{6, 10}},
		{"two again are not enough", times(2, s.Succeeded, "A"), []int32{6, 10}},
		{"three in a row restore", times(1, s.Succeeded, "A"), []int32{10, 10}},
		{"and forget: three failures", times(3, s.Failed, "A"), []int32{4, 10}},
		{"with the fourth it is out", times(1, s.Failed, "A"), []int32{0, 10}},
		{"late answers change nothing", func() { times(3, s.Succeeded, "A")(); s.Failed("A") }, []int32{0, 10}},
		{"nor do picks", picks(20), []int32{0, 10}},
		{"nor unknown names", func() { s.Failed("C"); s.Succeeded("C"); s.Return("C") }, []int32{0, 10}},
		{"an update does not bring it back", func() { err = s.Update(backends(20, 10)) }, []int32{0, 10}},
		{"a return brings what the failures left", times(1, s.Return, "A"), []int32{4, 10}},
		{"a second return does nothing", times(1, s.Return, "A"), []int32{4, 10}},
		{"its failures are counted anew", times(3, s.Failed, "A"), []int32{1, 10}},
		{"it climbs", picks(8), []int32{9, 10}},
		{"a new weight keeps the part, rounded down", func() { err = s.Update(backends(10, 10)) }, []int32{4, 10}},
		{"never under 1", func() { times(3, s.Failed, "B")(); err = s.Update(backends(10, 1)) }, []int32{4, 1}},
		{"at 0 failures are ignored", func() { err = s.Update(backends(10, 0)); times(9, s.Failed, "B")() }, []int32{4, 0}},
		{"from 0 with its whole weight", func() { err = s.Update(backends(10, 5)) }, []int32{4, 5}},
		{"all out", func() { times(9, s.Failed, "A")(); times(9, s.Failed, "B")() }, []int32{0, 0}},
	} {
		step.do()
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, s.Effective()); diff != "" {
			t.Fatalf("%s: effective weights (-want +got):\n%s", step.name, diff)
		}
	}
	if got := letters(s, 3); got != "---" {
		t.Errorf("all out: picks %s, want none", got)
	}
	s.Return("B")
	if got := letters(s, 3); got != "BBB" {
		t.Errorf("one back: picks %s, want BBB", got)
	}
}

// Failures while they are ignored, and a failure of the smallest weight.
func TestSmoothFailureEdges(t *testing.T) {
	s := smooth(t, backends(10, 1))
	for range 100 {
		s.Failed("A")
	}
	if diff := cmp.Diff([]int32{10, 1}, s.Effective()); diff != "" {
		t.Errorf("maxFails 0: effective weights (-want +got):\n%s", diff)
	}
	s, err := pick.NewSmooth(backends(10, 1), 100)
	if err != nil {
		t.Fatal(err)
	}
	s.Failed("A")
	s.Failed("B")
	if diff := cmp.Diff([]int32{9, 1}, s.Effective()); diff != "" {
		t.Errorf("maxFails above the weight: effective weights (-want +got):\n%s", diff)
	}
}

// One that returns is not hit by what it missed: after a long outage the picks are
// those of a fresh start, whatever the others' state.
func TestSmoothReturnHasNoBurst(t *testing.T) {
	s, err := pick.NewSmooth(backends(1, 1), 1)
	if err != nil {
		t.Fatal(err)
	}
	letters(s, 1)
	s.Failed("B")
	if got := letters(s, 50); got != "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" {
		t.Errorf("with B out: %s", got)
	}
	s.Return("B")
	if got := letters(s, 10); got != "ABABABABAB" {
		t.Errorf("after the return: %s", got)
	}
}

// Picks, answers and updates at once: no pick is of a backend that does not exist, and
// the counts of what follows are exact.
func TestSmoothConcurrentChanges(t *testing.T) {
	s, err := pick.NewSmooth(backends(5, 3, 2), 3)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 2000 {
				if i := s.Pick(0); i < -1 || i > 2 {
					t.Errorf("picked %d of 3", i)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 500 {
			if err := s.Update(backends(int32(1+i%7), 3, int32(i%3))); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for i := range 500 {
			name := string(rune('A' + i%3))
			for range i % 4 {
				s.Failed(name)
			}
			s.Succeeded(name)
			s.Return(name)
		}
	})
	wg.Wait()

	// One with other names is a fresh start.
	if err := s.Update([]pick.Backend{{Name: "x", Weight: 5}, {Name: "y", Weight: 3}, {Name: "z", Weight: 2}}); err != nil {
		t.Fatal(err)
	}
	if got := letters(s, 10); got != "ABCAABACBA" {
		t.Errorf("after a fresh start: %s", got)
	}
}
