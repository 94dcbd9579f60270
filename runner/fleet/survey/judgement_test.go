package survey_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/survey"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/projection"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/records"
)

// world is a cluster that was updated, with a run that stored its baseline before.
type world struct {
	t       *testing.T
	state   *after.World
	server  *apiserver.Server
	records records.Cluster
	noon    time.Time
	run     string
}

// newWorld has its update from one to two hours after the run, which ends now; since is added to these.
func newWorld(t *testing.T, since time.Duration) *world {
	t.Helper()
	const untilNoon = 4 * time.Hour
	w := &world{t: t, noon: time.Now().Add(untilNoon + since).UTC().Truncate(time.Second)}
	before := after.New(w.noon)
	w.state = before.Clone()
	w.state.Update()
	w.server, w.run = w.state.Recorded(t, before)
	w.records = records.In(t, w.server.Config())
	return w
}

// judged is a judgement of the update, by its last look.
func (w *world) judged(decision afterupdate.Decision) afterupdate.Report {
	w.t.Helper()
	looks := w.state.Observe(w.t, 0)
	made := afterupdate.Judge(afterupdate.Question{Cluster: looks[0].Cluster, Run: w.run, Change: looks[0].Change},
		afterupdate.Course{}.And(nil, looks[0].Sample(nil, nil)))
	made.Decision, made.Message = decision, "the message of "+string(decision)
	return made
}

func (w *world) store(run string, made afterupdate.Report) {
	w.t.Helper()
	if err := baselinestore.New(w.records.Client).PutJudgement(w.t.Context(), run, made); err != nil {
		w.t.Fatal(err)
	}
}

