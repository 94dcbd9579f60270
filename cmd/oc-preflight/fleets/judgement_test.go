package fleets_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
)

// judged is a cluster whose update has settled more than an hour ago, with a judgement whose last sample was so long ago;
// without a decision it has none.
func judged(t *testing.T, decision afterupdate.Decision, ago time.Duration) (server *apiserver.Server, kubeconfig string) {
	t.Helper()
	now := time.Now()
	before := after.New(now)
	updated := before.Clone()
	updated.Update()
	server, run := updated.Recorded(t, before)
	if decision != "" {
		baseline := before.Baseline(t)
		made := updated.Judge(t, baseline)
		made.Decision, made.Message, made.Samples.Last = decision, "the message of "+string(decision), words.Time(now.Add(-ago))
		if err := baselinestore.New(kubernetes.NewForConfigOrDie(server.Config())).PutJudgement(t.Context(), run, made); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"clusters":[{"name":"c","cluster":{"server":"` + server.URL +
		`"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return server, kubeconfig
}

// The gate of a table counts a cluster that regressed as failed, and begins the soak when the update was judged as Good.
func TestGateByJudgements(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		decision afterupdate.Decision
		ago      time.Duration
		denied   bool
		taken    string
		args     []string
		code     int
		want     string
	}{
		"Good": {
			taken: "good", reason: "it was good for the soak", decision: afterupdate.Good, ago: 40 * time.Minute,
			args: []string{"--soak", "30m"}, code: exit.Ready, want: "1 of 1 cluster succeeded",
		},
		"Soaking": {
			taken: "good", reason: "it is good since ten minutes, and updated since more than an hour", decision: afterupdate.Good,
			ago: 10 * time.Minute, args: []string{"--soak", "30m"}, code: exit.Undecided, want: "good after the update for 10m0s of 30m0s",
		},
		"Regressed": {
			taken: "regressed", reason: "it failed, also without a soak", decision: afterupdate.Regressed, code: exit.Blocked,
			want: "the message of Regressed",
		},
		"NotJudged": {
			taken: "settling", reason: "the judgement may have been deleted: a baseline is stored", args: []string{"--soak", "30m"},
			code: exit.Undecided, want: "has not been evaluated with it",
		},
		"Forbidden": {
			taken: "unknown", reason: "it may have regressed", decision: afterupdate.Regressed, denied: true,
			args: []string{"--soak", "30m"}, code: exit.Undecided, want: "the stored judgements could not be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, kubeconfig := judged(t, tc.decision, tc.ago)
			server.Deny(func(_ string, request apiserver.Request) bool {
				return tc.denied && request.Resource == "configmaps" && request.Namespace == record.Namespace
			})
			directory, table := write(t, map[string]string{"a": kubeconfig}), filepath.Join(t.TempDir(), "wave.json")
			// it runs the release, so nothing was evaluated
			if got := program.Call(t, "fleet", "targets", "--kubeconfigs", directory, "--to", after.To, "--quiet", "--report",
				"json="+table); got.Code != exit.Undecided {
				t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
			}
			text := program.Call(t, "fleet", "targets", "--kubeconfigs", directory, "--to", after.To, "--quiet").Stdout
			if want := after.To + ": taken by 1 cluster of this fleet, from " + after.From + " (1): 1 " +
				tc.taken; !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				t.Errorf("%s: want %q in\n%s", tc.reason, want, text)
			}
			got := program.Call(t, append([]string{"fleet", "gate", "--to", after.To, "--table", table}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(strings.Join(strings.Fields(got.Stdout), " "), tc.want) {
				t.Errorf("%s: exit code %d, want %d and %q\n%s%s", tc.reason, got.Code, tc.code, tc.want, got.Stdout, got.Stderr)
			}
		})
	}
}
