package rollout

import (
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChainIsDocumented: docs/architecture.md lists the policies in the order in which they
// are asked.
func TestChainIsDocumented(t *testing.T) {
	var want []string
	for _, p := range chain() {
		name := runtime.FuncForPC(reflect.ValueOf(p).Pointer()).Name()
		want = append(want, name[strings.LastIndex(name, ".")+1:])
	}
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## The chain of decisions\n")
	part, _, _ = strings.Cut(part, "\n## ")
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(part, -1) {
		got = append(got, row[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the policies (-asked +documented):\n%s", diff)
	}
}
