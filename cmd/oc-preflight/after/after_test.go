package after_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/golden"
	"github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/terminal"
)

// updated is a cluster after its update, with changes, and the record of the run before it.
func updated(t *testing.T, changes ...string) (server *apiserver.Server, run string, args []string) {
	t.Helper()
	world := after.New(time.Now())
	before := world.Clone()
	world.Update()
	for _, name := range changes {
		for _, each := range after.Regressions() {
			if each.Name == name {
				each.Apply(world)
			}
		}
	}
	server, run = world.Recorded(t, before)
	t.Setenv("KUBECONFIG", server.Kubeconfig)
	find, err := world.Monitoring(t)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return server, run, []string{"after", "--prometheus", find.Host}
}

// times are what differs between two executions of a test.
var times = regexp.MustCompile(
	`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|http://127[0-9.:]*|[0-9]+m?[0-9]*m[0-9]+s before`)

func untimed(text string) string { return times.ReplaceAllString(text, "…") }

// A good update is Good after two equal samples, and the judgement is beside the record.
func TestGood(t *testing.T) {
	server, run, args := updated(t)
	got := program.Call(t, append(args, "--watch", "--interval", "2s", run[:8])...)
	if got.Code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	documents := strings.Split(strings.TrimSpace(got.Stdout), "\n\n\n")
	golden.Compare(t, "testdata/good.text", untimed(documents[len(documents)-1])+"\n")
	stored, err := kubernetes.NewForConfigOrDie(server.Config()).CoreV1().ConfigMaps(record.Namespace).List(t.Context(),
		metav1.ListOptions{LabelSelector: "preflight.openshift.io/afterupdate"})
	if err != nil || len(stored.Items) != 1 {
		t.Errorf("%d judgements are stored: %v", len(stored.Items), err)
	}
}

