package finding_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestConstructors(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		got     finding.Finding
		outcome preflight.Outcome
		blocks  bool
	}{
		"Pass": {
			reason: "a pass does not block", got: finding.Pass(gap.Proven("a test"), finding.ReportedReason("R"), "m"),
			outcome: preflight.Pass,
		},
		"Warn": {reason: "a warning does not block", got: finding.Warn(finding.ReportedReason("R"), "m"), outcome: preflight.Warn},
		"Fail": {reason: "a failure blocks", got: finding.Fail(finding.ReportedReason("R"), "m"), outcome: preflight.Fail, blocks: true},
		"Unknown": {
			reason: "an inconclusive check blocks", got: finding.Unknown(finding.ReportedReason("R"), "m"), outcome: preflight.Unknown,
			blocks: true,
		},
		"Skipped": {
			reason: "a skipped check does not block", got: finding.Skipped(gap.Proven("a test"), finding.ReportedReason("R"), "m"),
			outcome: preflight.Skipped,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got.Outcome != tc.outcome || tc.got.Blocks != tc.blocks || tc.got.Reason != "R" || tc.got.Message != "m" {
				t.Errorf("%s: %+v", tc.reason, tc.got)
			}
		})
	}
}

func TestNoPassByWhatWasNotRead(t *testing.T) {
	reason := finding.ReportedReason("R")
	for name, got := range map[string]finding.Finding{
		"NotApplying": finding.Skipped(gap.Extent{}, reason, "m"),
		"NewSkipped":  finding.New(preflight.Skipped, reason, "m"),
		"ReSkipped":   finding.Fail(reason, "m").Judged(preflight.Skipped),
		"Answered":    finding.Reported(gap.Extent{}, preflight.Skipped, reason, "m"),
		"NothingRead": finding.Pass(gap.Extent{}, reason, "m"),
		"Reported":    finding.Reported(gap.Extent{}, preflight.Pass, reason, "m"),
		"New":         finding.New(preflight.Pass, reason, "m"),
		"Judged":      finding.Fail(reason, "m").Judged(preflight.Pass),
	} {
		t.Run(name, func(t *testing.T) {
			if got.Outcome != preflight.Unknown || !got.Blocks {
				t.Errorf("%+v, want a finding that is Unknown", got)
			}
		})
	}
	pass := finding.Pass(gap.Proven("the response"), reason, "m")
	if again := pass.Judged(pass.Outcome); again.Outcome != preflight.Pass {
		t.Errorf("a pass that is judged as it is: %+v", again)
	}
	kept := finding.WithoutPasses([]finding.Finding{pass, finding.Pass(gap.Extent{}, reason, "m"), finding.Warn(reason, "m")})
	if len(kept) != 1 || kept[0].Outcome != preflight.Warn {
		t.Errorf("beside an error remain %+v, want the warning", kept)
	}
}

func TestTextsAreSanitizedAndBounded(t *testing.T) {
	hostile := "first\x1b[2J line\nsecond\u202e line"
	f := finding.Fail(finding.ReportedReason("R"), "%s", hostile).Remedy("%s", hostile).Do(finding.Read("oc get %s", "a\nb"))
	if f.Message != "first line\nsecond line" || f.Remediation != f.Message || f.Actions[0].Command != "" {
		t.Errorf("message %q, remedy %q, command %q", f.Message, f.Remediation, f.Actions[0].Command)
	}
	if script := finding.Script("cat <<END\n  a\nEND\x1b[2J"); script.Command != "cat <<END\n  a\nEND" {
		t.Errorf("the command %q of a check, want its lines and spaces", script.Command)
	}
	if long := finding.Read("echo %s", strings.Repeat("x", finding.MaxCommand)); long.Command != "" {
		t.Errorf("a command of %d bytes, want none: it would be cut", len(long.Command))
	}
	if long := finding.Fail(finding.ReportedReason("R"), "%s", strings.Repeat("x", 100_000)); len(long.Message) != 32<<10 {
		t.Errorf("a message of %d bytes, want at most 32 KiB", len(long.Message))
	}
}

func TestDoDoesNotShareActions(t *testing.T) {
	base := finding.Fail(finding.ReportedReason("R"), "m").Do(finding.Read("a"))
	one, other := base.Do(finding.Targets()), base.Do(finding.Roles())
	if diff := cmp.Diff([]finding.Action{finding.Read("a"), {Type: finding.ActionTargets}}, one.Actions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]finding.Action{finding.Read("a"), {Type: finding.ActionRoles}}, other.Actions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestValidName(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, name string
		want         bool
	}{
		"Letters":    {reason: "CamelCase", name: "RiskA", want: true},
		"Everything": {reason: "digits, dots and dashes may follow", name: "AdminAck-ack-4.18-x-", want: true},
		"Longest":    {reason: "256 bytes", name: "A" + strings.Repeat("a", 255), want: true},
		"TooLong":    {reason: "257 bytes", name: "A" + strings.Repeat("a", 256)},
		"Empty":      {reason: "a name has a letter"},
		"SmallCase":  {reason: "the first letter is a capital", name: "riskA"},
		"Digit":      {reason: "the first character is a letter", name: "4Risk"},
		"Underscore": {reason: "no other characters", name: "Risk_A"},
		"Unicode":    {reason: "no letters outside ASCII", name: "RiskÄ"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := finding.ValidName(tc.name); got != tc.want {
				t.Errorf("%s: ValidName(%q) = %t, want %t", tc.reason, tc.name, got, tc.want)
			}
		})
	}
}

func TestNameOf(t *testing.T) {
	for name, tc := range map[string]struct{ reason, object, want string }{
		"Valid":   {reason: "a valid name is kept", object: "ns.etcd.v1.2.3", want: "Kind-ns.etcd.v1.2.3"},
		"Others":  {reason: "a dash for each other character", object: "quay.io:443/a_b", want: "Kind-quay.io-443-a-b"},
		"Around":  {reason: "no dashes around the object", object: "[::1]:8080/", want: "Kind-1--8080"},
		"Unicode": {reason: "one dash for each character", object: "aäb", want: "Kind-a-b"},
		"Long":    {reason: "cut to 256 bytes", object: strings.Repeat("x", 300), want: "Kind-" + strings.Repeat("x", 251)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := finding.NameOf("Kind", tc.object); got != tc.want {
				t.Errorf("%s: NameOf(%q) = %q, want %q", tc.reason, tc.object, got, tc.want)
			}
		})
	}
}

// FuzzNameOf checks that every object has a finding that can be accepted.
func FuzzNameOf(f *testing.F) {
	for _, seed := range []string{"quay.io/health", "[::1]:8080/", "", "/", "ä/%", strings.Repeat("x", 300)} {
		f.Add(seed)
	}
	rule := regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)
	f.Fuzz(func(t *testing.T, object string) {
		name := finding.NameOf("ExternalDependency", object)
		if !rule.MatchString(name) || len(name) > 256 || !finding.ValidName(name) {
			t.Errorf("%q makes the name %q", object, name)
		}
	})
}
