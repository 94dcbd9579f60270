package cvo_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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
)

var key = []byte("0123456789abcdef0123456789abcdef")

// refused is the error that carries a problem.
type refused struct{ cvo.Problem }

func (r refused) Error() string { return r.Message }

func gate(read cvo.Reader) *cvo.Gate[releaseContext] {
	return &cvo.Gate[releaseContext]{
		Version: func(r releaseContext) string { return r.DesiredVersion },
		Refuse:  func(p cvo.Problem) error { return refused{p} },
		Read:    read,
	}
}

// record is the data of the record of a run that is Ready and valid, with changes.
func record(changes map[string]any) map[string]string {
	now := time.Now().UTC()
	fields := map[string]any{
		"run": "3b6f2c1e", "digest": digest, "version": version, "phase": "Complete", "decision": "Ready",
		"completionTime": now.Add(-time.Minute).Format(time.RFC3339), "validUntil": now.Add(time.Hour).Format(time.RFC3339),
		"blocking": []string{}, "undecided": []string{}, "accepted": []string{}, "selection": "{}",
	}
	maps.Copy(fields, changes)
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return sealed(string(text), key)
}

// sealed is a record with that verdict.json.
func sealed(text string, key []byte) map[string]string {
	derived := hmac.New(sha256.New, key)
	derived.Write([]byte("preflight.openshift.io/verdict.mac/v1"))
	mac := hmac.New(sha256.New, derived.Sum(nil))
	mac.Write([]byte(text))
	return map[string]string{"verdict.json": text, "verdict.mac": hex.EncodeToString(mac.Sum(nil))}
}

// with returns a reader of these records.
func with(data ...map[string]string) cvo.Reader {
	return func(context.Context, string) (cvo.Records, error) {
		return cvo.Records{Image: image, Key: key, Data: data}, nil
	}
}

