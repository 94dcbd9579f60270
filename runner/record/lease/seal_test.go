package lease_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/runner/trigger/cvo"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/test/golden"
)

// Tests of: runner/record/recordformat, runner/record/recordstore

// sum is a MAC as the package comment documents it.
func sum(key []byte, domain string, message []byte) string {
	derived := hmac.New(sha256.New, key)
	derived.Write([]byte(domain))
	mac := hmac.New(sha256.New, derived.Sum(nil))
	mac.Write(message)
	return hex.EncodeToString(mac.Sum(nil))
}

// sealed sets the MAC of a header or part, independently of the package.
func sealed(key []byte, object *corev1.ConfigMap, id, uid string) *corev1.ConfigMap {
	var message []byte
	add := func(texts ...string) {
		for _, text := range texts {
			message = append(binary.BigEndian.AppendUint64(message, uint64(len(text))), text...)
		}
	}
	add(object.Namespace, object.Name, uid, id)
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	delete(object.Data, "record.mac")
	for _, name := range slices.Sorted(maps.Keys(object.Data)) {
		add("data", name, object.Data[name])
	}
	for _, name := range slices.Sorted(maps.Keys(object.BinaryData)) {
		add("binaryData", name, string(object.BinaryData[name]))
	}
	object.Data["record.mac"] = sum(key, "preflight.openshift.io/record.mac/v1", message)
	return object
}

// clusterKey returns the key of the records of the cluster.
func clusterKey(t *testing.T) []byte {
	t.Helper()
	secret, err := api.CoreV1().Secrets(record.Namespace).Get(t.Context(), recordstore.KeySecret, metav1.GetOptions{})
	if err != nil || len(secret.Data["key"]) != 32 || secret.Immutable == nil || !*secret.Immutable {
		t.Fatalf("the key is %+v, %v; want 32 bytes that cannot be changed", secret, err)
	}
	return secret.Data["key"]
}

// decided is the verdict of a run whose names exceed the bound of verdict.json.
func decided() verdict.Verdict {
	many := make([]string, 70)
	for i := range many {
		many[i] = fmt.Sprintf("Component.Check%02d", len(many)-i)
	}
	return verdict.Verdict{
		Decision: verdict.Blocked, Blocking: many, Undecided: []string{"Images"}, Accepted: []string{"Etcd.Disk", "Alerts"},
		ValidUntil: "2999-01-01T00:00:00Z",
	}
}

// verdict.json is read by other modules, which verify it with the key alone.
func TestVerdictFile(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, newRuns(api), intent)
	running := getMap(t, headName(intent.ID))
	if err := held.Finish(t.Context(), record.Ending{Phase: record.Complete, Verdict: decided(), Report: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	ended := getMap(t, headName(intent.ID))
	completed := get(t, intent.ID).CompletionTime
	until := completed.AddDate(0, 0, 1)
	for name, header := range map[string]*corev1.ConfigMap{"running": running, "ended": ended} {
		text := header.Data["verdict.json"]
		if want := sum(clusterKey(t), "preflight.openshift.io/verdict.mac/v1", []byte(text)); header.Data["verdict.mac"] != want {
			t.Errorf("%s: verdict.mac is %q, want %q", name, header.Data["verdict.mac"], want)
		}
		// Values that differ in each run are replaced in the golden file.
		fixed := strings.NewReplacer(intent.ID, "ID", intent.Target.Digest(), "DIGEST", completed.Format(time.RFC3339), "COMPLETION",
			until.Format(time.RFC3339), "COMPLETION+24h").Replace(text)
		golden.Compare(t, "testdata/verdict-"+name+".json", fixed)
	}
}

// trigger is the gate of the cluster-version operator, which reads what is published of the
// records through a separate module, with its own implementation of the format. It returns
// the reason of a refusal or of a warning, empty if there is none.
func trigger(t *testing.T, intent record.Intent) func() string {
	t.Helper()
	version := &configv1.ClusterVersion{
		Spec:   configv1.ClusterVersionSpec{DesiredUpdate: &configv1.Update{Image: intent.Target.Image}},
		Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: intent.From}},
	}
	configMaps := lister[*corev1.ConfigMap](func() (*corev1.ConfigMap, error) {
		listed, err := newRuns(api).List(t.Context())
		if err != nil {
			return nil, err
		}
		listed = slices.DeleteFunc(listed, func(r record.Record) bool { return r.Target.Digest() != intent.Target.Digest() })
		data, _, err := published.Content(listed, "", time.Now())
		return &corev1.ConfigMap{Data: data}, err
	})
	verdicts := cvo.New(lister[*configv1.ClusterVersion](func() (*configv1.ClusterVersion, error) { return version, nil }), configMaps,
		apierrors.IsNotFound, nil)
	return func() string {
		if problem := verdicts.Selected(intent.Target.Version); problem != nil {
			return problem.Reason
		}
		return ""
	}
}

