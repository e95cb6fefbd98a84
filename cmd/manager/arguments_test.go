package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TestNoCommand: a word that is no command ends the flags, so that all behind it would go
// unread.
func TestNoCommand(t *testing.T) {
	tests := map[string]struct {
		args    []string
		message string
	}{
		"flags only":            {[]string{"--workers=3"}, ""},
		"an unknown command":    {[]string{"foo", "--workers=3"}, `there is no command "foo": the only one is stand-down`},
		"a command after flags": {[]string{"--workers=3", "stand-down"}, "the command stand-down comes first"},
		"a value of a switch":   {[]string{"--leader-elect", "false"}, "such as --leader-elect=false"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errOut strings.Builder
			// --version comes first: what is refused is not even asked for its version.
			code := start(append([]string{"--version"}, tc.args...), &out, &errOut)
			if tc.message == "" {
				if code != 0 || out.String() != version+"\n" || errOut.String() != "" {
					t.Errorf("exit code %d, %q, %q", code, out.String(), errOut.String())
				}
				return
			}
			if code != usageExitCode || !strings.Contains(errOut.String(), tc.message) || out.String() != "" {
				t.Errorf("exit code %d, %q, want %d and %q", code, errOut.String(), usageExitCode, tc.message)
			}
		})
	}
}

// TestStandDownRefuses runs the command as far as it comes: none of these may get so far
// as to look for a cluster.
func TestStandDownRefuses(t *testing.T) {
	tests := map[string]struct {
		args    []string
		message string
	}{
		"a word":                {[]string{"now"}, `stand-down takes flags only, not "now"`},
		"two ways":              {[]string{"--delete", "--finalizers"}, "either --delete or --finalizers"},
		"no time":               {[]string{"--timeout=0s"}, "--timeout: a wait of 0s is none: give one above 0s, such as 5m"},
		"a negative time":       {[]string{"--timeout=-1s"}, "--timeout: a wait of -1s is none"},
		"capitals":              {[]string{"--namespaces=shop,Checkout"}, `--namespaces: "Checkout" is no namespace, since it has capital letters: write checkout`},
		"nothing but a comma":   {[]string{"--namespaces=,"}, `--namespaces: "," names no namespace`},
		"a flag of the manager": {[]string{"--workers=3"}, "flag provided but not defined: -workers"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var errOut strings.Builder
			if code := standDown(tc.args, io.Discard, &errOut); code != usageExitCode || !strings.Contains(errOut.String(), tc.message) {
				t.Errorf("exit code %d, %q, want %d and %q", code, errOut.String(), usageExitCode, tc.message)
			}
		})
	}
}

func TestReadControllers(t *testing.T) {
	for list, want := range map[string][]gatewayv1.GatewayController{
		"":                              nil,
		"traefik.io/gateway-controller": {"traefik.io/gateway-controller"},
		" a.io/b/c , d.io/e,":           {"a.io/b/c", "d.io/e"},
	} {
		if got, err := readControllers(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", list, got, err, want)
		}
	}
	for _, list := range []string{"traefik", "/x", "traefik.io/", "a.io/b,c d/e", ",", " "} {
		if got, err := readControllers(list); err == nil || !strings.Contains(err.Error(), "--gateway-controllers: ") {
			t.Errorf("%q: %v, %v, want an error", list, got, err)
		}
	}
}
