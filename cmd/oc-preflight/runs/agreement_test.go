package runs_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/cvo"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/test/exit"
	testprogram "github.com/openshift/update-preflight/test/program"
	"github.com/openshift/update-preflight/test/records"
)

// stored is a state of the records of one target, and what they are worth.
type stored struct {
	reason string
	// make records the state, and returns the ID of the run that status shows.
	make func(w world) string
	// asked is what the controller asks; nil for what it asks by default.
	asked *selection.Asked
	// permits is true for a verdict by which the update may start. why is in the answer of every reader that gives one.
	permits bool
	why     string
}

// covering changes what a run covers.
func covering(change func(*selection.Coverage)) func(*record.Intent) {
	return func(intent *record.Intent) {
		var covered selection.Coverage
		if err := json.Unmarshal([]byte(intent.Selection), &covered); err != nil {
			panic(err)
		}
		change(&covered)
		intent.Selection = covered.String()
	}
}

func leavingOut(names ...string) func(*record.Intent) {
	return func(intent *record.Intent) {
		intent.Narrowed = names
		covering(func(c *selection.Coverage) { c.Skip = names })(intent)
	}
}

func byVersion(version string) func(*record.Intent) {
	return func(intent *record.Intent) { intent.ToolVersion = version }
}

func passing(change ...func(*report.Report)) report.Report {
	made := records.Report(records.Passed("Etcd.Quorum"))
	for _, each := range change {
		each(&made)
	}
	return made
}

func forcing(r *report.Report) { r.Verdict.Forced, r.Verdict.ForceReason = true, "an outage" }

// ready is a run that is Ready by the controller's version, with these changes.
func ready(w world, changes ...func(*record.Intent)) string {
	w.t.Helper()
	narrowed := record.Intent{Selection: runner.Options{}.Coverage()}
	for _, change := range changes {
		change(&narrowed)
	}
	made := passing(func(r *report.Report) { r.Verdict.Narrowed = narrowed.Narrowed })
	return w.Completed('1', made, w.Fingerprint(), append([]func(*record.Intent){byVersion(program.Version())}, changes...)...)
}

func blocked(w world) string {
	w.t.Helper()
	return w.Completed('1', records.Report(records.Failed("Etcd.Quorum", "NoQuorum")), w.Fingerprint(), byVersion(program.Version()))
}

// before records one run, and then another one in a later second.
func before(first, second func(world) string) func(world) string {
	return func(w world) string {
		w.t.Helper()
		first(w)
		w.NextSecond()
		return second(w)
	}
}

// and records a run, and then changes the cluster or the record.
func and(run func(world) string, change func(w world, id string)) func(world) string {
	return func(w world) string {
		w.t.Helper()
		id := run(w)
		change(w, id)
		return id
	}
}

func plain(w world) string { return ready(w) }

func edited(w world, id string) {
	w.forge(id, func(header *corev1.ConfigMap) { header.Data["verdict.json"] += " " })
}

func with(changes ...func(*record.Intent)) func(world) string {
	return func(w world) string { return ready(w, changes...) }
}

func addNode(w world, _ string) {
	w.t.Helper()
	if _, err := w.Client.CoreV1().Nodes().Create(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "added"}},
		metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func outdated(w world, id string) {
	w.t.Helper()
	if err := w.Store.Outdate(w.t.Context(), id, "Node b has changed", time.Now()); err != nil {
		w.t.Fatal(err)
	}
}

