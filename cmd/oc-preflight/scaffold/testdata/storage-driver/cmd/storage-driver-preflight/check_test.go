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
			"what the update requires is not written yet", "4.20.5", "4.21.3",
			preflighttest.Want{Outcome: preflight.Unknown, Reason: "NotWritten", Message: "not written yet", Remedy: "check.go"},
		},
		"TwoDigits": {
			"numbers are compared, not texts: 4.9 is older than 4.10", "4.9.1", "4.10.0-rc.1",
			preflighttest.Want{Outcome: preflight.Unknown, Reason: "NotWritten"},
		},
		"Patch": {
			"within a minor version an update to an older version is no downgrade", "4.21.3", "4.21.2",
			preflighttest.Want{Outcome: preflight.Unknown, Reason: "NotWritten"},
		},
		"Same": {
			"the cluster already runs the target", "4.21.3", "4.21.3",
			preflighttest.Want{Outcome: preflight.Skipped, Message: "already runs 4.21.3"},
		},
		"Downgrade": {
			"an update to an older minor version fails", "4.21.3", "4.20.5",
			preflighttest.Want{Outcome: preflight.Fail, Reason: "Downgrade", Message: "the newer 4.21.3", Remedy: "oc adm upgrade"},
		},
		"NoVersions": {
			"without the versions the check is inconclusive", "", "",
			preflighttest.Want{Outcome: preflight.Unknown, Message: `version of the cluster ""`},
		},
		"NotAVersion": {
			"with a malformed version the check is inconclusive", "4.21.3", "latest",
			preflighttest.Want{Outcome: preflight.Unknown, Message: `version to update to "latest"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			update := preflight.Update{From: tc.from, To: tc.to}
			preflighttest.Expect(t, preflighttest.Run(t, check(), update), tc.want)
		})
	}
}

// TestManifest compares the manifest that the release ships with the one that this
// program prints. To update the manifest: UPDATE_GOLDEN=1 go test
func TestManifest(t *testing.T) {
	preflighttest.Manifest(t, ".", "../../manifests/0000_50_cluster-foo-operator_11_preflight-job.yaml", preflight.ManifestOptions{
		Name:      "storage-driver-preflight",
		Namespace: "openshift-foo-operator",
		Image:     "quay.io/openshift/origin-cluster-foo-operator:latest",
	})
}
