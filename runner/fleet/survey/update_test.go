package survey_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/survey"
)

// runs is the version that the cluster of the example runs. Its pools are being updated.
const runs = "4.18.12"

// updatedFrom adds to the history the release from which the cluster was updated.
func updatedFrom(t *testing.T, scoped string) {
	t.Helper()
	path := filepath.Join(scoped, "config.openshift.io", "clusterversions.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const newest = "      version: 4.18.12\n    observedGeneration"
	const before = `    - {completionTime: "2025-04-20T10:00:00Z", startedTime: "2025-04-20T09:00:00Z", image: quay.io/r@sha256:17, state: Completed, verified: true, version: 4.18.11}`
	changed := strings.Replace(string(text), newest, strings.Replace(newest, "\n", "\n"+before+"\n", 1), 1)
	if changed == string(text) {
		t.Fatal("the example has another history")
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a cluster states of its update is how far it is, and what was not read is in favor of nothing.
func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		to      string
		change  func(t *testing.T, scoped string)
		stage   string
		message string
		since   string
		judged  string
	}{
		"Outstanding": {reason: "it runs another release", to: "4.19.1", stage: "Outstanding", message: "4.18.12"},
		"Updating": {
			reason: "CVO is done, a pool is not", to: runs, stage: "Updating",
			message: "MachineConfigPools that are not updated: master (2 of 3 nodes)", since: "2025-05-20T09:30:00Z",
		},
		"NoPools": {
			reason: "pools that are missing in the archive may not be updated", to: runs, stage: "Silent",
			message: "could not read the operators and pools",
			change: func(t *testing.T, scoped string) {
				t.Helper()
				if err := os.RemoveAll(filepath.Join(scoped, "machineconfiguration.openshift.io")); err != nil {
					t.Fatal(err)
				}
			},
		},
		"NotJudged": {
			reason: "the archive has the ConfigMaps, and none is a judgement", to: runs, stage: "Updating",
			since: "2025-05-20T09:30:00Z", change: updatedFrom,
		},
		"NoConfigMaps": {
			reason: "a judgement may be among those that are missing in the archive", to: runs, stage: "Updating", since: "2025-05-20T09:30:00Z",
			judged: "Unknown",
			change: func(t *testing.T, scoped string) {
				t.Helper()
				updatedFrom(t, scoped)
				if err := os.RemoveAll(filepath.Join(scoped, "..", "namespaces", "openshift-cluster-version")); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("../../../examples/archive")); err != nil {
				t.Fatal(err)
			}
			if tc.change != nil {
				scoped, err := filepath.Glob(filepath.Join(dir, "*", "*", "cluster-scoped-resources"))
				if err != nil || len(scoped) != 1 {
					t.Fatal(scoped, err)
				}
				tc.change(t, scoped[0])
			}
			opened, err := archive.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			reached, err := cluster.ConnectAt(opened.Config(), "test", opened.About().Time)
			if err != nil {
				t.Fatal(err)
			}
			got := survey.Measured(t.Context(), fleet.Row{}, reached, hosted.Estate{}, tc.to).Update
			if got.Stage != tc.stage || !strings.Contains(got.Message, tc.message) || got.Since != tc.since {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			if judged := got.Judgement; (judged != nil) != (tc.judged != "") || judged != nil && judged.Status != tc.judged {
				t.Errorf("%s: %+v", tc.reason, judged)
			}
		})
	}
}