func states() map[string]stored {
	site := covering(func(c *selection.Coverage) { c.Site = []string{"site@sha256:1"} })
	asks := func(change func(*selection.Asked)) *selection.Asked {
		asked := controllers()
		change(&asked)
		return &asked
	}
	const narrowed = "check Drain"
	skips := leavingOut("check Drain")
	return map[string]stored{
		"Ready":   {reason: "it covers what is asked", make: plain, permits: true},
		"Blocked": {reason: "it is not Ready", make: blocked},
		"OlderTool": {
			reason: "an administrator is not locked out by their version", make: with(byVersion("v0.1.0")), permits: true,
			why: "the run was made by version v0.1.0, which differs from the controller's",
		},
		"NewerTool": {
			reason: "an administrator is not locked out by their version", make: with(byVersion("v9.0.0")), permits: true,
			why: "made by version v9.0.0",
		},
		"Monitoring": {
			reason: "nor by --prometheus: gates and risks are judged again",
			make:   with(covering(func(c *selection.Coverage) { c.Monitoring = "other" })), permits: true,
			why: "the alerts and metrics of the run differ from the controller's",
		},
		"Keyring": {reason: "CVO verifies the release by its own keys", make: with(
			covering(func(c *selection.Coverage) { c.Keyrings = "other" })), permits: true, why: "the keys of releases of the run differ"},
		"Store": {
			reason: "CVO verifies the release by its own stores",
			make:   with(covering(func(c *selection.Coverage) { c.Stores = "other" })), permits: true, why: "the signature stores of the run differ",
		},
		"Repository": {reason: "CVO pulls the release by its own mirrors", make: with(covering(
			func(c *selection.Coverage) { c.Repositories = []string{"mirror"} })), permits: true, why: "the repositories of the run differ"},
		"Narrowed": {reason: "a check was skipped", make: with(skips), why: narrowed},
		"NarrowedAlso": {
			reason: "the controller skips exactly the same", make: with(skips),
			asked: asks(func(a *selection.Asked) { a.Narrowed = []string{"check Drain"} }), permits: true,
		},
		"NarrowedMore": {
			reason: "more is left out than by the controller", make: with(leavingOut("check Drain", "check Etcd")),
			asked: asks(func(a *selection.Asked) { a.Narrowed = []string{"check Drain"} }), why: "check Drain, check Etcd",
		},
		"NarrowedLess": {
			reason: "a whole run covers what a narrowed one does", make: plain,
			asked: asks(func(a *selection.Asked) { a.Narrowed = []string{"check Drain"} }), permits: true,
		},
		"Site": {reason: "the controller has checks of the site", make: plain, asked: asks(
			func(a *selection.Asked) { a.Covers.Site = []string{"site@sha256:1"} }), why: "the run lacks the checks of the site site@sha256:1"},
		"SiteCovered": {
			reason: "the run has them as well", make: with(site),
			asked: asks(func(a *selection.Asked) { a.Covers.Site = []string{"site@sha256:1"} }), permits: true,
		},
		"SiteMore": {reason: "a run may cover more than is asked", make: with(site), permits: true},
		"Images": {
			reason: "the controller has nodes pull the images", make: plain,
			asked: asks(func(a *selection.Asked) { a.Covers.Images = string(image.Pull) }), why: "the run has --images check, not pull",
		},
		"ImagesPulled": {reason: "all images were pulled", make: with(covering(func(c *selection.Coverage) {
			c.Images = string(
				image.PullAll)
		})), asked: asks(func(a *selection.Asked) { a.Covers.Images = string(image.Pull) }), permits: true},
		"ImagesBlobs": {
			reason: "that a registry has the layers does not show that nodes can pull",
			make:   with(covering(func(c *selection.Coverage) { c.Images = string(image.Blobs) })),
			asked:  asks(func(a *selection.Asked) { a.Covers.Images = string(image.Pull) }), why: "not pull",
		},
		"ImagesUnknown": {
			reason: "a mode of a later version covers nothing that is known",
			make:   with(covering(func(c *selection.Coverage) { c.Images = "later" })), why: "the run has --images later",
		},
		"Dependencies": {
			reason: "the controller asks URLs outside of the cluster", make: plain,
			asked: asks(func(a *selection.Asked) { a.Covers.Dependencies = "urls" }), why: "the run does not check the same external dependencies",
		},
		"Selection": {
			reason: "what a record covers cannot be read", make: with(func(i *record.Intent) { i.Selection = "?" }),
			why: "unknown what the run covers",
		},
		"Forced": {reason: "force permits no update", make: func(w world) string {
			return w.Completed('1', passing(forcing), w.Fingerprint(), byVersion(program.Version()))
		}, why: "forced"},
		"ForcedBlocked": {reason: "force changes no decision", make: func(w world) string {
			made := records.Report(records.Failed("Etcd.Quorum", "NoQuorum"))
			forcing(&made)
			return w.Completed('1', made, w.Fingerprint(), byVersion(program.Version()))
		}},
		"Provisional": {reason: "it is about a later update of a path", make: func(w world) string {
			made := passing(func(r *report.Report) { r.Verdict.Decision, r.Verdict.Provisional = verdict.NothingKnown, true })
			return w.Completed('1', made, w.Fingerprint(), byVersion(program.Version()), func(i *record.Intent) { i.Provisional = true })
		}},
		"Expired": {reason: "its time has ended", make: func(w world) string {
			return w.Completed('1', passing(func(r *report.Report) { r.Verdict.ValidUntil = "2020-01-01T00:00:00Z" }), w.Fingerprint(),
				byVersion(program.Version()))
		}, why: "it was valid until 2020-01-01T00:00:00Z"},
		"Changed": {reason: "a node was added", make: and(plain, addNode), why: "Node added is new"},
		"Unrecorded": {reason: "unknown whether the cluster has changed", make: func(w world) string {
			return w.Completed('1', passing(), nil,
				byVersion(program.Version()))
		}, why: "its state was not recorded"},
		"Outdated":   {reason: "the controller has ended it", make: and(plain, outdated), why: "Node b has changed"},
		"Edited":     {reason: "the record was edited", make: and(plain, edited)},
		"Superseded": {reason: "a newer run is Blocked", make: before(plain, blocked)},
		"Fixed":      {reason: "a newer run is Ready", make: before(blocked, plain), permits: true},
		"NarrowedLast": {
			reason: "what covers less supersedes nothing that covers all",
			make:   func(w world) string { id := ready(w); w.NextSecond(); ready(w, skips); return id }, permits: true,
		},
		"WholeLast": {reason: "what covers all counts", make: before(with(skips), plain), permits: true},
		"ForcedLast": {reason: "the newest run was forced", make: before(plain, func(w world) string {
			return w.Completed('1', passing(forcing), w.Fingerprint(), byVersion(program.Version()))
		}), why: "forced"},
		"EditedLast": {
			reason: "an edited record may have been Blocked",
			make:   func(w world) string { id := ready(w); w.NextSecond(); edited(w, blocked(w)); return id }, why: "is newer",
		},
	}
}

