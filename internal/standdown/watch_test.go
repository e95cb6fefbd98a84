package standdown

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestARefusalForAMoment is waited for: a policy or a right may be known to the API server a
// little later.
func TestARefusalForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		patches := 0
		c := cluster(t, obedient(func(client.Object) error {
			if patches++; patches < 3 {
				return apierrors.NewForbidden(resource, "a", errors.New("not yet"))
			}
			return nil
		}), rollout("a"))
		if out, _, err := try(t, c, Run, Options{}); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}

// TestTimeoutBoundsASilentServer: an API server that never answers, from the first question
// or from a later one, is waited for no longer than was said.
func TestTimeoutBoundsASilentServer(t *testing.T) {
	tests := map[string]struct {
		run     command
		answers int
		want    []string
	}{
		"never":      {Run, 0, []string{"the API server has not answered, so that nothing is known"}},
		"finalizers": {Finalizers, 0, []string{"the API server has not answered, so that nothing is known"}},
		"once":       {Run, 1, []string{"not safe yet", "shop/a: "}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists := 0
				c := cluster(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					if lists++; lists > tc.answers {
						<-ctx.Done()
						return ctx.Err()
					}
					return c.List(ctx, l, opts...)
				}}, rollout("a"))
				out, took, err := try(t, c, tc.run, Options{Timeout: 3 * time.Second})
				if err == nil || took != 3*time.Second {
					t.Fatalf("%v after %s:\n%s", err, took, out)
				}
				wantSaid(t, err.Error(), tc.want...)
			})
		})
	}
}

// TestFailedRequestsAreRepeated: a request that fails is one to be repeated, the first as
// well.
func TestFailedRequestsAreRepeated(t *testing.T) {
	for name, run := range map[string]command{"run": Run, "finalizers": Finalizers} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists, patches := 0, 0
				answers := obedient(func(client.Object) error {
					if patches++; patches == 1 {
						return apierrors.NewServiceUnavailable("restarting")
					}
					return nil
				})
				answers.List = func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					if lists++; lists == 1 {
						return apierrors.NewServiceUnavailable("restarting")
					}
					return c.List(ctx, l, opts...)
				}
				out, _, err := try(t, cluster(t, answers, rollout("a")), run, Options{})
				if err != nil || patches != 2 {
					t.Errorf("%v after %d patches:\n%s", err, patches, out)
				}
			})
		})
	}
}

// TestWhatCannotPassEndsIt: at once, and with a cure; without the kind there is nothing to do.
func TestWhatCannotPassEndsIt(t *testing.T) {
	tests := map[string]struct {
		list    error
		ok      bool
		message string
	}{
		"no right":    {apierrors.NewForbidden(resource, "", errors.New("no role")), false, "give the one who runs this the right to list and patch"},
		"no account":  {apierrors.NewUnauthorized("expired"), false, "give the one who runs this the right"},
		"no such CRD": {apierrors.NewNotFound(resource, ""), true, "the cluster does not know WeightedRollouts: there is nothing to do"},
	}
	for name, tc := range tests {
		for which, run := range map[string]command{"run": Run, "finalizers": Finalizers} {
			t.Run(name+", "+which, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := cluster(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return tc.list }})
					out, took, err := try(t, c, run, Options{})
					text := out
					if err != nil {
						text = err.Error()
					}
					if (err == nil) != tc.ok || took > 2*time.Second {
						t.Errorf("%v after %s", err, took)
					}
					wantSaid(t, text, tc.message)
				})
			})
		}
	}
}

// TestEndedFromOutside says so, and what is left.
func TestEndedFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := Run(ctx, cluster(t, interceptor.Funcs{}, rollout("a")), Options{Timeout: time.Hour, Out: &bytes.Buffer{}})
		if err == nil {
			t.Fatal("it ended well")
		}
		wantSaid(t, err.Error(), "it was ended before it was done", "shop/a: ")
	})
}

// TestOneLookIsNotEnough: with so little time that nothing can be seen twice, it is not said
// to be done.
func TestOneLookIsNotEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, _, err := try(t, cluster(t, interceptor.Funcs{}, rolledBack()), Run, Options{Timeout: 100 * time.Millisecond})
		if err == nil || strings.Contains(out, "no rollout is under way") {
			t.Fatalf("%v:\n%s", err, out)
		}
		wantSaid(t, err.Error(), "give it more time")
	})
}
