package acceptance

import (
	"fmt"
	"slices"
	"strings"
)

// Change is a change of the risks that ClusterVersion accepts. Without Replace the others stay.
type Change struct {
	// Add and Remove are names of risks; none is in both.
	Add, Remove []string
	// Replace removes all risks that are not in Add.
	Replace bool
	// DryRun is that of the options of the write: the server validates the change, and stores nothing.
	DryRun []string
}

// ParseChange parses RISK[,RISK-...], where a dash at the end removes the risk, as in
// "oc adm upgrade accept". Errors name the invalid risk.
func ParseChange(argument string) (Change, error) {
	var change Change
	for text := range strings.SplitSeq(argument, ",") {
		text = strings.TrimSpace(text)
		name, remove := strings.CutSuffix(text, "-")
		if strings.HasPrefix(text, "-") && CheckName(name[min(1, len(name)):]) == nil {
			return Change{}, fmt.Errorf("illegal risk %q: to remove a risk, write the dash at its end: %s-", text, name[1:])
		}
		if err := CheckName(name); err != nil {
			return Change{}, err
		}
		if remove {
			change.Remove = append(change.Remove, name)
		} else {
			change.Add = append(change.Add, name)
		}
	}
	both := slices.DeleteFunc(slices.Clone(change.Add), func(name string) bool { return !slices.Contains(change.Remove, name) })
	if len(both) > 0 {
		slices.Sort(both)
		return Change{}, fmt.Errorf("requested risks with both Risk and Risk-: %s", strings.Join(slices.Compact(both), ", "))
	}
	return change, nil
}

// apply returns the risks after the change: those that stay keep their order, new ones are appended.
func (c Change) apply(present []string) ([]string, error) {
	wanted := []string{}
	keep := func(name string) {
		if !slices.Contains(c.Remove, name) && !slices.Contains(wanted, name) {
			wanted = append(wanted, name)
		}
	}
	for _, name := range present {
		if !c.Replace || slices.Contains(c.Add, name) {
			keep(name)
		}
	}
	for _, name := range c.Add {
		keep(name)
	}
	if len(wanted) > maxEntries {
		return nil, fmt.Errorf("%d accepted risks are more than the limit of ClusterVersion, %d: remove some first, with RISK-", len(wanted), maxEntries)
	}
	return wanted, nil
}
