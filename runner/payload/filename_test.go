package payload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/runner/payload"
)

// TestFileNamesAreSanitized tests the names in reports and on terminals.
func TestFileNamesAreSanitized(t *testing.T) {
	type names struct{ File, Component string }
	for name, tc := range map[string]struct {
		reason, file string
		want         names
	}{
		"Plain": {
			reason: "a common name is kept", file: "0000_50_etcd-operator_11_job.yaml",
			want: names{"0000_50_etcd-operator_11_job.yaml", "etcd-operator"},
		},
		"LineBreak": {
			reason: "a line break could add a line to the output", file: "0000_50_etcd_job\nPass Etcd.yaml",
			want: names{"0000_50_etcd_job Pass Etcd.yaml", "etcd"},
		},
		"Escape": {
			reason: "a terminal executes escape sequences", file: "job\x1b[2J.yaml",
			want: names{"job.yaml", "job"},
		},
		"Bidirectional": {
			reason: "the control reorders the text that follows", file: "job\u202e.yaml",
			want: names{"job.yaml", "job"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			const metadata = `{name: x, namespace: ns, annotations: {openshift.io/preflight-check: "true"}}`
			release, err := payload.ReadManifests(map[string][]byte{tc.file: []byte(
				"{apiVersion: batch/v1, kind: Job, metadata: " + metadata + "}\n---\n{apiVersion: v1, kind: ServiceAccount, metadata: " + metadata +
					"}\n",
			)})
			if err != nil || len(release.Jobs) != 1 || len(release.Supporting) != 1 {
				t.Fatalf("%s: %v, %+v", tc.reason, err, release)
			}
			got := []names{{release.Jobs[0].File, release.Jobs[0].Component}, {release.Supporting[0].File, release.Supporting[0].Component}}
			if diff := cmp.Diff([]names{tc.want, tc.want}, got); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
