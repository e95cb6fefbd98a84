package route_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// corpusHead is the first document of a file of the corpus; the route is the second.
type corpusHead struct {
	// About says what the route is an example of.
	About string `json:"about"`
	// Stable and Canary are the pair, where it is not the one of the examples.
	Stable *corpusTrack `json:"stable,omitempty"`
	Canary *corpusTrack `json:"canary,omitempty"`
	// RuleNames are the rules that the rollout names.
	RuleNames []string `json:"ruleNames,omitempty"`
	// Managed and Refused are what has to be found.
	Managed []holding `json:"managed,omitempty"`
	Refused string    `json:"refused,omitempty"`
}

type corpusTrack struct {
	Service   string `json:"service"`
	Namespace string `json:"namespace,omitempty"`
	Port      int32  `json:"port"`
}

func (c *corpusTrack) or(b route.Backend) route.Backend {
	if c == nil {
		return b
	}
	return route.Backend{Namespace: c.Namespace, Service: c.Service, Port: c.Port}
}

// corpus reads every route of testdata/corpus by the name of its file.
func corpus(t *testing.T) map[string]sample {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	samples := map[string]sample{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, body, found := bytes.Cut(text, []byte("\n---\n"))
		var h corpusHead
		if err := yaml.UnmarshalStrict(head, &h); err != nil || !found || h.About == "" {
			t.Fatalf("%s has no head: %v", file, err)
		}
		samples[strings.TrimSuffix(filepath.Base(file), ".yaml")] = sample{
			doc:  asStored(t, document(t, string(body))),
			pair: route.Pair{Stable: h.Stable.or(pair.Stable), Canary: h.Canary.or(pair.Canary)}, ruleNames: h.RuleNames,
			managed: h.Managed, refused: h.Refused,
		}
	}
	return samples
}

// asStored gives a document the resourceVersion that everything stored has.
func asStored(t *testing.T, doc []byte) []byte {
	t.Helper()
	top, _ := tree(t, doc).(map[string]any)
	metadata, ok := top["metadata"].(map[string]any)
	if !ok {
		t.Fatalf("no metadata: %s", doc)
	}
	metadata["resourceVersion"] = "7"
	stored, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// Every route of the corpus goes through a whole run, a rollback from every share and a
// release from every share, and nothing differs afterwards but what is ours.
func TestCorpus(t *testing.T) {
	samples := corpus(t)
	kinds := map[string]int{}
	for name, s := range samples {
		kind, _, _ := strings.Cut(name, "-")
		kinds[kind]++
		t.Run(name, func(t *testing.T) {
			if got := strings.ToLower(string(decode(t, s.doc).Kind)); got != kind+"route" {
				t.Fatalf("the file holds a %s", got)
			}
			t.Parallel()
			if writes := s.walk(t, finer); (writes == 0) != (s.refused != "" || name == cutOff) {
				t.Errorf("raised %d times, refused: %q", writes, s.refused)
			}
		})
	}
	if kinds["http"] < 20 || kinds["grpc"] < 10 {
		t.Errorf("the corpus is not whole: %v", kinds)
	}
}

// cutOff is the route whose weights have to be changed by hand before any raise.
const cutOff = "http-pair-cut-off"

// A route that is refused can be lowered where it can be managed, and nowhere else: no
// weight of any canary rises whatever lower share is written.
func TestCorpusOfRefusedRoutes(t *testing.T) {
	refused := 0
	for name, s := range corpus(t) {
		if s.refused == "" {
			continue
		}
		refused++
		low, _ := route.Inspect(decode(t, s.doc), s.ruleNames, s.pair).Observed()
		for _, share := range []weights.Share{weights.ShareNone, low / 2, low} {
			written := s.write(t, s.doc, share)
			before, after := s.weightsIn(t, s.doc), s.weightsIn(t, written)
			for n := range s.managed {
				was, is := before[n], after[n]
				if is.canary*(was.stable+was.canary) > was.canary*(is.stable+is.canary) {
					t.Errorf("%s: at %s the canary rises from %+v to %+v", name, share, was, is)
				}
			}
		}
	}
	if refused < 5 {
		t.Errorf("only %d routes are refused", refused)
	}
}
