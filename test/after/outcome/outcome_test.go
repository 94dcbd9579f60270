// Package outcome answers: what is the right answer about each state of a cluster after an update?
//
// Its tables are of what users reported after updates, and of what they and their controllers do besides. They are
// written from what the report has to say, and know no reasons and no rules of the product.
package outcome_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/afterupdate/observation"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/test/after"
)

// row is a state of a cluster after its update, and the right answer about it.
type row struct {
	name, reason string
	// before makes what the cluster has before the baseline, and change what is so after the update.
	before, change func(*after.World)
	// looks are when the cluster is read, before noon; nil for those of [looks]. at changes it before each of them.
	looks []time.Duration
	at    func(w *after.World, before time.Duration)
	// separate is true if each look is that of another process, which knows no earlier one.
	separate bool
	answer
}

// answer is what the report has to say.
type answer struct {
	// decided are the decisions that are right; nil for Regressed where a cause is named, and else for Good.
	decided []afterupdate.Decision
	// named are the causes, and either are causes of which one is enough. Others are wrong, but for those of also.
	named, either, also []after.Ref
	// says are parts of the message.
	says []string
	// listed are excused or in a notice, asBefore unchanged, and shown anywhere in the report.
	listed, asBefore, shown []after.Ref
	// kept are not excused.
	kept []after.Ref
}

// since is since when the state of a row is so, by its objects.
const since = 75 * time.Minute

// looks are the times of the looks of most rows, before noon.
func looks() []time.Duration {
	return []time.Duration{70 * time.Minute, 35 * time.Minute, 5 * time.Minute, time.Minute, 0}
}

// lately are those of a state that began 50 minutes before noon.
func lately() []time.Duration {
	return []time.Duration{48 * time.Minute, 25 * time.Minute, 5 * time.Minute, time.Minute, 0}
}

// every are looks at this interval, from the first to the last.
func every(interval, first, last time.Duration) []time.Duration {
	var all []time.Duration
	for at := first; at >= last; at -= interval {
		all = append(all, at)
	}
	return all
}

// judged is the report about a row.
func (r row) judged(tb testing.TB) afterupdate.Report {
	tb.Helper()
	world := after.New(after.Noon())
	if r.before != nil {
		r.before(world)
	}
	baseline := world.Baseline(tb)
	world.Update()
	reboot(world)
	if r.change != nil {
		r.change(world)
	}
	times := r.looks
	if times == nil {
		times = looks()
	}
	var seen []observation.Observation
	if r.at == nil {
		seen = world.Observe(tb, times...)
	} else {
		for _, each := range times {
			r.at(world, each)
			seen = append(seen, world.Observe(tb, each)...)
		}
	}
	if r.separate {
		return after.JudgeApart(tb, baseline, seen)
	}
	return after.Judge(baseline, seen)
}

// wrong are the differences of a report from the right answer.
func (r row) wrong(made afterupdate.Report) []string {
	var wrong []string
	right := r.decided
	if right == nil {
		right = []afterupdate.Decision{afterupdate.Good}
		if len(r.named)+len(r.either) > 0 {
			right[0] = afterupdate.Regressed
		}
	}
	if !slices.Contains(right, made.Decision) {
		wrong = append(wrong, fmt.Sprintf("%s and not %v", made.Decision, right))
	}
	for _, each := range r.says {
		if !strings.Contains(made.Message, each) {
			wrong = append(wrong, fmt.Sprintf("the message lacks %q", each))
		}
	}
	return slices.Concat(wrong, r.causes(made), r.misplaced(made))
}

