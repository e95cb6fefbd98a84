package cli_test

import (
	"cmp"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/internal/cli"
	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// commands lists the commands of this project, with the root.
func commands() []*cobra.Command {
	root := cli.NewCommand("v1.2.3", genericiooptions.NewTestIOStreamsDiscard())
	return append([]*cobra.Command{root}, root.Commands()...)
}

// TestHelp shows that each command explains itself and every flag of it.
func TestHelp(t *testing.T) {
	for _, cmd := range commands() {
		var args []string
		if cmd.HasParent() {
			args = append(args, cmd.Name())
		}
		r := succeed(t, append(args, "--help")...)
		for _, want := range []string{cmp.Or(cmd.Long, cmd.Short), cmd.Example} {
			if want == "" || !strings.Contains(r.out, want) {
				t.Errorf("%s --help does not say %q:\n%s", cmd.CommandPath(), want, r.out)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(r.out, "--"+f.Name) || !strings.Contains(r.out, strings.Fields(f.Usage)[0]) {
				t.Errorf("%s --help does not explain --%s", cmd.CommandPath(), f.Name)
			}
			if f.Name != "help" && !strings.HasSuffix(f.Usage, ".") {
				t.Errorf("the explanation of --%s of %s is no sentence: %q", f.Name, cmd.CommandPath(), f.Usage)
			}
		})
	}
	if got, want := succeed(t).out, succeed(t, "--help").out; got != want {
		t.Error("without a command the help is not shown")
	}
}

// TestExamples runs every example of the help in a folder that holds the samples.
func TestExamples(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sample, err := os.ReadFile(filepath.Join(root, "config", "samples", "first.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := commands()
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "config"), filepath.Join(dir, "config")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	// The cluster that diagnose looks at, and a token that kubectl has made.
	a := inCluster(t, nil)
	a.after = obeys
	if err := os.WriteFile("token", []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	written := regexp.MustCompile(`^echo '([^']*)' >(\S+)$`)
	ran := 0
	for _, cmd := range all {
		for line := range strings.Lines(cmd.Example) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if m := written.FindStringSubmatch(line); m != nil {
				if err := os.WriteFile(m[2], []byte(m[1]), 0o600); err != nil {
					t.Fatal(err)
				}
				continue
			}
			// What comes before a pipe gives the object that is in a cluster.
			if before, after, piped := strings.Cut(line, " | "); piped && strings.HasPrefix(before, "kubectl get wr ") {
				line = after
			}
			args, ours := strings.CutPrefix(line, "kubectl weightedrollout ")
			if !ours {
				t.Errorf("an example of %s is no command of this program: %s", cmd.CommandPath(), line)
				continue
			}
			ran++
			a.reset(examined(t, strings.Fields(args)))
			if r := run(t, string(sample), strings.Fields(args)...); r.code != 0 || r.out == "" {
				t.Errorf("%s: exit code %d\n%s", line, r.code, r.errOut)
			}
		}
	}
	if ran < 30 {
		t.Errorf("only %d examples were run", ran)
	}
	if _, err := os.Stat("run.svg"); err != nil {
		t.Errorf("the example with --svg wrote no picture: %v", err)
	}
}

// examined are objects that the example of a command can do something with.
func examined(t *testing.T, args []string) map[string]any {
	t.Helper()
	all := objects(t, healthyRollout, plainRoutes, steadily...)
	wr := standing(t, args[0])
	if slices.Contains(args, "--exit") || slices.Contains(args, "--wait") {
		set(wr, "Completed", "status", "outcome")
	}
	all[rolloutPath] = wr
	return all
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := succeed(t, "completion", shell); !strings.Contains(r.out, "kubectl-weightedrollout") {
			t.Errorf("completion %s does not name the program", shell)
		}
	}
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{""}, []string{"completion", "diagnose", "plan", "simulate", "version", "get", "status", "watch", "history", "events", "lint", "abort", "approve"}},
		{[]string{"get", "-o", ""}, []string{"wide", "json", "yaml", "name", "table"}},
		{[]string{"status", "--for", ""}, []string{"promoted", "completed"}},
		{[]string{"simulate", "--picker", ""}, pick.Names()},
		{[]string{"simulate", "-o", ""}, []string{"json", "yaml", "table"}},
		{[]string{"plan", "-o", "j"}, []string{"json", "yaml", "table"}},
		{[]string{"simulate", "--expect", ""}, []string{"Promoted", "RolledBack", "AwaitingApproval"}},
		{[]string{"plan", "--name", ""}, nil},
		{[]string{"simulate", "--name", ""}, nil},
		{[]string{"diagnose", ""}, nil},
		{[]string{"diagnose", "--namespace", ""}, nil},
		{[]string{"plan", "--"}, []string{"--rps", "--strict", "--error-percent", "--width"}},
	} {
		r := succeed(t, append([]string{"__complete"}, test.args...)...)
		var offered []string
		for line := range strings.Lines(r.out) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			offered = append(offered, word)
		}
		if len(test.want) == 0 && !slices.Equal(offered, []string{":4"}) { // no file
			t.Errorf("after %q there are offers, %v", test.args, offered)
		}
		for _, want := range test.want {
			if !slices.Contains(offered, want) {
				t.Errorf("after %q, %s is not offered, only %v", test.args, want, offered)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	if got := succeed(t, "version").out; !strings.HasPrefix(got, "kubectl-weightedrollout v1.2.3 (go1.") {
		t.Errorf("version is %q", got)
	}
}

// TestCompletionOfNames: names come from the cluster, and nothing does where that cannot
// be asked.
func TestCompletionOfNames(t *testing.T) {
	offers := func(args ...string) string {
		return succeed(t, append([]string{"__complete"}, args...)...).out
	}
	other := object(t, strings.ReplaceAll(healthyRollout, "checkout", "search"))
	a := inCluster(t, map[string]any{
		rolloutPath: object(t, healthyRollout), rolloutsPath + "/search": other,
		"/api/v1/namespaces": map[string]any{"items": []any{map[string]any{"metadata": map[string]any{"name": "shop"}}}},
	})
	for _, verb := range []string{"get", "status", "watch", "history", "events", "diagnose", "abort", "approve", "pause"} {
		if got := offers(verb, ""); !strings.Contains(got, "checkout\n") || !strings.Contains(got, "search\n") || !strings.HasSuffix(got, ":4\n") {
			t.Errorf("%s offers %q", verb, got)
		}
		if got := offers(verb, "checkout", ""); got != ":4\n" {
			t.Errorf("after the name %s offers %q", verb, got)
		}
	}
	if got := offers("status", "--namespace", ""); got != "shop\n:4\n" {
		t.Errorf("the namespaces are %q", got)
	}
	if got := offers("status", "--context", ""); got != "fake\nother\n:4\n" {
		t.Errorf("the contexts are %q", got)
	}
	a.reset(map[string]any{rolloutsPath: failure(http.StatusForbidden, metav1.StatusReasonForbidden, "you may not")})
	if got := offers("status", ""); got != ":4\n" {
		t.Errorf("without the right it offers %q", got)
	}
}
