package schedule_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
)

// TestHints shows what is said of a spec that is accepted, and does not do what was meant.
func TestHints(t *testing.T) {
	const (
		enough  = `plan: {stages: [{weight: 50, soak: 30m}]`
		traefik = `Traefik takes the status of a gRPC response from its headers, or from trailers that the server announces. Of a server that announces none, such as those of grpc-go, every success comes as code 2, and the verdict stays Unknown: set preset: Pods, unless the server behind GRPCRoute "web" announces its trailers`
	)
	for name, test := range map[string]struct {
		fields string
		at     schedule.Options // what is at hand
		want   []string
	}{
		"nothing to say":       {fields: ``},
		"gRPC and Traefik":     {fields: `routes: [{name: other}, {kind: GRPCRoute, name: web}]`, want: []string{"spec.health.preset: " + traefik}},
		"gRPC and Pods":        {fields: `routes: [{kind: GRPCRoute, name: web}], health: {preset: Pods, errorRate: {maxPercent: 1}}`},
		"gRPC and Istio":       {fields: `routes: [{kind: GRPCRoute, name: web}], health: {preset: Istio, errorRate: {maxPercent: 1}}`},
		"a kind left out":      {fields: `routes: [{name: other}, {name: web}]`, at: schedule.Options{GRPCRoutes: []string{"web"}}, want: []string{`spec.routes[1].kind: "web" is a GRPCRoute in the files, and kind is HTTPRoute unless it is set: set kind: GRPCRoute`}},
		"a kind that is set":   {fields: `routes: [{kind: GRPCRoute, name: web}], health: {preset: Pods, errorRate: {maxPercent: 1}}`, at: schedule.Options{GRPCRoutes: []string{"web"}}},
		"a misspelt name":      {fields: `routes: [{name: web}, {name: wbe}]`, at: schedule.Options{Absent: []string{"wbe"}, Holders: []string{`HTTPRoute "web"`}}, want: []string{`spec.routes[1].name: no route "wbe" is in the files, and HTTPRoute "web" there holds both backends: correct the name, unless that route is none of this rollout`}},
		"routes elsewhere":     {fields: `routes: [{name: web}]`, at: schedule.Options{Absent: []string{"web"}}},
		"another one's route":  {fields: `routes: [{name: web}]`, at: schedule.Options{Holders: []string{`HTTPRoute "more"`}}},
		"one Service":          {fields: `stable: {service: web, port: 80}, canary: {service: web, port: 81}`, want: []string{`spec.canary.service: stable and canary are two ports of one Service, "web", so the same pods serve both: give the canary a Service of its own, which selects its pods only`}},
		"two namespaces":       {fields: `stable: {service: web, port: 80}, canary: {service: web, namespace: other, port: 81}`},
		"one workload":         {fields: `stable: {service: a, port: 80, workload: {name: web}}, canary: {service: b, port: 80, workload: {name: web, kind: Deployment}}`, want: []string{`spec.canary.workload: stable and canary name the same Deployment "web", so both are the same pods and of one version: name what runs the canary's pods`}},
		"two kinds":            {fields: `stable: {service: a, port: 80, workload: {name: web}}, canary: {service: b, port: 80, workload: {name: web, kind: StatefulSet}}`},
		"a difference":         {fields: `health: {preset: Traefik, errorRate: {maxPercent: 1}, checks: [{name: a, query: "1 - up", max: 1}, {name: worse, query: "canary_errors - stable_errors", max: 1}]}`, want: []string{"spec.health.checks[1].min: " + `the query of the check worse can give a value below 0, which without min says nothing (Unknown) and holds the share: set min to the lowest acceptable value, such as -1000`}},
		"a slope":              {fields: `health: {checks: [{name: heap, query: "deriv(heap_bytes[5m])", max: 1}]}`, want: []string{"spec.health.checks[0].min: " + `the query of the check heap can give a value below 0, which without min says nothing (Unknown) and holds the share: set min to the lowest acceptable value, such as -1000`}},
		"no difference":        {fields: `health: {checks: [{name: a, query: 'sum(up{job="a - b"}) / (100 - up) * 1e-3 offset -5m', max: 1}, {name: b, query: "a - b", min: -3, max: 1}, {name: c, query: "a - b", max: -1}]}`},
		"an area":              {fields: enough + `, windows: [{timeZone: Europe/Berlin}, {timeZone: America/New_York}, {timeZone: Asia/Tokyo}, {timeZone: Japan}]}`},
		"UTC":                  {fields: enough + `, windows: [{}, {timeZone: UTC}, {timeZone: Etc/UTC}, {timeZone: Etc/GMT}, {timeZone: GMT}]}`},
		"with daylight saving": {fields: enough + `, windows: [{timeZone: EST5EDT}, {timeZone: CET}]}`},
		"abbreviations": {fields: enough + `, windows: [{timeZone: UTC}, {timeZone: EST}, {timeZone: MST}, {timeZone: HST}]}`, want: []string{
			"spec.plan.windows[1].timeZone: EST is 5 hours behind UTC all year, without daylight saving: write the area that is meant, such as America/New_York",
			"spec.plan.windows[2].timeZone: MST is 7 hours behind UTC all year, without daylight saving: write the area that is meant, such as America/Denver",
			"spec.plan.windows[3].timeZone: HST is 10 hours behind UTC all year, without daylight saving: write the area that is meant, such as Pacific/Honolulu",
		}},
		"an inverted sign": {fields: enough + `, windows: [{timeZone: Etc/GMT+5}, {timeZone: Etc/GMT-1}]}`, want: []string{
			"spec.plan.windows[0].timeZone: Etc/GMT+5 is 5 hours behind UTC all year, without daylight saving, and its sign is the other way round than in UTC+1: write the area that is meant, such as America/New_York, or Asia/Karachi if 5 hours ahead of UTC is meant",
			"spec.plan.windows[1].timeZone: Etc/GMT-1 is 1 hour ahead of UTC all year, without daylight saving, and its sign is the other way round than in UTC+1: write the area that is meant, such as Europe/Berlin, or Atlantic/Azores if 1 hour behind UTC is meant",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range scheduled(t, test.fields, test.at).Warnings {
				got = append(got, w.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var named = regexp.MustCompile(`[A-Z][a-z]+/[A-Z][A-Za-z_]+`)

// TestSuggestedAreas shows that the area named for an offset is as far from UTC, apart
// from daylight saving.
func TestSuggestedAreas(t *testing.T) {
	suggested := 0
	for hours := -14; hours <= 12; hours++ {
		if hours == 0 {
			continue
		}
		zone := fmt.Sprintf("Etc/GMT%+d", hours)
		warnings := scheduled(t, `plan: {stages: [{weight: 50, soak: 30m}], windows: [{timeZone: `+zone+`}]}`, schedule.Options{}).Warnings
		if len(warnings) != 1 {
			t.Fatalf("of %s it says %v", zone, warnings)
		}
		_, cure, _ := strings.Cut(warnings[0].Message, ": write")
		meant, reversed, _ := strings.Cut(cure, ", or ")
		for text, want := range map[string]int{meant: -hours, reversed: hours} {
			for _, area := range named.FindAllString(text, -1) {
				suggested++
				at, err := time.LoadLocation(area)
				if err != nil {
					t.Fatal(err)
				}
				_, january := time.Date(2026, 1, 1, 0, 0, 0, 0, at).Zone()
				_, july := time.Date(2026, 7, 1, 0, 0, 0, 0, at).Zone()
				if got := min(january, july); got != want*3600 {
					t.Errorf("%s: %s is %d seconds ahead of UTC, want %d hours", zone, area, got, want)
				}
			}
		}
	}
	if suggested < 40 {
		t.Errorf("only %d areas were suggested", suggested)
	}
}