// What is worse is named with its object, what it was, since when, and a command.
func TestRegressed(t *testing.T) {
	_, _, args := updated(t, "AggregatedAPI", "NodeNotReady", "Routes", "ImagePull")
	got := program.Call(t, args...)
	if got.Code != 3 {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	golden.Compare(t, "testdata/regressed.text", untimed(got.Stdout))
	got = program.Call(t, append(args, "-o", "json")...)
	var made afterupdate.Report
	if err := json.Unmarshal([]byte(got.Stdout), &made); err != nil || made.Decision != afterupdate.Regressed ||
		made.Counts.Regressions != len(made.Regressions) {
		t.Errorf("%v: %s", err, got.Stdout)
	}
}

// The last document of --watch is whole, also on a terminal that is too small for it, and nothing of the earlier ones is left.
func TestWatchedToTheEnd(t *testing.T) {
	t.Setenv("LC_ALL", "C") // a character is a byte
	_, _, args := updated(t, "AggregatedAPI", "NodeNotReady", "Routes", "ImagePull")
	const columns, rows = 80, 10
	opened, shown := terminal.Open(t, columns, rows), terminal.NewScreen(columns, rows)
	command.Execute(t.Context(), append([]string{"oc-preflight"}, append(args, "--watch", "--interval", "2s")...),
		genericiooptions.IOStreams{In: opened.Stream, Out: opened.Stream, ErrOut: opened.Stream})
	if _, err := shown.Write([]byte(opened.Received())); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(shown.Scrollback, "\n") + "\n" + shown.Shown()
	for _, want := range []string{
		"\nRegressed: 4 problems", " 1. WORSE  APIServiceUnavailable", " 4. WORSE  RouteNotAdmitted",
		"\nNext: $ oc describe apiservice", "\nAfter the update from 4.18.1 to 4.18.2: Regressed",
	} {
		if strings.Count(all, want) != 1 {
			t.Errorf("the terminal has %q %d times, want once:\n%s", want, strings.Count(all, want), all)
		}
	}
}

// A baseline that does not count is none, and without one no update is Good.
func TestBaselines(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(t *testing.T, client kubernetes.Interface, baselines []corev1.ConfigMap)
		want   string
	}{
		"None": {
			reason: "no run stored one", want: "no run has stored one",
			change: func(t *testing.T, client kubernetes.Interface, baselines []corev1.ConfigMap) {
				t.Helper()
				for _, each := range baselines {
					if err := client.CoreV1().ConfigMaps(record.Namespace).Delete(t.Context(), each.Name, metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			},
		},
		"Edited": {
			reason: "it was edited", want: "is not authentic",
			change: func(t *testing.T, client kubernetes.Interface, baselines []corev1.ConfigMap) {
				t.Helper()
				for _, each := range baselines {
					for key, text := range each.Data {
						each.Data[key] = strings.ReplaceAll(text, after.From, "4.18.0")
					}
					if _, err := client.CoreV1().ConfigMaps(record.Namespace).Update(t.Context(), &each, metav1.UpdateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, _, args := updated(t, "Routes")
			client := kubernetes.NewForConfigOrDie(server.Config())
			all, err := client.CoreV1().ConfigMaps(record.Namespace).List(t.Context(),
				metav1.ListOptions{LabelSelector: "preflight.openshift.io/baseline"})
			if err != nil || len(all.Items) == 0 {
				t.Fatalf("%d baselines: %v", len(all.Items), err)
			}
			tc.change(t, client, all.Items)
			got := program.Call(t, args...)
			if got.Code != 4 || !strings.Contains(got.Stdout, tc.want) || !strings.Contains(got.Stdout, "Undecided") ||
				!strings.Contains(got.Stdout, "RouteNotAdmitted") {
				t.Errorf("%s: exit code %d\n%s%s", tc.reason, got.Code, got.Stdout, got.Stderr)
			}
		})
	}
}

// Two archives are compared in their order.
func TestArchives(t *testing.T) {
	dir := t.TempDir()
	before, late := filepath.Join(dir, "before.json"), filepath.Join(dir, "after.json")
	world := after.New(time.Now())
	world.Archive(t, before)
	world.Update()
	after.Regressions()[2].Apply(world)
	world.Newest()
	world.Archive(t, late)
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"Compared": {
			reason: "an archive is judged as of its newest time", args: []string{"--archive", before, "--archive", late}, code: 3,
			want: "APIServiceUnavailable",
		},
		"One": {
			reason: "there is nothing to compare with", args: []string{"--archive", late}, code: 2,
			want: "give the archive from before the update first",
		},
		"Reversed": {
			reason: "the first one is later", args: []string{"--archive", late, "--archive", before}, code: 2,
			want: "name the archive from before the update first",
		},
		"Watched": {
			reason: "an archive does not change", args: []string{"--archive", before, "--archive", late, "--watch"}, code: 2,
			want: "--watch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, append([]string{"after"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Stdout+got.Stderr, tc.want) {
				t.Errorf("%s: exit code %d, want %d with %q\n%s%s", tc.reason, got.Code, tc.code, tc.want, got.Stdout, got.Stderr)
			}
		})
	}
}

// The update of a hosted cluster is judged with what its management cluster has, live and in archives.
func TestHostedCluster(t *testing.T) {
	world := after.NewHosted(time.Now())
	before := world.Clone()
	world.UpdateHosted()
	server, run := world.Recorded(t, before)
	t.Setenv("KUBECONFIG", server.Kubeconfig)
	find, err := world.Monitoring(t)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hosted := []string{"after", "--hosted-cluster", "clusters/example"}
	live := append(slices.Clone(hosted), "--guest-kubeconfig", server.Kubeconfig, "--prometheus", find.Host)
	good := program.Call(t, append(live, "--watch", "--interval", "2s", run[:8])...)
	if good.Code != 0 || !strings.Contains(good.Stdout, "left out: stable (it requests another release, but runs 4.18.1)") {
		t.Errorf("exit code %d\n%s%s", good.Code, good.Stdout, good.Stderr)
	}
	alone := program.Call(t, "after", "--prometheus", find.Host)
	if alone.Code != 4 || !strings.Contains(alone.Stdout, "use the kubeconfig of that cluster, with --hosted-cluster") {
		t.Errorf("without the management cluster: exit code %d\n%s%s", alone.Code, alone.Stdout, alone.Stderr)
	}
	if want := "The next run stores a baseline"; strings.Contains(alone.Stdout, want) {
		t.Errorf("there is a baseline:\n%s", alone.Stdout)
	}
	unreachable := program.Call(t, append(hosted, "--prometheus", find.Host)...)
	if unreachable.Code != 1 || !strings.Contains(unreachable.Stderr, "the baseline is in the guest") {
		t.Errorf("without the guest: exit code %d\n%s%s", unreachable.Code, unreachable.Stdout, unreachable.Stderr)
	}

	world.Condition(after.HostedCluster(), "Degraded", "True", "UnavailableReplicas", 2*time.Hour)
	dump := func(w *after.World, now time.Time) string {
		dir := t.TempDir()
		w.Dump(t, dir, now)
		return dir
	}
	archived := program.Call(t, append(hosted, "--archive", dump(before, time.Now().Add(-5*time.Hour)), "--archive",
		dump(world, time.Now()))...)
	if archived.Code != 3 || !strings.Contains(archived.Stdout, "HostedClusterDegraded") ||
		!strings.Contains(archived.Stdout, "oc -n clusters describe hostedcluster example") {
		t.Errorf("archives: exit code %d\n%s%s", archived.Code, archived.Stdout, archived.Stderr)
	}
}
