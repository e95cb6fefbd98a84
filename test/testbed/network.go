package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
)

const (
	// Services get addresses 127.A.x.y, with an A per bed. The lowest 64 numbers
	// are left alone, since other software likes them.
	lowestNet, highestNet = 64, 191

	// The API server hands out addresses by itself from above the first 256 of the
	// range, so the ones below are free to be asked for by name.
	firstHost, lastHost = 10, 250

	portAttempts = 5
)

// network is a range of loopback addresses that no other bed on this machine uses.
type network struct {
	a      int
	holder io.Closer

	mu   sync.Mutex
	next int
}

// reserveNetwork picks a range at random and holds it by an abstract socket of
// that name, which the kernel frees however this process ends.
func reserveNetwork(ctx context.Context) (*network, error) {
	var listen net.ListenConfig
	for range 4 * (highestNet - lowestNet) {
		a := lowestNet + rand.IntN(highestNet-lowestNet+1)
		holder, err := listen.Listen(ctx, "unix", fmt.Sprintf("@weightedrollout-testbed-127.%d", a))
		if err == nil {
			return &network{a: a, holder: holder, next: firstHost}, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("reserving a range of loopback addresses: %w", err)
		}
	}
	return nil, errors.New("reserving a range of loopback addresses: other testbeds hold all of them")
}

func (n *network) cidr() string { return fmt.Sprintf("127.%d.0.0/16", n.a) }

// address returns an address that has not been given out before.
func (n *network) address() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next > lastHost {
		return "", fmt.Errorf("all %d addresses for services are taken", lastHost-firstHost+1)
	}
	n.next++
	return fmt.Sprintf("127.%d.0.%d", n.a, n.next-1), nil
}

func (n *network) release() error {
	if err := n.holder.Close(); err != nil {
		return fmt.Errorf("releasing the range of loopback addresses: %w", err)
	}
	return nil
}

// freePorts returns n different ports of 127.0.0.1 on which nothing listens.
func freePorts(ctx context.Context, n int) ([]int, error) {
	var listen net.ListenConfig
	ports := make([]int, 0, n)
	for range n {
		l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		// Held until all are found, so that none is found twice.
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// startOnFreePorts starts a process that listens on n ports. Between finding a
// port and listening on it somebody else may take it, so it tries again then.
func (b *Bed) startOnFreePorts(ctx context.Context, n int, build func(ports []int) command) (*Process, error) {
	for attempt := 1; ; attempt++ {
		ports, err := freePorts(ctx, n)
		if err != nil {
			return nil, err
		}
		p, err := b.start(ctx, build(ports))
		if err == nil {
			return p, nil
		}
		if attempt == portAttempts || !portTaken(err) {
			return nil, err
		}
	}
}

func portTaken(err error) bool {
	var exit *ExitError
	if !errors.As(err, &exit) {
		return false
	}
	text, readErr := os.ReadFile(exit.LogPath)
	return readErr == nil && strings.Contains(string(text), "address already in use")
}

// answersOK returns a readiness check: a GET of the URL answers 200.
func answersOK(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("asking %s: %w", url, err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, resp.Status)
		}
		return nil
	}
}
