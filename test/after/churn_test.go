package after_test

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/afterupdate/observation"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner/inspection"
	"github.com/openshift/update-preflight/test/after"
)

// passed is how long after the first state the second one is, with an update between them.
const passed = 4 * time.Hour

// earlier is the first state of a recorded cluster.
type earlier struct {
	*recording

	api *cluster.Cluster
	// stored is the state as a run stores it.
	stored *baseline.State
	// partial is true for an archive of some namespaces.
	partial bool
}

// states are the first states of the recordings.
func states(t *testing.T) map[string]*earlier {
	t.Helper()
	made := map[string]*earlier{}
	for name, each := range recordings(t) {
		state := observed(t, each.connected(t), each.now)
		made[name] = &earlier{
			recording: each, api: each.connected(t), stored: after.Stored(t, state.State),
			partial: state.State.Unread[baseline.Deployment] != "",
		}
	}
	return made
}

// connected is the archive of a recording as a cluster.
func (r *recording) connected(t *testing.T) *cluster.Cluster {
	t.Helper()
	file := filepath.Join(t.TempDir(), "archive.tar")
	r.write(t, file)
	opened, err := archive.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	made, err := cluster.ConnectAt(opened.Config(), "test", opened.Now())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func observed(t *testing.T, api *cluster.Cluster, at time.Time) observation.Observation {
	t.Helper()
	return after.Look(t, api.Config(), at, monitoring.Querier{Config: api.Config(), Dynamic: api.Dynamic}.Find)
}

// compared is the judgement of two archives.
func compared(t *testing.T, before *earlier, now *cluster.Cluster) afterupdate.Report {
	t.Helper()
	made, err := inspection.Archives(t.Context(), inspection.Archived{Cluster: before.api}, inspection.Archived{Cluster: now},
		scene.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// lasting is the judgement of a state that stays as it is for 70 minutes.
func lasting(t *testing.T, before *earlier, now *cluster.Cluster) afterupdate.Report {
	t.Helper()
	var looks []observation.Observation
	for _, later := range []time.Duration{0, 30 * time.Minute, 70 * time.Minute} {
		looks = append(looks, observed(t, now, now.Now().Add(later)))
	}
	return after.Judge(before.stored, looks)
}

// apply makes changes, each of which has to change an object of its kind.
func (r *recording) apply(t *testing.T, changes ...churn) {
	t.Helper()
	for _, each := range changes {
		was := r.clone()
		each.apply(r)
		if kinds := r.differs(was); !slices.Contains(kinds, each.kind) {
			t.Fatalf("%s: no %s differs, but %q", each.reason, each.kind, kinds)
		}
	}
}

// expectation is what a report has to say.
type expectation struct {
	// alone is the report of the same state without changes.
	alone   afterupdate.Report
	changes []churn
	// worse are the regressions, and also what follows from them.
	worse, also []string
}

func (e expectation) check(t *testing.T, made afterupdate.Report) {
	t.Helper()
	var young, ended []string
	waits := 0
	for _, each := range e.changes {
		young, ended = slices.Concat(young, each.young), slices.Concat(ended, each.ended)
		if each.waits {
			waits++
		}
	}
	young = slices.DeleteFunc(young, func(each string) bool {
		return slices.Contains(problems(made.Unattributed), each) || slices.Contains(problems(made.Excused), each)
	})
	regressed, pending := problems(made.Regressions),
		slices.DeleteFunc(problems(made.Pending), func(each string) bool { return slices.Contains(e.also, each) })
	for _, each := range e.worse {
		if !slices.Contains(regressed, each) {
			t.Errorf("%q is missed among %q, pending %q, excused %q", each, regressed, pending, problems(made.Excused))
		}
	}
	for _, each := range regressed {
		if !slices.Contains(e.worse, each) && !slices.Contains(e.also, each) {
			t.Errorf("%q is a regression", each)
		}
	}
	if slices.Sort(young); !slices.Equal(slices.Sorted(slices.Values(pending)), slices.Compact(young)) {
		t.Errorf("pending %q, want %q", pending, young)
	}
	for _, each := range problems(e.alone.Unchanged) {
		if !slices.Contains(problems(made.Unchanged), each) && !slices.Contains(ended, each) {
			t.Errorf("%q was bad before, and is not among %q", each, problems(made.Unchanged))
		}
	}
	if want := e.decision(len(young)+waits, len(made.Unattributed)); made.Decision != want {
		t.Errorf("%s (%s), want %s", made.Decision, made.Message, want)
	}
}

// decision is the expected one, with a number of problems that are young or for which the rollout waits, and of some of which
// it is not known whether they were there before.
func (e expectation) decision(early, unknown int) afterupdate.Decision {
	switch {
	case len(e.worse) > 0:
		return afterupdate.Regressed
	case e.alone.Decision == afterupdate.Unfinished:
		return afterupdate.Unfinished
	case early > 0:
		return afterupdate.Settling
	case unknown > 0:
		return afterupdate.Undecided
	}
	return e.alone.Decision
}

// An hour without an update is no update, whatever has happened in it.
func TestChurnWithoutUpdate(t *testing.T) {
	for name, before := range states(t) {
		alone := compared(t, before, before.later(time.Hour).connected(t))
		if alone.Decision != afterupdate.Unfinished || !strings.Contains(alone.Message, "no update has begun") || len(alone.Unchanged) == 0 {
			t.Fatalf("%s: %s (%s)", name, alone.Decision, alone.Message)
		}
		for kind, each := range churns() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				now := before.later(time.Hour)
				now.apply(t, each)
				expectation{alone: alone, changes: []churn{each}}.check(t, compared(t, before, now.connected(t)))
			})
		}
	}
}

