package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode"

	configv1 "github.com/openshift/api/config/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/release"
	"github.com/openshift/update-preflight/test/zoo"
)

// attack is an attempt of a user of the cluster to forge a result or to make a run delete
// objects of others.
type attack struct {
	name string
	// reached is the effect of the attack before runs compared objects; "nothing" if it
	// had none.
	reached string
	// run executes the attack and returns what the program reports. It fails the test if
	// the attack succeeds.
	run func(t *testing.T, client kubernetes.Interface) (reported string)
}

// TestAttacksOnTheEnvironment attacks a run by admission, by checks, and by the state of
// the cluster.
func TestAttacksOnTheEnvironment(t *testing.T) {
	client := testCluster.Client(t)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "attack\treached\treported")
	for _, a := range []attack{
		{"policy for Jobs replaces the program of a check", "result of another program", mutatedJob},
		{"policy for pods replaces the program of a check", "another program runs", alteredPod},
		{"policy for pods replaces the program of a check and all labels of its pod", "Pass by another program, without a word", hiddenPod},
		{"policy for pods mounts a ConfigMap over the program of a check", "another program runs", mountedProgram},
		{"policy for pods mounts the token of another account", "a check runs as another account", mountedToken},
		{"policy for pods lets a container share the processes of a check", "files of the check", sharedProcesses},
		{
			"policy for pods adds an init container with a claim for a directory of the node", "files of the node, before the check starts",
			claimedDirectory,
		},
		{"policy for pods adds an init container that redirects the connections of a check", "connections of the check", redirectedConnections},
		{"policy for pods injects a container that never ends", "nothing", injectedContainer},
		{"policy for pods injects an init container that never ends", "the check never starts", injectedInit},
		{"check reports in the name of other checks", "findings below its own component", impostor},
		{"terminal escapes in the result and log of a check", "nothing", hostileCheck},
		{"terminal escapes and long texts in the state of the cluster", "nothing", hostileState},
		{"500 conditional updates with long messages", "nothing", manyUpdates},
		{"cluster that trusts the key of the attacker", "Ready on that cluster", hostileCluster},
	} {
		t.Run(a.name, func(t *testing.T) {
			fmt.Fprintf(w, "%s\t%s\t%s\n", a.name, a.reached, a.run(t, client))
		})
		testCluster.ExpectNothingLeft(t)
	}
	attackByChecks(t, w, checkAttacks(), "10m", 3)
	attackByChecks(t, w, endlessAttacks(), "10s", 4)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// describe returns the decision and the finding of a check as text, which must be as
// expected.
func describe(t *testing.T, result report.Report, name, want string) string {
	t.Helper()
	f := byName(result)[name]
	got := fmt.Sprintf("%s, %s(%s)", result.Verdict.Decision, f.Outcome, f.Reason)
	if got != want {
		t.Errorf("%s: %s: %s; want %s", name, got, f.Message, want)
	}
	return got
}

// checkAttack is a check of a signed release that attacks.
type checkAttack struct {
	name, reached string
	animal        animal
	outcome       preflight.Outcome
	reason        string
	// verify checks the finding further; optional.
	verify func(*testing.T, finding.Finding)
}

// attackByChecks runs a release with these attacks, by the name of the Job, and writes a row
// for each.
func attackByChecks(t *testing.T, table io.Writer, attacks map[string]checkAttack, timeout string, code int) {
	t.Helper()
	animals := map[string]animal{}
	for job, a := range attacks {
		animals[job] = a.animal
	}
	publish(t, animals)
	got := bounded(t, "run", "--to", to, "-o", "json", "--timeout", timeout)
	var result report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &result); err != nil || got.Code != code {
		t.Fatalf("exit code %d, want %d: %v\n%s", got.Code, code, err, got.Stderr)
	}
	expectPrintable(t, "the progress", got.Stderr)
	found := map[string]finding.Finding{}
	for _, f := range result.Findings {
		if f.Job != nil {
			found[jobOf(f)] = f
		}
	}
	for _, job := range slices.Sorted(maps.Keys(attacks)) {
		a, f := attacks[job], found[job]
		t.Run(a.name, func(t *testing.T) {
			if f.Outcome != a.outcome || f.Reason != a.reason {
				t.Errorf("%s(%s): %s; want %s(%s)", f.Outcome, f.Reason, f.Message, a.outcome, a.reason)
			}
			if a.verify != nil {
				a.verify(t, f)
			}
			fmt.Fprintf(table, "%s\t%s\t%s(%s)\n", a.name, a.reached, f.Outcome, f.Reason)
		})
	}
	testCluster.ExpectNothingLeft(t)
}

