package hub_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/fleet/hub"
	"github.com/openshift/update-preflight/runner/fleet/wave"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/test/user"
)

// spoke is a managed cluster, with what its agents have written to the hub.
type spoke struct {
	name, id string
	status   clusterv1.ManagedClusterStatus
	object   *v1alpha1.UpdatePreflight
	// work is nil where the hub has not asked.
	work *workv1.ManifestWorkStatus
	view map[string]any
	key  key
	now  time.Time
}

// newSpoke is a cluster that answers, and whose verdict is Ready.
func newSpoke(tb testing.TB, name string, number int, now time.Time) *spoke {
	tb.Helper()
	at := func(offset time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(offset)} }
	s := &spoke{name: name, id: idOf(number), now: now, work: &workv1.ManifestWorkStatus{}}
	s.status.Conditions = []metav1.Condition{
		condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, 0),
		condition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue, 0),
		condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionTrue, 0),
	}
	s.status.ClusterClaims = []clusterv1.ManagedClusterClaim{
		{Name: "id.openshift.io", Value: s.id},
		{Name: "version.openshift.io", Value: "4.19.3"},
	}
	s.object = &v1alpha1.UpdatePreflight{ObjectMeta: metav1.ObjectMeta{Name: hub.ObjectName(to)}}
	s.object.Status = v1alpha1.UpdatePreflightStatus{
		Phase: v1alpha1.Ready, Decision: "Ready", Target: &v1alpha1.Release{Version: to, Image: image}, ValidUntil: at(time.Hour),
		ReportTime: at(-time.Minute),
		Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionTrue, 0)},
	}
	s.work.Conditions = []metav1.Condition{condition(workv1.WorkApplied, metav1.ConditionTrue, 1)}
	s.work.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta: workv1.ManifestResourceMeta{Group: v1alpha1.Group, Kind: v1alpha1.Kind, Resource: v1alpha1.Resource, Name: s.object.Name},
		Conditions: []metav1.Condition{
			condition(workv1.ManifestApplied, metav1.ConditionTrue, 1), condition(workv1.ManifestAvailable, metav1.ConditionTrue, 0),
			condition("StatusFeedbackSynced", metav1.ConditionTrue, 0),
		},
	}}
	return s
}

// set sets a condition of a list that has it.
func set(conditions []metav1.Condition, kind string, status metav1.ConditionStatus) {
	at := slices.IndexFunc(conditions, func(each metav1.Condition) bool { return each.Type == kind })
	conditions[at].Status = status
}

func (s *spoke) blocked() {
	s.object.Status.Decision, s.object.Status.Phase, s.object.Status.Blocking, s.object.Status.Causes = "Blocked", v1alpha1.Blocked,
		[]string{"Drain", "Etcd"}, "Drain,Etcd"
}

func (s *spoke) manifest() *workv1.ManifestCondition { return &s.work.ResourceStatus.Manifests[0] }

func (s *spoke) sign(tb testing.TB, by key, id, version string, decision verdict.Decision) {
	tb.Helper()
	s.object.Status.Attestation = by.signed(tb, id, version, decision, s.now.Add(-time.Minute))
}

func (s *spoke) updated(status metav1.ConditionStatus, reason string, ago time.Duration) {
	made := condition(v1alpha1.ConditionUpdated, status, 0)
	made.Reason, made.LastTransitionTime = reason, metav1.NewTime(s.now.Add(-ago))
	s.object.Status.Conditions = append(s.object.Status.Conditions, made)
	s.object.Status.Decision, s.object.Status.Phase, s.object.Status.ValidUntil = "", v1alpha1.Pending, nil
}

