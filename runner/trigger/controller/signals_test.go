package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	configv1 "github.com/openshift/api/config/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/verdict/fingerprint"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/test/await"
)

const offered = "4.18.5"

// reached is a connection to a cluster that runs 4.18.3, offers these versions and has no
// record.
func reached(t *testing.T, offers ...string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(config, "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{record.Namespace, ownsignal.Namespace} {
		_, err := c.Kubernetes.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	if err := c.OpenShift.ConfigV1().ClusterVersions().Delete(t.Context(), "version", metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	version, err := c.OpenShift.ConfigV1().ClusterVersions().Create(t.Context(), &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	version.Status = configv1.ClusterVersionStatus{Desired: configv1.Release{Version: current, Image: image(current)}, VersionHash: "0"}
	for _, offer := range offers {
		version.Status.AvailableUpdates = append(version.Status.AvailableUpdates, configv1.Release{Version: offer, Image: image(offer)})
	}
	if _, err := c.OpenShift.ConfigV1().ClusterVersions().UpdateStatus(t.Context(), version, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(context.WithoutCancel(t.Context()), t, c) })
	return c
}

// remove deletes what the tests have created.
func remove(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	_, err := guard.Uninstall(ctx, c.Dynamic)
	recorded := metav1.ListOptions{LabelSelector: record.Label}
	err = errors.Join(err,
		c.OpenShift.ConfigV1().ClusterVersions().Delete(ctx, "version", metav1.DeleteOptions{}),
		c.Kubernetes.CoreV1().ConfigMaps(record.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, recorded))
	if err != nil {
		t.Error(err)
	}
}

// decide records a complete run of a version, later than all others of it.
func decide(t *testing.T, c *cluster.Cluster, version string, decision verdict.Decision, validity time.Duration) {
	t.Helper()
	records := recordstore.New(c.Kubernetes)
	await.Until(t, "a second has passed since the last run", func(ctx context.Context) bool {
		listed, err := records.List(ctx)
		return err == nil && (len(listed) == 0 || c.Now().Truncate(time.Second).After(listed[0].CompletionTime))
	})
	target := update.Release{Version: version, Image: image(version)}
	held, err := lease.New(c.Kubernetes).Begin(t.Context(), record.Intent{
		ID: uuid.NewString(), From: current, Target: target, ToolVersion: toolVersion, Requester: record.ByUser,
		Selection: runner.Options{}.Coverage(),
	}, "test")
	if err != nil {
		t.Fatal(err)
	}
	result := finding.Pass(gap.Proven("a test"), finding.ReportedReason("Tested"), "the check has passed")
	if decision == verdict.Blocked {
		result = finding.Fail(finding.ReportedReason("Tested"), "the check has failed")
		result.Blocks = true
	}
	ended, expected := c.Now(), verdict.Expectation{Checks: 1, Reported: 1}
	decided, findings := verdict.Fold([]finding.Finding{result.Named("Check").From(finding.SourceGate)}, expected, verdict.Policy{})
	decided.ValidUntil = ended.Add(validity).Format(time.RFC3339)
	stored, err := json.Marshal(report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Verdict: decided, Expected: expected, Findings: findings,
		Target: report.Target{Version: version, Image: target.Image},
		Run:    report.Run{ID: held.Record().ID, Phase: report.PhaseComplete, CompletionTime: ended.Format(time.RFC3339)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if decided.Decision != decision {
		t.Fatalf("the findings make it %s, want %s", decided.Decision, decision)
	}
	err = held.Finish(t.Context(), record.Ending{
		Phase: record.Complete, Verdict: decided, Report: stored, Fingerprint: fingerprint.Read(t.Context(), snapshot.Of(c)),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// newSignals returns the signals of a leading controller.
func newSignals(t *testing.T, c *cluster.Cluster, signals ...string) announcement.Signals {
	t.Helper()
	chosen, err := guard.Choose(signals...)
	if err != nil {
		t.Fatal(err)
	}
	made, err := guard.NewSet(c.Dynamic, chosen, "v1.0.0", c.Now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// stated describes what the signals in the cluster state: Upgradeable, the decision on the
// offered version, and the switches that are on.
func stated(ctx context.Context, c *cluster.Cluster) string {
	upgradeable, decision := "none", "none"
	if operator, err := c.OpenShift.ConfigV1().ClusterOperators().Get(ctx, "update-preflight", metav1.GetOptions{}); err == nil {
		upgradeable = "off"
		for _, condition := range operator.Status.Conditions {
			if condition.Type == configv1.OperatorUpgradeable {
				upgradeable = string(condition.Status)
			}
		}
	}
	policies := c.Kubernetes.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	if policy, err := policies.Get(ctx, "update-preflight", metav1.GetOptions{}); err == nil {
		decision = decisionOf(policy.Spec.Variables)
	}
	effects, err := guard.Active(ctx, c.Dynamic)
	return fmt.Sprintf("upgradeable=%s verdict=%s on=%d err=%v", upgradeable, decision, len(effects), err)
}

// decisionOf returns the decision of the policy on the offered version.
func decisionOf(variables []admissionv1.Variable) string {
	for _, variable := range variables {
		decisions := map[string]string{}
		if err := json.Unmarshal([]byte(variable.Expression), &decisions); variable.Name != "verdicts" || err != nil {
			continue
		}
		_, digest, _ := strings.Cut(image(offered), "@")
		if decision, found := decisions[digest]; found {
			decision, _, _ = strings.Cut(decision, ":")
			return decision
		}
	}
	return "missing"
}

func awaitStated(t *testing.T, c *cluster.Cluster, want string) {
	t.Helper()
	var got string
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	for ctx.Err() == nil {
		if got = stated(ctx, c); got == want {
			return
		}
	}
	operator, err := c.OpenShift.ConfigV1().ClusterOperators().Get(t.Context(), "update-preflight", metav1.GetOptions{})
	t.Fatalf("the signals state %q, want %q; the conditions are %+v, %v", got, want, operator.Status.Conditions, err)
}

// A verdict is applied to the switches, another one replaces it, and the switches remain
// when the leader has ended. The next leader, without the switches, removes them.
func TestSignalsFollowTheRecords(t *testing.T) {
	c := reached(t, offered)
	end := lead(t, c, io.Discard, controller.Options{
		Ahead:   runplan.MaxAhead,
		Signals: newSignals(t, c, "alert", "clusterOperator", "admission=Deny"),
	})
	awaitStated(t, c, "upgradeable=False verdict=missing on=3 err=<nil>")
	decide(t, c, offered, verdict.Blocked, time.Hour)
	awaitStated(t, c, "upgradeable=False verdict=Blocked on=3 err=<nil>")
	decide(t, c, offered, verdict.Ready, time.Hour)
	awaitStated(t, c, "upgradeable=True verdict=Ready on=3 err=<nil>")
	end()
	if got := stated(t.Context(), c); got != "upgradeable=True verdict=Ready on=3 err=<nil>" {
		t.Errorf("without the controller, the signals state %s", got)
	}
	decide(t, c, offered, verdict.Blocked, time.Hour)
	end = lead(t, c, io.Discard, controller.Options{Ahead: runplan.MaxAhead, Signals: newSignals(t, c, "clusterOperator")})
	awaitStated(t, c, "upgradeable=False verdict=none on=1 err=<nil>")
	end()
	lead(t, c, io.Discard, controller.Options{Ahead: runplan.MaxAhead, Signals: newSignals(t, c)})
	awaitStated(t, c, "upgradeable=off verdict=none on=0 err=<nil>")
}

// A verdict that expires is not valid any more without another event.
func TestSignalsExpire(t *testing.T) {
	c := reached(t, offered)
	decide(t, c, offered, verdict.Ready, 5*time.Second)
	lead(t, c, io.Discard, controller.Options{Ahead: runplan.MaxAhead, Signals: newSignals(t, c, "clusterOperator", "admission=Deny")})
	awaitStated(t, c, "upgradeable=False verdict=expired on=2 err=<nil>")
}

// states records the states, and fails for the first ones.
type states struct {
	mutex    sync.Mutex
	failures int
	received []guard.State
}

// Apply implements controller.Signals.
func (s *states) Apply(_ context.Context, state guard.State) (time.Time, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.received = append(s.received, state)
	if len(s.received) <= s.failures {
		return time.Time{}, errors.New("the API server rejects it")
	}
	return time.Time{}, nil
}

func (s *states) all() []guard.State {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.received
}

// Signals that cannot be applied are applied again, and the controller continues.
func TestSignalsAreRetried(t *testing.T) {
	c := reached(t, offered)
	signals := &states{failures: 2}
	lead(t, c, io.Discard, controller.Options{Ahead: runplan.MaxAhead, Signals: signals})
	await.Until(t, "the signals are applied a third time", func(context.Context) bool { return len(signals.all()) > 2 })
	decide(t, c, offered, verdict.Blocked, time.Hour)
	await.Until(t, "another verdict is applied", func(context.Context) bool {
		received := signals.all()
		last := received[len(received)-1].Verdicts
		return len(last) == 1 && last[0].Decision == "Blocked" && last[0].Chosen
	})
}

// The verdicts are bounded by the targets that are run ahead, independent of the offers.
func TestManyOffers(t *testing.T) {
	var offers []string
	for minor := range 500 {
		offers = append(offers, fmt.Sprintf("4.%d.0", 100+minor))
	}
	c := reached(t, offers...)
	signals := &states{}
	lead(t, c, io.Discard, controller.Options{Ahead: runplan.MaxAhead, Signals: signals})
	await.Until(t, "the signals are applied", func(context.Context) bool { return len(signals.all()) > 0 })
	state := signals.all()[0]
	if len(state.Verdicts) != runplan.MaxAhead || !state.Verdicts[0].Chosen || state.Verdicts[0].Version != "4.599.0" {
		t.Errorf("%d verdicts, the first is %+v; want %d, and the newest version chosen", len(state.Verdicts), state.Verdicts[0],
			runplan.MaxAhead)
	}
}
