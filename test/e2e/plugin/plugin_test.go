package plugin

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/cli"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// TestPlugin steers a rollout from its first stage to its end by the plugin alone: two
// replicas of the manager, an API server that hands questions to either, a gateway,
// traffic, and people with the rights that the manifests are for.
func TestPlugin(t *testing.T) {
	viewer, editor, approver, stranger := newPersonIn(t, "viewer", "weightedrollout-viewer"), newPersonIn(t, "editor", "weightedrollout-editor"), newPersonIn(t, "approver", "weightedrollout-approver"), newPerson(t, "stranger")
	bind(t, viewer, system, "Role", "weightedrollout-evidence-proxy")
	openShop(t)
	wr := rollout()
	must(t, bed.Client.Create(t.Context(), wr), "create the rollout")

	viewer.expect(0, "The controller has said nothing about it yet", "status", "web")
	editor.expect(2, "the controller has not taken it within 1s", "pause", "web", "--timeout", "1s")
	editor.expect(0, "nothing was waited for", "resume", "web", "--wait=false")
	startReplicas(t, 2)
	installApprovals(t, editor)
	awaitApproval(t, viewer)

	checkEvidence(t, viewer, editor, wr)
	checkReaders(t, viewer, stranger)
	w := watch(viewer)
	steer(t, viewer, editor, approver, w)
	if code := <-w.done; code != 3 || !strings.Contains(w.errOut.String(), `revision "v2" was rolled back: Aborted`) {
		t.Errorf("watch has ended with the exit code %d:\n%s%s", code, w.out.String(), w.errOut.String())
	}
	finish(t, viewer, editor, approver)
}

// newPersonIn is newPerson with the rights to look into the namespace, and a role there.
func newPersonIn(t *testing.T, name, role string) *person {
	t.Helper()
	must(t, bed.CreateNamespace(t.Context(), namespace), "create the namespace")
	p := newPerson(t, name)
	bind(t, p, namespace, "ClusterRole", role)
	// What is in the role view of a cluster whose controllers run.
	bind(t, p, namespace, "ClusterRole", "system:aggregate-to-view")
	return p
}

func awaitApproval(t *testing.T, p *person) {
	t.Helper()
	eventually(t, "an approval is awaited", func() (bool, string) {
		s := p.says("get", "web")
		return strings.Contains(s.out, "AwaitingApproval"), s.String()
	})
}

// checkEvidence: live numbers come through the API server to whoever may ask there and
// knows the rollout's uid, whichever replica is picked, and to nobody else.
func checkEvidence(t *testing.T, viewer, editor *person, wr *v1alpha1.WeightedRollout) {
	t.Helper()
	eventually(t, "live evidence of both versions", func() (bool, string) {
		s := viewer.says("status", "web", "-o", "json")
		var report cli.Report
		must(t, json.Unmarshal([]byte(s.out), &report), "read the status")
		return report.Source.Live && report.Requests > 50 && report.Evidence.Evaluations != nil, s.String()
	})
	for range 10 {
		viewer.expect(0, "Live numbers", "status", "web")
	}
	editor.expect(0, "have the Role weightedrollout-evidence-proxy in the namespace weightedrollout-system bound to you", "status", "web", "--width", "1000")
	viewer.expect(0, "The numbers are the controller's live evidence.", "diagnose", "wr/web")

	path, uid := live.Prefix+namespace+"/web", string(wr.UID)
	for name, test := range map[string]struct {
		path    string
		headers map[string]string
		want    int
	}{
		"the uid":              {path, map[string]string{live.UIDHeader: uid}, http.StatusOK},
		"another uid":          {path, map[string]string{live.UIDHeader: "00000000-0000-0000-0000-000000000000"}, http.StatusForbidden},
		"no uid":               {path, nil, http.StatusUnauthorized},
		"the uid of another":   {live.Prefix + namespace + "/other", map[string]string{live.UIDHeader: uid}, http.StatusForbidden},
		"the metrics":          {"/metrics", map[string]string{live.UIDHeader: uid}, http.StatusUnauthorized},
		"a way to the metrics": {live.Prefix + "%2e%2e/metrics", map[string]string{live.UIDHeader: uid}, http.StatusUnauthorized},
	} {
		if got := through(t, test.path, test.headers); got != test.want {
			t.Errorf("%s: GET %s through the API server: %d, want %d", name, test.path, got, test.want)
		}
	}
}

// checkReaders: who may only look cannot steer, and who may not even look is told so.
func checkReaders(t *testing.T, viewer, stranger *person) {
	t.Helper()
	refused := viewer.expect(1, "you may not approve: have the role weightedrollout-approver bound to you", "approve", "web")
	if !strings.Contains(refused.errOut, "stage 1/3 of attempt 1 will end") || strings.Contains(refused.errOut, "weightedrollout-editor") {
		t.Errorf("of an order that was refused it says %s", refused)
	}
	viewer.expect(1, "you may not abort: have the role weightedrollout-editor bound to you", "abort", "web", "--yes")
	stranger.expect(1, `read the WeightedRollout "web"`, "status", "web")
	stranger.expect(1, "list the WeightedRollouts", "get")
	viewer.expect(0, "web\n:4", "__complete", "status", "")
	viewer.expect(1, `there is no WeightedRollout "nothing"`, "history", "nothing")
	var got v1alpha1.WeightedRollout
	must(t, bed.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &got), "read the rollout")
	if text := got.Annotations[v1alpha1.CommandAnnotation]; text != "" {
		t.Errorf("a refused order was written: %s", text)
	}
}

