package narrative_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The exit codes of the program.
const (
	ready     = 0
	failed    = 1
	badInput  = 2
	blocked   = 3
	undecided = 4
)

// ended is what a program left.
type ended struct {
	code           int
	stdout, stderr string
}

// command is oc-preflight on the cluster of the scene.
func (s *scene) command(args ...string) *exec.Cmd {
	s.t.Helper()
	path, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	command := exec.CommandContext(s.t.Context(), path, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	return command
}

// call runs oc-preflight to its end, and expects that exit code.
func (s *scene) call(code int, args ...string) ended {
	s.t.Helper()
	got := s.end(args...)
	if got.code != code {
		s.t.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got.code, code, got.stderr, got.stdout)
	}
	return got
}

// end runs oc-preflight to its end.
func (s *scene) end(args ...string) ended {
	s.t.Helper()
	command := s.command(args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return ended{code: command.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// run runs a whole preflight, and reads its report.
func (s *scene) run(code int, args ...string) decided {
	s.t.Helper()
	var made report.Report
	got := s.read(&made, append([]string{"run"}, args...))
	said := decided{t: s.t, verdict: made.Verdict, cvo: made.CVO, findings: made.Findings}
	return said.ended(code, got, args)
}

// explain asks for one target only, without reading its release.
func (s *scene) explain(code int, to string, args ...string) decided {
	s.t.Helper()
	var made report.Targets
	got := s.read(&made, append([]string{"targets", "--to", to}, args...))
	if len(made.Targets) != 1 {
		s.t.Fatalf("%d targets, want one: %+v", len(made.Targets), made.Targets)
	}
	said := decided{t: s.t, verdict: made.Targets[0].Verdict, cvo: made.Targets[0].CVO}
	for _, f := range made.Findings {
		said.findings = append(said.findings, f.Finding)
	}
	return said.ended(code, got, append(args, "--to", to))
}

// read runs oc-preflight, and reads what it writes.
func (s *scene) read(into any, args []string) ended {
	s.t.Helper()
	if s.monitoring != "" {
		args = append(args, "--prometheus", s.monitoring)
	}
	got := s.end(append(args, "-o", "json")...)
	for line := range strings.Lines(got.stdout) {
		if strings.Contains(line, `"reason": "MultipleReasons"`) {
			s.t.Errorf("%s says MultipleReasons, and not which: %s", strings.Join(args, " "), line)
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), into); err != nil {
		s.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, got.stdout, got.stderr)
	}
	return got
}

// decided is the report of the program on one update.
type decided struct {
	t        testing.TB
	verdict  verdict.Verdict
	cvo      report.CVO
	findings []finding.Finding
}

// ended expects that exit code.
func (o decided) ended(code int, got ended, args []string) decided {
	o.t.Helper()
	if got.code != code {
		o.t.Errorf("%s: exit code %d, want %d, because of\n%s\n%s", strings.Join(args, " "), got.code, code, o.open(), got.stderr)
	}
	return o
}

// names are the findings that made the verdict.
type names struct{ blocking, undecided, accepted []string }

// because expects exactly these causes.
func (o decided) because(want names) decided {
	o.t.Helper()
	got := names{o.verdict.Blocking, o.verdict.Undecided, o.verdict.Accepted}
	for _, list := range []*[]string{&want.blocking, &want.undecided, &want.accepted} {
		if *list == nil {
			*list = []string{}
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(names{})); diff != "" {
		o.t.Errorf("causes of %s (-want +got):\n%s%s", o.verdict.Decision, diff, o.open())
	}
	return o
}

// open are the findings that count, for who looks into a failure.
func (o decided) open() string {
	var lines []string
	for _, f := range o.findings {
		if f.Open() {
			lines = append(lines, f.Name+" ("+f.Reason+"): "+f.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// finds expects a finding of that name, outcome and reason whose texts have
// these words in them.
func (o decided) finds(name string, outcome preflight.Outcome, reason string, words ...string) decided {
	o.t.Helper()
	for _, f := range o.findings {
		if f.Name != name || f.Outcome != outcome || f.Reason != reason {
			continue
		}
		text := f.Message + "\n" + f.Remediation + "\n" + f.URL
		for _, action := range f.Actions {
			text += "\n" + action.Command
		}
		missing := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.Contains(text, word) })
		if len(missing) > 0 {
			o.t.Errorf("%s does not say %q:\n%s", name, missing, text)
		}
		return o
	}
	var have []string
	for _, f := range o.findings {
		have = append(have, f.Name+" "+string(f.Outcome)+" "+f.Reason)
	}
	o.t.Errorf("no finding %s %s %s among\n%s", name, outcome, reason, strings.Join(have, "\n"))
	return o
}

// lacks expects no finding of that name.
func (o decided) lacks(name string) decided {
	o.t.Helper()
	for _, f := range o.findings {
		if f.Name == name {
			o.t.Errorf("%s is reported: %s (%s): %s", name, f.Outcome, f.Reason, f.Message)
		}
	}
	return o
}

// cvoTakes expects that this cluster's CVO would accept the same request.
func (o decided) cvoTakes() decided {
	o.t.Helper()
	if o.cvo.Accepts == nil || !*o.cvo.Accepts || o.cvo.Reason != "PayloadLoaded" {
		o.t.Errorf("cvo: %s: %s; want that it takes the update", o.cvo.Reason, o.cvo.Message)
	}
	return o
}

// cvoRefuses expects that it would not, and why.
func (o decided) cvoRefuses(reason, words string) decided {
	o.t.Helper()
	if o.cvo.Accepts == nil || *o.cvo.Accepts || o.cvo.Reason != reason || !strings.Contains(o.cvo.Message, words) {
		o.t.Errorf("cvo: %s: %s; want that it refuses the update: %s: %s", o.cvo.Reason, o.cvo.Message, reason, words)
	}
	return o
}