// controllers is what a controller of this version asks.
func controllers() selection.Asked {
	return runner.Options{Hooks: runner.Hooks{ToolVersion: program.Version()}}.Asked("the controller")
}

// All who read a stored verdict, or act on it, agree on what it is worth, and state the reason.
func TestReadersAgree(t *testing.T) {
	for name, tc := range states() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := tc.make(w)
			asked := controllers()
			if tc.asked != nil {
				asked = *tc.asked
			}
			for reader, got := range w.answers(id, asked) {
				if got.permits != tc.permits {
					t.Errorf("%s: %s permits the update: %t, want %t (%s)", tc.reason, reader, got.permits, tc.permits, got.why)
				}
				if tc.why != "" && got.why != "" && !strings.Contains(strings.ToLower(got.why), strings.ToLower(tc.why)) {
					t.Errorf("%s: %s states %q, which lacks %q", tc.reason, reader, got.why, tc.why)
				}
			}
		})
	}
}

// answer is what a reader makes of a verdict. why is empty for a reader that gives no reason.
type answer struct {
	permits bool
	why     string
}

// answers are those of all readers of the records about the release 4.19.1.
func (w world) answers(id string, asked selection.Asked) map[string]answer {
	w.t.Helper()
	listed, err := w.Store.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	connected, err := cluster.Connect(w.server.Config(), "test")
	if err != nil {
		w.t.Fatal(err)
	}
	question := standing.Question{Present: standing.Present{Cluster: snapshot.Of(connected), Now: connected.Now()}, Asked: asked, Runs: listed}
	verdicts, err := question.Read(w.t.Context(), w.Store.Get, func(id string, err error) { w.t.Errorf("run %s: %v", id, err) })
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := published.Apply(w.t.Context(), w.Client, verdicts.Published(), asked.String(), question.Now); err != nil {
		w.t.Fatal(err)
	}
	decided, found := verdicts.On(records.Digest('1'), asked)
	made := guard.Verdict{Digest: records.Digest('1'), Version: "4.19.1"}
	observed := projection.Observation{Now: question.Now, Target: update.Release{Version: "4.19.1", Image: records.Image('1')}}
	if found {
		announcement.Complete(&made, decided)
		observed.Verdict = &decided
	}
	object := &v1alpha1.UpdatePreflight{}
	projected := projection.Status(object, observed)
	listing, shown := w.listed(id)
	state := testprogram.Call(w.t, "status", id)
	return map[string]answer{
		"status": {permits: state.Code == exit.Ready, why: state.Stdout},
		"history": {permits: listing.Decision == string(verdict.Ready) && listing.Outdated == "" && listing.Refusal == "" &&
			listing.Authenticity == "Authentic" && shown, why: listing.Outdated + listing.Refusal},
		"UpdatePreflight":   {permits: projected.Phase == v1alpha1.Ready, why: messageOf(projected, observed)},
		"admission":         {permits: made.Answer(question.Now) == guard.Ready, why: reasonOf(made, question.Now)},
		"CVO precondition":  w.precondition(),
		"report of the run": {permits: found && decided.Permits()},
	}
}

