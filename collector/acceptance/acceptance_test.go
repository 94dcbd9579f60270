package acceptance_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func read(t *testing.T, entries ...string) []acceptance.Acceptance {
	t.Helper()
	accepted, err := acceptance.Read("accept.yaml", strings.NewReader(head+strings.Join(entries, "")))
	if err != nil {
		t.Fatal(err)
	}
	return accepted
}

func TestLimitsOfAcceptances(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		limit   string
		target  string
		cluster string
		want    bool
	}{
		"NoLimit":     {reason: "without limits it holds for every target", want: true},
		"LaterToday":  {reason: "a date expires at the end of its day in UTC", limit: "expires: 2026-11-21", want: true},
		"Yesterday":   {reason: "the day has passed", limit: "expires: 2026-11-20"},
		"InAnHour":    {reason: "a time in the future", limit: "expires: 2026-11-21T14:00:00+01:00", want: true},
		"Now":         {reason: "the present time has expired", limit: "expires: 2026-11-21T12:00:00Z"},
		"InRange":     {reason: "the target is in the range", limit: "versions: '>=4.18.0 <4.19.0'", target: "4.18.16", want: true},
		"BeyondRange": {reason: "the target is not in the range", limit: "versions: '>=4.18.0 <4.19.0'", target: "4.19.0"},
		"ReleaseCand": {
			reason: "release candidates of 4.19.0 come before it", limit: "versions: '>=4.18.0 <4.19.0'", target: "4.19.0-rc.1",
			want: true,
		},
		"NoVersion":        {reason: "an unknown target is in no range", limit: "versions: '>=4.18.0'", target: ""},
		"NotSemVer":        {reason: "a target that is not SemVer is in no range", limit: "versions: '>=4.18.0'", target: "nightly"},
		"NotSemVerNoRange": {reason: "without a range the target is not compared", target: "nightly", want: true},
		"ThisCluster":      {reason: "the cluster is in the list", limit: "clusters: [other, C1]", cluster: "c1", want: true},
		"OtherCluster":     {reason: "the cluster is not in the list", limit: "clusters: [other]", cluster: "c1"},
		"NoCluster":        {reason: "a cluster without an ID is in no list", limit: "clusters: [other]"},
	} {
		t.Run(name, func(t *testing.T) {
			scope := acceptance.Scope{Target: tc.target, Cluster: tc.cluster, Now: noon}
			got := acceptance.Evaluate(read(t, entry("RiskA", "  "+tc.limit)), scope).Accepted()
			if _, accepted := got["RiskA"]; accepted != tc.want {
				t.Errorf("%s: accepted %t", tc.reason, accepted)
			}
		})
	}
}

