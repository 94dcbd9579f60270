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
		gap           gap.Gap
		text, command string
	}{
		"List": {
			gap:     gap.Gap{Group: "policy", Resource: "poddisruptionbudgets"},
			text:    "no poddisruptionbudgets.policy",
			command: "oc get poddisruptionbudgets.policy --all-namespaces -o yaml > poddisruptionbudgets.policy.yaml",
		},
		"Partial": {
			gap:     gap.Gap{Resource: "pods", Partial: true, Cause: `the file "a" cannot be read`},
			text:    `only some of all pods (the file "a" cannot be read)`,
			command: "oc get pods --all-namespaces -o yaml > pods.yaml",
		},
		"Object": {
			gap:     gap.Gap{Resource: "configmaps", Namespace: "openshift-config", Name: "admin-acks"},
			text:    "no configmaps openshift-config/admin-acks",
			command: "oc adm inspect namespace/openshift-config",
		},
		"ClusterScoped": {
			gap:     gap.Gap{Group: "config.openshift.io", Resource: "infrastructures", Name: "cluster"},
			text:    "no infrastructures.config.openshift.io cluster",
			command: "oc adm inspect infrastructures.config.openshift.io/cluster",
		},
		"ShellText": {
			gap:  gap.Gap{Resource: "pods", Namespace: "ns;reboot"},
			text: "no pods of namespace ns;reboot",
		},
		"Namespace": {
			gap:     gap.Gap{Resource: "pods", Namespace: "ns"},
			text:    "no pods of namespace ns",
			command: "oc adm inspect namespace/ns",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tc.text, tc.command}, []string{tc.gap.String(), tc.gap.Command()}); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
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
