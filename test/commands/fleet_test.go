package commands_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	configclient "github.com/openshift/client-go/config/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/fleet"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/zoo"
)

// second is another cluster that offers the same release; its checks end when it is told.
type second struct {
	*zoo.Zoo

	cluster *cluster.Cluster
}

// startSecond starts the cluster with a node, whose checks wait for the ConfigMap "go" as those of the
// shared one do.
func startSecond(t *testing.T) second {
	t.Helper()
	w := publish(t, map[string]animal{"dog": {Ending: "pass", Simulated: true}, "cat": {Ending: "patient", Simulated: true}})
	other, err := cluster.Start(t.Context(), filepath.Join(t.TempDir(), "second"), cluster.ControlPlaneOnly())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s := second{Zoo: zoo.At(other), cluster: other}
	s.Offer(t, map[string]string{to: w.PullSpec}, zooNamespace)
	_, err = configclient.NewForConfigOrDie(other.Config).ConfigV1().ClusterVersions().Patch(t.Context(), "version", types.MergePatchType,
		[]byte(`{"spec":{"clusterID":"b0b0b0b0-1111-4222-8333-444455556666"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := openshift.Observe(t.Context(), other.Config); err != nil {
		t.Fatal(err)
	}
	zoo.StartNode(t, local.Config)
	zoo.StartNode(t, other.Config)
	return s
}

// contexts writes a kubeconfig with both clusters, a former user of the first, and a context that
// names no cluster.
func (s second) contexts(t *testing.T) string {
	t.Helper()
	merged := clientcmdapi.NewConfig()
	for name, of := range map[string]*cluster.Cluster{"a": local, "b": s.cluster} {
		read, err := clientcmd.LoadFromFile(of.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		current := read.Contexts[read.CurrentContext]
		merged.Clusters[name], merged.AuthInfos[name] = read.Clusters[current.Cluster], read.AuthInfos[current.AuthInfo]
		merged.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	merged.AuthInfos["former"] = &clientcmdapi.AuthInfo{Token: "expired"}
	merged.Contexts["A-first"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "former"}
	merged.Contexts["broken"] = &clientcmdapi.Context{Cluster: "none", AuthInfo: "a"}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*merged, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// release ends the checks that wait in a cluster.
func release(t *testing.T, of *cluster.Cluster) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(of.Config).CoreV1().ConfigMaps(zooNamespace)
	if _, err := client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "go"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestFleet runs a preflight in two clusters: it is killed when one is judged, continues with the other,
// and leaves nothing. A user of the first cluster whose token is rejected, and a context without a
// cluster, change nothing for those that are reached.
func TestFleet(t *testing.T) {
	s := startSecond(t)
	kubeconfig, results := s.contexts(t), filepath.Join(t.TempDir(), "results")
	release(t, local)
	all := []string{"fleet", "run", "--kubeconfig", kubeconfig, "--contexts", "*", "--to", to, "--results", results, "-o", "json"}
	t.Run("Interrupted", func(t *testing.T) {
		p := start(t, "fleet", "run", "--kubeconfig", kubeconfig, "--contexts", "b", "--to", to, "-o", "json")
		await.Until(t, "a check runs in the second cluster", func(context.Context) bool { return len(s.Left(t, "")) > 0 })
		p.signal(t, os.Interrupt)
		var table fleet.Table
		p.decode(t, &table)
		if code := p.command.ProcessState.ExitCode(); code != exit.Interrupted || len(table.Rows) != 1 || table.Rows[0].Causes[0].Reason != "Interrupted" || !strings.Contains(p.stderr.String(), "Ctrl-C again") {
			t.Errorf("exit code %d, %+v\n%s", code, table.Rows, &p.stderr)
		}
		s.ExpectNothingLeft(t)
	})
	p := start(t, all...)
	await.Until(t, "the first cluster is judged", func(context.Context) bool {
		files, err := filepath.Glob(filepath.Join(results, "*.report.json"))
		kept, keptErr := filepath.Glob(filepath.Join(results, "*.json"))
		return err == nil && keptErr == nil && len(files) == 1 && len(kept) == 2
	})
	p.signal(t, os.Kill)
	release(t, s.cluster)
	got := call(t, all...)
	var table fleet.Table
	if err := json.Unmarshal([]byte(got.Stdout), &table); err != nil || got.Code != exit.Undecided {
		t.Fatalf("exit code %d, %v\n%s", got.Code, err, got.Stderr)
	}
	rows := map[string]string{}
	for _, row := range table.Rows {
		rows[row.Cluster.Name] = string(row.State)
		if row.Cluster.Name == "a" && !strings.HasPrefix(row.Evidence, "result of ") {
			t.Errorf("a was asked again: %+v", row)
		}
		if row.Cluster.Name == "broken" && !strings.Contains(row.Message, `names the cluster "none"`) {
			t.Errorf("the message of broken is %q", row.Message)
		}
	}
	if want := map[string]string{"a": "Ready", "b": "Ready", "broken": "Unreachable"}; !maps.Equal(rows, want) {
		t.Errorf("got %v, want %v\n%s", rows, want, got.Stdout)
	}
	if notice := func(n string) bool { return strings.HasPrefix(n, "a (context a) has the API server of A-first") }; !slices.ContainsFunc(table.Notices, notice) {
		t.Errorf("%q state not that the contexts of the first cluster are one", table.Notices)
	}
	testCluster.ExpectNothingLeft(t)
	s.ExpectNothingLeft(t)
	if got := call(t, "fleet", "targets", "--kubeconfig", kubeconfig, "--contexts", "*", "--server", "https://api"); got.Code != exit.BadInput || !strings.Contains(got.Stderr, "--server: the flag is for one cluster") {
		t.Errorf("exit code %d: %s", got.Code, got.Stderr)
	}
	if got := call(t, "fleet", "targets", "--kubeconfigs", s.cluster.Kubeconfig, "--as", "nobody", "-o", "json"); got.Code != exit.Undecided || !strings.Contains(got.Stdout, "auth targets --as nobody --kubeconfig") {
		t.Errorf("exit code %d: %s", got.Code, got.Stdout)
	}
}