// edit changes what is stored of the judgement after a run, as who does not have the key.
func (w *world) edit() {
	w.t.Helper()
	maps := w.records.Client.CoreV1().ConfigMaps(record.Namespace)
	stored, err := maps.List(w.t.Context(), metav1.ListOptions{LabelSelector: "preflight.openshift.io/afterupdate=" + w.run})
	if err != nil || len(stored.Items) != 1 {
		w.t.Fatal(stored, err)
	}
	stored.Items[0].BinaryData["judgement.gz"] = []byte("forged")
	if _, err := maps.Update(w.t.Context(), &stored.Items[0], metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// other is a run that ends now.
func (w *world) other() string { return w.records.Completed('c', records.Report(), nil) }

// forget deletes what was stored of the state before the update.
func (w *world) forget() { w.t.Helper(); w.delete("preflight.openshift.io/baseline") }

// stored is the object with the judgement after the run.
func (w *world) stored() corev1.ConfigMap {
	w.t.Helper()
	found, err := w.records.Client.CoreV1().ConfigMaps(record.Namespace).List(w.t.Context(),
		metav1.ListOptions{LabelSelector: "preflight.openshift.io/afterupdate=" + w.run})
	if err != nil || len(found.Items) != 1 {
		w.t.Fatal(found, err)
	}
	return found.Items[0]
}

// putBack replaces what is stored of a judgement by an earlier content.
func (w *world) putBack(earlier corev1.ConfigMap) {
	w.t.Helper()
	now := w.stored()
	now.Data, now.BinaryData = earlier.Data, earlier.BinaryData
	if _, err := w.records.Client.CoreV1().ConfigMaps(record.Namespace).Update(w.t.Context(), &now, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// record is the record of a run that has stored a baseline then.
func (w *world) record(taken time.Time) {
	w.t.Helper()
	intent := record.Intent{
		ID: "0b9f7a52-6a1e-4a0f-9a57-1c6f2f8f3c11", From: after.From,
		Target: update.Release{Version: after.To, Image: records.Image('d')}, Requester: record.ByUser,
	}
	err := recordstore.New(w.records.Client).Add(w.t.Context(), intent, func(context.Context) (record.Ending, error) {
		return record.Ending{Phase: record.Complete, Report: []byte("{}"), Baseline: taken}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// delete deletes the ConfigMaps with a label.
func (w *world) delete(label string) {
	w.t.Helper()
	err := w.records.Client.CoreV1().ConfigMaps(record.Namespace).DeleteCollection(w.t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: label})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) replaceKey() {
	w.t.Helper()
	if err := w.records.Client.CoreV1().Secrets(record.Namespace).Delete(w.t.Context(), recordstore.KeySecret,
		metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.other()
}

// deny refuses a resource in the namespace of the records.
func (w *world) deny(resource string) {
	w.server.Deny(func(_ string, request apiserver.Request) bool {
		return request.Resource == resource && request.Namespace == record.Namespace
	})
}

func (w *world) update(to string) *fleet.Update {
	w.t.Helper()
	reached, err := cluster.ConnectAt(w.server.Config(), "test", w.noon)
	if err != nil {
		w.t.Fatal(err)
	}
	return survey.Measured(w.t.Context(), fleet.Row{}, reached, hosted.Estate{}, to).Update
}

// What "after" or the controller has stored is the judgement of the update that the history shows, and nothing that is not
// read, not authentic or of another update is one that was good.
func TestJudgementOfTheUpdate(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		since  time.Duration
		act    func(w *world)
		// status is empty for no judgement.
		status, message string
	}{
		"Good": {
			reason: "it is stored", act: func(w *world) { w.store(w.run, w.judged(afterupdate.Good)) }, status: "True",
			message: "the message of Good",
		},
		"Regressed": {
			reason: "it is stored", act: func(w *world) { w.store(w.run, w.judged(afterupdate.Regressed)) }, status: "False",
			message: "the message of Regressed",
		},
		"None": {
			reason: "a judgement that was deleted looks like none: what was good before is stored", act: func(*world) {},
			status: "Unknown", message: "but the update has not been evaluated with it",
		},
		"PutBack": {reason: "an earlier Good was put back over a later Regressed", act: func(w *world) {
			made := w.judged(afterupdate.Good)
			made.Samples.Last = words.Time(w.noon.Add(-time.Minute))
			w.store(w.run, made)
			earlier := w.stored()
			w.store(w.run, w.judged(afterupdate.Regressed))
			w.putBack(earlier)
		}, status: "Unknown", message: "an earlier judgement was restored"},
		"JudgedAgain": {reason: "the update was judged once more since", act: func(w *world) {
			made := w.judged(afterupdate.Good)
			made.Samples.Last = words.Time(w.noon.Add(-2 * time.Minute))
			w.store(w.run, made)
			earlier := w.stored()
			made = w.judged(afterupdate.Regressed)
			made.Samples.Last = words.Time(w.noon.Add(-time.Minute))
			w.store(w.run, made)
			w.putBack(earlier)
			w.store(w.run, w.judged(afterupdate.Good))
		}, status: "True"},
		"PutBackOfOneSecond": {reason: "both are of one second", act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Good))
			earlier := w.stored()
			w.store(w.run, w.judged(afterupdate.Regressed))
			w.putBack(earlier)
		}, status: "Unknown", message: "an earlier judgement was restored"},
		"PutBackWithoutBaseline": {reason: "what shows that it was put back was deleted", act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Good))
			earlier := w.stored()
			w.store(w.run, w.judged(afterupdate.Regressed))
			w.putBack(earlier)
			w.forget()
		}, status: "Unknown", message: "no longer exists"},
		"RegressedWithoutBaseline": {
			reason: "nothing makes it good",
			act:    func(w *world) { w.store(w.run, w.judged(afterupdate.Regressed)); w.forget() }, status: "False",
		},
		"GoodAgain": {reason: "the first one stays, and is none that was put back", act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Good))
			made := w.judged(afterupdate.Good)
			made.Samples.Last = words.Time(w.noon.Add(time.Hour))
			w.store(w.run, made)
		}, status: "True"},
		"JudgedAndDeleted": {reason: "it was judged, and the judgement deleted", act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Regressed))
			w.delete("preflight.openshift.io/afterupdate")
		}, status: "Unknown", message: "but the update has not been evaluated with it"},
		"Stored": {reason: "the record states a baseline, and all beside it was deleted", act: func(w *world) {
			w.record(w.noon.Add(-4 * time.Hour))
			w.forget()
		}, status: "Unknown", message: "the baseline and its judgement no longer exist"},
		"StoredDuring": {reason: "that baseline was taken after the update had begun", act: func(w *world) {
			w.record(w.noon.Add(-time.Minute))
			w.forget()
		}},
		"StoredLongBefore": {reason: "that baseline is of an update before", act: func(w *world) {
			w.record(w.noon.Add(-41 * 24 * time.Hour))
			w.forget()
		}},
		"NoBaseline": {reason: "a fleet that stores no baselines continues as before", act: func(w *world) { w.forget() }},
		"NoSecret": {
			reason: "the baseline may be of this update", act: func(w *world) { w.deny("secrets") }, status: "Unknown",
			message: "unknown whether the update was evaluated",
		},
		"NoSecretNoBaseline": {reason: "nothing is stored, so nothing is to be verified", act: func(w *world) { w.forget(); w.deny("secrets") }},
		"OlderJudgement": {reason: "an earlier Good was put back, and the judgement by the newest baseline deleted", act: func(w *world) {
			made := w.judged(afterupdate.Good)
			made.Baseline = &afterupdate.Baseline{Time: words.Time(w.noon.Add(-5 * time.Hour))}
			w.store(w.other(), made)
		}, status: "Unknown", message: "but the update has not been evaluated with it"},
		"Earlier": {reason: "the same version was updated to before", act: func(w *world) {
			made := w.judged(afterupdate.Good)
			made.Update.StartTime, made.Update.CompletionTime = words.Time(w.noon.Add(-50*time.Hour)), words.Time(w.noon.Add(-49*time.Hour))
			w.store(w.run, made)
		}, status: "Unknown", message: "but the update has not been evaluated with it"},
		"Again": {reason: "the update that began then was completed later", act: func(w *world) {
			made := w.judged(afterupdate.Good)
			made.Update.CompletionTime = ""
			w.store(w.run, made)
		}, status: "Unknown", message: "but the update has not been evaluated with it"},
		"OtherVersion": {reason: "it is of another update", act: func(w *world) {
			made := w.judged(afterupdate.Good)
			made.Update.To = after.From
			w.store(w.run, made)
		}, status: "Unknown", message: "but the update has not been evaluated with it"},
		"OtherCluster": {reason: "it came with a backup of another cluster", act: func(w *world) {
			made := w.judged(afterupdate.Good)
			made.Cluster.ID = "another"
			w.store(w.run, made)
		}, status: "Unknown", message: "but the update has not been evaluated with it"},
		"Newest": {reason: "it is good since", act: func(w *world) {
			made := w.judged(afterupdate.Regressed)
			made.Samples.Last = words.Time(w.noon.Add(-time.Minute))
			w.store(w.other(), made)
			w.store(w.run, w.judged(afterupdate.Good))
		}, status: "True"},
		"OlderBaseline": {reason: "in an older baseline it may have been bad already", act: func(w *world) {
			made := w.judged(afterupdate.Regressed)
			made.Baseline = &afterupdate.Baseline{Time: words.Time(w.noon.Add(-4 * time.Hour))}
			w.store(w.run, made)
			made = w.judged(afterupdate.Good)
			made.Samples.Last = words.Time(w.noon.Add(time.Minute))
			made.Baseline = &afterupdate.Baseline{Time: words.Time(w.noon.Add(-5 * time.Hour))}
			w.store(w.other(), made)
		}, status: "False"},
		"Equal": {reason: "of two of one time the worse counts", act: func(w *world) {
			w.store(w.other(), w.judged(afterupdate.Good))
			w.store(w.run, w.judged(afterupdate.Regressed))
		}, status: "False"},
		"Edited": {reason: "who may write ConfigMaps does not decide", act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Good))
			w.edit()
		}, status: "Unknown", message: "is not authentic: configmap"},
		"EditedBeside": {reason: "the one that was edited may be newer, and not good", act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Regressed))
			w.edit()
			w.store(w.other(), w.judged(afterupdate.Good))
		}, status: "Unknown", message: "is not authentic: configmap"},
		"RegressedBeside": {reason: "nothing makes it good", act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Good))
			w.edit()
			w.store(w.other(), w.judged(afterupdate.Regressed))
		}, status: "False"},
		"OtherKey": {reason: "the key was replaced since", act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Good))
			w.replaceKey()
		}, status: "Unknown", message: "is not authentic: configmap"},
		"OtherKeyBefore": {
			reason: "it is of an update before: a run that began after this one is of the next", since: -2 * time.Hour,
			act: func(w *world) {
				w.store(w.run, w.judged(afterupdate.Good))
				w.replaceKey()
			},
		},
		"OtherKeyLongBefore": {
			reason: "it is of an update before: its run ended before the release of this one was there",
			since:  40 * 24 * time.Hour, act: func(w *world) {
				w.store(w.run, w.judged(afterupdate.Good))
				w.replaceKey()
			},
		},
		"NoKey": {reason: "the user may not verify it", act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Good))
			w.deny("secrets")
		}, status: "Unknown", message: "unknown whether the stored judgement of run "},
		"NoLeases": {reason: "the records are not listed, so it may be of this update", since: -2 * time.Hour, act: func(w *world) {
			w.store(w.run, w.judged(afterupdate.Good))
			w.replaceKey()
			w.deny("leases")
		}, status: "Unknown", message: "is not authentic: configmap"},
		"Forbidden": {
			reason: "there may be one that is not good", act: func(w *world) { w.deny("configmaps") }, status: "Unknown",
			message: `"oc preflight auth history" prints`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.since)
			tc.act(w)
			got := w.update(after.To)
			if got.Stage != "Updated" || (got.Judgement != nil) != (tc.status != "") {
				t.Fatalf("%s: %+v, %+v", tc.reason, got, got.Judgement)
			}
			if judged := got.Judgement; judged != nil && (judged.Status != tc.status || !strings.Contains(judged.Message, tc.message) ||
				(judged.Since == words.Time(w.noon)) != (tc.status != "Unknown")) {
				t.Errorf("%s: %+v, want %s since %s", tc.reason, judged, tc.status, words.Time(w.noon))
			}
			if w.update(after.From).Judgement != nil {
				t.Errorf("%s: the judgement is none of an update to %s", tc.reason, after.From)
			}
		})
	}
}

