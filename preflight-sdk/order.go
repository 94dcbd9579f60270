package preflight

import (
	"fmt"
	"slices"
	"strings"
)

// blocked is the ending of a check that may not be asked, since one that it
// comes after failed or could not tell. earlier are the findings so far.
func blocked(c Check, earlier []Finding) ending {
	for _, f := range earlier {
		if severity(f.Outcome) < severity(Unknown) || !slices.Contains(c.After, f.Name) {
			continue
		}
		how := "could not tell"
		if f.Outcome == Fail {
			how = "failed"
		}
		return ending{
			reason: reasonPrerequisite,
			text:   fmt.Sprintf("%s was not started: it comes after %s, which %s", c.Name, f.Name, how),
		}
	}
	return ending{}
}

// misplaced names what is wrong with the order of the checks.
func misplaced(checks []Check) []string {
	var wrong []string
	earlier := map[string]bool{}
	for _, c := range checks {
		for _, name := range c.After {
			if !earlier[name] {
				wrong = append(wrong, fmt.Sprintf("check %q comes after %q, which is not declared before it", c.Name, name))
			}
		}
		earlier[c.Name] = true
	}
	return wrong
}

// choose gives the checks that --run and --skip leave, in the order of their
// declaration. With a check --run chooses those that it comes after: without
// them it might pass for the wrong reason.
func (s settings) choose(checks []Check) ([]Check, error) {
	run, skip := names(s.run), names(s.skip)
	var have []string
	for _, c := range checks {
		have = append(have, c.Name)
	}
	for _, name := range slices.Concat(run, skip) {
		if !slices.Contains(have, name) {
			return nil, fmt.Errorf("no check %q: there are %s", name, strings.Join(have, ", "))
		}
	}
	run = withEarlier(run, checks)

	var chosen []Check
	for _, c := range checks {
		if len(run) > 0 && !slices.Contains(run, c.Name) || slices.Contains(skip, c.Name) {
			continue
		}
		if i := slices.IndexFunc(c.After, func(name string) bool { return slices.Contains(skip, name) }); i >= 0 {
			return nil, fmt.Errorf("check %q comes after %q: --skip both or none", c.Name, c.After[i])
		}
		chosen = append(chosen, c)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--run and --skip leave no check")
	}
	return chosen, nil
}

// withEarlier adds those that the named checks come after. It goes backwards,
// since they are declared before.
func withEarlier(named []string, checks []Check) []string {
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
