package snapshot_test

import (
	"testing"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/snapshot"
)

func TestPausedBy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, manager, fields string
		running                 bool
		want                    string
	}{
		"Program": {
			reason: "it unpauses the pool itself", manager: "sriov-network-operator", fields: `{"f:spec":{"f:paused":{}}}`,
			want: "sriov-network-operator",
		},
		"Any": {
			reason: "no list of programs", manager: "argocd-controller", fields: `{"f:spec":{"f:configuration":{},"f:paused":{}}}`,
			want: "argocd-controller",
		},
		"Client":  {reason: "an administrator paused it", manager: "oc", fields: `{"f:spec":{"f:paused":{}}}`},
		"Patch":   {reason: "kubectl has a name for each verb", manager: "kubectl-patch", fields: `{"f:spec":{"f:paused":{}}}`},
		"Console": {reason: "an administrator in the console", manager: "Mozilla", fields: `{"f:spec":{"f:paused":{}}}`},
		"Other":   {reason: "it wrote another field", manager: "machine-config-controller", fields: `{"f:status":{"f:conditions":{}}}`},
		"Text":    {reason: "a value is no field", manager: "labeler", fields: `{"f:metadata":{"f:labels":{"f:f:paused-by":{}}}}`},
		"Running": {
			reason: "the pool is not paused now", manager: "sriov-network-operator", fields: `{"f:spec":{"f:paused":{}}}`,
			running: true,
		},
		"NoFields": {reason: "an archive may have none", manager: "sriov-network-operator"},
		"Hostile":  {reason: "a name is shown on one line", manager: "a\x1b[2J\nb", fields: `{"f:spec":{"f:paused":{}}}`, want: "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &machineconfigurationv1.MachineConfigPool{Spec: machineconfigurationv1.MachineConfigPoolSpec{Paused: !tc.running}}
			pool.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: tc.manager}}
			if tc.fields != "" {
				pool.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(tc.fields)
			}
			if got := snapshot.PausedBy(pool, nil); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