// An update that was complete before the first state is not judged by it.
func TestChurnAfterEarlierUpdate(t *testing.T) {
	for name, first := range states(t) {
		t.Run(name, func(t *testing.T) {
			before := &earlier{recording: first.later(passed)}
			before.update()
			before.api = before.connected(t)
			now := before.later(time.Hour)
			now.apply(t, together()...)
			harms()["Operator"].apply(now)
			made := compared(t, before, now.connected(t))
			if made.Decision != afterupdate.Unfinished || !strings.Contains(made.Message, "the update has not begun") || len(made.Regressions) > 0 ||
				!slices.Contains(problems(made.Pending), "ClusterOperator machine-config Degraded") {
				t.Errorf("%s (%s): regressions %q, pending %q", made.Decision, made.Message, problems(made.Regressions), problems(made.Pending))
			}
		})
	}
}

// What happens in a cluster besides its update is no regression by it.
func TestChurnBesideUpdate(t *testing.T) {
	for name, before := range states(t) {
		whole, alone := updatedAlone(t, before)
		for kind, each := range churns() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				now := whole.clone()
				now.apply(t, each)
				api := now.connected(t)
				want := expectation{alone: alone, changes: []churn{each}}
				want.check(t, compared(t, before, api))
				if len(each.young) == 0 {
					want.check(t, lasting(t, before, api))
				}
			})
		}
	}
}

// updatedAlone is a recorded cluster after its update, in which nothing else has happened.
func updatedAlone(t *testing.T, before *earlier) (*recording, afterupdate.Report) {
	t.Helper()
	whole := before.later(passed)
	whole.update()
	api := whole.connected(t)
	alone := compared(t, before, api)
	want := map[bool]afterupdate.Decision{false: afterupdate.Good, true: afterupdate.Undecided}[before.partial]
	if watched := lasting(t, before, api); alone.Decision != want || watched.Decision != want || len(alone.Unchanged) == 0 {
		t.Fatalf("%s (%s), and for 70 minutes %s (%s), want %s: %q", alone.Decision, alone.Message, watched.Decision, watched.Message, want,
			problems(alone.Unchanged))
	}
	return whole, alone
}

// harm is a regression in a recorded cluster, and what may follow from it.
type harm struct {
	reason      string
	apply       func(*recording)
	worse, also []string
}