// add creates the objects of a cluster on the hub.
func (w *world) add(s *spoke) {
	w.t.Helper()
	w.namespace(s.name)
	w.apply(clusterv1.GroupVersion.String(), "managedclusters", &unstructured.Unstructured{Object: map[string]any{
		"kind": "ManagedCluster", "metadata": map[string]any{"name": s.name}, "spec": map[string]any{"hubAcceptsClient": true},
		"status": raw(w.t, &s.status),
	}})
	if s.view != nil {
		w.apply("view.open-cluster-management.io/v1beta1", "managedclusterviews", &unstructured.Unstructured{Object: map[string]any{
			"kind": "ManagedClusterView", "metadata": map[string]any{
				"namespace": s.name, "name": "verdict",
				"labels": map[string]any{hub.Label: ""},
			}, "spec": map[string]any{}, "status": s.view,
		}})
	}
	if s.work == nil {
		return
	}
	if s.object != nil && len(s.work.ResourceStatus.Manifests) > 0 {
		s.manifest().StatusFeedbacks.Values = agent(w.t, s.object)
	}
	w.apply(workv1.GroupVersion.String(), "manifestworks", &unstructured.Unstructured{Object: map[string]any{
		"kind": "ManifestWork", "metadata": map[string]any{
			"namespace": s.name, "name": "target",
			"labels": map[string]any{"work.open-cluster-management.io/manifestworkreplicaset": fleets + ".target"},
		},
		"spec": map[string]any{}, "status": raw(w.t, s.work),
	}})
}

// place has the Placement select clusters in one decision group.
func (w *world) place(group string, names ...string) {
	w.t.Helper()
	var decisions []any
	for _, name := range names {
		decisions = append(decisions, map[string]any{"clusterName": name, "reason": ""})
	}
	w.apply("cluster.open-cluster-management.io/v1beta1", "placementdecisions", &unstructured.Unstructured{Object: map[string]any{
		"kind": "PlacementDecision", "metadata": map[string]any{"namespace": fleets, "name": "all-" + group, "labels": map[string]any{
			"cluster.open-cluster-management.io/placement": "all", "cluster.open-cluster-management.io/decision-group-name": group,
		}},
		"status": map[string]any{"decisions": decisions},
	}})
}

func (w *world) read(query hub.Query) map[string]string {
	w.t.Helper()
	found, err := hub.Read(w.t.Context(), w.hub, query)
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string]string{}
	for _, member := range found.Members {
		var causes []string
		for _, cause := range member.Row.Causes {
			causes = append(causes, strings.TrimPrefix(cause.Name+"/"+cause.Reason, "HubReport/"))
		}
		got[member.Row.Cluster.Name] = strings.Join(append([]string{string(member.Row.State)}, causes...), " ") + "; " +
			string(member.Update.Stage)
	}
	return got
}

// judged is a cluster that runs the release for nine days, and states whether that was good.
func (s *spoke) judged(status metav1.ConditionStatus, reason string, ago time.Duration) {
	s.updated(metav1.ConditionTrue, v1alpha1.ReasonUpdated, 9*24*time.Hour)
	made := condition("AfterUpdate", status, 0)
	made.Reason, made.LastTransitionTime = reason, metav1.NewTime(s.now.Add(-ago))
	s.object.Status.Conditions = append(s.object.Status.Conditions, made)
}

// The soak of a gate begins when the cluster states that the update was good.
func TestJudgedUpdates(t *testing.T) {
	const day = 24 * time.Hour
	w := newWorld(t)
	for number, name := range []string{"good", "lately", "regressed", "waiting", "unstated"} {
		s := newSpoke(t, "judged-"+name, number, w.now)
		switch name {
		case "good":
			s.judged(metav1.ConditionTrue, "Good", day)
		case "lately":
			s.judged(metav1.ConditionTrue, "Good", time.Hour)
		case "regressed":
			s.judged(metav1.ConditionFalse, "Regressed", time.Hour)
		case "waiting":
			s.judged(metav1.ConditionUnknown, "Settling", time.Hour)
		default:
			s.updated(metav1.ConditionTrue, v1alpha1.ReasonUpdated, 9*day)
		}
		w.add(s)
	}
	found, err := hub.Read(t.Context(), w.hub, hub.Query{To: to})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, soak := range []time.Duration{day, 0} {
		for _, each := range wave.Decide(wave.Strategy{To: to, MinSuccessTime: soak}, found.Wave(), w.now).Clusters {
			got[strings.TrimPrefix(each.Name, "judged-")] += fmt.Sprintf("/%s", each.Status)
		}
	}
	want := map[string]string{
		"good": "/Succeeded/Succeeded", "lately": "/Progressing/Succeeded", "regressed": "/Failed/Failed", "waiting": "/Progressing/Progressing",
		"unstated": "/Unknown/Succeeded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with and without a soak (-want, +got):\n%s", diff)
	}
}