// causes are what is wrong about the causes in a report.
func (r row) causes(made afterupdate.Report) []string {
	var wrong []string
	for _, each := range r.named {
		if !slices.ContainsFunc(made.Regressions, is(each)) {
			wrong = append(wrong, text(each)+" is no cause")
		}
	}
	if len(r.either) > 0 && !slices.ContainsFunc(r.either,
		func(each after.Ref) bool { return slices.ContainsFunc(made.Regressions, is(each)) }) {
		wrong = append(wrong, "none of "+texts(r.either)+" is a cause")
	}
	for _, each := range made.Regressions {
		if !slices.ContainsFunc(slices.Concat(r.named, r.either, r.also), func(of after.Ref) bool { return is(of)(each) }) {
			wrong = append(wrong, entry(each)+" is a cause")
		}
	}
	return wrong
}

// misplaced are the objects that the lists of a report lack.
func (r row) misplaced(made afterupdate.Report) []string {
	var wrong []string
	notices := strings.Join(append(slices.Clone(made.Notices), made.Message), "\n")
	for _, each := range r.listed {
		if !slices.ContainsFunc(made.Excused, has(each)) && !strings.Contains(notices, strings.TrimPrefix(each.Namespace+"/"+each.Name, "/")) {
			wrong = append(wrong, text(each)+" is not listed")
		}
	}
	for _, each := range r.asBefore {
		if !slices.ContainsFunc(made.Unchanged, has(each)) {
			wrong = append(wrong, text(each)+" is not as before")
		}
	}
	all := slices.Concat(made.Regressions, made.Pending, made.Unchanged, made.Excused, made.Unattributed)
	for _, each := range r.shown {
		if !slices.ContainsFunc(all, has(each)) && !strings.Contains(notices, each.Name) {
			wrong = append(wrong, text(each)+" is not shown")
		}
	}
	for _, each := range r.kept {
		if slices.ContainsFunc(made.Excused, has(each)) {
			wrong = append(wrong, text(each)+" is excused")
		}
	}
	return wrong
}

// matches reports whether an object of a report is this one.
func matches(of finding.Object, ref after.Ref) bool {
	kind, group, grouped := strings.Cut(ref.Kind, ".")
	return of.Kind == kind && of.Namespace == ref.Namespace && of.Name == ref.Name && (!grouped || strings.HasPrefix(of.APIVersion, group+"/"))
}

// is matches an entry of a report by its object, and has also by those that follow from it.
func is(ref after.Ref) func(afterupdate.Regression) bool {
	return func(of afterupdate.Regression) bool { return matches(of.Object, ref) }
}

func has(ref after.Ref) func(afterupdate.Regression) bool {
	return func(of afterupdate.Regression) bool {
		return matches(of.Object, ref) || slices.ContainsFunc(of.Follows, func(each afterupdate.Folded) bool { return matches(each.Object, ref) })
	}
}

func text(ref after.Ref) string {
	return ref.Kind + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
}

func texts(refs []after.Ref) string {
	var all []string
	for _, each := range refs {
		all = append(all, text(each))
	}
	return strings.Join(all, ", ")
}

func entry(of afterupdate.Regression) string {
	reason, _, _ := strings.Cut(of.Is, ":")
	return text(after.Ref{Kind: of.Object.Kind, Namespace: of.Object.Namespace, Name: of.Object.Name}) + " (" + reason + ")"
}

func entries(all []afterupdate.Regression) string {
	var made []string
	for _, each := range all {
		made = append(made, entry(each))
	}
	return cmp.Or(strings.Join(made, ", "), "none")
}

// check checks the rows of a table, and logs how many are right.
func check(t *testing.T, table []row) {
	t.Helper()
	right := 0
	for _, each := range table {
		if t.Run(each.name, func(t *testing.T) {
			made := each.judged(t)
			for _, wrong := range each.wrong(made) {
				t.Errorf("%s: %s", each.reason, wrong)
			}
			if t.Failed() {
				t.Logf("%s (%s); regressions: %s; pending: %s; unattributed: %s; unchanged: %s; excused: %s; notices %q", made.Decision, made.Message,
					entries(made.Regressions), entries(made.Pending), entries(made.Unattributed), entries(made.Unchanged), entries(made.Excused),
					made.Notices)
			}
		}) {
			right++
		}
	}
	t.Logf("%d of %d rows are right", right, len(table))
}