// An update that was undone has failed, although the cluster does not run its release any more.
func TestJudgementOfAnUndoneUpdate(t *testing.T) {
	w := newWorld(t, 0)
	version := after.Ref{Kind: "ClusterVersion", Name: "version"}
	at := func(before time.Duration) string { return w.noon.Add(-before).Format(time.RFC3339) }
	entry := func(state, of string, began, ended time.Duration) any {
		return map[string]any{"state": state, "version": of, "image": "", "verified": true, "startedTime": at(began), "completionTime": at(ended)}
	}
	w.state.Put(version, "status.desired.version", after.From)
	w.state.Put(version, "status.history", []any{
		entry("Completed", after.From, 2*time.Hour, time.Hour), entry("Partial", after.To, 3*time.Hour, 2*time.Hour),
		entry("Completed", after.From, 40*24*time.Hour, 39*24*time.Hour),
	})
	for _, object := range w.state.Objects(t) {
		w.server.Add(t, object)
	}
	if got := w.update(after.To); got.Stage != "Outstanding" || got.Judgement == nil || got.Judgement.Status != "Unknown" {
		t.Errorf("a baseline is stored, and no judgement; got %+v", got)
	}
	w.store(w.run, w.judged(afterupdate.RolledBack))
	if got := w.update(after.To); got.Stage != "Outstanding" || got.Judgement == nil || got.Judgement.Status != "False" {
		t.Errorf("want a judgement that is False, got %+v, %+v", got, got.Judgement)
	}
}