// What a cluster reports counts only as far as the hub knows that it is of now, and of this update.
func TestRead(t *testing.T) {
	w := newWorld(t)
	offset := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: w.now.Add(d)} }
	rows := map[string]struct {
		reason string
		change func(*spoke)
		want   string
	}{
		"ready":   {"it answers, and its verdict holds", func(*spoke) {}, "Ready; Outstanding"},
		"blocked": {"each cause is one", func(s *spoke) { s.blocked() }, "Blocked Drain/Blocks Etcd/Blocks; Outstanding"},
		"undecided": {"inconclusive findings are causes", func(s *spoke) {
			s.object.Status.Decision, s.object.Status.Causes = "Undecided",
				"Alerts"
		}, "Undecided Alerts/Inconclusive; Outstanding"},
		"uncaused": {
			"a decision without a cause says nothing", func(s *spoke) { s.object.Status.Decision = "Blocked" },
			"Undecided NoCause; Outstanding",
		},
		"other-word": {
			"a decision of a later version is no Ready", func(s *spoke) { s.object.Status.Decision = "Fine" },
			"Undecided NoCause; Outstanding",
		},
		"away": {"the last values stay on the hub", func(s *spoke) {
			set(s.status.Conditions, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown)
		}, "Unreachable; Silent"},
		"down": {"the agent reports that its API server is down", func(s *spoke) {
			set(s.status.Conditions, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionFalse)
		}, "Unreachable; Silent"},
		"never": {"it has never answered", func(s *spoke) { s.status.Conditions = s.status.Conditions[:2] }, "Unreachable; Silent"},
		"away-done": {"a cluster that is away does not become updated", func(s *spoke) {
			s.updated("True", "Updated", time.Hour)
			set(s.status.Conditions, clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown)
		}, "Unreachable; Silent"},
		"unaccepted": {
			"it is not a cluster of this hub yet", func(s *spoke) { s.status.Conditions = s.status.Conditions[1:] },
			"NotInstalled; Silent",
		},
		"unasked": {"no ManifestWork", func(s *spoke) { s.work = nil }, "Undecided NotAsked; Silent"},
		"unapplied": {
			"the agent has not seen the work", func(s *spoke) { s.work = &workv1.ManifestWorkStatus{} },
			"Undecided NotApplied; Silent",
		},
		"refused": {
			"the API server refused the object", func(s *spoke) { set(s.work.Conditions, workv1.WorkApplied, metav1.ConditionFalse) },
			"Undecided NotApplied; Silent",
		},
		"generation": {
			"the feedback is of the former target", func(s *spoke) { s.work.Conditions[0].ObservedGeneration = 0 },
			"Undecided NotApplied; Silent",
		},
		"deleted": {
			"the object was deleted; its feedback stays",
			func(s *spoke) { set(s.manifest().Conditions, workv1.ManifestAvailable, metav1.ConditionFalse) }, "Undecided NotAvailable; Silent",
		},
		"unsynced": {
			"a rule fails, and the values are old",
			func(s *spoke) { set(s.manifest().Conditions, "StatusFeedbackSynced", metav1.ConditionFalse) }, "Undecided NoFeedback; Silent",
		},
		"no-object": {
			"the work brings something else", func(s *spoke) { s.manifest().ResourceMeta.Kind = "ConfigMap" },
			"Undecided NoObject; Silent",
		},
		"no-control": {
			"the controller does not run", func(s *spoke) { s.object.Status = v1alpha1.UpdatePreflightStatus{} },
			"Undecided NotReported; Silent",
		},
		"stale": {
			"the controller or the work agent ended, the cluster answers",
			func(s *spoke) { s.object.Status.ReportTime = offset(-91 * time.Minute) }, "Undecided Outdated; Silent",
		},
		"slow-clock": {"a clock that is an hour behind", func(s *spoke) {
			s.object.Status.ReportTime, s.object.Status.ValidUntil = offset(-89*time.Minute), offset(time.Minute)
		}, "Ready; Outstanding"},
		"fast-clock": {
			"a clock that is an hour ahead", func(s *spoke) { s.object.Status.ReportTime = offset(59 * time.Minute) },
			"Ready; Outstanding",
		},
		"far-clock": {
			"a time of the future proves nothing", func(s *spoke) { s.object.Status.ReportTime = offset(2 * time.Hour) },
			"Undecided OfTheFuture; Silent",
		},
		"bad-clock": {"the hub knows that the clocks differ", func(s *spoke) {
			s.status.Conditions = append(s.status.Conditions, condition(clusterv1.ManagedClusterConditionClockSynced, metav1.ConditionFalse, 0))
		}, "Undecided ClockNotSynced; Silent"},
		"expired": {
			"the verdict has ended by the clock of the hub", func(s *spoke) { s.object.Status.ValidUntil = offset(-time.Second) },
			"Undecided Expired; Outstanding",
		},
		"no-end": {"a verdict has an end", func(s *spoke) { s.object.Status.ValidUntil = nil }, "Undecided Expired; Outstanding"},
		"no-verdict": {
			"the run is in progress", func(s *spoke) { s.object.Status.Decision, s.object.Status.Phase = "", v1alpha1.Checking },
			"Undecided NoVerdict; Outstanding",
		},
		"no-target": {"the update is not offered there", func(s *spoke) {
			s.object.Status.Target, s.object.Status.Decision, s.object.Status.Phase = nil, "", v1alpha1.New
		}, "Undecided NoVerdict; Outstanding"},
		"other": {
			"it was asked about another update", func(s *spoke) { s.object.Status.Target.Version = "4.18.1" },
			"Undecided NotAsked; Silent",
		},
		"upper": {
			"it claims the ID of another in other letters",
			func(s *spoke) { s.status.ClusterClaims[0].Value = strings.ToUpper(idOf(0)) }, "Undecided SameID; Silent",
		},
		"twin":    {"it claims the ID of another", func(s *spoke) { s.status.ClusterClaims[0].Value = idOf(0) }, "Undecided SameID; Silent"},
		"twin-2":  {"neither counts", func(s *spoke) { s.status.ClusterClaims[0].Value = idOf(0) }, "Undecided SameID; Silent"},
		"updated": {"it runs the release", func(s *spoke) { s.updated("True", "Updated", time.Hour) }, "Updated; Updated"},
		"updating": {
			"its nodes are updated", func(s *spoke) { s.updated("False", v1alpha1.ReasonPoolsUpdating, time.Hour) },
			"Undecided NoVerdict; Updating",
		},
		"broken": {
			"a pool is degraded", func(s *spoke) { s.updated("False", v1alpha1.ReasonPoolDegraded, time.Hour) },
			"Undecided NoVerdict; Broken",
		},
		"update-read": {
			"it is unknown", func(s *spoke) { s.updated("Unknown", v1alpha1.ReasonNotRead, time.Hour) },
			"Undecided NoVerdict; Silent",
		},
		"view": {"a view of the object is as good as a ManifestWork", func(s *spoke) {
			s.blocked()
			s.work, s.view = nil, viewOf(t, metav1.ConditionTrue, raw(t, typed(s.object)))
		}, "Blocked Drain/Blocks Etcd/Blocks; Outstanding"},
		"view-failed": {
			"a view that fails keeps the object of before",
			func(s *spoke) { s.work, s.view = nil, viewOf(t, metav1.ConditionFalse, raw(t, typed(s.object))) }, "Undecided NoAnswer; Silent",
		},
		"view-silent": {
			"a view has no conditions while the cluster is away",
			func(s *spoke) { s.work, s.view = nil, map[string]any{"result": raw(t, typed(s.object))} }, "Undecided NoAnswer; Silent",
		},
		"view-map": {
			"a verdict in a ConfigMap counts only if it is signed", func(s *spoke) { s.work, s.view = nil, configMap(t, "{}") },
			"Undecided NoKey; Silent",
		},
	}
	number := 1
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		made := newSpoke(t, name, number, w.now)
		rows[name].change(made)
		w.add(made)
		number++
	}
	got := w.read(hub.Query{To: to})
	for name, row := range rows {
		if got[name] != row.want {
			t.Errorf("%s: %s: want %q, got %q", name, row.reason, row.want, got[name])
		}
	}
	w.place("canary", "ready", "blocked")
	w.place("rest", "away", "gone")
	all := hub.Query{Placement: types.NamespacedName{Namespace: fleets, Name: "all"}, To: to}
	want := map[string]string{
		"ready": rows["ready"].want, "blocked": rows["blocked"].want, "away": rows["away"].want,
		"gone": "NotInstalled; Silent",
	}
	if diff := cmp.Diff(want, w.read(all)); diff != "" {
		t.Errorf("a Placement selects the clusters (-want, +got):\n%s", diff)
	}
	all.Group = "canary"
	if diff := cmp.Diff([]string{"blocked", "ready"}, slices.Sorted(maps.Keys(w.read(all)))); diff != "" {
		t.Errorf("a decision group is a wave (-want, +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		reason      string
		tolerations []any
		isComplete  bool
	}{
		"none": {"OCM drops clusters that do not answer by default", nil, false},
		"all":  {"everything is tolerated", []any{map[string]any{"operator": "Exists"}}, true},
		"both": {"the two taints of clusters that do not answer", []any{map[string]any{
			"key":      clusterv1.ManagedClusterTaintUnreachable,
			"operator": "Exists",
		}, map[string]any{"key": clusterv1.ManagedClusterTaintUnavailable}}, true},
		"one": {
			"a cluster whose API server is down has the other taint",
			[]any{map[string]any{"key": clusterv1.ManagedClusterTaintUnreachable, "operator": "Exists"}},
			false,
		},
		"a-while":   {"they are dropped after a minute", []any{map[string]any{"operator": "Exists", "tolerationSeconds": int64(60)}}, false},
		"preferred": {"the taints have another effect", []any{map[string]any{"operator": "Exists", "effect": "PreferNoSelect"}}, false},
	} {
		w.apply("cluster.open-cluster-management.io/v1beta1", "placements", &unstructured.Unstructured{Object: map[string]any{
			"kind": "Placement", "metadata": map[string]any{"namespace": fleets, "name": "tolerates-" + name},
			"spec": map[string]any{"tolerations": append([]any{}, tc.tolerations...)},
		}})
		found, err := hub.Read(t.Context(), w.hub,
			hub.Query{Placement: types.NamespacedName{Namespace: fleets, Name: "tolerates-" + name}, To: to})
		if err != nil || (found.Incomplete == "") != tc.isComplete {
			t.Errorf("%s: %s: %q, %v", name, tc.reason, found.Incomplete, err)
		}
	}
	all.Placement.Name = "none"
	if _, err := hub.Read(t.Context(), w.hub, all); err == nil || !strings.Contains(err.Error(), "none does not exist") {
		t.Errorf("a Placement that does not exist is an error: %v", err)
	}
}

