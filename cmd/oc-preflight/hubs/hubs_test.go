package hubs_test

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/hubs"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/collector/cluster"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

// kubeconfig is that of the API server of a hub.
var (
	kubeconfig string
	reached    *cluster.Cluster
)

func TestMain(m *testing.M) {
	//nolint:noctx // before the tests
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api").Output()
	if err != nil {
		panic(err)
	}
	var files []string
	for _, pattern := range []string{
		"cluster/v1/*managedclusters", "cluster/v1beta1/*placements", "cluster/v1beta1/*placementdecisions",
		"work/v1/*_manifestworks", "work/v1alpha1/*manifestworkreplicasets",
	} {
		found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), pattern+".crd.yaml"))
		if err != nil {
			panic(err)
		}
		files = append(files, found...)
	}
	testcluster.Main(m, func(c *testcluster.Cluster) {
		kubeconfig = c.Kubeconfig
		if reached, err = cluster.Connect(c.Config, "test"); err != nil {
			panic(err)
		}
	}, testcluster.ControlPlaneOnly(), testcluster.CRDs(files...))
}

// call runs a command, and returns its output and exit code.
func call(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	root := &cobra.Command{Use: "fleet", SilenceErrors: true, SilenceUsage: true}
	client := cli.New(root.PersistentFlags(), streams)
	client.StartLog()
	root.AddCommand(hubs.NewHub(client), hubs.NewGate(client), hubs.NewRequest(client))
	root.SetArgs(append(args, "--kubeconfig", kubeconfig))
	err := root.ExecuteContext(t.Context())
	code = exitcode.Code(err, phrase.Of(root).Remedy, &errOut)
	return out.String() + errOut.String(), code
}