// lister returns an object, whatever its name.
type lister[Object any] func() (Object, error)

// Get implements cvo.Lister.
func (l lister[Object]) Get(string) (Object, error) { return l() }

// end ends a held run with this verdict.
func end(t *testing.T, held *lease.Held, decided verdict.Verdict) {
	t.Helper()
	if err := held.Finish(t.Context(), record.Ending{Phase: record.Complete, Verdict: decided, Report: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
}

func TestVerdictOfTheTrigger(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	reason := trigger(t, intent)
	begin(t, newRuns(api), newIntent()) // a run of another release, with the key
	reasons := []string{reason()}
	held := begin(t, newRuns(api), intent)
	reasons = append(reasons, reason())
	end(t, held, decided())
	reasons = append(reasons, reason())
	awaitNextSecond(t, intent.ID)
	end(t, begin(t, newRuns(api), again(intent)), ready())
	reasons = append(reasons, reason())
	if diff := cmp.Diff([]string{"PreflightMissing", "PreflightInProgress", "PreflightBlocked", ""}, reasons); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A verdict that a newer one has replaced does not count again where the newer record was
// deleted.
func TestAttacksByDeletedVerdict(t *testing.T) {
	t.Parallel()
	for name, newer := range map[string]verdict.Verdict{"Blocked": decided(), "Ready": ready()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newIntent()
			end(t, begin(t, newRuns(api), first), ready())
			second := again(first)
			end(t, begin(t, newRuns(api), second), newer)
			if err := api.CoreV1().ConfigMaps(record.Namespace).Delete(t.Context(), headName(second.ID), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			older := get(t, first.ID)
			if want := "run " + second.ID + " of the same target is newer"; older.Ended != want || older.Decision != "Ready" ||
				older.Verified() != nil {
				t.Errorf("the older record is %+v, want that it ended since %s", older, want)
			}
			if reason := trigger(t, first)(); reason != "PreflightStale" {
				t.Errorf("the gate answers %q, want that the older verdict does not count", reason)
			}
		})
	}
}

// An update that is judged from another release, and other releases, keep their verdicts.
func TestOtherVerdictsStay(t *testing.T) {
	t.Parallel()
	first, later := newIntent(), newIntent()
	later.Target, later.Provisional = first.Target, true
	end(t, begin(t, newRuns(api), first), ready())
	end(t, begin(t, newRuns(api), later), verdict.Verdict{Decision: verdict.NothingKnown, Provisional: true})
	end(t, begin(t, newRuns(api), newIntent()), decided())
	if got := get(t, first.ID); got.Ended != "" {
		t.Errorf("the verdict ended: %s", got.Ended)
	}
	if reason := trigger(t, first)(); reason != "" {
		t.Errorf("the gate answers %q, want none", reason)
	}
}

// What was forced is not Ready for others, also for readers that do not know the field.
func TestAttacksByForce(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	end(t, begin(t, newRuns(api), intent), verdict.Verdict{
		Decision: verdict.Blocked, Forced: true, ForceReason: "the fix of an outage",
		ForcedBy: "alice", Blocking: []string{"KubeletSkew"},
	})
	header := getMap(t, headName(intent.ID))
	var stated struct {
		Decision    string   `json:"decision"`
		Forced      bool     `json:"forced"`
		ForceReason string   `json:"forceReason"`
		ForcedBy    string   `json:"forcedBy"`
		Blocking    []string `json:"blocking"`
	}
	if err := json.Unmarshal([]byte(header.Data["verdict.json"]), &stated); err != nil {
		t.Fatal(err)
	}
	if stated.Decision != "Blocked" || !stated.Forced || stated.ForceReason != "the fix of an outage" || stated.ForcedBy != "alice" ||
		!slices.Equal(stated.Blocking, []string{"KubeletSkew"}) || header.Labels["preflight.openshift.io/decision"] != "Blocked" {
		t.Errorf("stated %+v with labels %v, want Blocked by what was forced, with the reason", stated, header.Labels)
	}
	if reason := trigger(t, intent)(); reason != "PreflightForced" {
		t.Errorf("the gate answers %q, want PreflightForced", reason)
	}
}

// The controller states in the record that a verdict has ended.
func TestOutdate(t *testing.T) {
	t.Parallel()
	store, intent := newRuns(api), newIntent()
	end(t, begin(t, store, intent), ready())
	completed := get(t, intent.ID).CompletionTime
	for _, cause := range []string{"Node a has changed\n" + strings.Repeat("x", 2000), "Node b has changed"} {
		if err := store.Outdate(t.Context(), intent.ID, cause, completed); err != nil {
			t.Fatal(err)
		}
	}
	got := get(t, intent.ID)
	if !strings.HasPrefix(got.Ended, "Node a has changed x") || len(got.Ended) > 600 {
		t.Errorf("it ended since %q, want the first cause, bounded", got.Ended)
	}
	if reason := trigger(t, intent)(); reason != "PreflightStale" {
		t.Errorf("the gate answers %q, want PreflightStale", reason)
	}
	edit(t, headName(intent.ID), func(object *corev1.ConfigMap) { object.Data["verdict.json"] += " " })
	var unauthentic *record.UnauthenticError
	if err := store.Outdate(t.Context(), intent.ID, "again", completed); !errors.As(err, &unauthentic) {
		t.Errorf("an edited record: %v, want an UnauthenticError", err)
	}
}

// awaitNextSecond waits until a run that ends now has a later completion time than a run
// that has ended: times of records have no fractions.
func awaitNextSecond(t *testing.T, id string) {
	t.Helper()
	completed := get(t, id).CompletionTime
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return time.Now().After(completed.Add(time.Second)), nil // the API server is on this machine
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The MACs are those of the documented encoding.
func TestMACsAreAsDocumented(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	held := begin(t, newRuns(api), intent)
	for i := range 100 {
		held.Put(incompressible(i, 4096))
	}
	finish(t, held)
	head := getMap(t, headName(intent.ID))
	for _, object := range []*corev1.ConfigMap{head, getMap(t, partName(intent.ID, 1))} {
		if want := sealed(clusterKey(t), object.DeepCopy(), intent.ID, string(head.UID)).Data["record.mac"]; object.Data["record.mac"] != want {
			t.Errorf("%s: the MAC is %q, want %q", object.Name, object.Data["record.mac"], want)
		}
	}
}

// forge replaces the verdict as an attacker who may write ConfigMaps.
func forge(t *testing.T, key string, text string) func(*corev1.ConfigMap) {
	t.Helper()
	return func(head *corev1.ConfigMap) {
		if strings.HasSuffix(key, ".gz") {
			head.BinaryData[key] = compressed(t, []byte(text))
			return
		}
		head.Data[key] = strings.NewReplacer("Blocked", "Ready", "reported: 1", "reported: 2").Replace(head.Data[key]) + text
	}
}

// Only the metadata of a record that was edited, copied or written with another key is
// returned.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		forge  func(t *testing.T, id string)
		cause  string
	}{
		"Report": {reason: "the report was replaced", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), forge(t, "report.gz", "{}\n{}"))
		}},
		"Decision": {reason: "the summary was edited", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), forge(t, "run.yaml", ""))
		}},
		"Verdict": {reason: "verdict.json was edited", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), forge(t, "verdict.json", " "))
		}},
		"Results": {reason: "the results were replaced", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), forge(t, "results.gz", `{"check":"Etcd.Disk","findings":[{"name":"Etcd.Disk","outcome":"Pass"}]}`))
		}},
		"Added": {reason: "a key was added", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), func(head *corev1.ConfigMap) { head.BinaryData["other"] = []byte("x") })
		}},
		"MACRemoved": {reason: "a record of an earlier version has no MAC", cause: "has no MAC", forge: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), func(head *corev1.ConfigMap) { delete(head.Data, "record.mac") })
		}},
		"MACForged": {reason: "the key is another", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			edit(t, headName(id), func(head *corev1.ConfigMap) { sealed(make([]byte, 32), head, id, string(head.UID)) })
		}},
		"CreatedAgain": {reason: "a copy has another UID", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			head := getMap(t, headName(id))
			deleteMap(t, head.Name)
			createCopy(t, head, head.Name)
		}},
		"Part": {reason: "a part with results was replaced", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			edit(t, partName(id, 1), func(part *corev1.ConfigMap) {
				part.BinaryData["part.gz"] = compressed(t, []byte(`{"check":"Etcd.Disk","findings":[]}`))
			})
		}},
		"PartOfReport": {reason: "a part of the report was replaced", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			edit(t, partName(id, 3), func(part *corev1.ConfigMap) { part.BinaryData["part.gz"] = compressed(t, []byte("{}")) })
		}},
		"PartSwapped": {reason: "a part has the place of another", cause: "does not match", forge: func(t *testing.T, id string) {
			t.Helper()
			other := getMap(t, partName(id, 2))
			edit(t, partName(id, 1), func(part *corev1.ConfigMap) { part.Data, part.BinaryData = other.Data, other.BinaryData })
		}},
		"PartMissing": {
			reason: "results were deleted", cause: "does not exist",
			forge: func(t *testing.T, id string) { t.Helper(); deleteMap(t, partName(id, 1)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			if err := performRun(t.Context(), newRuns(api), intent); err != nil {
				t.Fatal(err)
			}
			if got := get(t, intent.ID); got.Verified() != nil || len(got.Report) == 0 {
				t.Fatalf("the record of a run is not authentic: %v", got.Verified())
			}
			tc.forge(t, intent.ID)
			got := get(t, intent.ID)
			wantUnauthentic(t, tc.reason, got, record.Unauthentic, tc.cause)
			latest, found, err := newRuns(api).Latest(t.Context(), intent)
			if err != nil || !found {
				t.Errorf("%s: Latest returned %v, %v", tc.reason, found, err)
			}
			wantUnauthentic(t, tc.reason, latest, record.Unauthentic, tc.cause)
			followed, err := newRuns(api).Follow(t.Context(), intent.ID, func(record.Record) {})
			if err != nil {
				t.Errorf("%s: Follow returned %v", tc.reason, err)
			}
			wantUnauthentic(t, tc.reason, followed, record.Unauthentic, tc.cause)
		})
	}
}

