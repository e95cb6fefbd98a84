package yamltext_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/internal/manifest/yamltext"
)

// documents lists the JSON of a text's documents, and what is repeated in them.
func documents(t *testing.T, text string) (all, repeated []string) {
	t.Helper()
	found, err := yamltext.Documents([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%.300s", err, text)
	}
	for _, d := range found {
		all = append(all, string(d.JSON))
		repeated = append(repeated, d.Repeated...)
	}
	return all, repeated
}

func TestDocuments(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"comments only", "# a\n---\n# b\n...\n", nil},
		{"two", "a: 1\n---\nb: 2\n", []string{`{"a":1}`, `{"b":2}`}},
		{"on the line of the dashes", "---\t {a: 1}\n--- # here\nb: 2", []string{`{"a":1}`, `{"b":2}`}},
		{"dashes within a text", "a: |\n  ---\n  b\nc: ---d\n", []string{`{"a":"---\nb\n","c":"---d"}`}},
		{"null", "null\n---\n~", nil},
		{"JSON objects", "{\"a\":\t1}\n{\"b\": 2}", []string{"{\"a\":\t1}", `{"b": 2}`}},
		{"a byte order mark and Windows line ends", "\ufeffa: 1\r\n---\r\nb: 2\r\n", []string{`{"a":1}`, `{"b":2}`}},
		{"an anchor", "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}", []string{`{"a":{"b":1},"c":{"b":1},"d":{"b":1,"e":2}}`}},
		{"as many as there may be", strings.Repeat("a: 1\n---\n", yamltext.MaxDocuments-1), slicesOf(`{"a":1}`, yamltext.MaxDocuments-1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, repeated := documents(t, test.text)
			if diff := cmp.Diff(test.want, got); diff != "" || len(repeated) > 0 {
				t.Errorf("repeated %q, documents (-want +got):\n%s", repeated, diff)
			}
		})
	}
}

func slicesOf(text string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = text
	}
	return all
}

func TestRepeated(t *testing.T) {
	const anchors = "m: &m {weight: 1, soak: 5m}\no: &o {<<: *m}\n"
	for _, test := range []struct{ text, json, repeated string }{
		{"a: {b: 1, c: 2}\nd: {b: 1}", `{"a":{"b":1,"c":2},"d":{"b":1}}`, ""},
		{"x: 1\n---\n\na: 1\nb: 2\na: 3", `{"a":3,"b":2}`, `line 6: key "a" already set in map`},
		{"a:\n- {b: 1,\n   b: 2}", `{"a":[{"b":2}]}`, `line 3: key "b" already set in map`},
		{"1: a\n\"1\": b", "", `line 2: key "1" already set in map`},
		{anchors + "s: {<<: *m, weight: 10}", `"s":{"soak":"5m","weight":10}}`, ""},
		{anchors + "s: {<<: [*m, {weight: 7, extra: 1}], weight: 10}", `"s":{"extra":1,"soak":"5m","weight":10}}`, ""},
		{anchors + "s: {<<: *m, weight: 10, weight: 11}", `"weight":11}}`, `line 3: key "weight" already set in map`},
		{anchors + "s: {weight: 10, <<: *m}", "", `line 3: key "weight" comes again by the merge key "<<": write "<<" before the mapping's own keys`},
		{anchors + "s: {weight: 10, <<: [{}, *o]}", "", `line 3: key "weight" comes again by the merge key "<<"`},
		{anchors + "s: {extra: 10, <<: *o}", `"s":{"extra":10,"soak":"5m","weight":1}}`, ""},
		{anchors + "s: {<<: *m, <<: *o}", "", `line 3: key "<<" already set in map`},
	} {
		t.Run(test.text, func(t *testing.T) {
			all, repeated := documents(t, test.text)
			if got := all[len(all)-1]; !strings.HasSuffix(got, test.json) {
				t.Errorf("got %s, want it to end with %s", got, test.json)
			}
			if got := strings.Join(repeated, "\n"); !strings.HasPrefix(got, test.repeated) || (test.repeated == "") != (got == "") {
				t.Errorf("repeated: %q, want %q", got, test.repeated)
			}
		})
	}
}

