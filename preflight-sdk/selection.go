package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// selectChecks returns the checks that --run and --skip select, in the order of
// declaration. --run also selects the prerequisites of a check: without them it
// might pass for the wrong reason.
func (s settings) selectChecks(checks []Check) ([]Check, error) {
	run, skip := names(s.run), names(s.skip)
	var declared []string
	for _, c := range checks {
		declared = append(declared, c.Name)
	}
	for _, name := range slices.Concat(run, skip) {
		if !slices.Contains(declared, name) {
			return nil, fmt.Errorf("unknown check %q: want one of %s", name, strings.Join(declared, ", "))
		}
	}
	run = withPrerequisites(run, checks)

	var selected []Check
	for _, c := range checks {
		if len(run) > 0 && !slices.Contains(run, c.Name) || slices.Contains(skip, c.Name) {
			continue
		}
		if i := slices.IndexFunc(c.After, func(name string) bool { return slices.Contains(skip, name) }); i >= 0 {
			return nil, fmt.Errorf("check %q has the prerequisite %q: skip both or neither", c.Name, c.After[i])
		}
		selected = append(selected, c)
	}
	if len(selected) == 0 {
		return nil, errors.New("--run and --skip select no check")
	}
	return selected, nil
}

// withPrerequisites adds the prerequisites of the named checks. It iterates
// backward because prerequisites are declared earlier.
func withPrerequisites(named []string, checks []Check) []string {
	for _, c := range slices.Backward(checks) {
		if slices.Contains(named, c.Name) {
			named = append(named, c.After...)
		}
	}
	return named
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