// typed is an object with its kind.
func typed(object *v1alpha1.UpdatePreflight) *v1alpha1.UpdatePreflight {
	object.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(v1alpha1.Kind))
	return object
}

func viewOf(tb testing.TB, processing metav1.ConditionStatus, result map[string]any) map[string]any {
	tb.Helper()
	made := condition("Processing", processing, 0)
	return map[string]any{"conditions": []any{raw(tb, &made)}, "result": result}
}

func configMap(tb testing.TB, envelope string) map[string]any {
	tb.Helper()
	return viewOf(tb, metav1.ConditionTrue, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "verdict"}, "data": map[string]any{hub.VerdictKey: envelope},
	})
}

// With keys, a verdict counts only if the key of its cluster signed it.
func TestSignedVerdicts(t *testing.T) {
	w := newWorld(t)
	thief := newKey(t)
	rows := map[string]struct {
		reason string
		change func(*spoke)
		want   string
	}{
		"signed-ready": {
			"the key of the cluster signed it", func(s *spoke) { s.sign(t, s.key, s.id, to, verdict.Ready) },
			"Ready; Outstanding",
		},
		"signed-blocked": {
			"what was signed counts, not what is beside it", func(s *spoke) { s.sign(t, s.key, s.id, to, verdict.Blocked) },
			"Blocked Drain/Blocks; Outstanding",
		},
		"narrowed": {"alerts were ignored", func(s *spoke) {
			s.object.Status.Attestation = s.key.narrowed(t, s.id, to, w.now.Add(-time.Minute), "alert KubePodCrashLooping")
		}, "Undecided Narrowed; Outstanding"},
		"updated": {
			"who writes the status would make it ready", func(s *spoke) { s.updated("True", "Updated", time.Hour) },
			"Undecided UpdateNotSigned; Updated",
		},
		"not-signed": {"a hub's administrator can write any status", func(*spoke) {}, "Undecided NotSigned; Outstanding"},
		"other-key": {
			"the key of another cluster", func(s *spoke) { s.sign(t, thief, s.id, to, verdict.Ready) },
			"Undecided InvalidSignature; Outstanding",
		},
		"other-cluster": {
			"the verdict on another cluster", func(s *spoke) { s.sign(t, s.key, idOf(999), to, verdict.Ready) },
			"Undecided OtherCluster; Outstanding",
		},
		"other-release": {
			"the verdict on another release", func(s *spoke) { s.sign(t, s.key, s.id, "4.19.11", verdict.Ready) },
			"Undecided OtherRelease; Outstanding",
		},
		"replayed": {"an old verdict is shown again", func(s *spoke) {
			s.object.Status.Attestation = s.key.signed(t, s.id, to, verdict.Ready, w.now.Add(-25*time.Hour))
		}, "Undecided ValidityEnded; Outstanding"},
		"garbage": {"no envelope", func(s *spoke) { s.object.Status.Attestation = "{" }, "Undecided InvalidEnvelope; Outstanding"},
		"unpinned": {"a cluster without a key", func(s *spoke) {
			s.sign(t, s.key, s.id, to,
				verdict.Ready)
			s.status.ClusterClaims[0].Value = idOf(998)
		}, "Undecided NoKey; Outstanding"},
		"without-id": {"a cluster without an ID", func(s *spoke) { s.status.ClusterClaims = nil }, "Undecided NoKey; Outstanding"},
		"no-verdict": {"there is nothing to sign", func(s *spoke) { s.object.Status.Decision = "" }, "Undecided NoVerdict; Outstanding"},
		"map-ready": {
			"a ConfigMap that CI has made",
			func(s *spoke) { s.work, s.view = nil, configMap(t, s.key.signed(t, s.id, to, verdict.Ready, w.now)) }, "Ready; Silent",
		},
		"map-other": {"of another cluster", func(s *spoke) {
			s.work, s.view = nil,
				configMap(t, thief.signed(t, s.id, to, verdict.Ready, w.now))
		}, "Undecided InvalidSignature; Silent"},
	}
	number, pinned := 100, map[string][]byte{idOf(997): thief.public}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		made := newSpoke(t, "k-"+name, number, w.now)
		made.key = newKey(t)
		pinned[made.id] = made.key.public
		rows[name].change(made)
		w.add(made)
		number++
	}
	keys, err := hub.PinKeys(pinned)
	if err != nil {
		t.Fatal(err)
	}
	got := w.read(hub.Query{To: to, Keys: keys})
	for name, row := range rows {
		if got["k-"+name] != row.want {
			t.Errorf("%s: %s: want %q, got %q", name, row.reason, row.want, got["k-"+name])
		}
	}
}

