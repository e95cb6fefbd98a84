package diagnose

import (
	"strings"
	"testing"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// atTwenty is a rollout at 20 percent.
func atTwenty(change ...func(*Input)) Input {
	in := Input{
		Desired: 2000, Begun: true, Confirmed: true,
		Rules:   []Rule{{Where: "HTTPRoute shop/web, rule 0", Stable: 80, Canary: 20, AsDesired: true}},
		Traffic: Traffic{Counted: true, Canary: 200, Stable: 800},
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

func counted(canary, stable int64) func(*Input) {
	return func(in *Input) { in.Traffic = Traffic{Counted: true, Canary: canary, Stable: stable} }
}

func status(status, message string, observed weights.Share) func(*Input) {
	return func(in *Input) {
		in.Traffic = Traffic{}
		in.Reported = Reported{Status: status, Message: message, Observed: observed, FromRequests: observed > 0}
	}
}

// text is all that a finding says.
func text(f Finding) string {
	lines := []string{f.Question, f.Says}
	for _, n := range f.Numbers {
		lines = append(lines, n.What+": "+n.Value)
	}
	for _, r := range f.Remedies {
		lines = append(lines, "cause: "+r.Cause, "cure: "+r.Cure)
	}
	return strings.Join(lines, "\n")
}

func TestRequests(t *testing.T) {
	elsewhere := func(in *Input) {
		in.Elsewhere = []Elsewhere{{Where: "HTTPRoute shop/api, rule 0", Stable: 1, Canary: 1}}
	}
	for name, c := range map[string]struct {
		in   Input
		want Verdict
		says []string
		not  string
	}{
		"as the weights say": {atTwenty(), OK, []string{"800 requests / weight 80 = 10 each", "200 requests / weight 20 = 10 each", "13.7% to 26.9%"}, "cause"},
		"too few":            {atTwenty(counted(20, 80)), CannotTell, []string{"about 330"}, "cause"},
		"ignored":            {atTwenty(counted(500, 500)), Problem, []string{"one request in two", "the canary has 50% of the requests, and 20% of the weight"}, ""},
		"all to stable":      {atTwenty(counted(0, 500)), Problem, []string{"one track gets every request", "more specific match"}, "one request in two"},
		"something else":     {atTwenty(counted(300, 700)), Problem, []string{"another of its replicas"}, "one request in two"},
		"elsewhere, and ok":  {atTwenty(elsewhere), OK, []string{"HTTPRoute shop/api, rule 0, which the rollout does not manage"}, "cause"},
		"elsewhere":          {atTwenty(counted(300, 700), elsewhere), Problem, []string{"cause: HTTPRoute shop/api, rule 0 sends requests to the same Services"}, ""},
		"sticky":             {atTwenty(counted(300, 700), func(in *Input) { in.Rules[0].Sticky = true }), Problem, []string{"remove sessionPersistence"}, ""},
		"not begun":          {Input{}, CannotTell, []string{"no share yet"}, "cause"},
		"no rule":            {atTwenty(func(in *Input) { in.Rules = nil }), CannotTell, []string{"no rule"}, "cause"},
		"not confirmed":      {atTwenty(func(in *Input) { in.Confirmed = false }), CannotTell, []string{"have not confirmed the share of 20%"}, "cause"},
		"other weights":      {atTwenty(func(in *Input) { in.Rules[0] = Rule{Where: "it", Stable: 1, Canary: 1} }), Problem, []string{"the weights in it are not those of the share, 20%", "writes 1 and 1"}, ""},
		"the status is well": {atTwenty(status("True", "all is well", 2100)), OK, []string{"the status says so: all is well", "21% of the requests, by the status"}, "cause"},
		"the status is not":  {atTwenty(status("False", "all is lost", 5000)), Problem, []string{"the status says no: all is lost", "one request in two"}, ""},
		"nobody can tell":    {atTwenty(status("Unknown", "who knows", 0)), CannotTell, []string{"who knows"}, "cause"},
		"nobody says":        {atTwenty(status("", "", 0)), CannotTell, []string{"the requests are not known"}, "cause"},
		"why not":            {atTwenty(func(in *Input) { in.Traffic = Traffic{Why: "no preset"} }), CannotTell, []string{"no preset"}, "cause"},
		// Beside a third backend 1 percent of 150 is a weight of 1, which stands for 0.66.
		"rounded weights": {
			atTwenty(counted(667, 99_333), func(in *Input) {
				in.Desired, in.Rules[0] = 100, Rule{Where: "it", Stable: 149, Canary: 1, AsDesired: true}
			}),
			OK, []string{"0.67% of the requests; 0.66% by weight", "667 requests / weight 1 = 667 each"}, "cause",
		},
		"rules with other sums": {
			atTwenty(func(in *Input) {
				in.Rules = append(in.Rules, Rule{Where: "it", Stable: 25, Canary: 6, AsDesired: true})
			}),
			OK, []string{"800 requests / percent 80 = 10 each"}, "cause",
		},
		"at 0 percent": {
			atTwenty(counted(0, 5000), func(in *Input) { in.Desired, in.Rules[0].Stable, in.Rules[0].Canary = 0, 100, 0 }),
			OK, []string{"0 requests / weight 0 = no request is due"}, "cause",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := Requests(c.in)
			if f.Verdict != c.want {
				t.Errorf("verdict %s, want %s", f.Verdict, c.want)
			}
			for _, want := range c.says {
				if !strings.Contains(text(f), want) {
					t.Errorf("%q is not in\n%s", want, text(f))
				}
			}
			if c.not != "" && strings.Contains(text(f), c.not) {
				t.Errorf("%q is in\n%s", c.not, text(f))
			}
			if (f.Verdict == Problem) != (len(f.Remedies) > 0) {
				t.Errorf("verdict %s with %d remedies", f.Verdict, len(f.Remedies))
			}
		})
	}
}