// createCopy creates a copy of a ConfigMap under that name.
func createCopy(t *testing.T, object *corev1.ConfigMap, name string) {
	t.Helper()
	object = object.DeepCopy()
	object.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: object.Namespace, Labels: object.Labels, Annotations: object.Annotations}
	if _, err := api.CoreV1().ConfigMaps(object.Namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func wantUnauthentic(t *testing.T, reason string, got record.Record, state record.Authenticity, cause string) {
	t.Helper()
	var unauthentic *record.UnauthenticError
	if !errors.As(got.Verified(), &unauthentic) || unauthentic.State != state || !strings.Contains(unauthentic.Cause, cause) {
		t.Errorf("%s: %v, want %s because it %s", reason, got.Verified(), state, cause)
	}
	if got.Decision != "" || got.Results != nil || got.Report != nil || got.Fingerprint != nil || got.ID == "" || got.Target.Version == "" {
		t.Errorf("%s: want metadata only, got %+v", reason, got)
	}
}

// The recorded results of a run in progress that were edited are not used by the next
// holder, which seals the record again.
func TestForgedRunInProgress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change func(*corev1.ConfigMap)
	}{
		"Results": {
			reason: "a failed check was made to pass",
			change: forge(t, "results.gz", `{"check":"Etcd.Disk","findings":[{"name":"Etcd.Disk","outcome":"Pass"}]}`),
		},
		"NoMAC": {reason: "an earlier version recorded the run", change: func(head *corev1.ConfigMap) { delete(head.Data, "record.mac") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			first := begin(t, newRuns(api), intent)
			first.Put(aResult("Etcd.Disk"))
			if err := first.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			edit(t, headName(intent.ID), tc.change)
			wantUnauthentic(t, tc.reason, get(t, intent.ID), record.Unauthentic, "")
			next := begin(t, newRuns(api), again(intent))
			if next.Record().ID != intent.ID || len(next.Record().Results) > 0 || next.Record().Verified() == nil {
				t.Errorf("%s: the next holder has the results %v of run %s", tc.reason, next.Record().Results, next.Record().ID)
			}
			next.Put(aResult("Network.Routes"))
			finish(t, next)
			got := get(t, intent.ID)
			if got.Verified() != nil || got.StartTime != first.Record().StartTime {
				t.Errorf("%s: %v; begun at %s, want %s", tc.reason, got.Verified(), got.StartTime, first.Record().StartTime)
			}
			wantResults(t, tc.reason, got.Results, "Network.Routes")
		})
	}
}