// What a user may not list is unknown, and named: it is neither a report nor the lack of one.
func TestUnread(t *testing.T) {
	w := newWorld(t)
	ready, viewed := newSpoke(t, "ready", 200, w.now), newSpoke(t, "viewed", 201, w.now)
	viewed.work, viewed.view = nil, viewOf(t, metav1.ConditionTrue, raw(t, typed(viewed.object)))
	w.add(ready)
	w.add(viewed)
	query := hub.Query{To: to}
	for name, tc := range map[string]struct {
		reason  string
		without string
		want    map[string]string
		notice  string
	}{
		"all": {
			reason: "the declared permissions suffice",
			want:   map[string]string{"ready": "Ready; Outstanding", "viewed": "Ready; Outstanding"},
		},
		"views": {"a cluster without a ManifestWork may have a view", "managedclusterviews", map[string]string{
			"ready":  "Ready; Outstanding",
			"viewed": "Undecided NotRead; Silent",
		}, "ManagedClusterViews of the hub were not read"},
		"works": {
			"nothing is known of what was not read", "manifestworks",
			map[string]string{"ready": "Undecided NotRead; Silent", "viewed": "Ready; Outstanding"},
			"ManifestWorks of the hub were not read",
		},
		"sets": {
			"they are found by their ManifestWorkReplicaSets", "manifestworkreplicasets",
			map[string]string{"ready": "Undecided NotRead; Silent", "viewed": "Ready; Outstanding"},
			"ManifestWorks of the hub were not read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			needs := query.Needs()
			needs.Optional = slices.DeleteFunc(needs.Optional, func(each access.Request) bool { return each.Resource == tc.without })
			reached, err := cluster.Connect(user.With(t, config, needs), "test")
			if err != nil {
				t.Fatal(err)
			}
			as := &world{t: t, hub: reached, now: w.now}
			if diff := cmp.Diff(tc.want, as.read(query)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			found, err := hub.Read(t.Context(), reached, query)
			if text := strings.Join(found.Notices, "; "); err != nil || !strings.Contains(text, tc.notice) ||
				(tc.notice == "") == strings.Contains(text, "oc preflight auth fleet-hub") {
				t.Errorf("%s: %q, %v", tc.reason, text, err)
			}
		})
	}
}