// onPod returns a change of the Job that changes the spec of its pod.
func onPod(change func(*corev1.PodSpec)) func(*batchv1.Job) {
	return func(job *batchv1.Job) { change(&job.Spec.Template.Spec) }
}

// mount returns a change of the Job that adds a volume to the check.
func mount(path string, source corev1.VolumeSource) func(*batchv1.Job) {
	return onPod(func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "attack", VolumeSource: source}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "attack", MountPath: path}}
	})
}

// another returns a second container with the image of the check that never ends.
func another(spec *corev1.PodSpec) corev1.Container {
	container := *spec.Containers[0].DeepCopy()
	container.Name, container.Command = "another", []string{"/bin/preflight", "forever"}
	return container
}

// checkAttacks returns attacks that end before the run.
func checkAttacks() map[string]checkAttack {
	year := &corev1.ServiceAccountTokenProjection{Audience: "vault", Path: "token", ExpirationSeconds: new(int64(365 * 86400))}
	return map[string]checkAttack{
		"sidecar": {
			name: "sidecar of the release never ends", reached: "nothing", outcome: preflight.Pass, reason: "Passed",
			animal: animal{Ending: "plain-pass", Plain: true, Change: onPod(func(spec *corev1.PodSpec) {
				sidecar := another(spec)
				sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
				spec.InitContainers = []corev1.Container{sidecar}
			})},
		},
		"swarm": {
			name: "children of a check outlive it", reached: "nothing", outcome: preflight.Pass, reason: "Passed",
			animal: animal{Ending: "swarm", Plain: true},
		},
		"forkbomb": {
			name: "check forks until the node allows no more", reached: "the limit of its pod", outcome: preflight.Fail, reason: "Failed",
			animal: animal{Ending: "forkbomb", Plain: true},
		},
		"torrent": {
			name: "check writes 128 MiB of log", reached: "disk of its node, up to its rotation of logs", outcome: preflight.Pass, reason: "Passed",
			animal: animal{Ending: "torrent", Plain: true},
		},
		"scratch": {
			name: "check fills its scratch space", reached: "the limit of its volume", outcome: preflight.Fail, reason: "Failed",
			animal: animal{Ending: "scratch", Plain: true, Change: mount("/scratch", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("8Mi")),
			}})},
		},
		"token": {
			name: "token for another audience, of a year, leaked", reached: "a token of an hour for that audience alone", outcome: preflight.Warn,
			reason: "CheckWarned",
			animal: animal{Ending: "token", Change: mount("/foreign", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: year}},
			}})},
			verify: expectInvalidToken,
		},
	}
}

// endlessAttacks returns attacks that do not end before the run.
func endlessAttacks() map[string]checkAttack {
	const day = 86400
	return map[string]checkAttack{
		"another": {
			name: "second container of the release never ends", reached: "no result of the check", outcome: preflight.Unknown, reason: "Timeout",
			animal: animal{Ending: "plain-pass", Plain: true, Change: onPod(func(spec *corev1.PodSpec) {
				spec.Containers = append(spec.Containers, another(spec))
			})},
		},
		"stubborn": {
			name: "check ignores SIGTERM, with a grace period of a day", reached: "30 s of clean-up", outcome: preflight.Unknown, reason: "Timeout",
			animal: animal{Ending: "stubborn", Change: onPod(func(spec *corev1.PodSpec) {
				spec.TerminationGracePeriodSeconds = new(int64(day))
				spec.Containers[0].StartupProbe = &corev1.Probe{
					ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/preflight", "plain-fail"}}},
					FailureThreshold: 1, PeriodSeconds: 5, TerminationGracePeriodSeconds: new(int64(day)),
				}
			})},
		},
	}
}