// put creates an object of YAML, and writes its status.
func put(t *testing.T, resource, text string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	version, err := schema.ParseGroupVersion(object.GetAPIVersion())
	if err != nil {
		t.Fatal(err)
	}
	client := reached.Dynamic.Resource(version.WithResource(resource)).Namespace(object.GetNamespace())
	created, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	if status, found := object.Object["status"]; found {
		created.Object["status"] = status
		if _, err := client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// spoke is a cluster of the hub.
type spoke struct {
	name string
	// available and updated are the statuses of its conditions, and reason is that of the latter.
	available, updated, reason string
	// ago is how long it has been updated, by its own report.
	ago time.Duration
	// id is the ID that it claims; its name by default.
	id string
}

func (s spoke) create(t *testing.T) {
	t.Helper()
	if _, err := reached.Kubernetes.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	put(t, "managedclusters", `
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: `+s.name+`}
spec: {hubAcceptsClient: true}
status:
  version: {}
  clusterClaims: [{name: id.openshift.io, value: "`+cmp.Or(s.id, s.name)+`"}]
  conditions:
  - {type: HubAcceptedManagedCluster, status: "True", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: ManagedClusterJoined, status: "True", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: ManagedClusterConditionAvailable, status: "`+s.available+`", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
`)
	put(t, "manifestworks", `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {namespace: `+s.name+
		`, name: fleet-4.19.12, labels: {work.open-cluster-management.io/manifestworkreplicaset: fleets.fleet-4.19.12}}
spec: {}
status:
  conditions: [{type: Applied, status: "True", observedGeneration: 1, reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  resourceStatus:
    manifests:
    - resourceMeta: {group: preflight.openshift.io, kind: UpdatePreflight, name: fleet-4.19.12, ordinal: 0}
      conditions:
      - {type: Available, status: "True", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
      - {type: StatusFeedbackSynced, status: "True", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
      statusFeedback:
        values:
        - {name: version, fieldValue: {type: String, string: 4.19.12}}
        - {name: phase, fieldValue: {type: String, string: Pending}}
        - {name: reportTime, fieldValue: {type: String, string: "`+now.Format(time.RFC3339)+`"}}
        - {name: updated, fieldValue: {type: String, string: "`+s.updated+`"}}
        - {name: updatedReason, fieldValue: {type: String, string: "`+s.reason+`"}}
        - {name: updatedMessage, fieldValue: {type: String, string: "degraded MachineConfigPools: worker"}}
        - {name: updatedSince, fieldValue: {type: String, string: "`+now.Add(-s.ago).Format(time.RFC3339)+`"}}
        - {name: afterUpdate, fieldValue: {type: String, string: "`+map[string]string{"True": "True", "False": "Unknown"}[s.updated]+`"}}
        - {name: afterUpdateSince, fieldValue: {type: String, string: "`+now.Add(-s.ago).Format(time.RFC3339)+`"}}
`)
}

// The words of an administrator, from the request to the gate, on the real API of a hub.
func TestFleet(t *testing.T) {
	if _, err := reached.Kubernetes.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleets"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request, code := call(t, "request", "--to", "4.19.12", "--placement", "fleets/production", "--accept", "RiskB,RiskA")
	if code != 0 {
		t.Fatal(request)
	}
	put(t, "manifestworkreplicasets", request)
	put(t, "placements", `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {namespace: fleets, name: production}
spec: {tolerations: [{operator: Exists}]}
`)
	spoke{"good", "True", "True", "Updated", 3 * time.Hour, ""}.create(t)
	spoke{"away", "Unknown", "True", "Updated", 30 * time.Hour, ""}.create(t)
	spoke{"bad", "True", "False", "PoolDegraded", time.Hour, ""}.create(t)
	for _, twin := range []string{"twin-a", "twin-b"} {
		spoke{
			name: twin, available: "True", updated: "True", reason: "Updated", ago: time.Hour,
			id: "5d1c2f04-7a3e-4f0b-9a55-0c6a7f3b9e18",
		}.create(t)
	}
	for _, each := range []struct{ group, name string }{{"canary", "good"}, {"second", "away"}, {"third", "bad"}} {
		put(t, "placementdecisions", `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: PlacementDecision
metadata:
  namespace: fleets
  name: `+each.group+`
  labels: {cluster.open-cluster-management.io/placement: production, cluster.open-cluster-management.io/decision-group-name: `+each.group+`}
status: {decisions: [{clusterName: `+each.name+`, reason: ""}]}
`)
	}
	gate := func(args ...string) []string {
		return append([]string{"gate", "--to", "4.19.12", "--placement", "fleets/production"}, args...)
	}
	table := func(text string) []string {
		path := filepath.Join(t.TempDir(), "table.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"gate", "--to", "4.19.12", "--soak", "2h", "--table", path}
	}
	written, _ := call(t, "hub", "--to", "4.19.12", "--placement", "fleets/production", "--wave", "canary", "-o", "json")
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"Written":  {"the table of another command has what the gate needs", table(written), 0, "who may write it decides"},
		"Aged":     {"a table of yesterday", append(table(written), "--max-age", "1ns"), 4, "create the table again"},
		"Foreign":  {"the file is another document", table(`{"kind": "PreflightReport"}`), 2, "it is not a table of a fleet"},
		"NoJSON":   {"a table for people", table("READY"), 2, `it is no JSON that "fleet run -o json"`},
		"NoFile":   {"the file does not exist", []string{"gate", "--to", "4.19.12", "--table", "/nonexistent"}, 2, "--table /nonexistent"},
		"NoSource": {"the clusters of the wave are not named", []string{"gate", "--to", "4.19.12"}, 2, "--placement or --table is required"},
		"Open":     {"the canary is updated for long enough", gate("--wave", "canary", "--soak", "2h"), 0, "READY"},
		"Soaking":  {"an hour is missing", gate("--wave", "canary", "--soak", "4h"), 4, "good after the update for 3h0m0s of 4h0m0s"},
		"Silent": {
			"the last values of a cluster that is away do not count", gate("--wave", "second"), 4,
			"has not answered the hub since 2026-01-01T00:00:00Z",
		},
		"Failed":    {"a degraded pool", gate("--wave", "third"), 3, "degraded MachineConfigPools: worker"},
		"Tolerated": {"the others have not succeeded", gate("--max-failed", "50%"), 4, "UNDECIDED"},
		"NoWave":    {"a wave without clusters", gate("--wave", "other"), 4, "proves nothing"},
		"Watch":     {"it ends when the gate opens", gate("--wave", "canary", "--watch"), 0, "READY"},
		"JSON":      {"for a script", gate("--wave", "canary", "-o", "json"), 0, `"decision": "Ready"`},
		"Table":     {"the rows of the same clusters", []string{"hub", "--to", "4.19.12", "--placement", "fleets/production"}, 4, "HubReport"},
		"Shared": {
			"two clusters claim one ID",
			[]string{"hub", "--to", "4.19.12", "-o", "json"},
			4,
			"twin-a and twin-b (hub) claim the cluster ID 5d1c2f04-7a3e-4f0b-9a55-0c6a7f3b9e18",
		},
		"NoTo": {"a gate is about a release", []string{"gate", "--placement", "fleets/production"}, 2, "--to is required"},
		"Version": {
			"no cluster reports on it",
			[]string{"gate", "--to", "v4.19.12", "--placement", "fleets/production"},
			2,
			"write --to 4.19.12",
		},
		"HubTo":     {"no cluster reports on it", []string{"hub", "--to", "latest"}, 2, "--to takes a version"},
		"Limit":     {"a part of a cluster", gate("--max-failed", "1.5"), 2, "--max-failed"},
		"Placement": {"a namespace is missing", []string{"hub", "--placement", "production"}, 2, "NAMESPACE/NAME"},
		"Missing":   {"the Placement does not exist", []string{"hub", "--placement", "fleets/none"}, 2, "does not exist in the namespace fleets"},
		"Keys":      {"the directory of the keys does not exist", []string{"hub", "--keys", "/nonexistent"}, 2, "--keys /nonexistent"},
		"KeysName":  {"a ConfigMap has a namespace", []string{"hub", "--keys", "configmap://keys"}, 2, "configmap://NAMESPACE/NAME"},
		"KeysNone": {
			"the ConfigMap of the keys does not exist",
			[]string{"hub", "--keys", "configmap://fleets/keys"},
			2,
			"oc create configmap keys -n fleets",
		},
		"NoVersion": {"a name of an object", []string{"request", "--to", "../x", "--placement", "a/b"}, 2, "is not a version"},
		"LongLabel": {
			"OCM could not label its objects",
			[]string{"request", "--to", "4.19.12", "--placement", strings.Repeat("n", 60) + "/b"},
			2,
			"too long",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if output, code := call(t, tc.args...); code != tc.code || !strings.Contains(output, tc.want) {
				t.Errorf("%s: want exit code %d and %q, got %d:\n%s", tc.reason, tc.code, tc.want, code, output)
			}
		})
	}
}
