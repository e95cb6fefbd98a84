// Package auditlog reads what an API server has written down about somebody's requests,
// and compares it with what roles grant: what was denied, and which right nobody used.
package auditlog

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Use is a kind of request that somebody made of the API server.
type Use struct {
	Verb string
	// Group, Resource and Subresource are empty for a request of a Path.
	Group, Resource, Subresource string
	// Path of a request of something else than a resource, such as /version.
	Path string
}

// String writes it as "patch httproutes.gateway.networking.k8s.io/status".
func (u Use) String() string {
	if u.Resource == "" {
		return u.Verb + " " + u.Path
	}
	text := u.Verb + " " + u.Resource
	if u.Group != "" {
		text += "." + u.Group
	}
	if u.Subresource != "" {
		text += "/" + u.Subresource
	}
	return text
}

// Log is what the API server has written down about somebody's requests.
type Log struct {
	// Uses counts the requests of each kind.
	Uses map[Use]int
	// Denied has a line for each request that was answered 401 or 403.
	Denied []string
	// DeniedAtStart counts those that were answered so while the API server was starting:
	// it denies everything until it has read the roles.
	DeniedAtStart int
}

// Period is a time with its ends.
type Period struct{ From, To time.Time }

func (p Period) has(t time.Time) bool { return !t.Before(p.From) && !t.After(p.To) }

// Sorted returns the kinds of requests, in the order of their texts.
func (l *Log) Sorted() []Use {
	uses := make([]Use, 0, len(l.Uses))
	for use := range l.Uses {
		uses = append(uses, use)
	}
	slices.SortFunc(uses, func(x, y Use) int { return cmp.Compare(x.String(), y.String()) })
	return uses
}

// ReadFile reads the log of an API server about the requests of a user. A request that is
// under way, such as a watch, counts. The periods are those in which the API server was
// starting.
func ReadFile(path, user string, starts ...Period) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	return read(f, user, starts)
}

func read(r io.Reader, user string, starts []Period) (*Log, error) {
	log := &Log{Uses: map[Use]int{}}
	counted := map[string]bool{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return log, nil // a line without an end is being written
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if event.User.Username != user {
			continue
		}
		log.add(&event, counted, starts)
	}
}

// add counts a request once: a watch is written down when it begins and when it ends.
func (l *Log) add(event *auditv1.Event, counted map[string]bool, starts []Period) {
	use := Use{Verb: event.Verb}
	if ref := event.ObjectRef; ref != nil {
		use.Group, use.Resource, use.Subresource = ref.APIGroup, ref.Resource, ref.Subresource
	} else {
		use.Path, _, _ = strings.Cut(event.RequestURI, "?")
	}
	if counted[string(event.AuditID)] {
		return
	}
	counted[string(event.AuditID)] = true
	l.Uses[use]++
	s := event.ResponseStatus
	if s == nil || (s.Code != http.StatusUnauthorized && s.Code != http.StatusForbidden) {
		return
	}
	if slices.ContainsFunc(starts, func(p Period) bool { return p.has(event.RequestReceivedTimestamp.Time) }) {
		l.DeniedAtStart++
		return
	}
	l.Denied = append(l.Denied, fmt.Sprintf("%d %s %s: %s", s.Code, use, event.RequestURI, s.Message))
}
