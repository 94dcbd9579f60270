package verdict_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// made returns a finding of a source, which blocks if its outcome does.
func made(name string, source finding.Source, outcome preflight.Outcome) finding.Finding {
	return finding.Reported(gap.Proven("a test"), outcome, finding.Reason{}, "").Named(name).From(source)
}

// informing returns a finding that does not block this update.
func informing(f finding.Finding) finding.Finding {
	f.Blocks = false
	return f
}

func acknowledged(f finding.Finding) finding.Finding {
	return f.Bypassed(finding.Bypass{By: finding.ByAdminAck})
}

func TestFold(t *testing.T) {
	all := verdict.Expectation{Checks: 1, Reported: 1}
	accept := func(names ...string) verdict.Policy {
		policy := verdict.Policy{Accepted: map[string]string{}}
		for _, name := range names {
			policy.Accepted[name] = "request"
		}
		return policy
	}
	for name, tc := range map[string]struct {
		reason   string
		findings []finding.Finding
		expected verdict.Expectation
		policy   verdict.Policy
		want     verdict.Verdict
	}{
		"AllPass": {
			reason:   "every expected check passed",
			findings: []finding.Finding{made("A.B", finding.SourceJob, preflight.Pass)},
			expected: all, want: verdict.Verdict{Decision: verdict.Ready},
		},
		"NothingCollected": {
			reason: "no collected finding is not a pass",
			want:   verdict.Verdict{Decision: verdict.Undecided},
		},
		"NotAllReported": {
			reason:   "a check that did not report has not passed",
			findings: []finding.Finding{made("A.B", finding.SourceJob, preflight.Pass)},
			expected: verdict.Expectation{Checks: 2, Reported: 1, Missing: []string{"A.C"}},
			want:     verdict.Verdict{Decision: verdict.Undecided},
		},
		"WarnAndSkip": {
			reason: "warnings and skipped checks do not block",
			findings: []finding.Finding{
				made("A.B", finding.SourceJob, preflight.Warn), made("A.C", finding.SourceJob, preflight.Skipped),
			},
			expected: all, want: verdict.Verdict{Decision: verdict.Ready},
		},
		"FailBeatsUnknown": {
			reason: "a failure decides, also beside an inconclusive check",
			findings: []finding.Finding{
				made("A.B", finding.SourceJob, preflight.Unknown), made("A.C", finding.SourceJob, preflight.Fail),
			},
			expected: all,
			want:     verdict.Verdict{Decision: verdict.Blocked, Blocking: []string{"A.C"}, Undecided: []string{"A.B"}},
		},
		"FailThatDoesNotBlock": {
			reason:   "a gate that blocks other targets only informs",
			findings: []finding.Finding{informing(made("Gate", finding.SourceGate, preflight.Fail))},
			expected: all, want: verdict.Verdict{Decision: verdict.Ready},
		},
		"UnknownAlwaysCounts": {
			reason:   "an inconclusive check never counts as a pass, also where it does not block",
			findings: []finding.Finding{informing(made("Gate", finding.SourceGate, preflight.Unknown))},
			expected: all, want: verdict.Verdict{Decision: verdict.Undecided, Undecided: []string{"Gate"}},
		},
		"NewOutcome": {
			reason:   "an outcome of a newer check does not count as a pass",
			findings: []finding.Finding{made("A.B", finding.SourceJob, "Deferred")},
			expected: all, want: verdict.Verdict{Decision: verdict.Undecided, Undecided: []string{"A.B"}},
		},
		"AcceptedFail": {
			reason:   "a Job's failure may be accepted by name",
			findings: []finding.Finding{made("A.B", finding.SourceJob, preflight.Fail)},
			expected: all, policy: accept("A.B"),
			want: verdict.Verdict{Decision: verdict.Ready, Accepted: []string{"A.B"}},
		},
		"AcceptedUnknown": {
			reason:   "accepting covers a risk that could not be evaluated",
			findings: []finding.Finding{made("Risk", finding.SourceRisk, preflight.Unknown)},
			expected: verdict.Expectation{Checks: 1, Missing: []string{"Risk"}}, policy: accept("Risk"),
			want: verdict.Verdict{Decision: verdict.Ready, Accepted: []string{"Risk"}},
		},
		"AcceptedOther": {
			reason:   "accepting one finding does not cover another",
			findings: []finding.Finding{made("A.B", finding.SourceJob, preflight.Fail)},
			expected: all, policy: accept("A.C"),
			want: verdict.Verdict{Decision: verdict.Blocked, Blocking: []string{"A.B"}},
		},
		"AcceptedGate": {
			reason:   "an acceptance does not bypass a gate, which CVO itself blocks",
			findings: []finding.Finding{made("Gate", finding.SourceGate, preflight.Fail)},
			expected: all, policy: accept("Gate"),
			want: verdict.Verdict{Decision: verdict.Blocked, Blocking: []string{"Gate"}},
		},
		"AcceptedSignature": {
			reason:   "trust in the release is not a risk to accept by name",
			findings: []finding.Finding{made("ReleaseSignature", finding.SourceSignature, preflight.Fail)},
			expected: all, policy: accept("ReleaseSignature"),
			want: verdict.Verdict{Decision: verdict.Blocked, Blocking: []string{"ReleaseSignature"}},
		},
		"Acknowledged": {
			reason:   "an acknowledged gate is open",
			findings: []finding.Finding{acknowledged(made("Gate", finding.SourceGate, preflight.Fail))},
			expected: all, want: verdict.Verdict{Decision: verdict.Ready},
		},
		"Forced": {
			reason: "force changes no decision, and is reported",
			findings: []finding.Finding{
				made("Gate", finding.SourceGate, preflight.Fail), made("A.B", finding.SourceJob, preflight.Unknown),
			},
			expected: verdict.Expectation{Checks: 2, Reported: 1, Missing: []string{"A.B"}},
			policy:   verdict.Policy{Force: true, ForceReason: "the fix of an outage", ForcedBy: "alice"},
			want: verdict.Verdict{
				Decision: verdict.Blocked, Forced: true, ForceReason: "the fix of an outage", ForcedBy: "alice", Blocking: []string{"Gate"},
				Undecided: []string{"A.B"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := verdict.Fold(tc.findings, tc.expected, tc.policy)
			for _, list := range []*[]string{&tc.want.Blocking, &tc.want.Undecided, &tc.want.Accepted} {
				if *list == nil {
					*list = []string{}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFoldSortsDecisiveFindingsFirst(t *testing.T) {
	_, folded := verdict.Fold([]finding.Finding{
		made("Z.Pass", finding.SourceJob, preflight.Pass),
		made("B.Warn", finding.SourceJob, preflight.Warn),
		made("A.Unknown", finding.SourceJob, preflight.Unknown),
		made("C.Accepted", finding.SourceJob, preflight.Fail),
		made("D.Fail", finding.SourceJob, preflight.Fail),
		made("B.Fail", finding.SourceJob, preflight.Fail),
	}, verdict.Expectation{}, verdict.Policy{Accepted: map[string]string{"C.Accepted": "request"}})
	var names []string
	for _, f := range folded {
		names = append(names, f.Name)
	}
	want := []string{"B.Fail", "D.Fail", "A.Unknown", "C.Accepted", "B.Warn", "Z.Pass"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("blocking first, then by name: -want +got:\n%s", diff)
	}
}

// The properties hold for any findings and policies, so that the fold never fails
// open. A failure names its seed.
func TestFoldProperties(t *testing.T) {
	for name, property := range map[string]func(*testing.T, *rand.Rand){
		"Order": orderDoesNotMatter, "Adding": addingNeverImproves, "Unaccepting": unacceptingNeverImproves,
		"Unknown": unknownIsNeverReady, "Force": forceOnlyMarks, "Gates": acceptanceSparesGates,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2000) {
				property(t, rand.New(rand.NewPCG(seed, 1)))
				if t.Failed() {
					t.Fatalf("with seed %d", seed)
				}
			}
		})
	}
}

func orderDoesNotMatter(t *testing.T, random *rand.Rand) {
	t.Helper()
	findings, expected, policy := arbitrary(random)
	decided, folded := verdict.Fold(findings, expected, policy)
	random.Shuffle(len(findings), func(i, j int) { findings[i], findings[j] = findings[j], findings[i] })
	again, refolded := verdict.Fold(findings, expected, policy)
	if diff := cmp.Diff(decided, again); diff != "" {
		t.Errorf("the order of findings matters: %s", diff)
	}
	if diff := cmp.Diff(folded, refolded); diff != "" {
		t.Errorf("the order of findings changes the report: %s", diff)
	}
}

func addingNeverImproves(t *testing.T, random *rand.Rand) {
	t.Helper()
	findings, expected, policy := arbitrary(random)
	decided, _ := verdict.Fold(findings, expected, policy)
	more := arbitraryFinding(random)
	added, _ := verdict.Fold(append(findings, more), expected, policy)
	if better(added.Decision, decided.Decision) {
		t.Errorf("adding %+v to %+v improved %s to %s", more, findings, decided.Decision, added.Decision)
	}
}

func unacceptingNeverImproves(t *testing.T, random *rand.Rand) {
	t.Helper()
	findings, expected, policy := arbitrary(random)
	decided, _ := verdict.Fold(findings, expected, policy)
	for name := range policy.Accepted {
		fewer := verdict.Policy{Accepted: maps.Clone(policy.Accepted), Force: policy.Force}
		delete(fewer.Accepted, name)
		without, _ := verdict.Fold(findings, expected, fewer)
		if better(without.Decision, decided.Decision) {
			t.Errorf("removing the acceptance of %s improved %s to %s", name, decided.Decision, without.Decision)
		}
	}
}

func unknownIsNeverReady(t *testing.T, random *rand.Rand) {
	t.Helper()
	findings, expected, policy := arbitrary(random)
	decided, folded := verdict.Fold(findings, expected, policy)
	if decided.Decision != verdict.Ready {
		return
	}
	for _, f := range folded {
		if f.Bypass == nil && f.Outcome != preflight.Pass && f.Outcome != preflight.Warn && f.Outcome != preflight.Skipped &&
			(f.Outcome != preflight.Fail || f.Blocks) {
			t.Errorf("Ready although %s is %s", f.Name, f.Outcome)
		}
	}
	if expected.Checks == 0 {
		t.Error("Ready although nothing was expected")
	}
	if missing := expected.Checks - expected.Reported; missing > len(policy.Accepted) {
		t.Errorf("Ready although %d checks did not report, and %d names are accepted", missing, len(policy.Accepted))
	}
}

// A forced verdict is the one without force, marked as forced.
func forceOnlyMarks(t *testing.T, random *rand.Rand) {
	t.Helper()
	findings, expected, policy := arbitrary(random)
	policy.Force = false
	unforced, folded := verdict.Fold(findings, expected, policy)
	policy.Force = true
	decided, marked := verdict.Fold(findings, expected, policy)
	unforced.Forced = true
	if diff := cmp.Diff(unforced, decided) + cmp.Diff(folded, marked); diff != "" {
		t.Errorf("force changed more than the mark: -want +got:\n%s", diff)
	}
}

// No acceptance bypasses a gate, a signature or a payload.
func acceptanceSparesGates(t *testing.T, random *rand.Rand) {
	t.Helper()
	findings, expected, policy := arbitrary(random)
	policy.Force = false
	decided, folded := verdict.Fold(findings, expected, policy)
	for i, f := range folded {
		if f.Bypass != nil && f.Bypass.By == finding.ByAcceptedRisk && !f.Source.Acceptable() {
			t.Errorf("%s of source %s was accepted", f.Name, f.Source)
		}
		if i > 0 && f.Open() && !folded[i-1].Open() {
			t.Errorf("%s decides, and is sorted after %s, which does not", f.Name, folded[i-1].Name)
		}
		if f.Open() && decided.Decision == verdict.Ready {
			t.Errorf("Ready although %s counts", f.Name)
		}
	}
}

func better(a, b verdict.Decision) bool {
	order := map[verdict.Decision]int{verdict.Blocked: 0, verdict.Undecided: 1, verdict.Ready: 2}
	return order[a] > order[b]
}

func arbitraryFinding(random *rand.Rand) finding.Finding {
	sources := []finding.Source{finding.SourceJob, finding.SourceGate, finding.SourceRisk, finding.SourceSignature}
	outcomes := []preflight.Outcome{preflight.Pass, preflight.Warn, preflight.Fail, preflight.Unknown, preflight.Skipped, "Deferred"}
	f := made(string(rune('A'+random.IntN(5))), sources[random.IntN(len(sources))], outcomes[random.IntN(len(outcomes))])
	f.Blocks = random.IntN(4) > 0
	f = f.Remedy("%c", 'a'+random.IntN(3))
	if random.IntN(6) == 0 {
		f = acknowledged(f)
	}
	return f
}

func arbitrary(random *rand.Rand) ([]finding.Finding, verdict.Expectation, verdict.Policy) {
	policy := verdict.Policy{Accepted: map[string]string{}, Force: random.IntN(8) == 0}
	for range random.IntN(4) {
		policy.Accepted[string(rune('A'+random.IntN(5)))] = "request"
	}
	var findings []finding.Finding
	for range random.IntN(5) {
		findings = append(findings, arbitraryFinding(random))
	}
	expected := verdict.Expectation{Checks: random.IntN(4)}
	for range random.IntN(2) {
		expected.Missing = append(expected.Missing, string(rune('A'+random.IntN(5))))
	}
	expected.Reported = max(0, expected.Checks-len(expected.Missing))
	return findings, expected, policy
}

// TestWhole folds every path of up to four updates.
func TestWhole(t *testing.T) {
	rank := map[verdict.Decision]int{verdict.Blocked: 0, verdict.Undecided: 1, verdict.Ready: 2, verdict.NothingKnown: 2}
	paths := [][]verdict.Decision{{verdict.Ready}, {verdict.Undecided}, {verdict.Blocked}}
	if got := verdict.Whole(nil); got != verdict.Undecided {
		t.Errorf("a path without updates is %s, want Undecided", got)
	}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		whole := verdict.Whole(path)
		if len(path) == 1 && whole != path[0] {
			t.Errorf("a path of one update is %s, want %s", whole, path[0])
		}
		for _, later := range []verdict.Decision{verdict.NothingKnown, verdict.Undecided, verdict.Blocked, ""} {
			longer := append(slices.Clone(path), later)
			if got := verdict.Whole(longer); rank[got] > rank[whole] || got == verdict.Ready && later != verdict.NothingKnown {
				t.Errorf("%v is %s, and with %q it is %s: an additional update never improves a path", path, whole, later, got)
			}
			if len(longer) < 4 {
				paths = append(paths, longer)
			}
		}
	}
}

// TestProvisional folds no findings.
func TestProvisional(t *testing.T) {
	expected := verdict.Expectation{Checks: 1, Reported: 1}
	for name, policy := range map[string]verdict.Policy{"Plain": {Provisional: true}, "Forced": {Provisional: true, Force: true}} {
		decided, findings := verdict.Fold(nil, expected, policy)
		if decided.Decision != verdict.NothingKnown || !decided.Provisional {
			t.Errorf("%s: %+v, want NothingKnown: a provisional verdict is never Ready", name, decided)
		}
		if again := decided.Refold(findings, expected); again.Decision != verdict.NothingKnown {
			t.Errorf("%s: folded again it is %s, want NothingKnown", name, again.Decision)
		}
		if missing, _ := verdict.Fold(nil, verdict.Expectation{Checks: 2, Reported: 1},
			verdict.Policy{Provisional: true}); missing.Decision != verdict.Undecided {
			t.Errorf("%s: with a check that has not reported it is %s, want Undecided", name, missing.Decision)
		}
	}
}
