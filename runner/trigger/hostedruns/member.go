package hostedruns

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/hostedguard"
	"github.com/openshift/update-preflight/runner/trigger/plannedrun"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
	"github.com/openshift/update-preflight/runner/trigger/updatepreflight"
)

// member is a hosted cluster.
type member struct {
	of       v1alpha1.HostedCluster
	object   *hypershift.HostedCluster
	version  *configv1.ClusterVersion
	runs     []runplan.Run
	verdicts runplan.Verdicts
	// current is the run in progress, and begunAt is the state of the hosted cluster at its beginning.
	current *plannedrun.Run
	begunAt string
	// subjects are its UpdatePreflights, and plan the work to do.
	subjects []runplan.Subject
	plan     runplan.Plan
}

// see replaces what is known of the hosted cluster. Verdicts on another state of it do not count
// any more.
func (m *member) see(object *hypershift.HostedCluster) {
	if m.object != nil && stateOf(m.object) != stateOf(object) {
		m.runs, m.verdicts = nil, runplan.Verdicts{}
	}
	m.object, m.version = object, clusterVersion(object)
}

// stateOf returns the parts of the object itself on which a verdict depends.
func stateOf(object *hypershift.HostedCluster) string {
	text := ""
	if object.Status.Version != nil {
		text = object.Status.Version.Desired.Image
	}
	if upgradeable := meta.FindStatusCondition(object.Status.Conditions, "ClusterVersionUpgradeable"); upgradeable != nil {
		text += " " + string(upgradeable.Status)
	}
	return text + " " + object.Annotations[hypershift.AnnotationForce] + " " + string(object.UID)
}

// clusterVersion has what a plan depends on of a hosted cluster, in the form of a ClusterVersion.
func clusterVersion(object *hypershift.HostedCluster) *configv1.ClusterVersion {
	made := &configv1.ClusterVersion{}
	made.Name, made.Generation = "version", object.Generation
	if version := object.Status.Version; version != nil {
		made.Status.Desired, made.Status.AvailableUpdates, made.Status.ConditionalUpdates = version.Desired, version.AvailableUpdates,
			version.ConditionalUpdates
		made.Spec.DesiredUpdate = &configv1.Update{Image: object.Wanted(), Version: offered(version, object.Wanted())}
	}
	for from, to := range map[string]configv1.ClusterStatusConditionType{
		"ClusterVersionProgressing": configv1.OperatorProgressing, "ClusterVersionRetrievedUpdates": configv1.RetrievedUpdates,
	} {
		if condition := meta.FindStatusCondition(object.Status.Conditions, from); condition != nil {
			made.Status.Conditions = append(made.Status.Conditions,
				configv1.ClusterOperatorStatusCondition{Type: to, Status: configv1.ConditionStatus(condition.Status)})
		}
	}
	return made
}

// offered is the version of the update that is offered with an image; empty for none.
func offered(version *hypershift.VersionStatus, image string) string {
	wanted := update.Release{Image: image}.Digest()
	releases := slices.Clone(version.AvailableUpdates)
	for _, each := range version.ConditionalUpdates {
		releases = append(releases, each.Release)
	}
	for _, each := range releases {
		if wanted != "" && (update.Release{Image: each.Image}).Digest() == wanted {
			return each.Version
		}
	}
	return ""
}

// targets are the selected target, and those to run ahead.
func (m *member) targets(ahead int) []runplan.Target {
	all := runplan.Targets(m.version, nil, ahead)
	for i := range all {
		all[i].Hosted = m.of
	}
	return all
}

// state is the input of a plan.
func (m *member) state(now time.Time, ahead int) runplan.State {
	runs := slices.Clone(m.runs)
	if m.current != nil {
		runs = append(runs, m.current.Planned)
	}
	return runplan.State{Now: now, ClusterVersion: m.version, Ahead: ahead, Runs: runs, Requests: runplan.RequestsOf(m.subjects, m.verdicts)}
}

// last is the end of the last run; zero for none.
func (m *member) last() time.Time {
	var last time.Time
	for _, run := range m.runs {
		if run.Ended.After(last) {
			last = run.Ended
		}
	}
	return last
}

// conclude remembers a run that has ended. The validity of its verdict is bounded.
func (m *member) conclude(run runplan.Run, decided report.Report, failure error, now time.Time) {
	run.ID, run.Ended = decided.Run.ID, now
	if decided.Verdict.Decision != "" {
		if until, known := standing.ValidUntil(decided); !known || until.After(now.Add(MaxAge)) {
			decided.Verdict.ValidUntil = words.Time(now.Add(MaxAge))
		}
		decided.Standing = &report.Standing{Time: words.Time(now)}
		run.Decision, run.Accepts = runplan.DecisionOf(decided), len(decided.Verdict.Accepted) > 0
		run.ValidUntil, _ = standing.ValidUntil(decided)
		m.verdicts[run.Covered()] = decided
	} else if failure != nil {
		run.Failure = failure.Error()
	}
	m.runs = runplan.Remember(m.runs, run)
}

