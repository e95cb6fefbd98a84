package telemetry

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// skewTolerance is how far apart two clocks may be, whatever health.sampleDelay is: the
// header has whole seconds, and comes some time after it was written.
const skewTolerance = 5 * time.Second

// noteDate notes by how much the server's clock is ahead, from the Date of a reply. A
// reply without one says nothing.
func (s *server) noteDate(header http.Header) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return
	}
	// It lies within the second that begins there.
	s.ahead.Store(int64(date.Add(time.Second / 2).Sub(s.clock.Now())))
}

// skewed says that the clocks of controller and server are too far apart. The
// controller's says since when the share is confirmed, and the server's which requests
// came then: with the first one behind, requests of before would be taken for evidence.
func (e *entry) skewed() *health.Problem {
	ahead := time.Duration(e.server.ahead.Load())
	if ahead.Abs() <= max(e.config.SampleDelay, skewTolerance) {
		return nil
	}
	which := "behind"
	if ahead < 0 {
		which = "ahead of"
	}
	return &health.Problem{Reason: v1alpha1.ReasonStale, Message: fmt.Sprintf("the controller's clock is %s %s that of the metrics server %s: set them right, or health.sampleDelay above that",
		ahead.Abs().Round(time.Second), which, e.server.host)}
}
