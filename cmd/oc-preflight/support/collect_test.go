package support_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/offer"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// newOffered is a cluster that the program reaches, which an admin gate keeps from 4.19.1.
func newOffered(t *testing.T) *offer.Cluster {
	t.Helper()
	c := offer.Start(t, nil)
	addDefinitions(t, c)
	c.State.Gates["ack-4.18-api"] = "Migrate the clients."
	c.Apply()
	t.Setenv("KUBECONFIG", c.Kubeconfig)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return c
}

// addDefinitions adds the CustomResourceDefinitions of OpenShift: which APIs are served is read from these in an archive.
func addDefinitions(t *testing.T, c *offer.Cluster) {
	t.Helper()
	for _, kind := range []string{"ClusterVersion", "ClusterOperator", "Infrastructure"} {
		plural := strings.ToLower(kind) + "s"
		c.Add(t, &apiextensionsv1.CustomResourceDefinition{
			TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".config.openshift.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "config.openshift.io", Scope: apiextensionsv1.ClusterScoped,
				Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, ListKind: kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
			},
			Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}},
		})
	}
}

// blocking are the findings that block the update by a command.
func blocking(t *testing.T, args ...string) []string {
	t.Helper()
	got := program.Call(t, append([]string{"targets", "--to", offer.To, "-o", "json", "--quiet"}, args...)...)
	var made report.Targets
	if err := json.Unmarshal([]byte(got.Stdout), &made); err != nil || len(made.Targets) != 1 {
		t.Fatalf("exit code %d, %v\n%s%s", got.Code, err, got.Stdout, got.Stderr)
	}
	return made.Targets[0].Verdict.Blocking
}

// An archive gives the answers of its cluster, as a file and as a directory, redacted or not.
func TestCollect(t *testing.T) {
	c := newOffered(t)
	run := records.In(t, c.Config()).Completed('1', records.Report(records.Passed("Etcd.Quorum")), nil)
	want := blocking(t)
	before := len(c.Writes())
	for name, tc := range map[string]struct {
		reason, output string
		args           []string
		// recorded reports whether the archive has the recorded run.
		recorded bool
	}{
		"File":      {reason: "a file for support", output: "cluster.tar.gz", recorded: true},
		"Directory": {reason: "a directory to look through", output: "cluster", recorded: true},
		"Redacted":  {reason: "the reports of runs cannot be redacted", output: "public.tgz", args: []string{"--redact"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tc.output)
			got := program.Call(t, append([]string{"collect", "-o", path, "--prometheus", c.Monitoring, "--quiet"}, tc.args...)...)
			if got.Code != exit.Ready || !strings.Contains(got.Stdout, "wrote "+path+": cluster "+openshift.ClusterID) ||
				!strings.Contains(got.Stdout, "evaluate the archive with: oc preflight targets --archive "+path) {
				t.Fatalf("%s: exit code %d\n%s%s", tc.reason, got.Code, got.Stdout, got.Stderr)
			}
			if judged := blocking(t, "--archive", path); !slices.Equal(judged, want) {
				t.Errorf("%s: the archive is blocked by %q, its cluster by %q", tc.reason, judged, want)
			}
			history := program.Call(t, "history", "--archive", path, "-o", "name")
			if (history.Code == exit.Ready) != tc.recorded || strings.Contains(history.Stdout, run) != tc.recorded {
				t.Errorf("%s: exit code %d, the runs are %q, wanted: %t", tc.reason, history.Code, history.Stdout, tc.recorded)
			}
			// The key by which a record is authenticated is not in an archive.
			if status := program.Call(t, "status", "--archive", path); tc.recorded && status.Code != exit.Undecided {
				t.Errorf("%s: status has exit code %d, want %d\n%s", tc.reason, status.Code, exit.Undecided, status.Stdout)
			}
		})
	}
	if wrote := c.Writes()[before:]; len(wrote) > 0 {
		t.Errorf("the cluster got %q", wrote)
	}
}

