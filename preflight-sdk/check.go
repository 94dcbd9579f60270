package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Check is one question about the cluster that is answered before an update.
// Declare it as a struct literal and pass it to [Main].
type Check struct {
	// Name identifies the check. Administrators type it to accept the finding,
	// so it must not change after a release. CamelCase, at most 63 characters:
	// ^[A-Z][A-Za-z0-9]*$. Required.
	Name string
	// Description is one sentence that states what is true when the check
	// passes. It is shown by --list and is the message of a pass.
	Description string
	// URL is the documentation of the check for administrators.
	URL string
	// Timeout limits the duration of Run; 0 means until the deadline of the run.
	Timeout time.Duration
	// Advisory turns a Fail of this check into a Warn, so that it never blocks.
	Advisory bool
	// After names the prerequisites of this check, which must be declared before
	// it. If a prerequisite ends as Fail or Unknown, this check is not run and is
	// Unknown with the reason PrerequisiteFailed. A prerequisite that ends as
	// Warn or Skipped, or fails but is advisory, does not prevent the run.
	After []string
	// Rules are the permissions that the check needs to read from the API
	// server. The service account of the Job has no others: see [Manifest].
	Rules []Rule
	// Run inspects the cluster and reports through t. Returning nil without
	// reporting anything is a pass. An error means that the check was
	// inconclusive; it is reported as Unknown with the text of the error. Run is
	// called once. It must return soon after ctx is done, otherwise it is
	// abandoned. Required.
	Run func(ctx context.Context, t *T) error
}

// validate returns an error that lists every violation in the declarations, on
// one line.
func validate(checks []Check) error {
	if len(checks) == 0 {
		return errors.New("no checks: call preflight.Main with at least one")
	}

	var violations []string
	seen := map[string]bool{}
	for i, c := range checks {
		switch {
		case c.Name == "":
			violations = append(violations, fmt.Sprintf("check %d has no name", i+1))
		case seen[c.Name]:
			violations = append(violations, fmt.Sprintf("duplicate check name %q", c.Name))
		}
		seen[c.Name] = true
		violations = append(violations, c.violations()...)
	}
	violations = append(violations, orderViolations(checks)...)
	if len(violations) > 0 {
		return errors.New(strings.Join(violations, "; "))
	}
	return nil
}

// violations lists what is invalid in this declaration, regardless of the other
// checks.
func (c Check) violations() []string {
	var violations []string
	if c.Name != "" && !isCamelCase(c.Name) {
		violations = append(violations, fmt.Sprintf("check name %q is not CamelCase of at most %d letters and digits", c.Name, maxWord))
	}
	if c.Run == nil {
		violations = append(violations, fmt.Sprintf("check %q has no Run function", c.Name))
	}
	if c.Timeout < 0 {
		violations = append(violations, fmt.Sprintf("check %q has a negative timeout: %s", c.Name, c.Timeout))
	}
	for i, rule := range c.Rules {
		for _, violation := range rule.violations() {
			violations = append(violations, fmt.Sprintf("rule %d of check %q: %s", i+1, c.Name, violation))
		}
	}
	return violations
}

// orderViolations lists the names in After that are not declared earlier.
func orderViolations(checks []Check) []string {
	var violations []string
	earlier := map[string]bool{}
	for _, c := range checks {
		for _, name := range c.After {
			if !earlier[name] {
				violations = append(violations, fmt.Sprintf("check %q has the prerequisite %q, which is not declared before it", c.Name, name))
			}
		}
		earlier[c.Name] = true
	}
	return violations
}
