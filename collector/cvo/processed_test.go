package cvo_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cvo"
)

func TestHasProcessed(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	accepted := func(status configv1.ConditionStatus, reason, message string) func(*configv1.ClusterVersion) {
		return func(v *configv1.ClusterVersion) { with(v, "ReleaseAccepted", status, reason, message) }
	}
	refused := accepted(configv1.ConditionFalse, "PreconditionChecks",
		`Preconditions failed for payload loaded version="4.19.0" image="`+digest("4190")+`": no verdict`)
	for name, tc := range map[string]struct {
		reason   string
		observed int64
		// desired is the update that is selected; none if nil.
		desired *configv1.Update
		// written is how long after the spec the status was written.
		written   time.Duration
		condition func(*configv1.ClusterVersion)
		want      bool
	}{
		"Observed":        {reason: "the generation is the present one", observed: 3, want: true},
		"NothingSelected": {reason: "nothing states that a changed channel was processed", written: time.Minute, condition: refused},
		"NoCondition":     {reason: "CVO has not reported the update", desired: &configv1.Update{Image: digest("4190")}, written: time.Minute},
		"Image": {
			reason: "the condition names the image", desired: &configv1.Update{Image: digest("4190")}, written: time.Minute,
			condition: refused, want: true,
		},
		"Version": {
			reason: "the condition names the version", desired: &configv1.Update{Version: "4.19.0"}, written: time.Minute,
			condition: refused, want: true,
		},
		"Retrieving": {
			reason: "CVO reports the update before it has the payload", desired: &configv1.Update{Image: digest("4190")},
			written: time.Minute, condition: accepted(configv1.ConditionUnknown, "RetrievePayload",
				`Retrieving and verifying payload version="" image="`+digest("4190")+`"`), want: true,
		},
		"OtherImage": {
			reason: "the condition is of the update before", desired: &configv1.Update{Image: digest("4191")},
			written: time.Minute, condition: refused,
		},
		"LongerVersion": {
			reason: "4.19.0 is not 4.19.0-rc.1", desired: &configv1.Update{Version: "4.19.0-rc.1"}, written: time.Minute,
			condition: refused,
		},
		"OnlyRisks": {
			reason:  "accepted risks select no update",
			desired: &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: "A"}}}, written: time.Minute, condition: refused,
		},
		"ChangedSince": {
			reason: "the spec has changed since the status was written", desired: &configv1.Update{Image: digest("4190")},
			written: -time.Minute, condition: refused,
		},
		"InTheSameSecond": {
			reason: "the order of the two writes is unknown", desired: &configv1.Update{Image: digest("4190")},
			condition: refused,
		},
		"OfAnotherMessage": {
			reason: "the text has no update", desired: &configv1.Update{Image: digest("4190")}, written: time.Minute,
			condition: accepted(configv1.ConditionFalse, "X", "unknown"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := at("4.18.9")
			cluster.Generation, cluster.Status.ObservedGeneration, cluster.Spec.DesiredUpdate = 3, 2, tc.desired
			if tc.observed != 0 {
				cluster.Status.ObservedGeneration = tc.observed
			}
			cluster.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "oc", Time: &metav1.Time{Time: noon}},
				{Manager: "cluster-version-operator", Subresource: "status", Time: &metav1.Time{Time: noon.Add(tc.written)}},
			}
			if tc.condition != nil {
				tc.condition(cluster)
			}
			if got := cvo.HasProcessed(cluster); got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
