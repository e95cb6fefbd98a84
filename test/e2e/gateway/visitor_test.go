package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// answeredBy is the header in which a front says whom it stands for.
const answeredBy = "X-Answered-By"

// visiting is how visitors travel: they keep their connections, and follow no redirect.
var visiting = &http.Transport{MaxIdleConnsPerHost: 64}

// visitor asks for the same page, one request after the other, and notes each answer:
// the status, and who gave it.
type visitor struct {
	shop *shop
	path string

	mu      sync.Mutex
	answers []string
}

// visit sends a visitor to a path of the service until the test ends. He waits for each
// answer, and for a moment between two requests.
func (s *shop) visit(path string, pause time.Duration, header http.Header) *visitor {
	s.t.Helper()
	v := &visitor{shop: s, path: path}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(pause)
		defer ticker.Stop()
		for ctx.Err() == nil {
			answer := s.answer(ctx, path, header)
			if ctx.Err() != nil {
				return
			}
			v.mu.Lock()
			v.answers = append(v.answers, answer)
			v.mu.Unlock()
			<-ticker.C
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
	return v
}

// answer sends one request through the gateway: "200 web-stable", or "302 http://…".
func (s *shop) answer(ctx context.Context, path string, header http.Header) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, bed.Gateway.URL+path, nil)
	if err != nil {
		return err.Error()
	}
	req.Host = s.host
	maps.Copy(req.Header, header)
	resp, err := visiting.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	var info struct{ Message string }
	if resp.StatusCode == http.StatusOK {
		if err := json.NewDecoder(resp.Body).Decode(&info); err != nil {
			return err.Error()
		}
	}
	who := resp.Header.Get(answeredBy) + resp.Header.Get("Location")
	if who == "" {
		who = info.Message
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, who)
}

func (v *visitor) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.answers)
}

// tally counts the answers from one on.
func (v *visitor) tally(from int) map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return countAnswers(v.answers[max(0, from):])
}

// next waits for so many further answers, and counts them.
func (v *visitor) next(answers int) map[string]int {
	v.shop.t.Helper()
	from := v.count()
	v.shop.eventually(fmt.Sprintf("%d answers of %s", answers, v.path), func() (bool, string) {
		return v.count() >= from+answers, fmt.Sprint(v.count() - from)
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	return countAnswers(v.answers[from : from+answers])
}

// sees waits until the last so many answers are divided as wanted, to within two points.
func (v *visitor) sees(answers int, want map[string]float64) {
	v.shop.t.Helper()
	v.shop.eventually(fmt.Sprintf("%s is answered by %v", v.path, want), func() (bool, string) {
		last := v.tally(v.count() - answers)
		ok := v.count() >= answers
		for _, answer := range slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(last))) {
			off := float64(last[answer])*100/float64(answers) - want[answer]
			ok = ok && off >= -2 && off <= 2 && (want[answer] > 0 || last[answer] == 0)
		}
		return ok, fmt.Sprint(last)
	})
}

// only checks that the visitor has had no other answers than these, from one on.
func (v *visitor) only(from int, answers ...string) {
	v.shop.t.Helper()
	all := v.tally(from)
	if len(all) == 0 {
		v.shop.t.Errorf("%s: no answer at all", v.path)
	}
	for answer, times := range all {
		if !slices.Contains(answers, answer) {
			v.shop.t.Errorf("%s: %d answers %q, want %q only", v.path, times, answer, answers)
		}
	}
}

func countAnswers(answers []string) map[string]int {
	counted := map[string]int{}
	for _, answer := range answers {
		counted[answer]++
	}
	return counted
}