// row is one of the history.
type row struct {
	ID           string `json:"id"`
	Decision     string `json:"decision"`
	Outdated     string `json:"outdated"`
	Refusal      string `json:"refusal"`
	Authenticity string `json:"authenticity"`
}

// listed is the row of a run in the history, and whether there is one.
func (w world) listed(id string) (row, bool) {
	w.t.Helper()
	var history struct {
		Runs []row `json:"runs"`
	}
	if err := json.Unmarshal([]byte(w.call(exit.Ready, "history", "-o", "json").Stdout), &history); err != nil {
		w.t.Fatal(err)
	}
	for _, each := range history.Runs {
		if each.ID == id {
			return each, true
		}
	}
	return row{}, false
}

// messageOf is the message of the condition Ready; empty without a verdict.
func messageOf(status v1alpha1.UpdatePreflightStatus, observed projection.Observation) string {
	if observed.Verdict == nil {
		return ""
	}
	return meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Message
}

// reasonOf is what the admission policies state about a verdict that is Ready and refused, and the remark on one that is not.
func reasonOf(made guard.Verdict, now time.Time) string {
	if answer := made.Answer(now); answer != guard.Ready && made.Refusal != "" && made.Decision == guard.Ready {
		return answer
	}
	return made.Remark
}

// lister has one object.
type lister[T any] func() (T, error)

func (l lister[T]) Get(string) (T, error) { return l() }

// precondition is the answer of the adapter that CVO links.
func (w world) precondition() answer {
	w.t.Helper()
	version := &configv1.ClusterVersion{
		Spec:   configv1.ClusterVersionSpec{DesiredUpdate: &configv1.Update{Image: records.Image('1')}},
		Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: "4.18.3"}},
	}
	verdicts := cvo.New(
		lister[*configv1.ClusterVersion](func() (*configv1.ClusterVersion, error) { return version, nil }),
		lister[*corev1.ConfigMap](func() (*corev1.ConfigMap, error) {
			return w.Client.CoreV1().ConfigMaps(cvo.Namespace).Get(w.t.Context(), cvo.Name, metav1.GetOptions{})
		}), apierrors.IsNotFound, nil)
	problem := verdicts.Selected("4.19.1")
	if problem == nil || problem.Warning {
		return answer{permits: true}
	}
	if problem.Reason != "PreflightStale" {
		return answer{}
	}
	return answer{why: problem.Message}
}