// watching is a watch that goes on beside the test.
type watching struct {
	out, errOut safeBuffer
	done        chan int
}

// watch looks on until the rollout ends.
func watch(p *person) *watching {
	w := &watching{done: make(chan int, 1)}
	go func() {
		w.done <- cli.Main([]string{"watch", "web", "--plain", "--exit", "--kubeconfig", p.kubeconfig}, "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &w.out, ErrOut: &w.errOut})
	}()
	return w
}

// sees waits until the watch has told of something.
func (w *watching) sees(t *testing.T, text string) {
	t.Helper()
	eventually(t, "watch tells of "+text, func() (bool, string) {
		told := w.out.String()
		return strings.Contains(told, text), told + w.errOut.String()
	})
}

// safeBuffer can be read while it is written.
type safeBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// steer gives every order that fits a plan under way, and aborts at its end.
func steer(t *testing.T, viewer, editor, approver *person, w *watching) {
	t.Helper()
	w.sees(t, "AwaitingApproval 1/3, 10 percent")
	viewer.expect(2, "AwaitingApproval 1/3, 10 percent", "status", "web", "--wait", "--timeout", "3s")
	editor.expect(0, "pause: the controller has taken it; now: Paused", "pause", "web")
	w.sees(t, "Paused 1/3, 10 percent")
	editor.expect(1, "it is paused already", "pause", "web")
	editor.expect(0, "resume: the controller has taken it", "resume", "web")
	editor.expect(1, "attempt 1 is not stopped", "resume", "web")
	awaitApproval(t, viewer)
	refused := editor.expect(1, `the policy "weightedrollout-approvals" refuses approve: system:serviceaccount:shop:editor may not approve in shop`, "approve", "web")
	if n := strings.Count(refused.errOut, "weightedrollout-approver"); n != 1 {
		t.Errorf("it is told %d times what it takes: %s", n, refused)
	}
	approver.expect(1, `the policy "weightedrollout-approvals" refuses pause: system:serviceaccount:shop:approver may give commands`, "pause", "web")
	approver.expect(1, "the rollout is in stage 1/3, not 2/3, so nothing was written", "approve", "wr/web", "--stage", "2/3")
	approver.expect(0, "approve: the controller has taken it", "approve", "wr/web", "--attempt", "1", "--stage", "1/3")
	approver.expect(1, "not 1/3, so nothing was written", "approve", "wr/web", "--attempt", "1", "--stage", "1/3")
	eventually(t, "50 percent, where nothing waits for approval", func() (bool, string) {
		s := viewer.says("get", "web")
		return strings.Contains(s.out, "2/3        50"), s.String()
	})
	editor.expect(1, "stage 2/3 waits for no approval", "approve", "web")
	editor.expect(1, "only a promoted revision can be finished", "finish", "web", "--yes")
	editor.expect(1, "say --yes", "abort", "web")
	editor.expect(0, "abort: rolled back: Aborted", "abort", "web", "--yes")
	editor.expect(1, "rolled back already", "abort", "web", "--yes")
	viewer.expect(3, `revision "v2" was rolled back: Aborted`, "status", "web", "--wait")
	viewer.expect(0, "RolledBack", "history", "web")
	viewer.expect(0, "RolledBack: ", "events", "web")
}

// finish tries again, and goes on to the end.
func finish(t *testing.T, viewer, editor, approver *person) {
	t.Helper()
	editor.expect(1, "the rollout is in attempt 1, not 2", "retry", "web", "--attempt", "2")
	editor.expect(0, "retry: the controller has taken it", "retry", "web", "--attempt", "1")
	awaitApproval(t, viewer)
	approver.expect(0, "skip: the controller has taken it", "skip", "web")
	approver.expect(0, "promote: the controller has taken it", "promote", "web", "--yes")
	viewer.expect(0, `revision "v2" is promoted`, "status", "web", "--wait", "--timeout", patience.String())
	editor.expect(0, "finish: the controller has taken it", "finish", "web", "--yes")
	viewer.expect(0, `revision "v2" is completed`, "status", "web", "--wait", "--for", "completed", "--timeout", patience.String())
	s := viewer.expect(0, "Completed", "history", "web", "-o", "json")
	var data struct{ Attempts []cli.Attempt }
	must(t, json.Unmarshal([]byte(s.out), &data), "read the history")
	if len(data.Attempts) != 2 || data.Attempts[0].Outcome != "Completed" || data.Attempts[1].Reason != "Aborted" {
		t.Errorf("the history: %s", s)
	}
}