func TestTheFirstThatHoldsIsTheOrigin(t *testing.T) {
	all := slices.Concat(
		read(t, entry("RiskA", "  expires: 2026-01-01"), entry("RiskB", "  expires: 2027-01-01")),
		acceptance.Named(acceptance.Origin, "RiskA", "RiskB"), acceptance.Named("request", "RiskA", "RiskC"),
	)
	want := map[string]string{
		"RiskA": "spec.desiredUpdate.acceptRisks",
		"RiskB": "accept.yaml, entry 2; seen; accepted by ann; until 2027-01-01",
		"RiskC": "request",
	}
	if diff := cmp.Diff(want, acceptance.Evaluate(all, acceptance.Scope{Now: noon}).Accepted()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// found is a finding of a source.
func found(name string, source finding.Source, outcome preflight.Outcome) finding.Finding {
	return finding.Reported(gap.Proven("a test"), outcome, finding.Reason{}, "").Named(name).From(source)
}

func TestReview(t *testing.T) {
	risk := found("RiskA", finding.SourceRisk, preflight.Fail)
	for name, tc := range map[string]struct {
		reason   string
		accepted []acceptance.Acceptance
		findings []finding.Finding
		noJobs   bool
		want     map[string]string // a part of the message, by reason
	}{
		"Used": {reason: "the acceptance is needed", accepted: acceptance.Named("request", "RiskA"), findings: []finding.Finding{risk}},
		"UsedForUnknown": {
			reason:   "an acceptance covers a risk that could not be evaluated",
			accepted: acceptance.Named("request", "RiskA"), findings: []finding.Finding{found("RiskA", finding.SourceRisk, preflight.Unknown)},
		},
		"UsedTwice": {
			reason:   "the second of two acceptances is not unused",
			accepted: acceptance.Named("request", "RiskA", "RiskA"), findings: []finding.Finding{risk},
		},
		"Unused": {
			reason:   "no finding needs the others",
			accepted: acceptance.Named("request", "RiskA", "RiskB", "RiskC"), findings: []finding.Finding{risk},
			want: map[string]string{"Unused": "RiskB (request), RiskC (request)"},
		},
		"UnusedForAPass": {
			reason:   "a pass needs no acceptance",
			accepted: acceptance.Named("request", "RiskA"), findings: []finding.Finding{found("RiskA", finding.SourceRisk, preflight.Pass)},
			want: map[string]string{"Unused": "RiskA"},
		},
		"UnusedElsewhere": {
			reason:   "an acceptance for other targets is not judged",
			accepted: read(t, entry("RiskB", "  versions: 4.19.x")),
		},
		"NoJobs": {
			reason:   "without the release's checks it is unknown whether one needs the acceptance",
			accepted: acceptance.Named("request", "Etcd.Quorum", "RiskB"), noJobs: true,
			want: map[string]string{"Unused": "RiskB (request)"},
		},
		"Expired": {
			reason:   "expired acceptances are reported, needed or not",
			accepted: read(t, entry("RiskA", "  expires: 2026-11-01"), entry("RiskB", "  expires: 2026-11-02")), findings: []finding.Finding{risk},
			want: map[string]string{"Expired": "RiskA (accept.yaml, entry 1) of ann, expired 2026-11-01, RiskB"},
		},
		"ExpiredElsewhere": {
			reason:   "an expired acceptance for other targets is not reported",
			accepted: read(t, entry("RiskA", "  expires: 2026-11-01", "  versions: 4.19.x")),
		},
		"OutOfScope": {
			reason:   "it names a finding that blocks, for other targets",
			accepted: read(t, entry("RiskA", "  versions: 4.19.x", "  clusters: [c9]")), findings: []finding.Finding{risk},
			want: map[string]string{"OutOfScope": `RiskA (accept.yaml, entry 1) for versions "4.19.x" for clusters c9`},
		},
		"OutOfScopeButAccepted": {
			reason:   "another acceptance covers it",
			accepted: append(read(t, entry("RiskA", "  versions: 4.19.x")), acceptance.Named("request", "RiskA")...),
			findings: []finding.Finding{risk},
		},
		"Gate": {
			reason:   "accepted risks do not bypass a gate",
			accepted: acceptance.Named("request", "Gate"), findings: []finding.Finding{found("Gate", finding.SourceGate, preflight.Fail)},
			want: map[string]string{"NotAcceptable": "the acceptance of Gate (request) has no effect: it is a gate"},
		},
		"Signature": {
			reason:   "trust in the release cannot be accepted",
			accepted: acceptance.Named("request", "ReleaseSignature"),
			findings: []finding.Finding{found("ReleaseSignature", finding.SourceSignature, preflight.Fail)},
			want:     map[string]string{"NotAcceptable": "trust in the release"},
		},
		"OpenGate": {
			reason:   "a gate that passes needs no acceptance",
			accepted: acceptance.Named("request", "Gate"), findings: []finding.Finding{found("Gate", finding.SourceGate, preflight.Pass)},
			want: map[string]string{"Unused": "Gate"},
		},
		"Acknowledged": {
			reason:   "an acknowledged gate needs no acceptance",
			accepted: acceptance.Named("request", "Gate"),
			findings: []finding.Finding{found("Gate", finding.SourceGate, preflight.Fail).Bypassed(finding.Bypass{By: finding.ByAdminAck})},
			want:     map[string]string{"Unused": "Gate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			account := acceptance.Evaluate(tc.accepted, acceptance.Scope{Target: "4.18.5", Cluster: "c1", Now: noon})
			for _, force := range []bool{false, true} {
				policy := verdict.Policy{Accepted: account.Accepted(), Force: force}
				_, folded := verdict.Fold(tc.findings, verdict.Expectation{Checks: 1, Reported: 1}, policy)
				for _, findings := range [][]finding.Finding{tc.findings, folded} {
					check(t, tc.reason, tc.want, acceptance.Review(acceptance.Target{Account: account, Findings: findings, NoJobs: tc.noJobs}))
				}
			}
		})
	}
}

// check verifies the reasons of warnings, and a part of each message.
func check(t *testing.T, reason string, want map[string]string, findings []finding.Finding) {
	t.Helper()
	reasons := []string{}
	for _, f := range findings {
		reasons = append(reasons, f.Reason)
		if f.Outcome != preflight.Warn || f.Source == "" || f.Remediation == "" {
			t.Errorf("%s: %+v is no warning with a source and a remedy", reason, f)
		}
		if !strings.Contains(f.Message, want[f.Reason]) {
			t.Errorf("%s: message %q, want %q in it", reason, f.Message, want[f.Reason])
		}
	}
	slices.Sort(reasons)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), reasons,
		cmp.Transformer("length", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
		t.Errorf("%s: reasons -want +got:\n%s", reason, diff)
	}
}

func TestReviewOfManyTargets(t *testing.T) {
	all := slices.Concat(
		acceptance.Named("request", "RiskA", "RiskB"),
		read(t, entry("RiskC", "  versions: 4.18.x"), entry("RiskD", "  versions: 4.20.x")),
	)
	var targets []acceptance.Target
	for target, name := range map[string]string{"4.18.5": "RiskA", "4.19.0": "RiskC"} {
		account := acceptance.Evaluate(all, acceptance.Scope{Target: target, Now: noon})
		targets = append(targets, acceptance.Target{
			Account:  account,
			Findings: []finding.Finding{found(name, finding.SourceRisk, preflight.Fail)}, NoJobs: true,
		})
	}
	findings := acceptance.Review(targets...)
	if len(findings) != 1 || findings[0].Reason != "Unused" ||
		!strings.HasSuffix(findings[0].Message, ": RiskB (request), RiskC (accept.yaml, entry 1)") {
		t.Errorf("%+v; want RiskB and RiskC unused: RiskA is needed for one target, RiskC is not for the one that needs it, RiskD is for neither",
			findings)
	}
	if got := acceptance.Review(); len(got) != 0 {
		t.Errorf("no target, and findings %+v", got)
	}
}

func TestManyAreCounted(t *testing.T) {
	account := acceptance.Evaluate(read(t, many(60)), acceptance.Scope{Now: noon})
	findings := acceptance.Review(acceptance.Target{Account: account})
	if len(findings) != 1 || !strings.HasSuffix(findings[0].Message, " and 10 more") {
		t.Errorf("%+v, want the first 50 of 60 and that there are 10 more", findings)
	}
}
