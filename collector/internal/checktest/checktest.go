// Package checktest answers: what does a built-in check report of a cluster in a
// given state? The cluster is a real API server in which the test creates that
// state.
package checktest

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Result has the parts of a finding that tables compare.
type Result struct {
	Outcome preflight.Outcome
	Reason  string
}

// Results are the outcomes and reasons of findings, by name.
func Results(findings []finding.Finding) map[string]Result {
	results := map[string]Result{}
	for _, f := range findings {
		results[f.Name] = Result{f.Outcome, f.Reason}
	}
	return results
}

// Messages are the messages of findings, each on a line of its own.
func Messages(findings []finding.Finding) string {
	var text strings.Builder
	for _, f := range findings {
		text.WriteString(f.Message + "\n")
	}
	return text.String()
}

// Remedies are the remedies of findings, with the commands and the type and value of
// every other action, each on a line of its own.
func Remedies(findings []finding.Finding) string {
	var text strings.Builder
	for _, f := range findings {
		text.WriteString(f.Remediation + "\n")
		for _, action := range f.Actions {
			text.WriteString(strings.TrimSpace(string(action.Type)+" "+action.Value+action.Command) + "\n")
		}
	}
	return text.String()
}

// Update is the update from one version to another.
func Update(t *testing.T, from, to string) update.Update {
	t.Helper()
	parsed, err := update.Parse(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// Run runs a check on one update as a preflight does: an error of the check is the
// Unknown finding that the administrator reads. It fails the test for a finding
// that does not follow the rules of [verify], and for a request that the check does
// not declare.
func Run(t *testing.T, c check.Check, view View, u update.Update) []finding.Finding {
	t.Helper()
	return RunAt(t, c, view, check.Subject{Update: u, Now: time.Now()})
}

// RunAt is Run for a subject with its own time; its cluster is the view. The check then runs on
// archives of the cluster, too: it must not report anything else.
func RunAt(t *testing.T, c check.Check, view View, subject check.Subject) []finding.Finding {
	t.Helper()
	findings := Collect(t, []check.Check{c}, view, subject)
	view.requests.undeclared(t, c)
	archived(t, c, view, subject, findings)
	return findings
}

// Collect runs checks on a subject, whose cluster is the view, side by side. It
// does not compare requests with declarations.
func Collect(t *testing.T, checks []check.Check, view View, subject check.Subject) []finding.Finding {
	t.Helper()
	subject.Cluster = view.Cluster
	findings := collector.Collect(t.Context(), collector.Bind(subject, checks), func(collector.Source, []finding.Finding) {}).Findings
	for _, f := range findings {
		verify(t, f)
	}
	return findings
}

var (
	// ownCommand is a command of this program, which only the program that shows a finding knows.
	ownCommand = regexp.MustCompile(`\b(oc|kubectl)[ -]preflight\b`)
	// ownFlag is a flag of this program. Commands of other programs have flags of the same names.
	ownFlag = regexp.MustCompile(`--(accept|accept-file|since|force|prometheus|timeout|external-dependency)\b`)
)

// startCommand matches a command that requests an update.
var startCommand = regexp.MustCompile(`adm upgrade [^\n]*--to\b[^\n]*`)

// verify fails the test for a finding without a reason or a message, one that
// blocks without a remedy, a remedy that is no sentence, a command that starts an update,
// and a text with a part of this program's own command line.
func verify(t *testing.T, f finding.Finding) {
	t.Helper()
	if f.Message == "" || f.Reason == "" {
		t.Errorf("%s is %s without a message or a reason", f.Name, f.Outcome)
	}
	if f.Blocks && f.Bypass == nil && f.Remediation == "" {
		t.Errorf("%s blocks without a remedy", f.Name)
	}
	if f.Remediation != "" && (strings.ToUpper(f.Remediation[:1]) != f.Remediation[:1] || !strings.HasSuffix(f.Remediation, ".")) {
		t.Errorf("the remedy of %s is no sentence: %q", f.Name, f.Remediation)
	}
	if found := ownFlag.FindString(f.Message + " " + f.Remediation); found != "" {
		t.Errorf("a text of %s has %q; a finding names such a step by an action", f.Name, found)
	}
	texts := []string{f.Message, f.Remediation}
	for _, action := range f.Actions {
		texts = append(texts, action.Command)
	}
	if found := startCommand.FindString(strings.Join(texts, "\n")); found != "" {
		t.Errorf("a text or a command of %s starts an update: %q; only a verdict that permits it has such a step", f.Name, found)
	}
	if found := ownCommand.FindString(strings.Join(texts, " ")); found != "" {
		t.Errorf("a text or a command of %s has %q; a finding names such a step by an action", f.Name, found)
	}
}
