package cvo_test

import (
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/cvo"
)

func TestFailed(t *testing.T) {
	const (
		image   = "quay.io/release@sha256:aa"
		message = `Retrieving payload failed version="4.19.1" image="` + image + `" failure=The update cannot be verified`
		byImage = `Retrieving payload failed version="" image="` + image + `" failure=timed out`
	)
	for name, tc := range map[string]struct {
		reason, version, image, message string
		status                          configv1.ConditionStatus
		want                            bool
	}{
		"Version": {
			reason: "the condition names the version", version: "4.19.1", message: message, status: configv1.ConditionFalse,
			want: true,
		},
		"Image": {reason: "the condition names the image", image: image, message: message, status: configv1.ConditionFalse, want: true},
		"Available": {
			reason: "the image is that of an available update", version: "4.19.1", message: byImage, status: configv1.ConditionFalse,
			want: true,
		},
		"Conditional": {
			reason: "the image is that of a conditional update", version: "4.20.0",
			message: `version="" image="quay.io/release@sha256:bb"`, status: configv1.ConditionFalse, want: true,
		},
		"Prose": {
			reason: "a message without fields names the image", version: "4.19.1", message: "Unable to retrieve " + image + ".",
			status: configv1.ConditionFalse, want: true,
		},
		"Longer": {
			reason: "the name of another image begins like that of this one", version: "4.19.1",
			message: "Unable to retrieve " + image + "b: denied", status: configv1.ConditionFalse,
		},
		"Mentioned": {
			reason: "the message of another request names this image beside", version: "4.19.1",
			message: `version="" image="quay.io/release@sha256:cc": only a rollback to ` + image + " is supported", status: configv1.ConditionFalse,
		},
		"AnotherImage": {
			reason: "a request by another image than the failed one", image: "quay.io/release@sha256:cc", message: byImage,
			status: configv1.ConditionFalse,
		},
		"Other": {reason: "another request is judged anew", version: "4.19.10", message: message, status: configv1.ConditionFalse},
		"True": {
			reason: "a request that was accepted has not failed", version: "4.19.1", message: message,
			status: configv1.ConditionTrue,
		},
		"None": {reason: "a request without names is none that failed", message: `version="" image=""`, status: configv1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			v := &configv1.ClusterVersion{}
			v.Status.AvailableUpdates = []configv1.Release{{Version: "4.19.1", Image: image}}
			v.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{Release: configv1.Release{
				Version: "4.20.0",
				Image:   "quay.io/release@sha256:bb",
			}}}
			v.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{
				Type: "ReleaseAccepted", Status: tc.status, Reason: "RetrievePayload",
				Message: tc.message,
			}}
			if got := cvo.Failed(v, tc.version, tc.image) != nil; got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
			p := cvo.Evaluate(cvo.Request{ClusterVersion: v, Version: tc.version, Image: tc.image})
			if tc.want && (p.Accepts != nil && *p.Accepts || p.Accepts == nil && !strings.Contains(p.Message, tc.message)) {
				t.Errorf("%s: the prediction is %+v", tc.reason, p)
			}
		})
	}
}
