package commands_test

import (
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/records"
)

// Completion proposes values of the cluster.
func TestCompletion(t *testing.T) {
	w := newWorld(t)
	risk := configv1.ConditionalUpdateRisk{Name: "SlowStorage", Message: "m", URL: "https://example.com/slow", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}}}
	state := openshift.State{
		Version: "4.18.3", Image: "registry/release@" + records.Digest('0'), Available: map[string]string{"4.18.4": "registry/release@" + records.Digest('4')},
		Conditional: []configv1.ConditionalUpdate{{
			Release: configv1.Release{Version: "4.18.5", Image: "registry/release@" + records.Digest('5')}, Risks: []configv1.ConditionalUpdateRisk{risk},
		}},
		Gates: map[string]string{"ack-4.18-api": "Migrate the clients.", "ack-4.18-other": "Read the notes."},
	}
	if err := openshift.Apply(t.Context(), byDefault.Config, state); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "completed-0"}}
	if _, err := w.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run := w.Detached('2', []string{"Etcd.Quorum", "Ingress.Certificate"}, records.Result("Etcd.Quorum", records.Failed("Etcd.Quorum", "NoQuorum")))
	tests := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"run":       {"runs with their target and state", []string{"attach", ""}, []string{run + "\tto 4.19.2, Running"}},
		"prefix":    {"only runs with the prefix are proposed", []string{"status", "zzzz"}, nil},
		"one only":  {"status accepts one run", []string{"status", run, ""}, nil},
		"newest":    {"the checks of the newest runs", []string{"logs", "Ing"}, []string{"Ingress.Certificate"}},
		"check":     {"the checks of the run", []string{"logs", run, "E"}, []string{"Etcd.Quorum"}},
		"only":      {"checks and components of the newest runs", []string{"run", "--only", ""}, []string{"Etcd", "Etcd.Quorum", "Ingress", "Ingress.Certificate"}},
		"skip list": {"the last name of a list is completed", []string{"run", "--skip", "Etcd,Ing"}, []string{"Etcd,Ingress", "Etcd,Ingress.Certificate"}},
		"accept":    {"risks of the updates, and open findings of the newest runs", []string{"run", "--accept", ""}, []string{"SlowStorage", "Etcd.Quorum"}},
		"risks":     {"only risks are stored in ClusterVersion", []string{"accept", "Slow"}, []string{"SlowStorage"}},
		"version":   {"available and conditional updates", []string{"targets", "--to", "4.18"}, []string{"4.18.4\tavailable", "4.18.5\tconditional"}},
		"node":      {"the nodes", []string{"drain-plan", "--node", "comp"}, []string{"completed-0"}},
		"gates":     {"the admin gates", []string{"ack", "ack-4.18-a"}, []string{"ack-4.18-api"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := world{Cluster: w.Cluster, t: t}
			lines := strings.Split(strings.TrimSpace(w.call(exit.Ready, append([]string{"__complete"}, test.args...)...).Stdout), "\n")
			if got := lines[:len(lines)-1]; !slices.Equal(got, test.want) {
				t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
			}
		})
	}
}

// The versions of the cluster are printed if it responds.
func TestVersion(t *testing.T) {
	w := newWorld(t)
	got := w.call(exit.Ready, "version")
	w.contains(got.Stdout, "Client ", "Cluster    4.18.3\n", "Kubernetes v")
	if got := w.call(exit.Ready, "version", "--client").Stdout; strings.Contains(got, "Cluster") {
		t.Errorf("--client prints the version of the cluster:\n%s", got)
	}
}