// The ConfigMap of the keys belongs to the hub, and a key that is missing or shared is refused as in a
// directory.
func TestKeysOfHub(t *testing.T) {
	w := newWorld(t)
	first, second := newKey(t), newKey(t)
	for name, tc := range map[string]struct {
		reason string
		data   map[string]string
		want   string
	}{
		"keys": {
			"one key for each cluster; others are ignored",
			map[string]string{idOf(1) + ".pub": string(first.public), idOf(2) + ".pub": string(second.public), "README": "keys"},
			"",
		},
		"shared": {
			"each could sign for the other",
			map[string]string{idOf(1) + ".pub": string(first.public), idOf(2) + ".pub": string(first.public)},
			"have the same key",
		},
		"case": {
			"one of them would be ignored",
			map[string]string{idOf(1) + ".pub": string(first.public), strings.ToUpper(idOf(1)) + ".pub": string(second.public)},
			"has two keys",
		},
		"none": {"no key would accept nothing, or everything", map[string]string{"README": "keys"}, "there is no key"},
		"garbage": {
			"a key that cannot be read is not left out",
			map[string]string{idOf(1) + ".pub": "-----BEGIN"},
			"the key of the cluster " + idOf(1),
		},
		"absent": {"it was not created", nil, "does not exist in the namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			named := types.NamespacedName{Namespace: fleets, Name: "keys-" + name}
			if tc.data != nil {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fleets, Name: named.Name}, Data: tc.data}
				if _, err := w.hub.Kubernetes.CoreV1().ConfigMaps(fleets).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			keys, err := hub.KeysOfHub(t.Context(), w.hub, named)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			found, err := hub.Read(t.Context(), w.hub, hub.Query{To: to, Keys: keys})
			if text := strings.Join(found.Notices, "; "); err != nil || !strings.Contains(text, "who may write it") {
				t.Errorf("who has to be trusted is stated: %q, %v", text, err)
			}
		})
	}
}
