package cvo_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/runner/trigger/cvo"
)

// The interfaces and types of CVO, as in pkg/payload/precondition and pkg/risk of its
// main branch in July 2026.
type (
	releaseContext struct{ DesiredVersion string }

	precondition interface {
		Run(ctx context.Context, releaseContext releaseContext) error
		Name() string
	}

	conditionalUpdateRisk struct {
		Name, Message string
		Since         time.Time
	}

	riskSource interface {
		Name() string
		Risks(ctx context.Context, versions []string) ([]conditionalUpdateRisk, map[string][]string, error)
	}
)

var (
	_ precondition = &cvo.Gate[releaseContext]{}
	_ riskSource   = &cvo.Source[conditionalUpdateRisk]{}
)

const (
	digest  = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	image   = "registry.example.com/release@" + digest
	version = "4.19.1"
	from    = "4.18.9"
)

// refused is the error that carries a problem.
type refused struct{ cvo.Problem }

func (r refused) Error() string { return r.Message }

var errNotFound = errors.New("not found")

// object is an object of the API, as a lister returns it.
type object struct {
	Name   string            `json:"-"`
	Spec   map[string]any    `json:"spec,omitempty"`
	Status map[string]any    `json:"status,omitempty"`
	Data   map[string]string `json:"data,omitempty"`
	Extra  any               `json:"extra,omitempty"`
}

// GetName is that of metav1.Object.
func (o *object) GetName() string { return o.Name }

// caches are those of a CVO: what its listers return.
type caches struct {
	version   *object
	configMap *object
	err       error
	// onRead is called when the ConfigMap has been read, and before it is returned.
	onRead func()
}

// with is a cluster at 4.18.9 that offers the image of the tests, with these data of the
// ConfigMap; without it for nil.
func with(data map[string]string) *caches {
	c := &caches{version: offering(image)}
	if data != nil {
		c.configMap = configMap(data)
	}
	return c
}

func configMap(data map[string]string) *object { return &object{Name: cvo.Name, Data: data} }

// offering is a ClusterVersion that offers these images of the version of the tests.
func offering(images ...string) *object {
	var available []map[string]string
	for _, image := range images {
		available = append(available, map[string]string{"version": version, "image": image})
	}
	return &object{Status: map[string]any{"desired": map[string]string{"version": from}, "availableUpdates": available}}
}

func (c *caches) verdicts(changed func()) *cvo.Verdicts {
	isNotFound := func(err error) bool { return errors.Is(err, errNotFound) }
	return cvo.New(lister(func() (*object, error) { return c.version, c.err }), lister(func() (*object, error) {
		read := c.configMap
		if c.onRead != nil {
			c.onRead()
		}
		if read == nil {
			return nil, errNotFound
		}
		return read, c.err
	}), isNotFound, changed)
}

// lister is a lister of CVO.
type lister func() (*object, error)

// Get implements cvo.Lister.
func (l lister) Get(string) (*object, error) { return l() }

func gate(verdicts *cvo.Verdicts) *cvo.Gate[releaseContext] {
	return &cvo.Gate[releaseContext]{
		Version: func(r releaseContext) string { return r.DesiredVersion },
		Refuse:  func(p cvo.Problem) error { return refused{p} },
		Judge:   verdicts.Selected,
	}
}

// record is the verdict.json of a run that is Ready and valid, with changes.
func record(changes map[string]any) map[string]any {
	now := time.Now().UTC()
	fields := map[string]any{
		"run": "3b6f2c1e", "digest": digest, "version": version, "from": from, "phase": "Complete", "decision": "Ready",
		"completionTime": now.Add(-time.Minute).Format(time.RFC3339), "validUntil": now.Add(time.Hour).Format(time.RFC3339),
		"blocking": []string{}, "undecided": []string{}, "accepted": []string{}, "selection": "{}",
	}
	maps.Copy(fields, changes)
	return fields
}

