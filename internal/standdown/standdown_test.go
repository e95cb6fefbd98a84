package standdown

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

var resource = schema.GroupResource{Group: "weightedrollout.dev", Resource: "weightedrollouts"}

// cluster is one with rollouts in it, whose API server answers as the functions say.
func cluster(t *testing.T, answers interceptor.Funcs, rollouts ...*v1alpha1.WeightedRollout) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, wr := range rollouts {
		b = b.WithObjects(wr)
	}
	return interceptor.NewClient(b.Build(), answers)
}

type command func(context.Context, client.Client, Options) error

// try runs a command in a time of its own, and returns what it printed and how long it took.
func try(t *testing.T, c client.Client, run command, o Options) (out string, took time.Duration, err error) {
	t.Helper()
	var b bytes.Buffer
	if o.Out = &b; o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	began := time.Now()
	err = run(t.Context(), c, o)
	return b.String(), time.Since(began), err
}

// wantSaid looks for words in an output or error.
func wantSaid(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in\n%s", word, text)
		}
	}
}

// carriesOut makes an API server whose controller obeys: an abort is carried out with the
// patch that asks for it.
func carriesOut(wr *v1alpha1.WeightedRollout) {
	if wr.Annotations[v1alpha1.AbortAnnotation] == "" {
		return
	}
	outcome(v1alpha1.OutcomeRolledBack)(wr)
	desired("0")(wr)
	observed("0")(wr)
}

// obedient patches as asked, and then does what a controller would.
func obedient(refuse func(client.Object) error) interceptor.Funcs {
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			if err := c.Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			if wr, ok := o.(*v1alpha1.WeightedRollout); ok {
				now := &v1alpha1.WeightedRollout{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(wr), now); err != nil {
					return err
				}
				carriesOut(now)
				return c.Update(ctx, now)
			}
			return nil
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := refuse(o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	}
}

func never(client.Object) error { return nil }

// TestOneRefusedKeepsNoOtherFromBeingAsked: the others are aborted, or deleted, and only what
// was done is said to be.
func TestOneRefusedKeepsNoOtherFromBeingAsked(t *testing.T) {
	frozen := apierrors.NewForbidden(resource, "a", errors.New("change freeze"))
	refuse := func(o client.Object) error {
		if o.GetName() == "a" || o.GetName() == "b" {
			return frozen
		}
		return nil
	}
	free := func(wr *v1alpha1.WeightedRollout) { wr.Finalizers = nil }
	tests := map[string]struct {
		o          Options
		done, said string
		refused    string
	}{
		"aborted": {Options{}, "is aborted", "it cannot be aborted", "attempt 1 is aborted at 30 percent"},
		"deleted": {Options{Delete: true}, "deleted", "it cannot be deleted", "deleted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cluster(t, obedient(refuse), rollout("a", free), rollout("b", free), rollout("c", free), rollout("d", free))
				out, took, err := try(t, c, Run, tc.o)
				if err == nil {
					t.Fatalf("it ended well:\n%s", out)
				}
				wantSaid(t, out, "shop/c: "+tc.refused, "shop/d: "+tc.refused)
				wantSaid(t, err.Error(), "shop/a: "+tc.said, "shop/b: "+tc.said, "change freeze")
				if strings.Contains(out, "shop/a: ") || strings.Contains(out, "shop/b: ") || strings.Contains(err.Error(), "shop/c") {
					t.Errorf("what was not done is said to be:\n%s\n%v", out, err)
				}
				if took > 10*time.Second {
					t.Errorf("it waited %s for what cannot pass", took)
				}
			})
		})
	}
}

// TestFinalizersOfOthersStay: also one that is put there between the list and the patch.
func TestFinalizersOfOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const theirs = "backup.example.com/keep"
		added := false
		c := cluster(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if !added {
				added = true
				now := &v1alpha1.WeightedRollout{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
					return err
				}
				now.Finalizers = append(now.Finalizers, theirs)
				if err := c.Update(ctx, now); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, p, opts...)
		}}, rollout("a"))
		out, _, err := try(t, c, Finalizers, Options{})
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		now := &v1alpha1.WeightedRollout{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "a"}, now); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{theirs}, now.Finalizers); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if strings.Count(out, "can be deleted") != 1 {
			t.Errorf("it says\n%s", out)
		}
	})
}

// TestFinalizersGoOn: one that comes meanwhile is let go of, too, and a controller that puts
// its finalizer there again is found out.
func TestFinalizersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		c := cluster(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if lists++; lists == 2 {
				if err := c.Create(ctx, rollout("late")); err != nil {
					return err
				}
			}
			return c.List(ctx, l, opts...)
		}}, rollout("a"))
		out, _, err := try(t, c, Finalizers, Options{})
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		wantSaid(t, out, "shop/a: can be deleted", "shop/late: can be deleted", "no rollout has the controller's finalizer")

		c = cluster(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return nil // It is there again at once.
		}}, rollout("a"))
		out, took, err := try(t, c, Finalizers, Options{Timeout: 10 * time.Second})
		if err == nil || took != 10*time.Second {
			t.Fatalf("%v after %s:\n%s", err, took, out)
		}
		wantSaid(t, err.Error(), "a controller that runs", "shop/a: ")
	})
}

// TestDeletionHeldByOthers: what the controller has let go of is safe; where everything is to
// be deleted, whoever still holds it is named.
func TestDeletionHeldByOthers(t *testing.T) {
	held := func(wr *v1alpha1.WeightedRollout) {
		wr.Finalizers, wr.DeletionTimestamp = []string{"example.com/other"}, &metav1.Time{Time: time.Now()}
	}
	synctest.Test(t, func(t *testing.T) {
		if out, _, err := try(t, cluster(t, interceptor.Funcs{}, rollout("a", held)), Run, Options{}); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		_, _, err := try(t, cluster(t, interceptor.Funcs{}, rollout("a", held)), Run, Options{Delete: true})
		if err == nil {
			t.Fatal("it does not wait for the deletion")
		}
		wantSaid(t, err.Error(), "shop/a: it is being deleted", "example.com/other")
	})
}

// TestNothingUnsafeIsDeleted: what a deletion would leave on the canary is not deleted.
func TestNothingUnsafeIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster(t, obedient(never), rollout("a", stalled(v1alpha1.ReasonStableUnavailable, "no ready endpoint")))
		out, _, err := try(t, c, Run, Options{Delete: true})
		if err == nil {
			t.Fatalf("it ended well:\n%s", out)
		}
		wantSaid(t, err.Error(), "shop/a: it is not deleted", "30 percent")
		now := &v1alpha1.WeightedRollout{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "a"}, now); err != nil || !now.DeletionTimestamp.IsZero() {
			t.Errorf("it was deleted (%v)", err)
		}
	})
}

// TestNamespaces: those that have no rollout are named, and so is how many there are.
func TestNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, _, err := try(t, cluster(t, obedient(never), rollout("a")), Run, Options{Namespaces: []string{"shop", "gone"}})
		if err != nil {
			t.Fatal(err)
		}
		want := "there is no rollout in the namespace gone\n1 rollouts are looked at\nshop/a: attempt 1 is aborted at 30 percent\nno rollout is under way, and every gateway has taken that\n"
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
