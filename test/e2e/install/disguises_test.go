package install

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// disguises are commands that the controller would carry out, or that look harmless, and
// are none that the policy may let an editor give.
var disguises = map[string]string{
	"an escaped letter of the verb": `{"id":"1","verb":"approv\u0065","attempt":1,"stage":0}`,
	"an escaped letter of the key":  `{"id":"1","ver\u0062":"approve","attempt":1,"stage":0}`,
	"an upper-case key":             `{"id":"1","VERB":"promote","attempt":1}`,
	"a key with a long s":           "{\"id\":\"1\",\"verb\":\"skip\",\"attempt\":1,\"\u017ftage\":0}",
	"two verbs":                     `{"id":"1","verb":"retry","verb":"promote","attempt":1}`,
	"two verbs, the other way":      `{"id":"1","verb":"promote","verb":"retry","attempt":1}`,
	"a verb before all":             `{"verb":"promote","id":"1","attempt":1}`,
	"two verbs in two cases":        `{"id":"1","verb":"retry","Verb":"promote","attempt":1}`,
	"whitespace":                    "\n\t { \"id\" :\t\"1\" ,\n\"verb\"\r\n:  \"promote\" , \"attempt\" : 1 } \n",
	"whitespace in the verb":        `{"id":"1","verb":" retry","attempt":1}`,
	"an array":                      `[{"id":"1","verb":"retry","attempt":1}]`,
	"a verb as an array":            `{"id":"1","verb":["promote"],"attempt":1}`,
	"a verb in the id":              `{"id":"\",\"verb\":\"promote","verb":"retry","attempt":1}`,
	"an unknown key":                `{"id":"1","verb":"retry","attempt":1,"x":{"verb":"promote"}}`,
	"a second object":               `{"id":"1","verb":"retry","attempt":1}{"id":"2","verb":"promote","attempt":1}`,
	"a second line":                 "{\"id\":\"1\",\"verb\":\"retry\",\"attempt\":1}\n{\"verb\":\"promote\"}",
	"a byte order mark":             "\ufeff{\"id\":\"1\",\"verb\":\"retry\",\"attempt\":1}",
	"text":                          "promote",
	"null":                          "null",
	"an open end":                   `{"id":"1","verb":"retry","attempt":1,`,
}

func TestDisguisesAreRefused(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "disguises")
	create(t, bed, plan("guarded", "disguises", required("10")...), v1alpha1.OutcomeInProgress)
	key := client.ObjectKey{Namespace: "disguises", Name: "guarded"}
	for name, text := range disguises {
		t.Run(name, func(t *testing.T) {
			expect(t, change(t.Context(), as(t, bed, editor), key, true, order(text)), disguiseRefuse)
		})
	}
	var wr v1alpha1.WeightedRollout
	if err := bed.Client.Get(t.Context(), key, &wr); err != nil || wr.Annotations[v1alpha1.CommandAnnotation] != "" {
		t.Errorf("a command came through: %q (%v)", wr.Annotations[v1alpha1.CommandAnnotation], err)
	}
}

// pattern is the regular expression of a variable of the policy, which the API server runs
// with the same library as Go's.
func pattern(t *testing.T, variable string) *regexp.Regexp {
	t.Helper()
	policy := objects(t, readFile(t, root+"/config/approval/policy.yaml"))[0]
	variables, _, err := unstructured.NestedSlice(policy.Object, "spec", "variables")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range variables {
		if v, ok := v.(map[string]any); ok && v["name"] == variable {
			text, _ := v["expression"].(string)
			_, text, _ = strings.Cut(text, "r'")
			text, _, _ = strings.Cut(text, "')")
			return regexp.MustCompile(text)
		}
	}
	t.Fatalf("the policy has no variable named %s", variable)
	return nil
}

// commandTexts are texts that look like commands: every object of up to three pairs, in
// any order and repeated, and some of them with a piece put in at any place.
func commandTexts() []string {
	pairs := []string{
		`"id":"1"`, `"id":""`, `"id":"\"`, `"ID":"2"`, `"verb":"retry"`, `"verb" : "finish"`, `"verb":"resume"`, `"verb":"approve"`, `"verb":"promote"`,
		`"verb":"skip"`, `"Verb":"promote"`, `"ver\u0062":"skip"`, `"verb":"retr\u0079"`, `"verb":["promote"]`, `"attempt":1`,
		`"stage":0`, `"stage":-1`, `"x":1`,
	}
	pieces := []string{"{", "}", ",", `"`, `\`, "[", "]", "1", "null", "'", "\n", ` {"verb":"promote"}`, `,"verb":"promote"`}
	var texts []string
	for _, a := range pairs {
		for _, b := range pairs {
			texts = append(texts, "{"+a+"}", "{"+a+","+b+"}")
			for _, c := range pairs {
				texts = append(texts, "{"+a+", "+b+" ,"+c+"}\n")
			}
		}
	}
	for _, whole := range []string{`{"id":"1","verb":"retry","attempt":1}`, `{"verb":"finish","id":"1","stage":0}`} {
		for at := range len(whole) + 1 {
			for _, piece := range pieces {
				texts = append(texts, whole[:at]+piece+whole[at:])
			}
		}
	}
	return texts
}

// TestPolicyReadsWhatTheControllerReads compares the two readers of a command: in a text that
// the policy takes for plain it finds the verb and the id that the controller finds there.
func TestPolicyReadsWhatTheControllerReads(t *testing.T) {
	plain, verbs, ids := pattern(t, "plain"), pattern(t, "verbs"), pattern(t, "spent")
	taken := map[v1alpha1.Verb]int{}
	for _, text := range commandTexts() {
		if !plain.MatchString(text) {
			continue
		}
		command := rollout.OrdersFrom(map[string]string{v1alpha1.CommandAnnotation: text}).Command
		if command == nil {
			continue
		}
		taken[command.Verb]++
		found := verbs.FindAllString(text, -1)
		if command.Verb != "" && !slices.ContainsFunc(found, func(verb string) bool { return strings.Split(verb, `"`)[3] == string(command.Verb) }) {
			t.Errorf("in %q the policy finds %v, and the controller reads %s", text, found, command.Verb)
		}
		named := ids.FindAllString(text, -1)
		if command.ID != "" && !slices.ContainsFunc(named, func(id string) bool { return strings.HasSuffix(id, `"`+command.ID+`"`) }) {
			t.Errorf("in %q the policy finds %v, and the controller reads the id %s", text, named, command.ID)
		}
	}
	for _, verb := range []v1alpha1.Verb{v1alpha1.VerbRetry, v1alpha1.VerbResume, v1alpha1.VerbFinish, v1alpha1.VerbApprove, v1alpha1.VerbPromote, v1alpha1.VerbSkip} {
		if taken[verb] == 0 {
			t.Errorf("no text with %s was taken for plain: %v; the test says nothing", verb, taken)
		}
	}
}