// entry are the data of the ConfigMap with these verdicts on the image of the tests.
func entry(verdicts ...map[string]any) map[string]string {
	text, err := json.Marshal(verdicts)
	if err != nil {
		panic(err)
	}
	return map[string]string{strings.ReplaceAll(digest, ":", "-"): string(text), "uninstalled": "false"}
}

// records are the caches with these verdicts on the image of the tests.
func records(verdicts ...map[string]any) *caches { return with(entry(verdicts...)) }

func TestGate(t *testing.T) {
	t.Parallel()
	const past = "2026-01-01T00:00:00Z"
	blocked := map[string]any{"decision": "Blocked", "blocking": []string{"F", "B", "A", "C", "E", "D"}}
	const unreadable = "the preflight of 4.19.1 cannot be read; see: oc preflight status --to 4.19.1"
	tests := map[string]struct {
		why     string
		caches  *caches
		reason  string
		message string
		warning bool
	}{
		"Ready": {why: "a valid verdict allows the update", caches: records(record(nil))},
		"Missing": {
			why: "an update without a verdict is not allowed", caches: with(map[string]string{"uninstalled": "false"}),
			reason: "PreflightMissing", message: "the preflight of 4.19.1 is not recorded; run: oc preflight run --to 4.19.1",
		},
		"Running": {
			why: "CVO evaluates again without another request", caches: records(record(map[string]any{"phase": "Running", "decision": ""})),
			reason: "PreflightInProgress", message: "the preflight of 4.19.1 is in progress; see: oc preflight status --to 4.19.1",
		},
		"RunningAgain": {
			why: "a remedy is being verified", caches: records(record(blocked), record(map[string]any{"phase": "Running"})),
			reason: "PreflightInProgress",
		},
		"ReadyAndRunning": {
			why:    "a valid verdict holds while the next one is made",
			caches: records(record(nil), record(map[string]any{"phase": "Running"})),
		},
		"Blocked": {
			why: "at most five names, in order", caches: records(record(blocked)), reason: "PreflightBlocked",
			message: "the preflight of 4.19.1 is Blocked by A, B, C, D, E, others; see: oc preflight status --to 4.19.1",
		},
		"Undecided": {
			why: "an inconclusive check is not a pass", caches: records(record(map[string]any{"decision": "Undecided", "undecided": []string{"A"}})),
			reason: "PreflightUndecided", message: "the preflight of 4.19.1 is Undecided because of A; see: oc preflight status --to 4.19.1",
		},
		"UnknownDecision": {
			why: "a decision of a later version is not Ready", caches: records(record(map[string]any{"decision": "Later"})),
			reason: "PreflightUndecided",
		},
		"Stale": {
			why: "a verdict ends", caches: records(record(map[string]any{"validUntil": past})),
			reason: "PreflightStale", message: "the preflight of 4.19.1 is out of date; run: oc preflight run --to 4.19.1",
		},
		"StaleNow": {
			why:    "a verdict ends at its time",
			caches: records(record(map[string]any{"validUntil": time.Now().UTC().Format(time.RFC3339)})), reason: "PreflightStale",
		},
		"NoEnd": {
			why: "a verdict without an end is not valid", caches: records(record(map[string]any{"validUntil": ""})),
			reason: "PreflightStale",
		},
		"Accepted": {
			why: "CVO records accepted findings in its history", caches: records(record(map[string]any{"accepted": []string{"B", "A"}})),
			reason: "PreflightAccepted", message: "the preflight of 4.19.1 is Ready with accepted findings: A, B", warning: true,
		},
		"NewestBlocked": {why: "the newest verdict counts", caches: records(record(nil), record(map[string]any{
			"decision": "Blocked", "completionTime": time.Now().UTC().Format(time.RFC3339), "blocking": []string{"A"},
		})), reason: "PreflightBlocked"},
		"SameSecond": {why: "times have no fractions", caches: records(record(map[string]any{"completionTime": past}), record(map[string]any{
			"decision": "Blocked", "completionTime": past, "blocking": []string{"A"},
		})), reason: "PreflightBlocked"},
		"SameSecondAgain": {why: "the order of the records has no meaning", caches: records(record(map[string]any{
			"decision": "Blocked", "completionTime": past, "blocking": []string{"A"},
		}), record(map[string]any{"completionTime": past})), reason: "PreflightBlocked"},
		"NewestReady": {
			why:    "an older verdict does not count",
			caches: records(record(nil), record(map[string]any{"decision": "Blocked", "completionTime": past})),
		},
		"Forced": {
			why:    "a forced run permits nothing: CVO has a force of its own",
			caches: records(record(map[string]any{"decision": "Blocked", "forced": true, "blocking": []string{"B", "A"}})),
			reason: "PreflightForced", message: "the preflight of 4.19.1 was forced past A, B, which does not permit an update: force the update " +
				"itself, or run: oc preflight run --to 4.19.1",
		},
		"ForcedPastNothing": {
			why: "force was given and not needed", caches: records(record(map[string]any{"decision": "Ready", "forced": true})),
			reason: "PreflightForced", message: "the preflight of 4.19.1 was forced past nothing, which does not permit an update: force the " +
				"update itself, or run: oc preflight run --to 4.19.1",
		},
		"Narrowed": {
			why: "CVO records what the request left out", caches: records(record(map[string]any{"narrowed": []string{"alert KubePodCrashLooping"}})),
			reason: "PreflightNarrowed", warning: true, message: "the preflight of 4.19.1 is Ready; it excluded alert KubePodCrashLooping",
		},
		"NarrowedAcceptedForced": {
			why: "the strongest is the reason, and the message has all", caches: records(record(map[string]any{
				"decision": "Blocked", "forced": true, "blocking": []string{"A"}, "accepted": []string{"B"}, "narrowed": []string{"namespace c"},
			})),
			reason: "PreflightForced",
			message: "the preflight of 4.19.1 was forced past A, which does not permit an update: force the update itself, or run: oc preflight " +
				"run --to 4.19.1",
		},
		"NarrowedBlocked": {why: "a narrowed verdict may be Blocked", caches: records(
			record(map[string]any{"decision": "Blocked", "blocking": []string{"A"}, "narrowed": []string{"b"}})), reason: "PreflightBlocked"},
		"FromAnotherVersion": {
			why: "the cluster was updated meanwhile", caches: records(record(map[string]any{"from": "4.18.8"})),
			reason: "PreflightStale",
		},
		"Interrupted": {
			why: "a run that did not complete has no verdict", caches: records(record(map[string]any{"phase": "Interrupted"})),
			reason: "PreflightMissing",
		},
		"OtherDigest": {
			why:    "digests with the same first digits are other releases",
			caches: records(record(map[string]any{"digest": digest[:64] + "000000000"})), reason: "PreflightMissing",
		},
		"OtherVersion": {
			why:    "the image is not the release that CVO has loaded",
			caches: records(record(map[string]any{"version": "4.19.2"})), reason: "PreflightMissing",
		},
		"Provisional": {why: "a later update of a path is judged from another release", caches: records(record(nil), record(map[string]any{
			"decision": "Blocked", "completionTime": time.Now().UTC().Format(time.RFC3339), "blocking": []string{"A"}, "provisional": true,
		}))},
		"NotInstalled": {why: "without the ConfigMap the preflight has no opinion", caches: with(nil)},
		"Uninstalled":  {why: "the ConfigMap is about to be deleted", caches: with(map[string]string{"uninstalled": "true"})},
		"Empty":        {why: "a ConfigMap without data is installed", caches: with(map[string]string{}), reason: "PreflightMissing"},
		"OtherEntry": {
			why:    "another release has a verdict",
			caches: with(map[string]string{"sha256-01": entry(record(nil))[strings.ReplaceAll(digest, ":", "-")]}), reason: "PreflightMissing",
		},
		"Torn": {why: "an entry that cannot be decoded is not a pass", caches: with(
			map[string]string{strings.ReplaceAll(digest, ":", "-"): `[{"digest":`}), reason: "PreflightUndecided", message: unreadable},
		"TornElsewhere": {
			why:    "an entry concerns its release only",
			caches: with(merged(entry(record(nil)), map[string]string{"sha256-01": "["})),
		},
		"Tag": {why: "an image by tag has no digest", caches: &caches{
			version:   offering("registry.example.com/release:4.19.1"),
			configMap: configMap(entry(record(map[string]any{"digest": ""}))),
		}, reason: "PreflightMissing"},
		"NotOffered": {
			why: "the version has no image", caches: &caches{version: offering(), configMap: configMap(entry(record(nil)))},
			reason: "PreflightMissing",
		},
		"SelectedImage": {
			why:    "a selected image comes before the offered one",
			caches: &caches{version: selecting(image), configMap: configMap(entry(record(nil)))},
		},
		"SelectedOther": {
			why:    "the selected image is another release with the same version",
			caches: &caches{version: selecting(image[:len(image)-1] + "0"), configMap: configMap(entry(record(nil)))}, reason: "PreflightMissing",
		},
		"Conditional": {
			why:    "an update with a risk is conditional",
			caches: &caches{version: conditional(), configMap: configMap(entry(record(nil)))},
		},
		"NoVersion": {
			why:    "a ClusterVersion without a release has no update",
			caches: &caches{version: &object{}, configMap: configMap(entry(record(nil)))}, reason: "PreflightMissing",
		},
		"Unreadable": {why: "a failure is not a pass", caches: &caches{
			configMap: configMap(nil),
			err:       errors.New("the cache has not synced after 1.2s"),
		}, reason: "PreflightUndecided", message: unreadable},
		"NotJSON": {
			why: "an object without a JSON form is not a pass", caches: &caches{configMap: &object{Extra: func() {}}},
			reason: "PreflightUndecided", message: unreadable,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := gate(tc.caches.verdicts(nil)).Run(context.Background(), releaseContext{version})
			var got refused
			if errors.As(err, &got); got.Reason != tc.reason || got.Warning != tc.warning || err == nil != (tc.reason == "") {
				t.Fatalf("%s: got %q (warning %t): %v; want %q (warning %t)", tc.why, got.Reason, got.Warning, err, tc.reason, tc.warning)
			}
			if tc.message != "" && got.Message != tc.message {
				t.Errorf("%s: the message is %q, want %q", tc.why, got.Message, tc.message)
			}
		})
	}
}