// A cluster that is reached states the same as it states on a hub, by the condition of its UpdatePreflight.
func TestJudgementIsThatOfTheCondition(t *testing.T) {
	for _, decision := range afterupdate.Decisions() {
		t.Run(string(decision), func(t *testing.T) {
			w := newWorld(t, 0)
			made := w.judged(decision)
			w.store(w.run, made)
			stated := projection.Status(&v1alpha1.UpdatePreflight{},
				projection.Observation{Now: w.noon, Target: update.Release{Version: after.To, Image: "release@" + records.Digest('b')}, After: &made})
			condition := meta.FindStatusCondition(stated.Conditions, v1alpha1.ConditionAfterUpdate)
			if got := w.update(after.To).Judgement; got == nil || condition == nil || got.Status != string(condition.Status) ||
				got.Message != condition.Message || decision.Final() && got.Since != words.Time(condition.LastTransitionTime.Time) {
				t.Errorf("got %+v, want %+v", got, condition)
			}
		})
	}
}

// Nothing of a judgement makes a row of any size.
func TestAttacksByAJudgement(t *testing.T) {
	w := newWorld(t, 0)
	made := w.judged(afterupdate.Regressed)
	made.Message, made.Samples.Last = strings.Repeat("m\x1b\n", 1<<20), strings.Repeat("9", 1<<20)
	w.store(w.run, made)
	forged := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "forged",
			Labels: map[string]string{"preflight.openshift.io/afterupdate": "forged"},
		},
		BinaryData: map[string][]byte{"judgement.gz": []byte("no gzip")},
	}
	if _, err := w.records.Client.CoreV1().ConfigMaps(record.Namespace).Create(t.Context(), forged, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	row := fleet.Bounded(fleet.Row{Update: w.update(after.To)})
	if judged := row.Update.Judgement; judged == nil || judged.Status != "False" || len(judged.Message)+len(judged.Since) > 2<<10 ||
		strings.ContainsAny(judged.Message, "\x1b\n") {
		t.Errorf("got %+v", judged)
	}
}
