package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	// beatEvery is how often a page is told that there is nothing new, so that it can tell
	// silence from a dead connection.
	beatEvery = 5 * time.Second
	// tellEvery is the shortest pause between two messages to one page.
	tellEvery = 200 * time.Millisecond
	// writePatience bounds a write to a page that does not read.
	writePatience = 10 * time.Second
)

// Hello is the first message to a page.
type Hello struct {
	Now     time.Time `json:"now"`
	Began   time.Time `json:"began"`
	Scope   string    `json:"scope"`
	Actions bool      `json:"actions"`
}

// Rows are those that are new or have changed. Reset says that there are no others.
type Rows struct {
	Reset bool     `json:"reset"`
	Rows  []Row    `json:"rows"`
	Gone  []string `json:"gone"`
}

// stream tells a page of all rollouts, and in detail of one, until either side ends it.
// Messages are server-sent events (WHATWG HTML, section 9.2) of JSON.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if s.streams.Add(1) > mostStreams {
		s.streams.Add(-1)
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already: close one", mostStreams))
		return
	}
	defer s.streams.Add(-1)
	p := s.hub.open()
	defer s.hub.close(p)
	v := &viewer{server: s, page: p, out: w, control: http.NewResponseController(w), looksAt: r.URL.Query().Get("rollout"), finds: -1}
	if v.looksAt != "" {
		v.lookout = s.lookouts.join(s.life, v.looksAt, p)
		defer s.lookouts.leave(v.lookout, p)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	// The stream has no end of its own: the deadline for reading the request is over.
	if v.control.SetReadDeadline(time.Time{}) != nil ||
		v.send("hello", Hello{Now: s.options.Now().UTC(), Began: s.began, Scope: s.options.Scope, Actions: s.options.Orders != nil}) != nil {
		return
	}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-s.life.Done():
			return
		case <-beat.C:
			err = v.send("beat", map[string]time.Time{"now": s.options.Now().UTC()})
		case <-p.wake:
			err = v.tell()
			rest(r.Context(), tellEvery, nil)
		}
		if err != nil {
			return
		}
	}
}

// viewer is a page that is open.
type viewer struct {
	server  *Server
	page    *page
	out     http.ResponseWriter
	control *http.ResponseController

	looksAt string
	lookout *lookout
	state   *State
	// finds is how much of what the lookout has found was sent; -1: nothing yet.
	finds int
}

// tell sends what is new.
func (v *viewer) tell() error {
	n := v.server.hub.read(v.page)
	if v.state == nil || v.state.Synced != n.state.Synced || v.state.Behind != n.state.Behind {
		v.state = &n.state
		if err := v.send("state", n.state); err != nil {
			return err
		}
	}
	if n.reset || len(n.rows)+len(n.gone) > 0 {
		message := Rows{Reset: n.reset, Rows: []Row{}, Gone: append([]string{}, n.gone...)}
		for _, wr := range n.rows {
			message.Rows = append(message.Rows, rowOf(wr, v.server.options.Now()))
		}
		if err := v.send("rows", message); err != nil {
			return err
		}
	}
	if v.lookout == nil || !n.state.Synced {
		return nil
	}
	found, finds := v.server.lookouts.look(v.lookout)
	_, touched := n.touched[v.looksAt]
	if touched || n.reset {
		v.lookout.stir()
	} else if finds == v.finds {
		return nil
	}
	v.finds = finds
	return v.send("detail", v.detail(found))
}

// detail is what the page looks at.
func (v *viewer) detail(found findings) Detail {
	wr, seen := v.server.hub.find(v.looksAt)
	if wr == nil {
		return Detail{Row: Row{Key: v.looksAt}, Missing: true}
	}
	d := detailOf(wr, seen, found, v.server.options.Now())
	d.Orders = v.server.ordersFor(wr)
	return d
}

// ordersFor are the orders that make sense now.
func (s *Server) ordersFor(wr *v1alpha1.WeightedRollout) []Order {
	sensible := []Order{}
	if s.options.Orders == nil {
		return sensible
	}
	for _, o := range s.options.Orders.For(wr) {
		if o.Refusal == "" {
			sensible = append(sensible, o)
		}
	}
	return sensible
}

func (v *viewer) send(event string, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	var message bytes.Buffer
	fmt.Fprintf(&message, "event: %s\ndata: %s\n\n", event, data) // JSON has no line breaks
	if err := v.control.SetWriteDeadline(time.Now().Add(writePatience)); err != nil {
		return err
	}
	if _, err := v.out.Write(message.Bytes()); err != nil {
		return err
	}
	return v.control.Flush()
}