// merged has the data of all.
func merged(all ...map[string]string) map[string]string {
	data := map[string]string{}
	for _, each := range all {
		maps.Copy(data, each)
	}
	return data
}

// selecting is a ClusterVersion that selects an image, and offers that of the tests.
func selecting(selected string) *object {
	made := offering(image)
	made.Spec = map[string]any{"desiredUpdate": map[string]string{"image": selected}}
	return made
}

// conditional is a ClusterVersion that offers the image of the tests with a risk.
func conditional() *object {
	made := offering()
	made.Status["conditionalUpdates"] = []any{map[string]any{"release": map[string]string{"version": version, "image": image}}}
	return made
}

// A ConfigMap that was present and is absent is a loss, unless it was marked before.
func TestDeletedConfigMap(t *testing.T) {
	t.Parallel()
	const deleted = "the preflight of 4.19.1 is unknown, since ConfigMap openshift-config-managed/update-preflight was deleted; " +
		"start the controller, or, if it was uninstalled, run: " +
		"oc create configmap update-preflight -n openshift-config-managed --from-literal=uninstalled=true"
	ready, marked := configMap(entry(record(nil))), configMap(merged(entry(record(nil)), map[string]string{"uninstalled": "true"}))
	for name, tc := range map[string]struct {
		why  string
		then func(*caches, *cvo.Verdicts)
		want string
	}{
		"Deleted": {why: "a deletion by mistake opens nothing", then: func(c *caches, _ *cvo.Verdicts) { c.configMap = nil }, want: deleted},
		"DeletedByEvent": {why: "the last state was not marked", then: func(c *caches, v *cvo.Verdicts) {
			c.configMap = nil
			v.OnDelete(ready)
		}, want: deleted},
		"DeletedUnknown": {why: "the last state is unknown, as after an interrupted watch", then: func(c *caches, v *cvo.Verdicts) {
			c.configMap = nil
			v.OnDelete(struct{ Key string }{"openshift-config-managed/update-preflight"})
		}, want: deleted},
		"OtherDeleted": {why: "another ConfigMap is none of this", then: func(c *caches, v *cvo.Verdicts) {
			c.configMap = nil
			v.OnDelete(&object{Name: "admin-gates", Data: marked.Data})
		}, want: deleted},
		"Uninstalled": {why: "the mark was read", then: func(c *caches, v *cvo.Verdicts) {
			c.configMap = marked
			v.Selected(version)
			c.configMap = nil
		}},
		"UninstalledAtOnce": {why: "the mark is in the event", then: func(c *caches, v *cvo.Verdicts) {
			c.configMap = nil
			v.OnUpdate(ready, marked)
			v.OnDelete(marked)
		}},
		"UninstalledWhileRead": {why: "what was read is older than the event", then: func(c *caches, v *cvo.Verdicts) {
			c.onRead = func() { v.OnDelete(marked) }
			v.Selected(version)
			c.configMap, c.onRead = nil, nil
		}},
		"MarkedLater": {why: "the remedy of the message", then: func(c *caches, v *cvo.Verdicts) {
			c.configMap = nil
			v.Selected(version)
			v.OnAdd(configMap(map[string]string{"uninstalled": "true"}), false)
		}},
		"InstalledAgain": {why: "the mark is gone", then: func(c *caches, v *cvo.Verdicts) {
			v.OnDelete(marked)
			v.OnAdd(ready, false)
			c.configMap = nil
		}, want: deleted},
		"Unreadable": {why: "what could not be read is not known to be installed", then: func(c *caches, v *cvo.Verdicts) {
			v.OnDelete(marked)
			c.err = errors.New("not synced")
			v.Selected(version)
			c.configMap, c.err = nil, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &caches{version: offering(image), configMap: ready}
			verdicts := c.verdicts(nil)
			if problem := verdicts.Selected(version); problem != nil {
				t.Fatalf("before: %+v", problem)
			}
			tc.then(c, verdicts)
			got := ""
			if problem := verdicts.Selected(version); problem != nil {
				got = problem.Message
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.why, got, tc.want)
			}
		})
	}
}

