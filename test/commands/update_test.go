package commands_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/program"
)

// call runs oc-preflight, which must end with this exit code.
func (e *environment) call(code int, args ...string) program.Result {
	e.t.Helper()
	got := program.Call(e.t, args...)
	if got.Code != code {
		e.t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got.Code, code, got.Stderr, got.Stdout)
	}
	return got
}

// run runs a preflight, and returns its report.
func (e *environment) run(code int, args ...string) updateReport {
	e.t.Helper()
	var parsed report.Report
	got := e.read(&parsed, append([]string{"run"}, args...))
	result := updateReport{t: e.t, verdict: parsed.Verdict, cvo: parsed.CVO, findings: parsed.Findings}
	for _, action := range parsed.Actions {
		if action.Type == finding.ActionStart {
			result.start += action.Command
		}
	}
	if (result.start != "") != parsed.Permits() {
		e.t.Errorf("%s: the report permits the update: %t, and starts it by %q", strings.Join(args, " "), parsed.Permits(), result.start)
	}
	return result.expectExitCode(code, got, args)
}

// evaluate runs "targets" for one target, which does not read its release.
func (e *environment) evaluate(code int, to string, args ...string) updateReport {
	e.t.Helper()
	var parsed report.Targets
	got := e.read(&parsed, append([]string{"targets", "--to", to}, args...))
	if len(parsed.Targets) != 1 {
		e.t.Fatalf("%d targets, want 1: %+v", len(parsed.Targets), parsed.Targets)
	}
	result := updateReport{t: e.t, verdict: parsed.Targets[0].Verdict, cvo: parsed.Targets[0].CVO}
	for _, f := range parsed.Findings {
		result.findings = append(result.findings, f.Finding)
	}
	return result.expectExitCode(code, got, append(args, "--to", to))
}

// read runs oc-preflight with JSON output, and decodes it.
func (e *environment) read(into any, args []string) program.Result {
	e.t.Helper()
	if e.monitoring != "" {
		args = append(args, "--prometheus", e.monitoring)
	}
	got := program.Call(e.t, append(args, "-o", "json")...)
	for line := range strings.Lines(got.Stdout) {
		if strings.Contains(line, `"reason": "MultipleReasons"`) {
			e.t.Errorf("%s reports MultipleReasons in place of the reasons: %s", strings.Join(args, " "), line)
		}
	}
	if err := json.Unmarshal([]byte(got.Stdout), into); err != nil {
		e.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, got.Stdout, got.Stderr)
	}
	return got
}

// updateReport is the result of the program for one update.
type updateReport struct {
	t        testing.TB
	verdict  verdict.Verdict
	cvo      report.CVO
	findings []finding.Finding
	// start is the command that starts the update; empty for none.
	start string
}

// expectStart expects this command, but for flags that select the cluster.
func (r updateReport) expectStart(command string) updateReport {
	r.t.Helper()
	if !strings.HasPrefix(r.start, "oc ") || !strings.HasSuffix(r.start, " "+command) {
		r.t.Errorf("the update is started by %q, want %q", r.start, command)
	}
	return r
}

// expectExitCode expects this exit code.
func (r updateReport) expectExitCode(code int, got program.Result, args []string) updateReport {
	r.t.Helper()
	if got.Code != code {
		r.t.Errorf("%s: exit code %d, want %d; open findings:\n%s\n%s", strings.Join(args, " "), got.Code, code, r.openFindings(), got.Stderr)
	}
	return r
}

// causes are the names of the findings that determine the verdict.
type causes struct{ blocking, undecided, accepted []string }

// expectCauses expects exactly these causes.
func (r updateReport) expectCauses(want causes) updateReport {
	r.t.Helper()
	got := causes{r.verdict.Blocking, r.verdict.Undecided, r.verdict.Accepted}
	for _, list := range []*[]string{&want.blocking, &want.undecided, &want.accepted} {
		if *list == nil {
			*list = []string{}
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(causes{})); diff != "" {
		r.t.Errorf("causes of %s (-want +got):\n%s%s", r.verdict.Decision, diff, r.openFindings())
	}
	return r
}

// openFindings returns the open findings, for a failure message.
func (r updateReport) openFindings() string {
	var lines []string
	for _, f := range r.findings {
		if f.Open() {
			lines = append(lines, f.Name+" ("+f.Reason+"): "+f.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// expectFinding expects a finding with this name, outcome and reason whose texts contain these
// words.
func (r updateReport) expectFinding(name string, outcome preflight.Outcome, reason string, words ...string) updateReport {
	r.t.Helper()
	for _, f := range r.findings {
		if f.Name != name || f.Outcome != outcome || f.Reason != reason {
			continue
		}
		text := f.Message + "\n" + f.Remediation + "\n" + f.URL
		for _, action := range f.Actions {
			text += "\n" + action.Command
		}
		missing := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.Contains(text, word) })
		if len(missing) > 0 {
			r.t.Errorf("%s does not contain %q:\n%s", name, missing, text)
		}
		return r
	}
	var have []string
	for _, f := range r.findings {
		have = append(have, f.Name+" "+string(f.Outcome)+" "+f.Reason)
	}
	r.t.Errorf("no finding %s %s %s among\n%s", name, outcome, reason, strings.Join(have, "\n"))
	return r
}

// expectNoFinding expects that no finding has this name.
func (r updateReport) expectNoFinding(name string) updateReport {
	r.t.Helper()
	for _, f := range r.findings {
		if f.Name == name {
			r.t.Errorf("%s is reported: %s (%s): %s", name, f.Outcome, f.Reason, f.Message)
		}
	}
	return r
}

// expectCVOAccepts expects that CVO would accept the update.
func (r updateReport) expectCVOAccepts() updateReport {
	r.t.Helper()
	if r.cvo.Accepts == nil || !*r.cvo.Accepts || r.cvo.Reason != "PayloadLoaded" {
		r.t.Errorf("cvo: %s: %s; want it accepted", r.cvo.Reason, r.cvo.Message)
	}
	return r
}

// expectCVORejects expects that CVO would reject the update with this reason and a message that
// contains these words.
func (r updateReport) expectCVORejects(reason, words string) updateReport {
	r.t.Helper()
	if r.cvo.Accepts == nil || *r.cvo.Accepts || r.cvo.Reason != reason || !strings.Contains(r.cvo.Message, words) {
		r.t.Errorf("cvo: %s: %s; want it rejected with %s: %s", r.cvo.Reason, r.cvo.Message, reason, words)
	}
	return r
}
