package runner_test

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/prometheus"
	"github.com/openshift/update-preflight/test/release"
)

// Tests of: runner/contents, runner/execution, runner/hold, runner/proof

const (
	current = "4.18.3"
	next    = "4.19.0"
	check   = "Etcd.Quorum"
)

// world is a cluster with a signed target release.
type world struct {
	registry string
	pullSpec string
	signer   *release.Signer
	// gates is an additional manifest of the releases that push makes.
	gates   string
	state   openshift.State
	cluster *cluster.Cluster
	target  runner.Target
	options runner.Options
}

// newSigner returns the key that signs the releases of all worlds.
var newSigner = sync.OnceValues(func() (*release.Signer, error) { return release.NewSigner("runner test") })

// newWorld configures a cluster with an available release whose only check is
// Etcd.Quorum. The checks are not run: the cluster has no node.
func newWorld(t *testing.T, gates map[string]string) world {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	w := world{registry: strings.TrimPrefix(server.URL, "http://")}
	w.pullSpec = w.push(t, next)
	signer, err := newSigner()
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign(w.pullSpec, "quay.io/openshift-release-dev/ocp-release:"+next+"-x86_64")
	if err != nil {
		t.Fatal(err)
	}
	key, err := signer.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	w.signer = signer
	signatures := release.Store{}
	signatures.Add(w.pullSpec, signature)
	w.state = openshift.State{
		Version: current, Image: digested("1"), Available: map[string]string{next: w.pullSpec},
		Keys: map[string][]byte{"verifier-public-key-test": key}, Stores: map[string]string{"store-test": "file://" + t.TempDir()},
		Signatures: signatures, Gates: gates, Acks: map[string]string{},
	}
	w.apply(t)
	w.cluster, w.target = connect(t, config), runner.Target{Version: next}
	w.options = runner.Options{
		Judgement: scene.Judgement{Monitoring: monitor(t, config, `{"status":"success","data":{"alerts":[]}}`), Accept: accepting(check)},
		Selection: selection.Selection{NoJobs: true},
		Hooks:     runner.Hooks{ToolVersion: "test"},
	}
	return w
}

func connect(t *testing.T, config *rest.Config) *cluster.Cluster {
	t.Helper()
	connected, err := cluster.Connect(config, "test")
	if err != nil {
		t.Fatal(err)
	}
	return connected
}

func accepting(names ...string) []acceptance.Acceptance {
	return acceptance.Named("--accept", names...)
}

// observer calls the functions that are set.
type observer struct {
	started  func(run string)
	step     func(step string)
	status   func(jobs.Status)
	reported func([]finding.Finding)
	decided  func(report.Report)
}

func (o observer) Started(run string) {
	if o.started != nil {
		o.started(run)
	}
}

func (o observer) Step(step string) {
	if o.step != nil {
		o.step(step)
	}
}

func (o observer) Status(status jobs.Status) {
	if o.status != nil {
		o.status(status)
	}
}

func (o observer) Reported(findings []finding.Finding) {
	if o.reported != nil {
		o.reported(findings)
	}
}

func (o observer) Decided(decided report.Report) {
	if o.decided != nil {
		o.decided(decided)
	}
}

// apply writes the state to the cluster.
func (w world) apply(t *testing.T) {
	t.Helper()
	if err := openshift.Apply(t.Context(), config, w.state); err != nil {
		t.Fatal(err)
	}
}

// monitor returns the client of a monitoring that sends this response to every request.
func monitor(t *testing.T, config *rest.Config, response string) *monitoring.Client {
	t.Helper()
	find, err := monitoring.Querier{Config: config}.At(prometheus.Constant(t, http.StatusOK, response).URL)
	if err != nil {
		t.Fatal(err)
	}
	return monitoring.New(find, monitoring.DefaultTimeout)
}

func digested(digit string) string {
	return "registry.example.com/openshift/release@sha256:" + strings.Repeat(digit, 64)
}