// The times of a record are at most those of the API server.
func TestTimesAreBounded(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	finish(t, begin(t, newRuns(api), intent))
	edit(t, headName(intent.ID), func(head *corev1.ConfigMap) {
		lines := strings.Split(head.Data["run.yaml"], "\n")
		for i, line := range lines {
			for _, field := range []string{"startTime", "completionTime"} {
				if strings.HasPrefix(line, field+": ") {
					lines[i] = field + `: "2999-01-01T00:00:00Z"`
				}
			}
		}
		head.Data["run.yaml"] = strings.Join(lines, "\n")
		sealed(clusterKey(t), head, intent.ID, string(head.UID)) // as a process that has the key
	})
	got := get(t, intent.ID)
	if got.Verified() != nil || got.StartTime.Year() > 2900 || got.CompletionTime.Year() > 2900 {
		t.Errorf("%v, from %s to %s", got.Verified(), got.StartTime, got.CompletionTime)
	}
}

// secretStore serves the requests of a client for Secrets: the key of the cluster is
// shared by the tests.
type secretStore struct {
	mutex   sync.Mutex
	secret  *corev1.Secret
	created int
	// forbidden are the methods that the user may not use.
	forbidden []string
}

func (s *secretStore) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	return through(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !strings.Contains(r.URL.Path, "/secrets") {
			return next.RoundTrip(r)
		}
		object, code := s.serve(r)
		return respond(r, object, code)
	})
}

