package testcluster

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
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

// Audit is what the API server has written down about somebody's requests.
type Audit struct {
	// Uses counts the requests of each kind.
	Uses map[Use]int
	// Denied has a line for each request that was answered 401 or 403.
	Denied []string
	// DeniedAtStart counts those that were answered so while the API server was starting:
	// it denies everything until it has read the roles.
	DeniedAtStart int
}

// period is from when to when the API server was starting.
type period struct{ from, to time.Time }

func (p period) has(t time.Time) bool { return !t.Before(p.from) && !t.After(p.to) }

// Sorted returns the kinds of requests, in the order of their texts.
func (a *Audit) Sorted() []Use {
	uses := make([]Use, 0, len(a.Uses))
	for use := range a.Uses {
		uses = append(uses, use)
	}
	slices.SortFunc(uses, func(x, y Use) int { return cmp.Compare(x.String(), y.String()) })
	return uses
}

func (c *Cluster) auditPath() string { return filepath.Join(c.LogDir(), "audit.log") }

// Audit reads what the API server has written down about the requests of a service
// account. A request that is under way, such as a watch, counts.
func (c *Cluster) Audit(namespace, serviceAccount string) (*Audit, error) {
	f, err := os.Open(c.auditPath())
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	return readAudit(f, "system:serviceaccount:"+namespace+":"+serviceAccount, c.starts)
}

func readAudit(log io.Reader, user string, starts []period) (*Audit, error) {
	audit := &Audit{Uses: map[Use]int{}}
	counted := map[string]bool{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return audit, nil // a line without an end is being written
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
		audit.add(&event, counted, starts)
	}
}

// add counts a request once: a watch is written down when it begins and when it ends.
func (a *Audit) add(event *auditv1.Event, counted map[string]bool, starts []period) {
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
	a.Uses[use]++
	s := event.ResponseStatus
	if s == nil || (s.Code != http.StatusUnauthorized && s.Code != http.StatusForbidden) {
		return
	}
	if slices.ContainsFunc(starts, func(p period) bool { return p.has(event.RequestReceivedTimestamp.Time) }) {
		a.DeniedAtStart++
		return
	}
	a.Denied = append(a.Denied, fmt.Sprintf("%d %s %s: %s", s.Code, use, event.RequestURI, s.Message))
}
