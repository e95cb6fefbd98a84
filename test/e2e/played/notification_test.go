package played

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestNotifications: a webhook hears of the turning points of a rollout, in their order,
// and of nothing else; one that fails at first hears of them all the same.
func TestNotifications(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	var heard []string
	failures := 2
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if failures--; failures >= 0 {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		heard = append(heard, string(body))
	}))
	t.Cleanup(server.Close)
	address := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(address, []byte(server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	w.rollout("web", stages("1s", "50"))
	w.startManager("--notify-url-file=" + address)
	want := []string{
		`{"text": ":information_source: *` + w.namespace + `/web* Progressing`,
		`{"text": ":information_source: *` + w.namespace + `/web* Promoted at 100 % (revision v2, attempt 1)`,
	}
	eventually(t, "the webhook hears of it", func() (bool, string) {
		mu.Lock()
		defer mu.Unlock()
		return slices.EqualFunc(heard, want, strings.HasPrefix), strings.Join(heard, "\n")
	})
}
