package preflight

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Check is one question about the cluster, asked before it is updated. Declare
// it as a struct literal and hand it to [Main].
type Check struct {
	// Name is what an administrator types to accept the check's finding, so
	// it never changes once released. CamelCase, at most 63 characters:
	// ^[A-Z][A-Za-z0-9]*$. Required.
	Name string
	// Description says in one sentence what holds when the check passes. It
	// is shown by --list and is the message of a pass.
	Description string
	// URL leads to documentation for the administrator who reads the finding.
	URL string
	// Timeout bounds Run; 0 means until the deadline of the run.
	Timeout time.Duration
	// Advisory makes a Fail of this check count as Warn: it never blocks.
	Advisory bool
	// After names checks, declared before this one, without which its answer
	// would mean nothing. Where one of them failed or could not tell, this one
	// is not asked, and is Unknown with reason PrerequisiteFailed. One that
	// warned, was skipped, or is advisory and failed, is no obstacle.
	After []string
	// Rules are what the check reads from the API server, and the whole of
	// what its service account may: see [Manifest].
	Rules []Rule
	// Run looks and says what it found through t. A nil return without a
	// word is a pass; an error means that it could not tell, and is reported
	// as Unknown with the text of the error. Run is called once. It should
	// return soon after ctx is done, and is left behind when it does not.
	// Required.
	Run func(ctx context.Context, t *T) error
}

// The longest name of a check, and the longest reason, in bytes.
const maxWord = 63

// camelCase reports whether word can be the name of a check or a reason.
func camelCase(word string) bool {
	return len(word) <= maxWord && regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`).MatchString(word)
}

// validate names everything that is wrong with the declarations, on one line.
func validate(checks []Check) error {
	if len(checks) == 0 {
		return errors.New("no checks: call preflight.Main with at least one")
	}

	var wrong []string
	seen := map[string]bool{}
	for i, c := range checks {
		switch {
		case c.Name == "":
			wrong = append(wrong, fmt.Sprintf("check %d has no name", i+1))
		case seen[c.Name]:
			wrong = append(wrong, fmt.Sprintf("check name %q is taken by an earlier check", c.Name))
		}
		seen[c.Name] = true
		wrong = append(wrong, c.faults()...)
	}
	wrong = append(wrong, misplaced(checks)...)
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// faults says what is wrong with the declaration by itself.
func (c Check) faults() []string {
	var faults []string
	if c.Name != "" && !camelCase(c.Name) {
		faults = append(faults, fmt.Sprintf("check name %q is not CamelCase of at most %d letters and digits", c.Name, maxWord))
	}
	if c.Run == nil {
		faults = append(faults, fmt.Sprintf("check %q has no Run function", c.Name))
	}
	if c.Timeout < 0 {
		faults = append(faults, fmt.Sprintf("check %q has the negative timeout %s", c.Name, c.Timeout))
	}
	for i, rule := range c.Rules {
		for _, fault := range rule.faults() {
			faults = append(faults, fmt.Sprintf("rule %d of check %q: %s", i+1, c.Name, fault))
		}
	}
	return faults
}