func (s *secretStore) serve(r *http.Request) (any, int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case slices.Contains(s.forbidden, r.Method):
		return apierrors.NewForbidden(corev1.Resource("secrets"), recordstore.KeySecret, nil).Status(), http.StatusForbidden
	case r.Method == http.MethodGet && s.secret == nil:
		return apierrors.NewNotFound(corev1.Resource("secrets"), recordstore.KeySecret).Status(), http.StatusNotFound
	case r.Method == http.MethodGet:
		return s.secret, http.StatusOK
	case s.secret != nil:
		return apierrors.NewAlreadyExists(corev1.Resource("secrets"), recordstore.KeySecret).Status(), http.StatusConflict
	}
	s.created++
	s.secret = &corev1.Secret{
		TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: recordstore.KeySecret},
		Data: map[string][]byte{"key": bytes.Repeat([]byte{byte(s.created)}, 32)},
	}
	return s.secret, http.StatusCreated
}

func (s *secretStore) set(secret *corev1.Secret, forbidden ...string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.secret, s.forbidden = secret, forbidden
}

func TestKey(t *testing.T) {
	t.Parallel()
	invalid := &corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, Data: map[string][]byte{"key": []byte("short")}}
	for name, tc := range map[string]struct {
		reason string
		// before and after are set before the run begins and after it has ended.
		before, during, after func(*secretStore)
		state                 record.Authenticity
		cause                 string
	}{
		"Created": {reason: "the first run creates the key", state: record.Authentic},
		"Deleted": {
			reason: "the key was deleted", after: func(s *secretStore) { s.set(nil) }, state: record.Unauthentic,
			cause: "does not exist",
		},
		"Unreadable": {
			reason: "the reader may not get the key", after: func(s *secretStore) { s.set(nil, http.MethodGet) },
			state: record.Unverifiable, cause: "may not be read by this user",
		},
		"Invalid": {
			reason: "the Secret has no valid key", after: func(s *secretStore) { s.set(invalid) }, state: record.Unauthentic,
			cause: "does not have 32 bytes",
		},
		"Uncreatable": {
			reason: "the runner may not create the key", before: func(s *secretStore) { s.set(nil, http.MethodPost) },
			state: record.Unauthentic, cause: "has no MAC",
		},
		"Replaced": {reason: "a run in progress ends with the new key", during: func(s *secretStore) { s.set(nil) }, state: record.Authentic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secrets, intent := &secretStore{}, newIntent()
			store := newRuns(secrets.client(t))
			act(tc.before, secrets)
			held := begin(t, store, intent)
			_, release := held.Hold(t.Context())
			for i := range 100 { // some in a part
				held.Put(incompressible(i, 4096))
			}
			if err := held.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			act(tc.during, secrets)
			finish(t, held)
			release()
			act(tc.after, secrets)
			got, err := store.Get(t.Context(), intent.ID)
			if err != nil {
				t.Fatal(err)
			}
			if tc.state != record.Authentic {
				wantUnauthentic(t, tc.reason, got, tc.state, tc.cause)
			} else if got.Verified() != nil || len(got.Results) != 100 {
				t.Errorf("%s: %v, with %d results", tc.reason, got.Verified(), len(got.Results))
			}
			wantListed(t, store, intent.ID, tc.state)
		})
	}
}