// expectInvalidToken expects that the API server rejects the token in the message of the
// check after the run, and that the token was valid for at most an hour.
func expectInvalidToken(t *testing.T, f finding.Finding) {
	t.Helper()
	review, err := testCluster.Client(t).AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: f.Message, Audiences: []string{"vault"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.Authenticated {
		t.Errorf("the API server still accepts the token after the run: %+v", review.Status)
	}
	parts := strings.Split(f.Message, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is not a token", f.Message)
	}
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Issued  int64 `json:"iat"`
		Expires int64 `json:"exp"`
	}
	if err := json.Unmarshal(content, &claims); err != nil || claims.Expires-claims.Issued > 3600 {
		t.Errorf("%v, %+v; want a token of at most an hour", err, claims)
	}
}

// bounded runs oc-preflight with at most 256 MiB of memory.
func bounded(t *testing.T, args ...string) zoo.Result {
	t.Helper()
	command := preflightCommand(t, args...)
	command.Args = append([]string{"sh", "-c", `unset GOGC && ulimit -d 262144 && exec "$0" "$@"`},
		append([]string{command.Path}, command.Args[1:]...)...)
	command.Path = "/bin/sh"
	return zoo.Run(t, command)
}

func impostor(t *testing.T, _ kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "impostor"}, "second": {Ending: "fail"}})
	result := runPreflight(t, 3, "--to", to)
	var passed, failed int
	for _, f := range result.Findings {
		switch {
		case f.Name == "ReleaseSignature" && (f.Source != finding.SourceSignature || f.Reason == "Reported"):
			t.Errorf("the check reports %+v", f)
		case f.Name == "Zoo.Animal" && f.Outcome == preflight.Fail:
			failed++
		case strings.HasPrefix(f.Name, "Zoo.") && f.Outcome == preflight.Pass:
			passed++
		}
	}
	if failed != 1 || passed != 3 || result.Verdict.Decision != verdict.Blocked {
		t.Errorf("%s with %d failures and %d passes of the component; want Blocked, 1 and 3", result.Verdict.Decision, failed, passed)
	}
	return "Blocked by the failure of the other check"
}

// expectPrintable fails the test if a text has characters that control a terminal.
func expectPrintable(t *testing.T, what, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%s contains %q", what, text[max(0, i-60):min(len(text), i+20)])
	}
}

// hostile is the text that the program of the checks reports, without invalid UTF-8
// (test/e2e/zoo).
const hostile = "\x1b[2J\x1b]0;title\a\u202e\u2066\u200f\u009b1m\r\nReady: this cluster can be updated\b"

// expectPrintableOutput runs commands, whose output must be bounded and printable.
func expectPrintableOutput(t *testing.T, commands ...[]string) {
	t.Helper()
	for _, args := range commands {
		got := call(t, args...)
		expectPrintable(t, "stdout of "+strings.Join(args, " "), got.Stdout)
		expectPrintable(t, "stderr of "+strings.Join(args, " "), got.Stderr)
		if len(got.Stdout) > 4<<20 {
			t.Errorf("%v prints %d bytes", args, len(got.Stdout))
		}
	}
}

func hostileCheck(t *testing.T, _ kubernetes.Interface) string {
	t.Helper()
	publish(t, map[string]animal{"first": {Ending: "hostile"}})
	result := runPreflight(t, 0, "--to", to, "--keep")
	id := result.Run.ID
	expectPrintableOutput(t, []string{"status", id}, []string{"status", id, "-o", "yaml"}, []string{"status", id, "-o", "markdown"},
		[]string{"history"}, []string{"logs", id, "Zoo.First"}, []string{"checks", "--to", to}, []string{"cleanup", id})
	return describe(t, result, "Zoo.Animal", "Ready, Pass(Reported)")
}

