package source_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/update-preflight/cmd/oc-preflight/explain/source"
)

const documented = `package gate

// ReasonClosed is reported when the gate
// is closed.
//
// Cause: it was not opened.
//
// Remedy: open it.
const ReasonClosed finding.Reason = "Closed"

// nameDoor names the findings about doors.
const nameDoor = "Door"

// Gate is the gate of the castle.
func Gate() check.Check { return check.Check{Name: castle} }

const castle = "Castle"
`

func TestParse(t *testing.T) {
	want := []source.Entry{
		{Kind: source.KindFinding, Name: "Castle", Package: "gate", Meaning: "The gate of the castle."},
		{Kind: source.KindReason, Name: "Closed", Package: "gate", Meaning: "Reported when the gate is closed.", Cause: "It was not opened.", Remedy: "Open it."},
		{Kind: source.KindFinding, Name: "Door", Package: "gate", Meaning: "The findings about doors."},
	}
	got, violations := parse(t, documented)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(source.Entry{})); diff != "" || len(violations) > 0 {
		t.Errorf("violations %q, -want +got\n%s", violations, diff)
	}
}

func TestViolations(t *testing.T) {
	for name, tc := range map[string]struct{ reason, code, want string }{
		"NoComment":     {reason: "explain would have no text", code: `const ReasonX Reason = "X"`, want: "the comment of ReasonX does not have the form of a reason"},
		"NoRemedy":      {reason: "the reader must learn what to do", code: "// ReasonX is reported when x.\n//\n// Cause: y.\nconst ReasonX Reason = \"X\"", want: "the comment of ReasonX"},
		"LiteralReason": {reason: "it would have no entry", code: `var f = finding.Fail("X", "message")`, want: `the reason "X" is not a constant`},
		"LiteralNew":    {reason: "as above", code: `var f = finding.New(outcome, "X", "message")`, want: `the reason "X" is not a constant`},
		"LiteralName":   {reason: "as above", code: `var f = finding.Fail(ReasonX, "message").Named("Door")`, want: `the name "Door" is not a constant`},
		"Computed":      {reason: "its values cannot be listed", code: `var f = finding.Fail(finding.Reason(kind), "message")`, want: "the reason is computed"},
		"Joined":        {reason: "as above", code: `func f(kind string) Reason { return Reason("Nodes" + kind) }`, want: "the reason is computed"},
		"Concatenated":  {reason: "as above", code: `const ReasonX finding.Reason = "X" + suffix`, want: "the reason ReasonX is computed"},
		"NotUsed":       {reason: "an entry of a reason that is never reported", code: "// reasonX is reported when x.\n//\n// Cause: y.\n//\n// Remedy: z.\nconst reasonX Reason = \"X\"", want: "reasonX is not used"},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations := parse(t, "package gate\n\n"+tc.code+"\n")
			if len(violations) != 1 || !strings.Contains(violations[0], tc.want) {
				t.Errorf("%s: violations %q, want %q", tc.reason, violations, tc.want)
			}
		})
	}
}

// The reason of a condition is documented by the component that reports it.
func TestReasonsOfOthersAreCopied(t *testing.T) {
	const code = "package gate\n\nfunc f() Reason { return cmp.Or(finding.Reason(condition.Reason), finding.Reason(deref(set.Status.ErrorReason)), finding.Reason(\"\")) }\n"
	if _, violations := parse(t, code); len(violations) > 0 {
		t.Errorf("violations %q, want none", violations)
	}
}

// Tests and test data of a package are not part of the product.
func TestTestsAreNotParsed(t *testing.T) {
	root := t.TempDir()
	for path, code := range map[string]string{"gate/gate_test.go": `package gate; const ReasonX Reason = "X"`, "gate/testdata/x.go": "no Go"} {
		write(t, filepath.Join(root, path), code)
	}
	if entries, violations, err := source.Parse(root, "gate"); err != nil || len(entries)+len(violations) > 0 {
		t.Errorf("entries %v, violations %q, error %v; want none", entries, violations, err)
	}
}

func parse(t *testing.T, code string) (entries []source.Entry, violations []string) {
	t.Helper()
	root := t.TempDir()
	write(t, filepath.Join(root, "gate", "gate.go"), code)
	entries, violations, err := source.Parse(root, "gate")
	if err != nil {
		t.Fatal(err)
	}
	return entries, slices.Clip(violations)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