// tables are all rows.
func tables() []row {
	return slices.Concat(worseWorkloads(), worseServing(), worseGone(), worsePlatform(), worseCourses(), worseAsToday(), conditionsWorse(),
		phasesWorse(), podsWorse(), releaseWorse(),
		harmlessUsers(), harmlessNew(), harmlessChanged(), harmlessLeft(), harmlessNodes(), harmlessScaled(), runsHarmless(), statesHarmless(),
		ownersHarmless(), rolloutsHarmless())
}

// What a row has before its change is good, so that its answer is about the change. A CronJob is bad without one.
func TestWithoutChange(t *testing.T) {
	var controls []row
	for _, each := range tables() {
		world := after.New(after.Noon())
		if each.before == nil || each.asBefore != nil {
			continue
		}
		if each.before(world); len(world.All("CronJob")) > 0 {
			continue
		}
		each.change, each.at, each.looks, each.answer = nil, nil, nil, answer{}
		controls = append(controls, each)
	}
	check(t, controls)
}

// Every regression is named by its cause, and nothing else is.
func TestWorse(t *testing.T) {
	check(t, slices.Concat(worseWorkloads(), worseServing(), worseGone(), worsePlatform(), worseCourses(), worseAsToday()))
}

// What users, administrators and controllers do beside an update is none.
func TestHarmless(t *testing.T) {
	check(t, slices.Concat(harmlessUsers(), harmlessNew(), harmlessChanged(), harmlessLeft(), harmlessNodes(), harmlessScaled()))
}

// Kinds that no rule names are as much a part of the update.
func TestMoreWorse(t *testing.T) {
	check(t, slices.Concat(conditionsWorse(), phasesWorse(), podsWorse(), releaseWorse()))
}

func TestMoreHarmless(t *testing.T) {
	check(t, slices.Concat(runsHarmless(), statesHarmless(), ownersHarmless(), rolloutsHarmless()))
}

// The cluster serves what the rows need: status subresources and scopes, of built-in kinds and of those of its definitions.
func TestDiscovery(t *testing.T) {
	w := after.New(after.Noon())
	put(w, "Rollout shop/canary", `{}`)
	put(w, "Application openshift-gitops/shop", `{}`)
	put(w, "ClusterPolicy gpu", `{}`)
	put(w, "Service.serving.knative.dev shop/hello", `{}`)
	_, lists, err := discovery.ToServerResourcesInterfaceWithContext(
		discovery.NewDiscoveryClientForConfigOrDie(w.Server(t).Config())).ServerGroupsAndResourcesWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, list := range lists {
		for _, each := range list.APIResources {
			served[list.GroupVersion+"/"+each.Name] = each.Namespaced
		}
	}
	for resource, namespaced := range map[string]bool{
		"argoproj.io/v1alpha1/rollouts/status": true, "argoproj.io/v1alpha1/applications": true, "nvidia.com/v1/clusterpolicies/status": false,
		"serving.knative.dev/v1/services/status": true,
		"v1/services/status":                     true, "v1/nodes/status": false, "autoscaling/v2/horizontalpodautoscalers/status": true,
		"apps/v1/replicasets/status": true, "config.openshift.io/v1/clusteroperators/status": false,
		"machine.openshift.io/v1beta1/machines/status": true, "storage.k8s.io/v1/storageclasses": false,
	} {
		if got, found := served[resource]; !found || got != namespaced {
			t.Errorf("%s is served %t, in namespaces %t and not %t", resource, found, got, namespaced)
		}
	}
	for _, resource := range []string{
		"argoproj.io/v1alpha1/applications/status", "storage.k8s.io/v1/storageclasses/status",
		"v1/secrets/status",
	} {
		if _, found := served[resource]; found {
			t.Errorf("%s is served", resource)
		}
	}
}