// forget forgets the runs and verdicts of targets that are not in the plan.
func (m *member) forget(ahead int) {
	wanted := map[runplan.Covered]bool{}
	for _, target := range m.targets(ahead) {
		wanted[target.Covered()] = true
	}
	for _, subject := range m.subjects {
		wanted[subject.Target.Covered()] = true
	}
	m.runs = slices.DeleteFunc(m.runs, func(run runplan.Run) bool { return !wanted[run.Covered()] })
	maps.DeleteFunc(m.verdicts, func(of runplan.Covered, _ report.Report) bool { return !wanted[of] })
}

// guarded is the hosted cluster with the verdicts of the complete runs, at most that many: that on the
// release that is requested first, then those that administrators request.
func (m *member) guarded(ahead, most int) hostedguard.Cluster {
	cluster := hostedguard.Cluster{Object: m.object}
	targets := m.targets(ahead)
	for _, subject := range m.subjects {
		if subject.Unknown == "" {
			targets = append(targets, subject.Target)
		}
	}
	ranks := []record.Requester{record.BySelection, record.ByUser, record.Ahead}
	slices.SortStableFunc(targets, func(a, b runplan.Target) int {
		return slices.Index(ranks, a.Requester) - slices.Index(ranks, b.Requester)
	})
	seen := map[string]bool{}
	for _, target := range targets {
		target.Selection = "" // other selections are not complete
		decided, found := m.verdicts[target.Covered()]
		if !found || seen[target.Digest()] || len(cluster.Verdicts) == most {
			continue
		}
		seen[target.Digest()] = true
		verdict := guard.Verdict{Digest: target.Digest()}
		announcement.Complete(&verdict, decided)
		cluster.Verdicts = append(cluster.Verdicts, verdict)
	}
	return cluster
}

// due are the members whose run is due and none in progress, the one whose last run is the oldest first.
func due(members map[v1alpha1.HostedCluster]*member) []*member {
	var waiting []*member
	for _, m := range members {
		if m.current == nil && m.plan.Run != nil {
			waiting = append(waiting, m)
		}
	}
	slices.SortFunc(waiting, func(a, b *member) int {
		return cmp.Or(a.last().Compare(b.last()), cmp.Compare(a.of.Namespace, b.of.Namespace), cmp.Compare(a.of.Name, b.of.Name))
	})
	return waiting
}

// requests are the UpdatePreflights of hosted clusters that are not being deleted, by the hosted
// cluster. There are none where the API server does not serve them.
func (f *fleet) requests(ctx context.Context) (map[v1alpha1.HostedCluster][]v1alpha1.UpdatePreflight, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all v1alpha1.UpdatePreflightList
	err := f.reader.List(ctx, &all)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("could not list the UpdatePreflights: %w", err)
	}
	requested := map[v1alpha1.HostedCluster][]v1alpha1.UpdatePreflight{}
	for _, object := range all.Items {
		if of := object.Spec.HostedCluster; of != nil && object.DeletionTimestamp.IsZero() {
			requested[*of] = append(requested[*of], object)
		}
	}
	return requested, nil
}

// show makes the members' objects match their targets, and writes the statuses that differ, at most MaxWrites. It
// returns when a status changes without an event; zero for never. Nothing is shown if the objects could not be read.
func (f *fleet) show(ctx context.Context, requested map[v1alpha1.HostedCluster][]v1alpha1.UpdatePreflight,
	now time.Time,
) (time.Time, error) {
	if requested == nil {
		return time.Time{}, nil
	}
	pass := f.writer.Begin()
	for of, m := range f.members {
		pass.Reconcile(ctx, updatepreflight.Cluster{
			Objects: requested[of], Subjects: m.subjects, Targets: m.targets(f.options.Ahead), State: m.state(now, f.options.Ahead),
			Verdicts: m.verdicts, Selection: f.options.Selection,
		})
	}
	for of, objects := range requested {
		if f.members[of] == nil {
			f.leaveOut(ctx, pass, objects, now)
		}
	}
	return pass.End()
}

// leaveOut deletes the controller's objects for a hosted cluster that has no preflights, or no longer exists. The
// administrators' objects report it.
func (f *fleet) leaveOut(ctx context.Context, pass *updatepreflight.Pass, objects []v1alpha1.UpdatePreflight, now time.Time) {
	for i := range objects[:min(len(objects), runplan.MaxWrites)] {
		object := &objects[i]
		if object.Owned() {
			pass.Delete(ctx, object)
			continue
		}
		unknown := fmt.Sprintf("the management cluster has no HostedCluster %s/%s, or more hosted clusters than the "+
			"%d that have preflights",
			object.Spec.HostedCluster.Namespace, object.Spec.HostedCluster.Name, f.options.Clusters)
		pass.State(ctx, object, projection.Observation{Now: now, Unknown: unknown})
	}
}
