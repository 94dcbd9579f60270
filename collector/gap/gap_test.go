package gap_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/openshift/update-preflight/collector/gap"
)

func TestGap(t *testing.T) {
	for name, tc := range map[string]struct {
		gap  gap.Gap
		text string
	}{
		"List": {
			gap:  gap.Gap{Group: "policy", Resource: "poddisruptionbudgets"},
			text: "no poddisruptionbudgets.policy",
		},
		"Partial": {
			gap:  gap.Gap{Resource: "pods", Partial: true, Cause: `the file "a" cannot be read`},
			text: `only some of all pods (the file "a" cannot be read)`,
		},
		"Object": {
			gap:  gap.Gap{Resource: "configmaps", Namespace: "openshift-config", Name: "admin-acks"},
			text: "no configmaps openshift-config/admin-acks",
		},
		"ClusterScoped": {
			gap:  gap.Gap{Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"},
			text: "no infrastructures.config.openshift.io cluster",
		},
		"ShellText": {
			gap:  gap.Gap{Resource: "pods", Namespace: "ns;reboot"},
			text: "no pods of namespace ns;reboot",
		},
		"Namespace": {
			gap:  gap.Gap{Resource: "pods", Namespace: "ns"},
			text: "no pods of namespace ns",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.gap.String(); got != tc.text {
				t.Errorf("%q, want %q", got, tc.text)
			}
			header, err := tc.gap.Header()
			if err != nil {
				t.Fatal(err)
			}
			parsed, errs := utilnet.ParseWarningHeaders([]string{header, `299 - "another warning"`})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			ctx, log := gap.Track(t.Context())
			for range 2 {
				for _, warning := range parsed {
					gap.Warnings{}.HandleWarningHeaderWithContext(ctx, warning.Code, warning.Agent, warning.Text)
				}
			}
			if diff := cmp.Diff([]gap.Gap{tc.gap}, log.All()); diff != "" {
				t.Errorf("a gap is recorded once, and other warnings are not; -want, +got:\n%s", diff)
			}
		})
	}
}

func TestIs(t *testing.T) {
	absent := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 501, Reason: gap.Reason}}
	if !gap.Is(absent) || apierrors.IsNotFound(absent) || apierrors.IsForbidden(absent) {
		t.Error("an object that was not gathered is neither missing nor forbidden")
	}
	if gap.Is(apierrors.NewUnauthorized("no")) || gap.Is(nil) {
		t.Error("another error is no gap")
	}
}

func TestExtent(t *testing.T) {
	pods := gap.Gap{Resource: "pods", Partial: true}
	for name, tc := range map[string]struct {
		reason   string
		read     func(context.Context)
		complete bool
		missing  []string
	}{
		"Nothing": {
			reason: "who read nothing has not read that there is nothing", read: func(context.Context) {},
			missing: []string{"nothing was read"},
		},
		"Proven": {reason: "a proof and no gap", read: func(ctx context.Context) { gap.Prove(ctx, "the list of the pods") }, complete: true},
		"Gap": {
			reason: "a proof of one list does not close the gap in another",
			read: func(ctx context.Context) {
				gap.Prove(ctx, "the list of the nodes")
				gap.Note(ctx, pods)
			},
			missing: []string{"the archive has only some of all pods"},
		},
		"Failure": {
			reason: "nor does it replace what could not be read",
			read: func(ctx context.Context) {
				gap.Prove(ctx, "the list of the nodes")
				gap.Fail(ctx, errors.New("pods is forbidden"))
			},
			missing: []string{"pods is forbidden"},
		},
		"Many": {
			reason: "what is beyond the limit of the log is not complete either",
			read: func(ctx context.Context) {
				for at := range 1000 {
					gap.Prove(ctx, fmt.Sprint(at))
				}
				gap.Note(ctx, pods)
			},
			missing: []string{"the archive has only some of all pods"},
		},
		"Inner": {
			reason: "what an inner reader reads is not the outer's, unless it is added",
			read: func(ctx context.Context) {
				inner, log := gap.Track(ctx)
				gap.Prove(inner, "the list of the pods")
				_ = log
			},
			missing: []string{"nothing was read"},
		},
		"Added": {
			reason: "the extent of a reading is that of each reader",
			read: func(ctx context.Context) {
				inner, log := gap.Track(ctx)
				gap.Prove(inner, "the list of the pods")
				gap.Add(ctx, log.Extent())
			},
			complete: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, log := gap.Track(t.Context())
			tc.read(ctx)
			got := gap.ExtentOf(ctx)
			if diff := cmp.Diff(tc.missing, got.Missing()); diff != "" || got.Complete() != tc.complete || log.Extent().Complete() != tc.complete {
				t.Errorf("%s: complete %t; missing -want, +got:\n%s", tc.reason, got.Complete(), diff)
			}
		})
	}
	if gap.ExtentOf(t.Context()).Complete() || (gap.Extent{}).Complete() {
		t.Error("a context without a log, and the zero value, are complete")
	}
	if !gap.Proven("a").And(gap.Proven("b")).Complete() || gap.Proven("a").And(gap.Extent{}).And(extentOf(t, pods)).Complete() {
		t.Error("two extents are complete if both are")
	}
}

// extentOf is an extent with a gap.
func extentOf(t *testing.T, of gap.Gap) gap.Extent {
	t.Helper()
	ctx, log := gap.Track(t.Context())
	gap.Note(ctx, of)
	return log.Extent()
}
