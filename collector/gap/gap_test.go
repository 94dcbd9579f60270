package gap_test

import (
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