// TestDocumentsFails shows that an error names the line of the text, and stays short.
func TestDocumentsFails(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	laughs := "a0: &a0 lol\n"
	for i := range 60 {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	const tooMany, tooLong = "there are more than 1000 documents", "with its aliases followed the text is longer than 3 MiB"
	for _, test := range []struct{ name, text, want string }{
		{"no YAML", "a: 1\n---\nb: [1\nc: 2\n", "no valid YAML: line 3: did not find expected ',' or ']'"},
		{"no YAML, and an alias", "a: &a 1\nb: *a\nc: [1\nd: 2\n", "did not find expected ',' or ']'"},
		{"a key that is a list", "---\n\n? [1]\n: 2", "no valid YAML: invalid map key"},
		{"an anchor in itself", "a: &a [*a]", "no valid YAML: the anchor a contains itself"},
		{"a merge of itself", "a: &a {b: 1, <<: *a}", "no valid YAML: the anchor a contains itself"},
		{"a merge of a text", "a: {<<: 1}", "no valid YAML: map merge requires map"},
		{"an unknown anchor with a long name", "a: *" + long, "no valid YAML: unknown anchor 'xxx"},
		{"too deep", strings.Repeat("[", 1<<20), "no valid YAML: exceeded max depth"},
		{"JSON that ends too early", `{"a":1} {"b":`, "no valid JSON after byte 7: unexpected EOF"},
		{"20,000 separators", strings.Repeat("---\n", 20_000), tooMany},
		{"nothing but separators", strings.Repeat("...\n", yamltext.MaxBytes/4), tooMany},
		{"many JSON objects", strings.Repeat("{}", yamltext.MaxDocuments+1), tooMany},
		{"a long anchor, used often", "a: &a " + long[:1000] + "\nb: [" + strings.Repeat("*a,", 100_000) + "]", tooLong},
		{"anchors of anchors", laughs, tooLong},
		{"merges of merges", strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(laughs, "[", "{<<: ["), "]", "]}"), "lol", "{b: 1}"), tooLong},
		{"a little too much in each document", strings.Repeat("a: &a "+long[:1000]+"\nb: ["+strings.Repeat("*a,", 100)+"]\n---\n", 50), tooLong},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := yamltext.Documents([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %d documents, error %v, want an error with %q", len(got), err, test.want)
			}
			if n := len(err.Error()); n > 700 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
}

// TestDocumentsAreLinear shows that many documents after many lines take no more
// memory than the lines themselves.
func TestDocumentsAreLinear(t *testing.T) {
	text := []byte(strings.Repeat(strings.Repeat("\n", 3000)+"---\n", yamltext.MaxDocuments-1) + "a: 1\na: 2\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := yamltext.Documents(text)
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %d documents, error %v", len(got), err)
	}
	want := fmt.Sprintf("line %d: key \"a\" already set in map", bytes.Count(text, []byte("\n")))
	if diff := cmp.Diff([]string{want}, got[0].Repeated); diff != "" {
		t.Errorf("repeated (-want +got):\n%s", diff)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 200<<20 {
		t.Errorf("%d bytes of text took %d bytes of memory", len(text), used)
	}
}

func TestLoad(t *testing.T) {
	if got, err := yamltext.Load(strings.NewReader(strings.Repeat("a", yamltext.MaxBytes))); err != nil || len(got) != yamltext.MaxBytes {
		t.Errorf("got %d bytes, error %v", len(got), err)
	}
	if _, err := yamltext.Load(strings.NewReader(strings.Repeat("a", yamltext.MaxBytes+1))); !errors.Is(err, yamltext.ErrTooLong) {
		t.Errorf("error %v, want %v", err, yamltext.ErrTooLong)
	}
}

func TestClip(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("ä", 600)} {
		if got := yamltext.Clip(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	got := yamltext.Clip("field: " + strings.Repeat("ä", 100_000) + " is wrong")
	if !strings.HasPrefix(got, "field: ä") || !strings.HasSuffix(got, "ä is wrong") || !strings.Contains(got, " … ") || utf8.RuneCountInString(got) > 610 || !utf8.ValidString(got) {
		t.Errorf("got %q", got)
	}
}

// FuzzDocuments shows that no text makes Documents panic, and that what it returns is
// JSON, and the same when it is read once more.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte("a: &a {b: 1}\nc: {<<: *a, b: 2}\n---\nd: *x"))
	f.Add([]byte("--- a\n---\n... \n--- !!binary x"))
	f.Add([]byte("{\"a\":\t1}{}"))
	f.Add([]byte("a: &a [*a]\n<<: [*a, {}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := yamltext.Documents(text)
		if err != nil {
			return
		}
		for _, d := range found {
			if !json.Valid(d.JSON) {
				t.Errorf("%q is no JSON", d.JSON)
			}
			// A JSON object of a YAML mapping has no field twice, whatever the mapping had.
			again, err := yamltext.Documents(d.JSON)
			if err == nil && len(again) == 1 && bytes.HasPrefix(d.JSON, []byte("{")) && !bytes.Equal(again[0].JSON, d.JSON) {
				t.Errorf("%q became %q", d.JSON, again[0].JSON)
			}
		}
	})
}
