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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/test/await"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/zoo"
)

// second is another cluster that offers the same release; its checks end after "letGo".
type second struct {
	*zoo.Zoo
	*plane
}

// startSecond gives both clusters a node, whose checks wait for the ConfigMap "go".
func startSecond(t *testing.T) second {
	t.Helper()
	techPreview.use(t)
	byDefault.use(t)
	w := publish(t, map[string]animal{"dog": {Ending: "pass", Simulated: true}, "cat": {Ending: "patient", Simulated: true}})
	s := second{Zoo: zoo.At(techPreview.Cluster), plane: &techPreview}
	other := s.Offer(t, map[string]string{to: w.PullSpec}, zooNamespace)
	other.State.ID = "b0b0b0b0-1111-4222-8333-444455556666"
	other.Apply(t)
	zoo.StartNode(t, byDefault.Config)
	zoo.StartNode(t, techPreview.Config)
	return s
}

// contexts writes a kubeconfig with both clusters, a former user of the first, and a context that
// names no cluster.
func (s second) contexts(t *testing.T) string {
	t.Helper()
	merged := clientcmdapi.NewConfig()
	for name, of := range map[string]*plane{"a": &byDefault, "b": s.plane} {
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

// letGo ends the checks that wait in a cluster.
func letGo(t *testing.T, of *plane) {
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
	letGo(t, &byDefault)
	all := []string{"fleet", "run", "--kubeconfig", kubeconfig, "--contexts", "*", "--to", to, "--results", results, "-o", "json"}
	t.Run("Interrupted", func(t *testing.T) {
		p := startProcess(t, "fleet", "run", "--kubeconfig", kubeconfig, "--contexts", "b", "--to", to, "-o", "json")
		await.Until(t, "a check runs in the second cluster", func(ctx context.Context) bool {
			jobs, err := kubernetes.NewForConfigOrDie(s.Config).BatchV1().Jobs(zooNamespace).List(ctx, metav1.ListOptions{})
			return err == nil && len(jobs.Items) > 0
		})
		code := p.Stop(t, os.Interrupt)
		var table fleet.Table
		decode(t, program.Result{Code: code, Stdout: p.Stdout(), Stderr: p.Stderr()}, &table)
		if code != exit.Interrupted || len(table.Rows) != 1 || table.Rows[0].Causes[0].Reason != "Interrupted" ||
			!strings.Contains(p.Stderr(), "Ctrl-C again") {
			t.Errorf("exit code %d, %+v\n%s", code, table.Rows, p.Stderr())
		}
		s.ExpectNothingLeft(t)
	})
	p := startProcess(t, all...)
	await.Until(t, "the first cluster is judged", func(context.Context) bool {
		files, err := filepath.Glob(filepath.Join(results, "*.report.json"))
		kept, keptErr := filepath.Glob(filepath.Join(results, "*.json"))
		return err == nil && keptErr == nil && len(files) == 1 && len(kept) == 2
	})
	p.Kill()
	letGo(t, s.plane)
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
	if notice := func(n string) bool { return strings.HasPrefix(n, "a (context a) has the API server of A-first") }; !slices.ContainsFunc(
		table.Notices, notice) {
		t.Errorf("%q state not that the contexts of the first cluster are one", table.Notices)
	}
	testCluster.ExpectNothingLeft(t)
	s.ExpectNothingLeft(t)
	if got := call(t, "fleet", "targets", "--kubeconfig", kubeconfig, "--contexts", "*", "--server",
		"https://api"); got.Code != exit.BadInput || !strings.Contains(got.Stderr, "--server: the flag is for one cluster") {
		t.Errorf("exit code %d: %s", got.Code, got.Stderr)
	}
	if got := call(t, "fleet", "targets", "--kubeconfigs", s.Kubeconfig, "--as", "ann", "-o", "json"); got.Code != exit.Undecided ||
		!strings.Contains(got.Stdout, "auth targets --bind user:ann") {
		t.Errorf("exit code %d: %s", got.Code, got.Stdout)
	}
}