func (w world) push(t *testing.T, version string) string {
	t.Helper()
	etcd, err := release.BuildImage(t.Context(), w.registry, "etcd", release.Image{})
	if err != nil {
		t.Fatal(err)
	}
	pullSpec, err := release.Push(t.Context(), w.registry, release.Release{
		Version: version,
		Components: []release.Component{{
			Name: "etcd", Image: etcd, Source: "quay.io/openshift/etcd",
			Manifests: map[string]string{"0000_50_etcd_12_gates.yaml": w.gates, "0000_50_etcd_11_quorum.yaml": checkManifest},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return pullSpec
}

// checkManifest is the manifest of the only check of the release.
const checkManifest = `
apiVersion: batch/v1
kind: Job
metadata:
  name: quorum
  namespace: default
  annotations:
    openshift.io/preflight-check: "true"
spec:
  template:
    spec:
      containers:
      - name: preflight
        image: quay.io/openshift/etcd:latest
`

// status changes the status of ClusterVersion.
func (w world) status(t *testing.T, change func(*configv1.ClusterVersionStatus)) {
	t.Helper()
	client := w.cluster.OpenShift.ConfigV1().ClusterVersions()
	clusterVersion, err := client.Get(t.Context(), "version", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(&clusterVersion.Status)
	if _, err := client.UpdateStatus(t.Context(), clusterVersion, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (w world) run(t *testing.T) report.Report {
	t.Helper()
	decided, err := runner.Run(t.Context(), w.cluster, w.target, w.options)
	if err != nil {
		t.Fatal(err)
	}
	return decided
}

func find(t *testing.T, decided report.Report, name string) finding.Finding {
	t.Helper()
	for _, f := range decided.Findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no finding %s in %+v", name, decided.Findings)
	return finding.Finding{}
}

func TestTargetIsResolved(t *testing.T) {
	w := newWorld(t, map[string]string{})
	conditional := configv1.ConditionalUpdate{
		Release: configv1.Release{Version: "4.18.20", Image: digested("c")},
		Risks: []configv1.ConditionalUpdateRisk{{
			URL: "https://example.com/", Name: "Risk", Message: "m", MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
		}},
	}
	w.status(t, func(status *configv1.ClusterVersionStatus) {
		status.AvailableUpdates = []configv1.Release{
			{Version: "4.18.9", Image: digested("9")},
			{Version: "4.18.10", Image: digested("a")},
			{Version: next, Image: w.pullSpec},
		}
		status.ConditionalUpdates = []configv1.ConditionalUpdate{conditional}
		status.History = append(status.History, configv1.UpdateHistory{
			State: configv1.CompletedUpdate, Version: "4.18.1", Image: digested("0"), StartedTime: metav1.Now(), CompletionTime: new(metav1.Now()),
		})
	})
	for name, tc := range map[string]struct {
		reason string
		target runner.Target
		image  string
		kind   string
	}{
		"Available":   {reason: "one of availableUpdates", target: runner.Target{Version: "4.18.10"}, image: digested("a"), kind: "Patch"},
		"Conditional": {reason: "one of conditionalUpdates", target: runner.Target{Version: "4.18.20"}, image: digested("c"), kind: "Patch"},
		"History":     {reason: "a release in the history", target: runner.Target{Version: "4.18.1"}, image: digested("0"), kind: "Rollback"},
		"Latest": {
			reason: "the newest available update, without conditional ones", target: runner.Target{Latest: true}, image: w.pullSpec,
			kind: "Minor",
		},
		"Image": {reason: "the version is in the payload", target: runner.Target{Image: w.pullSpec}, image: w.pullSpec, kind: "Minor"},
	} {
		t.Run(name, func(t *testing.T) {
			w.target = tc.target
			decided := w.run(t)
			if decided.Target.Image != tc.image || decided.Target.UpdateKind != tc.kind {
				t.Errorf("%s: %s (%s), want %s (%s)", tc.reason, decided.Target.Image, decided.Target.UpdateKind, tc.image, tc.kind)
			}
		})
	}
}

func TestInvalidTargets(t *testing.T) {
	w := newWorld(t, map[string]string{})
	for name, tc := range map[string]struct {
		reason string
		target runner.Target
		empty  bool
		want   string
	}{
		"Unknown":   {reason: "the error lists the known versions", target: runner.Target{Version: "4.99.0"}, want: next},
		"NoUpdates": {reason: "no update is available", target: runner.Target{Latest: true}, empty: true, want: "no available updates"},
		"NoTarget":  {reason: "the error lists the known versions", want: "no target release is named; the cluster knows " + next},
		"Two":       {reason: "two targets", target: runner.Target{Version: next, Latest: true}, want: "more than one target release"},
		"Tag": {
			reason: "a tag cannot be verified", target: runner.Target{Image: w.registry + "/openshift/release:" + next},
			want: "no digest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.apply(t)
			if tc.empty {
				var available []configv1.Release
				w.status(t, func(status *configv1.ClusterVersionStatus) {
					available, status.AvailableUpdates = status.AvailableUpdates, []configv1.Release{}
				})
				defer w.status(t, func(status *configv1.ClusterVersionStatus) { status.AvailableUpdates = available })
			}
			w.target = tc.target
			_, err := runner.Run(t.Context(), w.cluster, w.target, w.options)
			if _, bad := errors.AsType[*input.Error](err); !bad {
				t.Fatalf("%s: error %v, want a BadInputError", tc.reason, err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %q does not contain %q", tc.reason, err, tc.want)
			}
		})
	}
}

func TestReadyWithoutBlockingFindings(t *testing.T) {
	decided := newWorld(t, map[string]string{}).run(t)
	if decided.Verdict.Decision != verdict.Ready {
		t.Errorf("decision %s, want Ready: %+v", decided.Verdict.Decision, decided.Findings)
	}
	if !decided.Target.Verified || len(decided.Target.Signers) != 1 {
		t.Errorf("target %+v, want it verified by its one signer", decided.Target)
	}
	if decided.Expected.Checks < 5 || decided.Expected.Reported != decided.Expected.Checks || len(decided.Expected.Missing) > 0 {
		t.Errorf("want results of signature, payload, gates, risks and check: %+v", decided.Expected)
	}
	if decided.Cluster.ID != openshift.ClusterID || decided.Cluster.Version != current ||
		!strings.HasPrefix(decided.Cluster.Kubernetes, "v1.") {
		t.Errorf("cluster %+v", decided.Cluster)
	}
}

func TestChecksThatAreNotSelectedHaveNotPassed(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.options.Judgement.Accept = nil
	decided := w.run(t)
	f := find(t, decided, check)
	if f.Outcome != preflight.Unknown || f.Reason != "NotSelected" || decided.Verdict.Decision != verdict.Undecided {
		t.Errorf("%s: %s (%s), decision %s; want Unknown (NotSelected), Undecided", check, f.Outcome, f.Reason, decided.Verdict.Decision)
	}
}

func TestGatesAreFolded(t *testing.T) {
	w := newWorld(t, map[string]string{"ack-4.18-x": "Read https://example.com/x first."})
	decided := w.run(t)
	if diff := cmp.Diff([]string{"AdminAck-ack-4.18-x"}, decided.Verdict.Blocking); diff != "" || decided.Verdict.Decision != verdict.Blocked {
		t.Errorf("decision %s, blocking -want +got:\n%s", decided.Verdict.Decision, diff)
	}
	if decided.CVO.Accepts == nil || *decided.CVO.Accepts {
		t.Errorf("cvo %+v, want a rejection", decided.CVO)
	}
	w.options.Judgement.Accept = append(w.options.Judgement.Accept, accepting("AdminAck-ack-4.18-x")...)
	if decided := w.run(t); decided.Verdict.Decision != verdict.Blocked {
		t.Errorf("accepting a gate made it %s", decided.Verdict.Decision)
	}
	w.options.Judgement.Force = true
	if decided := w.run(t); decided.Verdict.Decision != verdict.Blocked || !decided.Verdict.Forced {
		t.Errorf("with force: %+v, want Blocked, as without, and forced", decided.Verdict)
	}
}

func TestReleaseOfAnotherVersion(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.status(t, func(status *configv1.ClusterVersionStatus) {
		status.AvailableUpdates = []configv1.Release{{Version: "4.19.1", Image: w.pullSpec}}
	})
	w.target = runner.Target{Version: "4.19.1"}
	decided := w.run(t)
	f := find(t, decided, "ReleasePayload")
	if f.Outcome != preflight.Fail || f.Reason != "VersionMismatch" || decided.Verdict.Decision != verdict.Blocked {
		t.Errorf("%s (%s), decision %s; want Fail (VersionMismatch), Blocked", f.Outcome, f.Reason, decided.Verdict.Decision)
	}
}

func TestForceResolvesATag(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.target = runner.Target{Image: w.registry + "/openshift/release:" + next}
	w.options.Judgement.Force = true
	decided := w.run(t)
	if decided.Target.Image != w.pullSpec || !decided.Verdict.Forced || !decided.Target.Verified {
		t.Errorf("target %+v, forced %t; want the digest of the tag, verified, and forced", decided.Target, decided.Verdict.Forced)
	}
}

func TestChecksAreListed(t *testing.T) {
	w := newWorld(t, map[string]string{})
	listing, err := runner.Checks(t.Context(), w.cluster, w.target, w.options)
	if err != nil {
		t.Fatal(err)
	}
	if len(listing.Checks) != 1 || listing.Checks[0].Name != check || listing.Verdict.Decision != verdict.Ready {
		t.Errorf("checks %+v, decision %s; want %s, Ready", listing.Checks, listing.Verdict.Decision, check)
	}
}

func TestVerdictComesWithTheReport(t *testing.T) {
	w := newWorld(t, map[string]string{})
	var early report.Report
	var steps []string
	w.options.Hooks.Observer = observer{
		step:    func(step string) { steps = append(steps, step) },
		decided: func(decided report.Report) { early = decided },
	}
	if diff := cmp.Diff(w.run(t), early); diff != "" {
		t.Errorf("the report for the observer differs from that of Run (-Run, +observer):\n%s", diff)
	}
	if len(steps) == 0 || steps[0] != "reading the cluster" {
		t.Errorf("steps %q, want \"reading the cluster\" first", steps)
	}
}
