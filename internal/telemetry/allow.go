package telemetry

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Allowlist says which metrics servers may be asked. The zero value allows any.
type Allowlist struct {
	restricted bool
	entries    []allowed
}

// allowed is an entry of a list. It covers the addresses whose scheme, host and port
// are its own, and whose path begins with its path.
type allowed struct {
	place
	below bool // the host stands for every name that ends in it, and not for itself
}

// place is an address, taken apart so that two can be compared.
type place struct {
	scheme string
	host   string // lower-case name, or an IP address in its shortest form
	ip     bool
	port   uint16
	path   []string // segments
}

// ParseAllowlist reads a comma-separated list of addresses, such as
// "http://prometheus.monitoring:9090,https://*.example.com/prometheus". "*." stands
// for one or more labels of a host name, a path for everything below it, and "*"
// alone for any address. An empty text allows none. The error names the entry.
func ParseAllowlist(text string) (Allowlist, error) {
	list := Allowlist{restricted: true}
	if strings.TrimSpace(text) == "" {
		return list, nil
	}
	number := 0
	for entry := range strings.SplitSeq(text, ",") {
		number++
		entry = strings.TrimSpace(entry)
		if entry == "*" {
			list.restricted = false
			continue
		}
		a, err := parseAllowed(entry)
		if err != nil {
			// What is before an @ could be a password.
			if !strings.Contains(entry, "@") {
				err = fmt.Errorf("%q %w", entry, err)
			}
			return Allowlist{}, fmt.Errorf("entry %d: %w; write one such as http://prometheus.monitoring:9090, https://*.example.com or *", number, err)
		}
		list.entries = append(list.entries, a)
	}
	return list, nil
}

func parseAllowed(entry string) (allowed, error) {
	plain := strings.Replace(entry, "://*.", "://", 1)
	p, err := locate(plain)
	if err == nil && p.ip && plain != entry {
		err = errors.New("has a * before an IP address, which has no names below it")
	}
	return allowed{place: p, below: plain != entry}, err
}

// allows says whether a server may be asked. It must be one that locate can read:
// whatever could be read in two ways is on no list.
func (l Allowlist) allows(address string) bool {
	if !l.restricted {
		return true
	}
	p, err := locate(address)
	return err == nil && slices.ContainsFunc(l.entries, func(a allowed) bool { return a.covers(p) })
}

func (a allowed) covers(p place) bool {
	if a.scheme != p.scheme || a.port != p.port || len(p.path) < len(a.path) || !slices.Equal(a.path, p.path[:len(a.path)]) {
		return false
	}
	if a.below {
		return !p.ip && strings.HasSuffix(p.host, "."+a.host)
	}
	return a.host == p.host
}

// sameAddress says whether two addresses are the same, however they are written.
func sameAddress(a, b string) bool {
	p, err := locate(a)
	q, other := locate(b)
	return err == nil && other == nil && p.scheme == q.scheme && p.host == q.host && p.port == q.port && slices.Equal(p.path, q.path)
}

// locate takes an address apart. It refuses everything that another reader could
// take for another place: escapes, dots as segments, names that are not ASCII.
func locate(address string) (place, error) {
	u, problem := parseAddress(address)
	if problem != "" {
		return place{}, errors.New(problem)
	}
	p := place{scheme: u.Scheme}
	var err error
	if p.host, p.ip, err = hostOf(u); err != nil {
		return place{}, err
	}
	if p.port, err = portOf(u); err != nil {
		return place{}, err
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	if path == "" {
		return p, nil
	}
	p.path = strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, segment := range p.path {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, `%\*;`) {
			return place{}, errors.New("has a path with an empty segment, with . or .. as a segment, or with an escaped character, a ; or a *")
		}
	}
	return p, nil
}

// CheckAddress says what is wrong with the address of a metrics server, which has to
// be an https one if it comes with certificate authorities. The error does not repeat
// it: it could hold a password.
func CheckAddress(address string, withCA bool) error {
	u, problem := parseAddress(address)
	switch {
	case problem != "":
		return errors.New("it " + problem + ": give one such as http://prometheus.monitoring:9090")
	case withCA && u.Scheme != "https":
		return errors.New("it is no https URL, so that certificate authorities are of no use: give an https one, or no CA file")
	}
	return nil
}

// parseAddress reads the address of a metrics server. The problem says what is wrong
// with it, without repeating it: it could hold a password.
func parseAddress(address string) (u *url.URL, problem string) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, "is no http or https URL"
	case u.User != nil:
		return nil, "must not hold a user name or password"
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, "must not have a query or fragment"
	}
	return u, ""
}

func hostOf(u *url.URL) (host string, ip bool, err error) {
	host = strings.ToLower(u.Hostname())
	bracketed := strings.HasPrefix(u.Host, "[")
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" && bracketed == a.Is6() {
		return a.String(), true, nil
	}
	for label := range strings.SplitSeq(host, ".") {
		if bracketed || label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return "", false, errors.New("has a host that is neither a name of letters, digits, '-', '_' and dots nor an IP address")
		}
	}
	return host, false, nil
}

func portOf(u *url.URL) (uint16, error) {
	switch text := u.Port(); {
	case text != "":
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return 0, errors.New("has a port that is not from 1 to 65535")
		}
		return uint16(n), nil
	case u.Scheme == "https":
		return 443, nil
	}
	return 80, nil
}
