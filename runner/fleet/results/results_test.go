package results_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/results"
	"github.com/openshift/update-preflight/runner/fleet/roster"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func member(t *testing.T, name string) roster.Member {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".tar")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	members, _, err := roster.Archives([]string{path}, func(context.Context, string) (*cluster.Cluster, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	return members[0]
}

func open(t *testing.T, path, request string, at time.Time) *results.Directory {
	t.Helper()
	opened, err := results.Open(path, request, time.Hour, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func TestKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	asked := member(t, "a")
	row := fleet.Row{Cluster: asked.Cluster, State: fleet.Ready, Until: "2026-11-26T12:30:00Z"}
	if err := open(t, path, "to 4.19.1", noon).Keep(asked, row); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, request string
		at              time.Time
		of              roster.Member
		want            bool
	}{
		"Same":    {reason: "the cluster is not asked again", request: "to 4.19.1", at: noon.Add(time.Minute), of: asked, want: true},
		"Target":  {reason: "the result is about another target", request: "to 4.19.2", at: noon, of: asked},
		"Ended":   {reason: "the verdict has ended", request: "to 4.19.1", at: noon.Add(40 * time.Minute), of: asked},
		"Future":  {reason: "the clock is an hour behind: the age is unknown", request: "to 4.19.1", at: noon.Add(-time.Hour), of: asked},
		"Another": {reason: "it is another member of that name", request: "to 4.19.1", at: noon, of: member(t, "a")},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := open(t, path, tc.request, tc.at).Known(tc.of)
			if known != tc.want || known && !strings.Contains(got.Evidence, "2026-11-26T12:00:00Z") {
				t.Errorf("%s: %t, %+v", tc.reason, known, got)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	kept, asked := open(t, path, "r", noon), member(t, strings.Repeat("/", 300)+"name")
	if err := kept.KeepReport(asked, report.Report{}); err != nil {
		t.Fatal(err)
	}
	if err := kept.Keep(asked, fleet.Row{}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", entry.Name(), info.Mode(), err)
		}
		if err := os.WriteFile(filepath.Join(path, entry.Name()), []byte(`{"kind":`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, known := kept.Known(asked); known {
		t.Error("a file that is cut is no result")
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := results.Open(path, "r", time.Hour, time.Now); err == nil {
		t.Error("others may write results")
	}
}

// TestAttacksByForeignResults names a directory of another user, who may write any result there.
func TestAttacksByForeignResults(t *testing.T) {
	path := "/usr" // of root
	if os.Geteuid() == 0 {
		const other = 65534
		path = t.TempDir()
		if err := os.Chown(path, other, -1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := results.Open(path, "r", time.Hour, time.Now); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("got %v, want an error", err)
	}
}

// hub answers with the HostedClusters that it has.
type hub []map[string]any

func (h hub) RoundTrip(request *http.Request) (*http.Response, error) {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedClusterList",
		"metadata": map[string]any{}, "items": h,
	})
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)), Request: request,
	}, err
}

// hosted is clusters/example of a management cluster.
func hosted(t *testing.T, url, uid, clusterID, environment string) roster.Member {
	t.Helper()
	management, err := cluster.Connect(&rest.Config{Host: url, Transport: hub{{
		"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedCluster",
		"metadata": map[string]any{"namespace": "clusters", "name": "example", "uid": uid, "labels": map[string]any{"environment": environment}},
		"spec":     map[string]any{"clusterID": clusterID},
	}}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	members, err := roster.Hosted(t.Context(), management, nil)
	if err != nil {
		t.Fatal(err)
	}
	return members[0]
}

// A result is used for the cluster that it is about.
func TestKnownCluster(t *testing.T) {
	const url, uid, id = "https://hub.invalid", "11111111-2222-4333-8444-555555555555", "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
	asked := hosted(t, url, uid, id, "test")
	for name, tc := range map[string]struct {
		reason string
		of     roster.Member
		// judged is the ID in the result; that of the cluster by default.
		judged string
		want   bool
	}{
		"Same": {reason: "the cluster of the same object", of: hosted(t, url, uid, id, "test"), want: true},
		"Hub":  {reason: "the cluster of that name in another management cluster", of: hosted(t, "https://other.invalid", uid, id, "test")},
		"Object": {
			reason: "the management cluster behind the same URL is another one",
			of:     hosted(t, url, "22222222-2222-4333-8444-555555555555", id, "test"),
		},
		"ID": {
			reason: "the HostedCluster has another cluster by now",
			of:     hosted(t, url, uid, "7ba7b810-9dad-41d1-80b4-00c04fd430c8", "test"),
		},
		"Labels": {reason: "other accepted risks may be for it", of: hosted(t, url, uid, id, "production")},
		"OtherRow": {
			reason: "the result is about another cluster than the object names", of: asked,
			judged: "7ba7b810-9dad-41d1-80b4-00c04fd430c8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results")
			row := fleet.Row{Cluster: asked.Cluster, State: fleet.Ready}
			row.Cluster.ID = cmp.Or(tc.judged, id)
			if err := open(t, path, "r", noon).Keep(asked, row); err != nil {
				t.Fatal(err)
			}
			if got, known := open(t, path, "r", noon).Known(tc.of); known != tc.want {
				t.Errorf("%s: %t, %+v", tc.reason, known, got)
			}
		})
	}
}

// contextOf is a member of a kubeconfig.
func contextOf(t *testing.T, authority string) roster.Member {
	t.Helper()
	config := clientcmdapi.Config{Contexts: map[string]*clientcmdapi.Context{"admin": {}}}
	members, err := roster.Contexts(config, []string{"*"}, func(string) (*rest.Config, error) {
		return &rest.Config{Host: "https://localhost:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte(authority)}}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return members[0]
}

func TestKnownBehindOneURL(t *testing.T) {
	kept := open(t, filepath.Join(t.TempDir(), "results"), "r", noon)
	if err := kept.Keep(contextOf(t, "one"), fleet.Row{State: fleet.Ready}); err != nil {
		t.Fatal(err)
	}
	if _, known := kept.Known(contextOf(t, "one")); !known {
		t.Error("the same cluster is asked again")
	}
	if _, known := kept.Known(contextOf(t, "other")); known {
		t.Error("the tunnel leads to a cluster with another certificate authority")
	}
}

// An archive that was gathered again is another question.
func TestKnownArchive(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "must-gather")
	write := func(content string) roster.Member {
		if err := errors.Join(os.MkdirAll(archive, 0o700),
			os.WriteFile(filepath.Join(archive, "version.yaml"), []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
		members, _, err := roster.Archives([]string{filepath.Dir(archive)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return members[0]
	}
	kept := open(t, filepath.Join(t.TempDir(), "results"), "r", noon)
	before := write("4.18")
	if err := kept.Keep(before, fleet.Row{State: fleet.Ready}); err != nil {
		t.Fatal(err)
	}
	if _, known := kept.Known(before); !known {
		t.Error("the same archive is read again")
	}
	if _, known := kept.Known(write("4.18.1")); known {
		t.Error("the result of the archive before is used")
	}
}
