// Package checktest answers: what does a built-in check report for a cluster in a given state? The cluster is a
// real API server in which the test creates that state.
package checktest

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Result has the parts of a finding that tables compare.
type Result struct {
	Outcome preflight.Outcome
	Reason  string
}

// Results are the outcomes and reasons of findings, by name.
func Results(findings []finding.Finding) map[string]Result {
	results := map[string]Result{}
	for _, f := range findings {
		results[f.Name] = Result{f.Outcome, f.Reason}
	}
	return results
}

// Messages are the messages of findings, each on a line of its own.
func Messages(findings []finding.Finding) string {
	var text strings.Builder
	for _, f := range findings {
		text.WriteString(f.Message + "\n")
	}
	return text.String()
}

// Remedies are the remedies of findings, with the commands and the type and value of
// every other action, each on a line of its own.
func Remedies(findings []finding.Finding) string {
	var text strings.Builder
	for _, f := range findings {
		text.WriteString(f.Remediation + "\n")
		for _, action := range f.Actions {
			text.WriteString(strings.TrimSpace(string(action.Type)+" "+action.Value+action.Command) + "\n")
		}
	}
	return text.String()
}

// Update is the update from one version to another.
func Update(t *testing.T, from, to string) update.Update {
	t.Helper()
	parsed, err := update.Parse(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// Run runs a check on one update as a preflight does: an error of the check is the
// Unknown finding that the administrator reads. It fails the test for a finding
// that does not follow the rules of [verify], and for a request that the check does
// not declare.
func Run(t *testing.T, c check.Check, view View, u update.Update) []finding.Finding {
	t.Helper()
	return RunAt(t, c, view, check.Subject{Update: u, Now: time.Now()})
}

// RunAt is Run for a subject with its own time; its cluster is the view. The check then runs on
// archives of the cluster, too: it must not report anything else.
func RunAt(t *testing.T, c check.Check, view View, subject check.Subject) []finding.Finding {
	t.Helper()
	findings := Collect(t, []check.Check{c}, view, subject)
	view.requests.undeclared(t, c)
	archived(t, c, view, subject, findings)
	return findings
}

// Collect runs checks on a subject, whose cluster is the view, side by side. It
// does not compare requests with declarations.
func Collect(t *testing.T, checks []check.Check, view View, subject check.Subject) []finding.Finding {
	t.Helper()
	subject.Cluster = view.Cluster
	findings := collector.Collect(t.Context(), collector.Bind(subject, checks), func(collector.Source, []finding.Finding) {}).Findings
	for _, f := range findings {
		verify(t, f)
	}
	return findings
}

var (
	// ownCommand is a command of this program, which only the program that shows a finding knows.
	ownCommand = regexp.MustCompile(`\b(oc|kubectl)[ -]preflight\b`)
	// ownFlag is a flag of this program. Commands of other programs have flags of the same names.
	ownFlag = regexp.MustCompile(`--(accept|accept-file|since|force|prometheus|timeout|external-dependency)\b`)
)

// startCommand matches a command that requests an update.
var startCommand = regexp.MustCompile(`adm upgrade [^\n]*--to\b[^\n]*`)

// verify fails the test for a finding without a reason or a message, one that
// blocks without a remedy, a remedy that is no sentence, a command that starts an update,
// and a text with a part of this program's own command line.
func verify(t *testing.T, f finding.Finding) {
	t.Helper()
	if f.Message == "" || f.Reason == "" {
		t.Errorf("%s is %s without a message or a reason", f.Name, f.Outcome)
	}
	if f.Blocks && f.Bypass == nil && f.Remediation == "" {
		t.Errorf("%s blocks without a remedy", f.Name)
	}
	if f.Remediation != "" && (strings.ToUpper(f.Remediation[:1]) != f.Remediation[:1] || !strings.HasSuffix(f.Remediation, ".")) {
		t.Errorf("the remedy of %s is no sentence: %q", f.Name, f.Remediation)
	}
	if found := ownFlag.FindString(f.Message + " " + f.Remediation); found != "" {
		t.Errorf("a text of %s has %q; a finding names such a step by an action", f.Name, found)
	}
	texts := []string{f.Message, f.Remediation}
	for _, action := range f.Actions {
		texts = append(texts, action.Command)
	}
	if found := startCommand.FindString(strings.Join(texts, "\n")); found != "" {
		t.Errorf("a text or a command of %s starts an update: %q; only a verdict that permits it has such a step", f.Name, found)
	}
	if found := ownCommand.FindString(strings.Join(texts, " ")); found != "" {
		t.Errorf("a text or a command of %s has %q; a finding names such a step by an action", f.Name, found)
	}
}

// At is a healthy cluster that completed an update to a version, after updates to others, newest first.
func At(version string, before ...string) *configv1.ClusterVersion {
	now := metav1.Now()
	cluster := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", Channel: "stable"},
		Status: configv1.ClusterVersionStatus{
			ObservedGeneration: 1, VersionHash: "0", AvailableUpdates: []configv1.Release{},
			Desired: configv1.Release{Version: version, Image: PullSpec(version)},
		},
	}
	for _, past := range append([]string{version}, before...) {
		cluster.Status.History = append(cluster.Status.History, configv1.UpdateHistory{
			State: configv1.CompletedUpdate, Version: past, Image: PullSpec(past), StartedTime: now, CompletionTime: &now,
		})
	}
	cluster = With(cluster, configv1.OperatorProgressing, configv1.ConditionFalse, "", "")
	cluster = With(cluster, configv1.RetrievedUpdates, configv1.ConditionTrue, "", "")
	return With(cluster, "Failing", configv1.ConditionFalse, "", "")
}

// Toward is a cluster that is being updated to the last of the attempts, after the others were retargeted.
func Toward(completed string, attempts ...string) *configv1.ClusterVersion {
	target := attempts[len(attempts)-1]
	cluster := At(completed)
	cluster.Status.Desired = configv1.Release{Version: target, Image: PullSpec(target)}
	now := metav1.Now()
	for _, attempt := range attempts {
		cluster.Status.History = append([]configv1.UpdateHistory{{
			State: configv1.PartialUpdate, Version: attempt, Image: PullSpec(attempt), StartedTime: now, CompletionTime: &now,
		}}, cluster.Status.History...)
	}
	return With(cluster, configv1.OperatorProgressing, configv1.ConditionTrue, "",
		"Working towards "+target+": 113 of 902 done (12% complete)")
}

// With sets a condition.
func With(cluster *configv1.ClusterVersion, kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason,
	message string,
) *configv1.ClusterVersion {
	condition := configv1.ClusterOperatorStatusCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	}
	for i := range cluster.Status.Conditions {
		if cluster.Status.Conditions[i].Type == kind {
			cluster.Status.Conditions[i] = condition
			return cluster
		}
	}
	cluster.Status.Conditions = append(cluster.Status.Conditions, condition)
	return cluster
}

