package main

import (
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/preflight-sdk/preflighttest"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		from, to string
		want     preflighttest.Want
	}{
		"Minor": {
			"the next minor version is what the release is made for", "4.20.5", "4.21.3",
			preflighttest.Want{Outcome: preflight.Pass},
		},
		"TwoDigits": {
			"4.9 is older than 4.10", "4.9.1", "4.10.0-rc.1",
			preflighttest.Want{Outcome: preflight.Pass},
		},
		"Patch": {
			"within a minor version all understand each other, also back", "4.21.3", "4.21.2",
			preflighttest.Want{Outcome: preflight.Pass},
		},
		"Same": {
			"nothing would be updated", "4.21.3", "4.21.3",
			preflighttest.Want{Outcome: preflight.Skipped, Message: "4.21.3 already"},
		},
		"Downgrade": {
			"the older version may not understand what the newer one has stored", "4.21.3", "4.20.5",
			preflighttest.Want{Outcome: preflight.Fail, Reason: "Downgrade", Message: "the newer 4.21.3", Remedy: "oc adm upgrade"},
		},
		"NotTold": {
			"without the versions nothing can be said, and that is no pass", "", "",
			preflighttest.Want{Outcome: preflight.Unknown, Message: `version of the cluster: ""`},
		},
		"NotAVersion": {
			"what cannot be read is not guessed", "4.21.3", "latest",
			preflighttest.Want{Outcome: preflight.Unknown, Message: `version to update to: "latest"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			update := preflight.Update{From: tc.from, To: tc.to}
			preflighttest.Expect(t, preflighttest.Run(t, check(), update), tc.want)
		})
	}
}

// TestManifest holds what the release ships to what the check declares. To
// have the manifest follow: UPDATE_GOLDEN=1 go test
func TestManifest(t *testing.T) {
	preflighttest.Manifest(t, "../../manifests/0000_50_cluster-foo-operator_11_preflight-job.yaml", preflight.ManifestOptions{
		Name:      "storage-driver-preflight",
		Namespace: "openshift-foo-operator",
		Image:     "quay.io/openshift/origin-cluster-foo-operator:latest",
	}, check())
}