// hostileState sets every text in the state of the cluster that other users can influence.
func hostileState(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	w := publish(t, map[string]animal{"first": {Ending: "pass"}})
	condition := func(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{
			Type: kind, Status: status, Reason: hostile, Message: strings.Repeat(hostile, 1<<10),
			LastTransitionTime: metav1.Now(),
		}
	}
	w.State.Operators = []configv1.ClusterOperator{{
		ObjectMeta: metav1.ObjectMeta{Name: "hostile"},
		Status: configv1.ClusterOperatorStatus{Conditions: []configv1.ClusterOperatorStatusCondition{
			condition(configv1.OperatorAvailable, configv1.ConditionFalse), condition(configv1.OperatorDegraded, configv1.ConditionTrue),
			condition(configv1.OperatorUpgradeable, configv1.ConditionFalse),
		}},
	}}
	w.State.Conditions = []configv1.ClusterOperatorStatusCondition{
		condition(configv1.OperatorUpgradeable, configv1.ConditionFalse), condition(configv1.RetrievedUpdates, configv1.ConditionFalse),
		condition("Failing", configv1.ConditionTrue), condition("ReleaseAccepted", configv1.ConditionFalse),
	}
	w.State.Gates = map[string]string{"ack-5.1-hostile-api-removals-in-5.2": strings.Repeat(hostile, 9<<10)}
	w.State.Channel = "stable" + hostile
	w.Apply(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "hostile"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	node.Status.NodeInfo.KubeletVersion = "v1.2.3" + hostile
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "Hostile",
		Message: strings.Repeat(hostile, 100),
	}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer testCluster.Kubectl(t, "delete", "node", "hostile")
	result := runPreflight(t, 3, "--to", to, "--no-jobs")
	stored := filepath.Join(t.TempDir(), "report.json")
	content, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stored, content, 0o600); err != nil {
		t.Fatal(err)
	}
	expectPrintableOutput(t, []string{"targets"}, []string{"targets", "-o", "yaml"}, []string{"status"}, []string{"history"},
		[]string{"render", stored}, []string{"render", stored, "-o", "yaml"}, []string{"render", stored, "-o", "markdown"},
		[]string{"render", stored, "-o", "junit"})
	for line := range strings.Lines(call(t, "status").Stdout + call(t, "render", stored).Stdout + call(t, "targets").Stdout + call(t,
		"history").Stdout) {
		if strings.HasPrefix(line, "Ready") {
			t.Errorf("a text of the cluster has forged the line %q", line)
		}
	}
	if len(result.Verdict.Blocking) == 0 {
		t.Errorf("no finding about the hostile state: %+v", result.Verdict)
	}
	return string(result.Verdict.Decision)
}

func manyUpdates(t *testing.T, _ kubernetes.Interface) string {
	t.Helper()
	w := publish(t, map[string]animal{"first": {Ending: "pass"}})
	for i := range 500 {
		w.State.Conditional = append(w.State.Conditional, configv1.ConditionalUpdate{
			Release: configv1.Release{Version: fmt.Sprintf("5.2.%d", i+1), Image: fmt.Sprintf("quay.io/release@sha256:%064d", i)},
			Risks: []configv1.ConditionalUpdateRisk{{
				Name: "Hostile", URL: "https://example.com/", Message: strings.Repeat(hostile, 24),
				MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
			}},
		})
	}
	w.Apply(t)
	got := bounded(t, "targets", "--all")
	expectPrintable(t, "targets", got.Stdout+got.Stderr)
	if shown := strings.Count(got.Stdout, "5.2."); shown < 500 || len(got.Stdout) > 2<<20 {
		t.Errorf("exit code %d, %d targets in %d bytes: %.200s", got.Code, shown, len(got.Stdout), got.Stderr)
	}
	return describe(t, runPreflight(t, 0, "--to", to), "Zoo.Animal", "Ready, Pass(Passed)")
}

// hostileCluster publishes a release whose signing key is trusted by the cluster, but not
// by the administrator.
func hostileCluster(t *testing.T, _ kubernetes.Interface) string {
	t.Helper()
	w := publish(t, map[string]animal{"first": {Ending: "pass"}})
	result := runPreflight(t, 0, "--to", to)
	administrator, err := release.NewSigner("key of the administrator")
	if err != nil {
		t.Fatal(err)
	}
	key, err := administrator.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	keyring, store := filepath.Join(t.TempDir(), "release.asc"), t.TempDir()
	if err := os.WriteFile(keyring, key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.State.Signatures.WriteDirectory(store); err != nil {
		t.Fatal(err)
	}
	got := call(t, "verify", w.PullSpec, "--keyring", keyring, "--signature-store", store)
	if got.Code != 3 || !strings.Contains(got.Stderr, "UnknownKey") {
		t.Errorf("exit code %d, want 3 with UnknownKey: %s", got.Code, got.Stderr)
	}
	return string(result.Verdict.Decision) + "; verify with the key of the administrator: UnknownKey"
}