// PullSpec is the image of a release.
func PullSpec(version string) string { return "quay.io/release@sha256:" + version }

// Infrastructure makes the cluster an OpenShift cluster with this topology.
func Infrastructure(topology configv1.TopologyMode) *configv1.Infrastructure {
	return &configv1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
		Status: configv1.InfrastructureStatus{
			ControlPlaneTopology: topology, InfrastructureTopology: configv1.HighlyAvailableTopologyMode,
			CPUPartitioning: configv1.CPUPartitioningNone,
		},
	}
}

// Contains fails the test for each part that the text lacks.
func Contains(t *testing.T, name, text string, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s %q lacks %q", name, text, part)
		}
	}
}

// MinorUpdate returns an update; an empty version means from 4.18.3 or to 4.19.0.
func MinorUpdate(t *testing.T, from, to string) update.Update {
	t.Helper()
	return Update(t, cmp.Or(from, "4.18.3"), cmp.Or(to, "4.19.0"))
}

// recorder records the requests to an API server, as its authorizer interprets them.
type recorder struct {
	mutex    sync.Mutex
	requests []access.Request
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(httpRequest *http.Request) (*http.Response, error) {
		r.record(httpRequest)
		return next.RoundTrip(httpRequest)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(httpRequest *http.Request) (*http.Response, error) {
	return f(httpRequest)
}

// record records requests for resources. Discovery, other non-resource URLs and reviews of the user's own
// permissions are not part of a check's declaration.
func (r *recorder) record(httpRequest *http.Request) {
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(httpRequest)
	if err != nil || !info.IsResourceRequest || info.Resource == "selfsubjectaccessreviews" {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests = append(r.requests, access.Request{
		Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
	})
}

// undeclared fails the test for each request that the check does not declare, and forgets the requests.
func (r *recorder) undeclared(t *testing.T, c check.Check) {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, made := range r.requests {
		if !slices.ContainsFunc(slices.Concat(c.Reads, c.IfPermitted),
			func(declared access.Request) bool { return access.Includes(declared, made) }) {
			t.Errorf("check %s made a request that it does not declare: %s", c.Name, access.Describe(made))
		}
	}
	r.requests = nil
}

func (r *recorder) forget() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests = nil
}