func act(change func(*secretStore), on *secretStore) {
	if change != nil {
		change(on)
	}
}

func wantListed(t *testing.T, store *runs, id string, state record.Authenticity) {
	t.Helper()
	listed, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range listed {
		if each.ID == id && (each.Authentication.State != state || (each.Decision == "") == (state == record.Authentic)) {
			t.Errorf("listed as %+v with the decision %q, want %s", each.Authentication, each.Decision, state)
		}
	}
}

// One of several processes that create the key concurrently succeeds, and all use its key.
func TestConcurrentCreationOfTheKey(t *testing.T) {
	t.Parallel()
	secrets := &secretStore{}
	client := secrets.client(t)
	var all sync.WaitGroup
	intents := make([]record.Intent, 8)
	for i := range intents {
		intents[i] = newIntent()
		all.Go(func() {
			held, err := newRuns(client).Begin(t.Context(), intents[i], "tester")
			if err == nil {
				err = held.Detach(context.WithoutCancel(t.Context()))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, intent := range intents {
		got, err := newRuns(client).Get(t.Context(), intent.ID)
		if err != nil || got.Verified() != nil {
			t.Errorf("run %s: %v, %v", intent.ID, err, got.Verified())
		}
	}
	if secrets.created != 1 {
		t.Errorf("%d keys were created, want 1", secrets.created)
	}
}

// A user without the permission to read the key reads the metadata, by the real
// authorizer.
func TestReaderWithoutTheKey(t *testing.T) {
	t.Parallel()
	intent := newIntent()
	finish(t, begin(t, newRuns(api), intent))
	reader := newRuns(as(t, access.Needs{Required: recordstore.ReadNeeds().Required}))
	got, err := reader.Get(t.Context(), intent.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantUnauthentic(t, "the permission is missing", got, record.Unverifiable, "may not be read by this user")
}

func respond(r *http.Request, object any, code int) (*http.Response, error) {
	body, err := json.Marshal(object)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, err
}
