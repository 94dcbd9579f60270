package versions_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/cmd/oc-preflight/versions"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/report"
)

func TestVersions(t *testing.T) {
	for file, tc := range map[string]struct {
		reason, output string
		made           versions.Versions
	}{
		"all.txt": {reason: "one line each", output: "text", made: versions.Versions{
			APIVersion: report.APIVersion, Kind: versions.Kind,
			Client: "v1.2.3", Cluster: "4.18.15", Kubernetes: "v1.31.5",
		}},
		"all.json": {reason: "the same as fields", output: "json", made: versions.Versions{
			APIVersion: report.APIVersion, Kind: versions.Kind,
			Client: "v1.2.3", Cluster: "4.18.15", Kubernetes: "v1.31.5",
		}},
		"alone.txt": {
			reason: "no line for a version that could not be read", output: "text",
			made: versions.Versions{APIVersion: report.APIVersion, Kind: versions.Kind, Client: "v1.2.3"},
		},
		"alone.json": {
			reason: "no field either", output: "json",
			made: versions.Versions{APIVersion: report.APIVersion, Kind: versions.Kind, Client: "v1.2.3"},
		},
		"hostile.txt": {
			reason: "a terminal does not interpret what an API server reports", output: "text",
			made: versions.Versions{APIVersion: report.APIVersion, Kind: versions.Kind, Client: "v1.2.3", Cluster: "4.18.15\x1b[2J\nClient: v9.9.9"},
		},
	} {
		t.Run(file, func(t *testing.T) {
			var got bytes.Buffer
			if err := format.Write(&got, tc.output, tc.made, format.Style{}); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