// What was listed in some namespaces only is not complete: an object of another one may exist in the cluster.
func TestCollectOfSomeNamespaces(t *testing.T) {
	c := newOffered(t)
	path := filepath.Join(t.TempDir(), "cluster")
	if got := program.Call(t, "collect", "-o", path, "--prometheus", c.Monitoring, "--quiet"); got.Code != exit.Ready {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	text, err := os.ReadFile(filepath.Join(path, "preflight-collection.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Complete []string `json:"complete"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(index.Complete, "configmaps") || !slices.Contains(index.Complete, "pods") {
		t.Errorf("complete are %q, want pods, and not configmaps", index.Complete)
	}
	if got := program.Call(t, "history", "--archive", path); got.Code != exit.Ready ||
		!strings.Contains(got.Stdout, "no run is recorded in this cluster") {
		t.Errorf("exit code %d of the archive of a cluster without runs\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// Nothing is overwritten, and a command that fails leaves nothing.
func TestCollectLeavesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// output is the path below a directory with the file "there", and args are further flags.
		output string
		args   []string
		denies func(request apiserver.Request) bool
		code   int
		stated string
	}{
		"Exists":  {reason: "a file is not replaced", output: "there.tar.gz", code: exit.BadInput, stated: "there.tar.gz"},
		"Missing": {reason: "a directory is not made", output: "missing/cluster.tar.gz", code: exit.Failed, stated: "missing"},
		"Prometheus": {
			reason: "a URL that none has", output: "cluster.tar.gz", args: []string{"--prometheus", "ftp://p"}, code: exit.BadInput,
			stated: "--prometheus",
		},
		"Forbidden": {
			reason: "without ClusterVersion it is no archive of a cluster", output: "cluster.tar.gz", code: exit.Failed,
			stated: "oc preflight auth collect --bind user:tester",
			denies: func(request apiserver.Request) bool { return request.Resource == "clusterversions" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newOffered(t)
			if tc.denies != nil {
				c.Deny(func(_ string, request apiserver.Request) bool { return tc.denies(request) })
			}
			directory := t.TempDir()
			if err := os.WriteFile(filepath.Join(directory, "there.tar.gz"), []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
			got := program.Call(t, append([]string{"collect", "-o", filepath.Join(directory, tc.output)}, tc.args...)...)
			if got.Code != tc.code || got.Stdout != "" || !strings.Contains(got.Stderr, tc.stated) {
				t.Errorf("%s: exit code %d, want %d and %q\n%s%s", tc.reason, got.Code, tc.code, tc.stated, got.Stdout, got.Stderr)
			}
			entries, err := os.ReadDir(directory)
			if err != nil || len(entries) != 1 {
				t.Errorf("%s: %d files are left, want the one that was there: %v", tc.reason, len(entries), err)
			}
			if text, err := os.ReadFile(filepath.Join(directory, "there.tar.gz")); err != nil || string(text) != "before" {
				t.Errorf("%s: the file is now %q, %v", tc.reason, text, err)
			}
		})
	}
}

// What may not be read is stated, in the output and by the verdict on the archive: it is no pass.
func TestCollectOfAPart(t *testing.T) {
	c := newOffered(t)
	c.Deny(func(_ string, request apiserver.Request) bool { return request.Resource == "nodes" })
	path := filepath.Join(t.TempDir(), "cluster.tar.gz")
	got := program.Call(t, "collect", "-o", path, "--prometheus", c.Monitoring, "--quiet")
	if got.Code != exit.Ready || !strings.Contains(got.Stdout, "not in the archive: ") || !strings.Contains(got.Stdout, "nodes") {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if judged := program.Call(t, "targets", "--archive", path, "--to", offer.To, "--quiet"); !strings.Contains(judged.Stdout, "NotInArchive") {
		t.Errorf("exit code %d: no finding states what is missing\n%s", judged.Code, judged.Stdout)
	}
}
