package cvo_test

import (
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/cvo"
)

func TestFailed(t *testing.T) {
	const message = `Retrieving payload failed version="4.19.1" image="quay.io/release@sha256:aa" failure=The update cannot be verified`
	for name, tc := range map[string]struct {
		reason, version, image, message string
		status                          configv1.ConditionStatus
		want                            bool
	}{
		"Version": {reason: "the condition names the version", version: "4.19.1", message: message, status: configv1.ConditionFalse, want: true},
		"Image":   {reason: "the condition names the image", image: "quay.io/release@sha256:aa", message: message, status: configv1.ConditionFalse, want: true},
		"Other":   {reason: "another request is judged anew", version: "4.19.10", message: message, status: configv1.ConditionFalse},
		"True":    {reason: "a request that was accepted has not failed", version: "4.19.1", message: message, status: configv1.ConditionTrue},
		"None":    {reason: "a request without names is none that failed", message: `version="" image=""`, status: configv1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			v := &configv1.ClusterVersion{}
			v.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "ReleaseAccepted", Status: tc.status, Reason: "RetrievePayload", Message: tc.message}}
			if got := cvo.Failed(v, tc.version, tc.image) != nil; got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
			if p := cvo.Judge(cvo.Request{ClusterVersion: v, Version: tc.version, Image: tc.image}); tc.want && p.Accepts != nil && *p.Accepts {
				t.Errorf("%s: the prediction is %+v", tc.reason, p)
			}
		})
	}
}
