package completion_test

import (
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// Completion proposes values of the cluster.
func TestCompletion(t *testing.T) {
	server := apiserver.Start(t)
	t.Setenv("KUBECONFIG", server.Kubeconfig)
	w := records.In(t, server.Config())
	risk := configv1.ConditionalUpdateRisk{
		Name: "SlowStorage", Message: "m", URL: "https://example.com/slow",
		MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
	}
	state := openshift.State{
		Version: "4.18.3", Image: "registry/release@" + records.Digest('0'),
		Available: map[string]string{"4.18.4": "registry/release@" + records.Digest('4')},
		Conditional: []configv1.ConditionalUpdate{{
			Release: configv1.Release{Version: "4.18.5", Image: "registry/release@" + records.Digest('5')},
			Risks:   []configv1.ConditionalUpdateRisk{risk},
		}},
		Gates: map[string]string{"ack-4.18-api": "Migrate the clients.", "ack-4.18-other": "Read the notes."},
	}
	if err := openshift.Apply(t.Context(), server.Config(), state); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "completed-0"}}
	if _, err := w.Client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	run := w.Detached('2', []string{"Etcd.Quorum", "Ingress.Certificate"},
		records.Result("Etcd.Quorum", records.Failed("Etcd.Quorum", "NoQuorum")))
	tests := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"run":      {"runs with their target and state", []string{"attach", ""}, []string{run + "\tto 4.19.2, Running"}},
		"prefix":   {"only runs with the prefix are proposed", []string{"status", "zzzz"}, nil},
		"one only": {"status accepts one run", []string{"status", run, ""}, nil},
		"newest":   {"the checks of the newest runs", []string{"logs", "Ing"}, []string{"Ingress.Certificate"}},
		"check":    {"the checks of the run", []string{"logs", run, "E"}, []string{"Etcd.Quorum"}},
		"only": {
			"checks and components of the newest runs",
			[]string{"run", "--only", ""},
			[]string{"Etcd", "Etcd.Quorum", "Ingress", "Ingress.Certificate"},
		},
		"skip list": {
			"the last name of a list is completed",
			[]string{"run", "--skip", "Etcd,Ing"},
			[]string{"Etcd,Ingress", "Etcd,Ingress.Certificate"},
		},
		"accept": {
			"risks of the updates, and open findings of the newest runs",
			[]string{"run", "--accept", ""},
			[]string{"SlowStorage", "Etcd.Quorum"},
		},
		"risks": {"only risks are stored in ClusterVersion", []string{"accept", "Slow"}, []string{"SlowStorage"}},
		"version": {
			"available and conditional updates",
			[]string{"targets", "--to", "4.18"},
			[]string{"4.18.4\tavailable", "4.18.5\tconditional"},
		},
		"node":  {"the nodes", []string{"drain-plan", "--node", "comp"}, []string{"completed-0"}},
		"gates": {"the admin gates", []string{"ack", "ack-4.18-a"}, []string{"ack-4.18-api"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, append([]string{"__complete"}, test.args...)...)
			lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
			if proposed := lines[:len(lines)-1]; got.Code != exit.Ready || !slices.Equal(proposed, test.want) {
				t.Errorf("%s: exit code %d, got %q, want %q", test.reason, got.Code, proposed, test.want)
			}
		})
	}
}

// A word that cannot be completed stays as it is: a shell would show an error in the line that is typed.
func TestCompletionWithoutAnAnswer(t *testing.T) {
	refusing := apiserver.Start(t)
	refusing.Deny(func(string, apiserver.Request) bool { return true })
	for name, tc := range map[string]struct{ reason, kubeconfig string }{
		"NotConfigured": {reason: "no cluster is configured", kubeconfig: "missing"},
		"Refused":       {reason: "the user may read nothing", kubeconfig: refusing.Kubeconfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.kubeconfig)
			for _, args := range [][]string{
				{"attach", ""},
				{"run", "--to", ""},
				{"run", "--accept", ""},
				{"logs", ""},
				{"ack", ""},
				{"drain-plan", "--node", ""},
			} {
				got := program.Call(t, append([]string{"__complete"}, args...)...)
				if proposed := strings.Split(got.Stdout, "\n"); got.Code != exit.Ready || !strings.HasPrefix(proposed[0], ":") ||
					strings.Contains(got.Stderr, "error") {
					t.Errorf("%s: %q: exit code %d, %q, %q; want no proposal and no error", tc.reason, args, got.Code, got.Stdout, got.Stderr)
				}
			}
		})
	}
}

// What is proposed is one word, in one line, whatever the objects of the cluster are called.
func TestMatching(t *testing.T) {
	many := slices.Repeat([]cobra.Completion{"same"}, 600)
	for name, tc := range map[string]struct {
		reason, prefix string
		found          []cobra.Completion
		want           []cobra.Completion
	}{
		"Prefix": {
			reason: "another word was begun", prefix: "b", found: []cobra.Completion{"a", "b", "bc"},
			want: []cobra.Completion{"b", "bc"},
		},
		"Words": {reason: "a shell would read two words", found: []cobra.Completion{"a b", "c"}, want: []cobra.Completion{"c"}},
		"Lines": {
			reason: "a description has one line", found: []cobra.Completion{"a\tfirst\nsecond"},
			want: []cobra.Completion{"a\tfirst second"},
		},
		"Bound":       {reason: "a shell is not flooded", found: many, want: many[:500]},
		"Description": {reason: "the description is not what is typed", prefix: "first", found: []cobra.Completion{"a\tfirst"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := completion.Matching(tc.found, tc.prefix); !slices.Equal(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