// harms are regressions of which an archive shows since when they are there.
func harms() map[string]harm {
	const since = 70 * time.Minute
	return map[string]harm{
		"Operator": {reason: "an operator is degraded", apply: func(r *recording) {
			r.condition(r.get("ClusterOperator", "", "machine-config"), "Degraded", "True", since)
		}, worse: []string{"ClusterOperator machine-config Degraded"}},
		"Node": {reason: "a kubelet does not report", apply: func(r *recording) {
			r.condition(r.get("Node", "", "cordoned-1"), "Ready", "Unknown",
				since)
		}, worse: []string{"Node cordoned-1 NotReady"}, also: []string{"CertificateSigningRequest csr-by-hand Pending"}},
		"Pool": {reason: "a node does not take its configuration", apply: func(r *recording) {
			r.condition(r.get("MachineConfigPool", "", "master"), "Degraded", "True", since)
		}, worse: []string{"MachineConfigPool master Degraded"}},
		"Workload": {reason: "no pod of a user can be made", apply: func(r *recording) {
			of := r.get("Deployment", "shop", "mail")
			r.condition(of, "ReplicaFailure", "True", since)
			r.condition(of, "Available", "False", since)
			r.counts(of, 3, 0)
		}, worse: []string{"Deployment shop/mail FailedCreate", "Deployment shop/mail Unavailable"}},
		"Pods": {reason: "an image cannot be pulled any more", apply: func(r *recording) {
			of := r.get("Deployment", "shop", "api")
			for _, each := range r.in("Pod", "shop", "api-") {
				r.unready(r.rename(each, "api-"+r.suffix(), since), "ImagePullBackOff")
			}
			r.counts(of, 3, 0)
		}, worse: []string{"Deployment shop/api ImagePullBackOff"}, also: []string{"Deployment shop/api Unavailable"}},
		"Set": {reason: "its pods were made again by the update, of the same spec", apply: func(r *recording) {
			r.put(r.get("StatefulSet", "shop", "db"), "status.updateRevision", "db-2")
		}, worse: []string{"StatefulSet shop/db Rolled"}},
		"Request": {reason: "the request of a node of before is not approved", apply: func(r *recording) {
			r.request("csr-known", "system:node:cordoned-1", "kubernetes.io/kubelet-serving", since)
		}, worse: []string{"CertificateSigningRequest csr-known Pending"}},
		"Alert": {
			reason: "an alert fires", apply: func(r *recording) { r.fire("TargetDown", "openshift-dns", "firing", since) },
			worse: []string{"Alert openshift-dns/TargetDown/warning Firing"},
		},
		"Version": {reason: "the spec is not valid any more", apply: func(r *recording) {
			r.condition(r.get("ClusterVersion", "", "version"), "Invalid", "True", since)
		}, worse: []string{"ClusterVersion version Invalid"}},
	}
}

// A regression is found beside all that happens in a cluster, and is none without an update.
func TestRegressionsBesideChurn(t *testing.T) {
	for name, before := range states(t) {
		whole, alone := updatedAlone(t, before)
		still := compared(t, before, before.later(time.Hour).connected(t))
		changes := together()
		now, untouched := whole.clone(), before.later(time.Hour)
		now.apply(t, changes...)
		untouched.apply(t, changes...)
		t.Run(name+"/None", func(t *testing.T) {
			expectation{alone: alone, changes: changes}.check(t, compared(t, before, now.connected(t)))
			expectation{alone: still, changes: changes}.check(t, compared(t, before, untouched.connected(t)))
		})
		for kind, each := range harms() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				bad := now.clone()
				each.apply(bad)
				expectation{alone: alone, changes: changes, worse: each.worse, also: each.also}.check(t, compared(t, before, bad.connected(t)))
				idle := untouched.clone()
				each.apply(idle)
				expectation{alone: still, changes: changes, also: slices.Concat(each.worse, each.also)}.check(t, compared(t, before, idle.connected(t)))
			})
		}
	}
}

// together are the changes that can be made in one cluster, sorted by their names.
func together() []churn {
	var all []churn
	for _, name := range slices.Sorted(maps.Keys(churns())) {
		if each := churns()[name]; each.beside == "" && !each.waits {
			all = append(all, each)
		}
	}
	return all
}

// mixtures is the number of random mixtures for each recording. The seeds make them repeatable.
const mixtures = 25

func TestMixturesOfChurn(t *testing.T) {
	var judged, injected int
	for name, before := range states(t) {
		whole, alone := updatedAlone(t, before)
		names := slices.Sorted(maps.Keys(harms()))
		for seed := range uint64(mixtures) {
			random := rand.New(rand.NewPCG(seed, 2))
			all := together()
			random.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
			want := expectation{alone: alone, changes: all[:3+random.IntN(10)]}
			now := whole.clone()
			now.apply(t, want.changes...)
			for range random.IntN(3) {
				at := random.IntN(len(names))
				each := harms()[names[at]]
				if slices.Contains(want.worse, each.worse[0]) {
					continue
				}
				each.apply(now)
				want.worse, want.also = slices.Concat(want.worse, each.worse), slices.Concat(want.also, each.also)
			}
			judged, injected = judged+1, injected+len(want.worse)
			want.check(t, compared(t, before, now.connected(t)))
			if t.Failed() {
				t.Fatalf("%s, seed %d: %d changes, regressions %q", name, seed, len(want.changes), want.worse)
			}
		}
	}
	t.Logf("%d mixtures with %d regressions", judged, injected)
}
