package documents_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const model = "collector/MODEL.md"

// folded returns the effect and the decision of one finding under a policy.
func folded(f finding.Finding, policy verdict.Policy) string {
	decided, findings := verdict.Fold([]finding.Finding{f}, verdict.Expectation{Checks: 1, Reported: 1}, policy)
	return string(findings[0].Effect) + ": " + string(decided.Decision)
}

// TestEffects writes the effect and the decision of each kind of finding: a row for those that are alike.
func TestEffects(t *testing.T) {
	const name = "Some.Finding"
	made := func(outcome preflight.Outcome, source finding.Source) finding.Finding {
		return finding.Reported(gap.Proven("a test"), outcome, finding.Reason{}, "").Named(name).From(source)
	}
	otherTarget := made(preflight.Fail, finding.SourceGate)
	otherTarget.Blocks = false
	rows := [][]string{{"finding", "as reported", "accepted by name", "forced", "admin gate, acknowledged"}}
	for _, row := range []struct {
		title string
		of    finding.Finding
	}{
		{"Pass", made(preflight.Pass, finding.SourceJob)},
		{"Warn", made(preflight.Warn, finding.SourceJob)},
		{"Skipped", made(preflight.Skipped, finding.SourceJob)},
		{"Fail of a job, risk, health or image", made(preflight.Fail, finding.SourceRisk)},
		{"Unknown of a job, risk, health or image", made(preflight.Unknown, finding.SourceRisk)},
		{"Fail of a gate, signature or payload", made(preflight.Fail, finding.SourceGate)},
		{"Unknown of a gate, signature or payload", made(preflight.Unknown, finding.SourceGate)},
		{"Fail that does not block this target", otherTarget},
		{"an outcome of a later version", made("Deferred", finding.SourceJob)},
	} {
		acknowledged := "-"
		if row.of.Source == finding.SourceGate && row.of.Stops() {
			acknowledged = folded(row.of.Bypassed(finding.Bypass{By: finding.ByAdminAck}), verdict.Policy{})
		}
		cells := []string{
			folded(row.of, verdict.Policy{}),
			folded(row.of, verdict.Policy{Accepted: map[string]string{name: "--accept"}}),
			acknowledged,
		}
		if at := slices.IndexFunc(rows, func(other []string) bool { return slices.Equal(other[1:], cells) }); at >= 0 {
			rows[at][0] += "; " + row.title
			continue
		}
		rows = append(rows, append([]string{row.title}, cells...))
	}
	expectGenerated(t, model, "effects", table(rows...))
}

// TestSources checks the column about acceptance.
func TestSources(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| .* \\| (yes|no) \\|$").FindAllStringSubmatch(read(t, model), -1)
	const sources = 8
	if len(rows) != sources {
		t.Errorf("%s has %d sources, want %d", model, len(rows), sources)
	}
	for _, row := range rows {
		if want := map[bool]string{true: "yes", false: "no"}[finding.Source(row[1]).Acceptable()]; row[2] != want {
			t.Errorf("%s: accepted by name, source %s: %s, want %s", model, row[1], row[2], want)
		}
	}
}

// TestExitCodes compares the table with the help of run.
func TestExitCodes(t *testing.T) {
	run, _, err := program().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	_, codes, _ := strings.Cut(run.Long, "Exit codes: ")
	var want []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \|$`).FindAllStringSubmatch(read(t, model), -1) {
		want = append(want, row[1]+" "+row[2])
	}
	if got, want := strings.Join(strings.Fields(codes), " "), strings.Join(want, ", ")+"."; got != want {
		t.Errorf("the help of run has the exit codes %q, %s has %q", got, model, want)
	}
}
