// Package real_test answers: is an update judged by what a real Kubernetes states of its objects?
//
// The controllers, the admission and the aggregator are real, and the nodes simulated. What the cluster-version
// operator states is written by the test. The clock of the judgement is ahead of that of the cluster, so that the
// limits have passed.
package real_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/afterupdate/observation"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/openshift"
)

const from, to = "4.18.1", "4.18.2"

// Every problem that Kubernetes states after a harm by others is a regression, and none is that owners made.
func TestUpdate(t *testing.T) {
	local, err := cluster.Start(t.Context(), filepath.Join(t.TempDir(), "cluster"), cluster.KWOK(nodes), cluster.QuickScheduler(),
		cluster.ControllerRate(150, 300))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := local.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w := newWorld(t, local)
	before := after.Stored(t, w.await(t, nil).State)
	now := time.Now()
	if err := openshift.Complete(t.Context(), local.Config,
		openshift.Completion{Version: to, Image: image(to), Started: now, Completed: now}); err != nil {
		t.Fatal(err)
	}
	all, worse := shown(nil, innocents()), []string{}
	w.apply(t, innocents())
	w.await(t, all)
	w.expect(t, before, afterupdate.Good, worse)
	all, worse = shown(all, regressions()), shows(worse, regressions())
	w.apply(t, regressions())
	w.await(t, all)
	w.expect(t, before, afterupdate.Regressed, worse)
}

func (w *world) apply(t *testing.T, changes []change) {
	t.Helper()
	for _, each := range changes {
		each.apply(t, w)
	}
}

// shows are the problems of changes, beside others, sorted.
func shows(others []string, changes []change) []string {
	all := slices.Clone(others)
	for _, each := range changes {
		all = append(all, each.shows...)
	}
	slices.Sort(all)
	return all
}

// shown are shows, with the problems that are no regressions.
func shown(others []string, changes []change) []string {
	all := shows(others, changes)
	for _, each := range changes {
		all = append(all, each.excused...)
	}
	slices.Sort(all)
	return all
}

// expect verifies the judgement of three looks, in the two hours after the present.
func (w *world) expect(t *testing.T, before *baseline.State, decision afterupdate.Decision, worse []string) {
	t.Helper()
	var looks []observation.Observation
	for _, ahead := range []time.Duration{40 * time.Minute, 80 * time.Minute, 2 * time.Hour} {
		looks = append(looks, after.Look(t, w.config, time.Now().Add(ahead), w.alerts))
	}
	made := after.Judge(before, looks)
	named := []string{}
	name := func(of finding.Object, is string) {
		reason, _, _ := strings.Cut(is, ":")
		named = append(named, baseline.Key{Kind: baseline.Kind(of.Kind), Namespace: of.Namespace, Name: of.Name}.String()+" "+reason)
	}
	for _, each := range made.Regressions {
		name(each.Object, each.Is)
		for _, follows := range each.Follows {
			name(follows.Object, follows.Is)
		}
	}
	slices.Sort(named)
	if diff := cmp.Diff(worse, named); diff != "" {
		t.Errorf("regressions (-want +got):\n%s\nreasons:\n%s", diff, reasons())
	}
	if made.Decision != decision {
		t.Errorf("%s (%s), want %s; pending %+v, not read %q", made.Decision, made.Message, decision, made.Pending, made.Unread)
	}
}

// reasons are those of all changes.
func reasons() string {
	var all []string
	for _, each := range slices.Concat(innocents(), regressions()) {
		all = append(all, each.name+": "+each.reason)
	}
	return strings.Join(all, "\n")
}

func image(version string) string {
	digit := version[len(version)-1:]
	return "registry.example.com/openshift/release@sha256:" + strings.Repeat(digit, 64)
}

// state is an OpenShift cluster of one operator.
func state() openshift.State {
	installed := time.Now().AddDate(0, -1, 0)
	operator := configv1.ClusterOperator{
		ObjectMeta: metav1.ObjectMeta{Name: "network"},
		Status:     configv1.ClusterOperatorStatus{Versions: openshift.OperatorVersions(from)},
	}
	for kind, status := range map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{
		configv1.OperatorAvailable: configv1.ConditionTrue, configv1.OperatorProgressing: configv1.ConditionFalse,
		configv1.OperatorDegraded: configv1.ConditionFalse,
	} {
		operator.Status.Conditions = append(operator.Status.Conditions,
			configv1.ClusterOperatorStatusCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(installed)})
	}
	return openshift.State{
		Version: from, Image: image(from), Since: installed, Topology: configv1.HighlyAvailableTopologyMode,
		Operators: []configv1.ClusterOperator{operator},
	}
}

// serve serves the aggregated API, with its discovery.
func serve() *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		// the client may be gone
		_, _ = response.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"real.example.com/v1","resources":[]}`))
	}))
}