func TestGate(t *testing.T) {
	t.Parallel()
	const past = "2026-01-01T00:00:00Z"
	blocked := map[string]any{"decision": "Blocked", "blocking": []string{"F", "B", "A", "C", "E", "D"}}
	tests := map[string]struct {
		why     string
		read    cvo.Reader
		reason  string
		message string
		warning bool
	}{
		"Ready":   {why: "a valid verdict allows the update", read: with(record(nil))},
		"Missing": {why: "an update without a verdict is not allowed", read: with(), reason: "PreflightMissing", message: "the preflight of 4.19.1 is not recorded; run: oc preflight run --to 4.19.1"},
		"Running": {
			why: "CVO evaluates again without another request", read: with(record(map[string]any{"phase": "Running", "decision": ""})),
			reason: "PreflightInProgress", message: "the preflight of 4.19.1 is in progress; see: oc preflight status --to 4.19.1",
		},
		"RunningAgain":    {why: "a remedy is being verified", read: with(record(blocked), record(map[string]any{"phase": "Running"})), reason: "PreflightInProgress"},
		"ReadyAndRunning": {why: "a valid verdict holds while the next one is made", read: with(record(nil), record(map[string]any{"phase": "Running"}))},
		"Blocked": {
			why: "at most five names, in order", read: with(record(blocked)), reason: "PreflightBlocked",
			message: "the preflight of 4.19.1 is Blocked by A, B, C, D, E, others; see: oc preflight status --to 4.19.1",
		},
		"Undecided": {
			why: "an inconclusive check is not a pass", read: with(record(map[string]any{"decision": "Undecided", "undecided": []string{"A"}})),
			reason: "PreflightUndecided", message: "the preflight of 4.19.1 is Undecided because of A; see: oc preflight status --to 4.19.1",
		},
		"UnknownDecision": {why: "a decision of a later version is not Ready", read: with(record(map[string]any{"decision": "Later"})), reason: "PreflightUndecided"},
		"Stale": {
			why: "a verdict ends", read: with(record(map[string]any{"validUntil": past})),
			reason: "PreflightStale", message: "the preflight of 4.19.1 is out of date; run: oc preflight run --to 4.19.1",
		},
		"StaleNow": {why: "a verdict ends at its time", read: with(record(map[string]any{"validUntil": time.Now().UTC().Format(time.RFC3339)})), reason: "PreflightStale"},
		"NoEnd":    {why: "a verdict without an end is not valid", read: with(record(map[string]any{"validUntil": ""})), reason: "PreflightStale"},
		"Accepted": {
			why: "CVO records accepted findings in its history", read: with(record(map[string]any{"accepted": []string{"B", "A"}})),
			reason: "PreflightAccepted", message: "the preflight of 4.19.1 is Ready with accepted findings: A, B", warning: true,
		},
		"NewestBlocked": {why: "the newest verdict counts", read: with(record(nil), record(map[string]any{
			"decision": "Blocked", "completionTime": time.Now().UTC().Format(time.RFC3339), "blocking": []string{"A"},
		})), reason: "PreflightBlocked"},
		"SameSecond": {why: "times have no fractions", read: with(record(map[string]any{"completionTime": past}), record(map[string]any{
			"decision": "Blocked", "completionTime": past, "blocking": []string{"A"},
		})), reason: "PreflightBlocked"},
		"SameSecondAgain": {why: "the order of the records has no meaning", read: with(record(map[string]any{
			"decision": "Blocked", "completionTime": past, "blocking": []string{"A"},
		}), record(map[string]any{"completionTime": past})), reason: "PreflightBlocked"},
		"NewestReady": {why: "an older verdict does not count", read: with(record(nil), record(map[string]any{"decision": "Blocked", "completionTime": past}))},
		"Forced": {
			why: "CVO records what force bypassed", read: with(record(map[string]any{"decision": "Blocked", "forced": true, "blocking": []string{"B", "A"}})),
			reason: "PreflightForced", warning: true, message: "the preflight of 4.19.1 is not Ready, and was forced past A, B",
		},
		"ForcedPastNothing": {
			why: "force was given and not needed", read: with(record(map[string]any{"decision": "Blocked", "forced": true})),
			reason: "PreflightForced", warning: true, message: "the preflight of 4.19.1 is not Ready, and was forced past nothing",
		},
		"Narrowed": {
			why: "CVO records what the request left out", read: with(record(map[string]any{"narrowed": []string{"alert KubePodCrashLooping"}})),
			reason: "PreflightNarrowed", warning: true, message: "the preflight of 4.19.1 is Ready; it left out alert KubePodCrashLooping",
		},
		"NarrowedAcceptedForced": {
			why: "the strongest is the reason, and the message has all", read: with(record(map[string]any{
				"decision": "Blocked", "forced": true, "blocking": []string{"A"}, "accepted": []string{"B"}, "narrowed": []string{"namespace c"},
			})),
			reason: "PreflightForced", warning: true,
			message: "the preflight of 4.19.1 is not Ready, and was forced past A with accepted findings: B; it left out namespace c",
		},
		"NarrowedBlocked": {why: "a narrowed verdict may be Blocked", read: with(record(map[string]any{"decision": "Blocked", "blocking": []string{"A"}, "narrowed": []string{"b"}})), reason: "PreflightBlocked"},
		"FromAnotherVersion": {why: "the cluster was updated meanwhile", read: func(context.Context, string) (cvo.Records, error) {
			return cvo.Records{Image: image, From: "4.18.9", Key: key, Data: []map[string]string{record(map[string]any{"from": "4.18.8"})}}, nil
		}, reason: "PreflightStale"},
		"FromThisVersion": {why: "the verdict is on this update", read: func(context.Context, string) (cvo.Records, error) {
			return cvo.Records{Image: image, From: "4.18.9", Key: key, Data: []map[string]string{record(map[string]any{"from": "4.18.9"})}}, nil
		}},
		"Interrupted":  {why: "a run that did not complete has no verdict", read: with(record(map[string]any{"phase": "Interrupted"})), reason: "PreflightMissing"},
		"OtherDigest":  {why: "digests with the same first digits are other releases", read: with(record(map[string]any{"digest": digest[:64] + "000000000"})), reason: "PreflightMissing"},
		"OtherVersion": {why: "the image is not the release that CVO has loaded", read: with(record(map[string]any{"version": "4.19.2"})), reason: "PreflightMissing"},
		"Provisional": {why: "a later update of a path is judged from another release", read: with(record(nil), record(map[string]any{
			"decision": "Blocked", "completionTime": time.Now().UTC().Format(time.RFC3339), "blocking": []string{"A"}, "provisional": true,
		}))},
		"Forged":        {why: "an editor of ConfigMaps does not have the key", read: with(sealed(record(nil)["verdict.json"], []byte("another"))), reason: "PreflightMissing"},
		"NoMAC":         {why: "a record of a former version has no MAC", read: with(map[string]string{"verdict.json": record(nil)["verdict.json"]}), reason: "PreflightMissing"},
		"NotJSON":       {why: "a record that cannot be decoded does not count", read: with(sealed("{", key)), reason: "PreflightMissing"},
		"ForeignRecord": {why: "another ConfigMap has the label", read: with(nil, map[string]string{"a": "b"}, record(nil))},
		"NoKey": {why: "without a key no record is authentic", read: func(context.Context, string) (cvo.Records, error) {
			return cvo.Records{Image: image, Data: []map[string]string{sealed(record(nil)["verdict.json"], nil)}}, nil
		}, reason: "PreflightMissing"},
		"Tag": {why: "an image by tag has no digest", read: func(context.Context, string) (cvo.Records, error) {
			return cvo.Records{Image: "registry.example.com/release:4.19.1", Key: key, Data: []map[string]string{record(map[string]any{"digest": ""})}}, nil
		}, reason: "PreflightMissing"},
		"Unreadable": {why: "a failure is not a pass", read: func(context.Context, string) (cvo.Records, error) {
			return cvo.Records{}, errors.New("connection to 192.0.2.1:6443 refused after 1.2s")
		}, reason: "PreflightUndecided", message: "the preflight of 4.19.1 cannot be read from its record; see: oc preflight status --to 4.19.1"},
		"Panic": {why: "a panic would end CVO", read: func(context.Context, string) (cvo.Records, error) { panic("bug") }, reason: "PreflightUndecided"},
		"Slow": {why: "CVO cannot write the status of ClusterVersion meanwhile", read: func(context.Context, string) (cvo.Records, error) {
			select {} // not even the end of its context
		}, reason: "PreflightUndecided"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := gate(tc.read).Run(context.Background(), releaseContext{version})
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

// A call that follows another one at once is answered, however often: CVO asks for each of
// its versions one after the other.
func TestGateAnswersEachCall(t *testing.T) {
	t.Parallel()
	g := gate(with(record(nil)))
	for range 20_000 {
		if err := g.Run(context.Background(), releaseContext{version}); err != nil {
			t.Fatalf("a call right after another one: %v", err)
		}
	}
}

// While a reader does not return, no other call of it starts.
func TestGateWithoutGrowingBacklog(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 10)
	g := gate(func(context.Context, string) (cvo.Records, error) {
		started <- struct{}{}
		select {}
	})
	for range 3 {
		var got refused
		if err := g.Run(context.Background(), releaseContext{version}); !errors.As(err, &got) || got.Reason != "PreflightUndecided" {
			t.Errorf("a reader that hangs: %v", err)
		}
	}
	if len(started) != 1 {
		t.Errorf("%d calls of the reader started, want 1", len(started))
	}
}

// The same state has the same message, or CVO would write its status at each call.
func TestMessagesDoNotChange(t *testing.T) {
	t.Parallel()
	failures := 0
	for name, read := range map[string]cvo.Reader{
		"Unreadable": func(context.Context, string) (cvo.Records, error) {
			failures++
			return cvo.Records{}, errors.New(strings.Repeat("again ", failures))
		},
		"Running": with(record(map[string]any{"phase": "Running"})),
	} {
		g := gate(read)
		first, second := g.Run(context.Background(), releaseContext{version}), g.Run(context.Background(), releaseContext{version})
		if first == nil || second == nil || first.Error() != second.Error() {
			t.Errorf("%s: first %v, then %v", name, first, second)
		}
	}
}

// The gate follows the records, so that CVO continues without another request.
func TestGateFollowsTheRecords(t *testing.T) {
	t.Parallel()
	records := [][]map[string]string{
		{},
		{record(map[string]any{"phase": "Running"})},
		{record(map[string]any{"decision": "Blocked", "blocking": []string{"A"}})},
		{record(map[string]any{"decision": "Blocked", "blocking": []string{"A"}}), record(map[string]any{"completionTime": time.Now().UTC().Add(time.Second).Format(time.RFC3339)})},
	}
	call := 0
	g := gate(func(context.Context, string) (cvo.Records, error) {
		call++
		return cvo.Records{Image: image, Key: key, Data: records[call-1]}, nil
	})
	var reasons []string
	for range records {
		var got refused
		errors.As(g.Run(context.Background(), releaseContext{version}), &got)
		reasons = append(reasons, got.Reason)
	}
	if want := []string{"PreflightMissing", "PreflightInProgress", "PreflightBlocked", ""}; !reflect.DeepEqual(reasons, want) {
		t.Errorf("reasons %q, want %q", reasons, want)
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	given := time.Now().UTC().Add(-time.Minute).Truncate(time.Second)
	source := &cvo.Source[conditionalUpdateRisk]{
		New: func(name, reason, message string, since time.Time) conditionalUpdateRisk {
			return conditionalUpdateRisk{Name: name, Message: reason + ": " + message, Since: since}
		},
		Read: func(_ context.Context, version string) (cvo.Records, error) {
			records := cvo.Records{Image: image, Key: key, Data: []map[string]string{record(nil)}}
			if version == "4.20.0" {
				records.Data = []map[string]string{record(map[string]any{"version": version, "decision": "Blocked", "blocking": []string{"A"}, "completionTime": given.Format(time.RFC3339)})}
			}
			return records, nil
		},
	}
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
	var gate precondition = gate(with())
	var source riskSource = &cvo.Source[conditionalUpdateRisk]{}
	if gate.Name() != "Preflight" || source.Name() != "Preflight" {
		t.Errorf("the names are %q and %q, want Preflight", gate.Name(), source.Name())
	}
}

func TestSelector(t *testing.T) {
	t.Parallel()
	for pullSpec, want := range map[string]string{
		image:                              "preflight.openshift.io/record,preflight.openshift.io/release=0123456789ab",
		"registry.example.com/a:b":         "preflight.openshift.io/record,preflight.openshift.io/release=",
		"registry.example.com/a@sha256:01": "preflight.openshift.io/record,preflight.openshift.io/release=01",
	} {
		if got := cvo.Selector(pullSpec); got != want {
			t.Errorf("the selector of %s is %q, want %q", pullSpec, got, want)
		}
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