// CVO evaluates the risks again when the verdicts change, and not for other ConfigMaps.
func TestChanged(t *testing.T) {
	t.Parallel()
	calls := 0
	verdicts := with(nil).verdicts(func() { calls++ })
	other := &object{Name: "admin-gates"}
	verdicts.OnAdd(other, true)
	verdicts.OnUpdate(other, other)
	verdicts.OnDelete(other)
	if calls != 0 {
		t.Errorf("another ConfigMap is a change")
	}
	published := configMap(entry())
	verdicts.OnAdd(published, true)
	verdicts.OnUpdate(published, published)
	verdicts.OnDelete(published)
	if calls != 3 {
		t.Errorf("three changes are %d", calls)
	}
}

// The gate follows the published verdicts, so that CVO continues without another request.
func TestGateFollowsTheVerdicts(t *testing.T) {
	t.Parallel()
	blocked := record(map[string]any{"decision": "Blocked", "blocking": []string{"A"}})
	c := with(nil)
	g := gate(c.verdicts(nil))
	var reasons []string
	for _, data := range []map[string]string{
		nil,
		entry(),
		entry(record(map[string]any{"phase": "Running"})),
		entry(blocked),
		entry(record(map[string]any{"completionTime": time.Now().UTC().Add(time.Second).Format(time.RFC3339)}), blocked),
	} {
		if c.configMap = nil; data != nil {
			c.configMap = configMap(data)
		}
		var got refused
		errors.As(g.Run(context.Background(), releaseContext{version}), &got)
		reasons = append(reasons, got.Reason)
	}
	if want := []string{"", "PreflightMissing", "PreflightInProgress", "PreflightBlocked", ""}; !reflect.DeepEqual(reasons, want) {
		t.Errorf("reasons %q, want %q", reasons, want)
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	given := time.Now().UTC().Add(-time.Minute).Truncate(time.Second)
	blocked := strings.Replace(digest, "0", "f", 1)
	c := with(nil)
	c.version.Status["availableUpdates"] = []map[string]string{
		{"version": version, "image": image},
		{"version": "4.20.0", "image": "registry.example.com/release@" + blocked},
	}
	source := &cvo.Source[conditionalUpdateRisk]{
		New: func(name, reason, message string, since time.Time) conditionalUpdateRisk {
			return conditionalUpdateRisk{Name: name, Message: reason + ": " + message, Since: since}
		},
		Judge: c.verdicts(nil).Offered,
	}
	if risks, versions, err := source.Risks(context.Background(), []string{version, "4.20.0"}); err != nil || len(risks) > 0 ||
		len(versions) > 0 {
		t.Errorf("the preflight is not installed, and the risks are %+v of %v (%v)", risks, versions, err)
	}
	text, err := json.Marshal([]any{record(map[string]any{
		"digest": blocked, "version": "4.20.0", "decision": "Blocked",
		"blocking": []string{"A"}, "completionTime": given.Format(time.RFC3339),
	})})
	if err != nil {
		t.Fatal(err)
	}
	c.configMap = configMap(merged(entry(record(nil)), map[string]string{strings.ReplaceAll(blocked, ":", "-"): string(text)}))
	initial, _, err := source.Risks(context.Background(), []string{"4.20.1"})
	if err != nil || len(initial) != 1 || initial[0].Since.IsZero() {
		t.Fatalf("risks %+v (%v), want one with the time of the call", initial, err)
	}
	first := initial[0].Since
	risks, versions, err := source.Risks(context.Background(), []string{version, "4.20.0", "4.20.1", "4.20.1"})
	want := []conditionalUpdateRisk{
		{"Preflight-4.20.0", "PreflightBlocked: the preflight of 4.20.0 is Blocked by A; see: oc preflight status --to 4.20.0", given},
		{"Preflight-4.20.1", "PreflightMissing: the preflight of 4.20.1 is not recorded; run: oc preflight run --to 4.20.1", first},
	}
	if err != nil || !reflect.DeepEqual(risks, want) {
		t.Errorf("risks %+v (%v), want %+v", risks, err, want)
	}
	if want := map[string][]string{"Preflight-4.20.0": {"4.20.0"}, "Preflight-4.20.1": {"4.20.1"}}; !reflect.DeepEqual(versions, want) {
		t.Errorf("versions %v, want %v", versions, want)
	}
}

// CVO prints the name of a precondition, and may prefix risks with that of their source.
func TestName(t *testing.T) {
	t.Parallel()
	var gate precondition = gate(with(nil).verdicts(nil))
	var source riskSource = &cvo.Source[conditionalUpdateRisk]{}
	if gate.Name() != "Preflight" || source.Name() != "Preflight" {
		t.Errorf("the names are %q and %q, want Preflight", gate.Name(), source.Name())
	}
}

// CVO links this module: any requirement could lift the version of another.
func TestStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(context.Background(), "go", "list", "-deps", "-test", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	list.Env = append(list.Environ(), "GOWORK=off")
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(output)) {
		if !strings.HasPrefix(strings.TrimPrefix(path, "["), "github.com/openshift/update-preflight/runner/trigger/cvo") {
			t.Errorf("the module depends on %s", path)
		}
	}
}
