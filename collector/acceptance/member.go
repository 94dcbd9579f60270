package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// clusters are the clusters of an entry: a list of IDs, or an object with IDs, names and labels by
// which a fleet knows its clusters. A cluster must meet all that are given.
type clusters struct {
	IDs         []string          `json:"ids"`
	Names       []string          `json:"names"`
	MatchLabels map[string]string `json:"matchLabels"`
}

// readClusters decodes and checks the clusters of an entry; none means all.
func readClusters(text json.RawMessage) (clusters, error) {
	var c clusters
	switch {
	case len(text) == 0 || string(text) == "null":
		return c, nil
	case text[0] != '{':
		if err := strict(text, &c.IDs); err != nil {
			return c, fmt.Errorf("clusters: %w", err)
		}
		return c, c.check()
	}
	if err := strict(text, &c); err != nil {
		return c, fmt.Errorf("clusters: %w", err)
	}
	if len(c.IDs)+len(c.Names)+len(c.MatchLabels) == 0 {
		return c, errors.New("clusters has neither ids nor names nor matchLabels: leave it out for all clusters")
	}
	return c, c.check()
}

// check returns an error for a name or a key that is empty: it would match no cluster.
func (c *clusters) check() error {
	blank := func(text string) bool { return strings.TrimSpace(text) == "" }
	switch {
	case slices.ContainsFunc(c.IDs, blank):
		return errors.New("the entry has an empty cluster ID")
	case slices.ContainsFunc(c.Names, blank):
		return errors.New("the entry has an empty name of a cluster")
	case slices.ContainsFunc(slices.Collect(maps.Keys(c.MatchLabels)), blank):
		return errors.New("the entry has an empty key in matchLabels")
	}
	return nil
}

// named reports whether names or labels limit the acceptance, which only a fleet knows.
func (a Acceptance) named() bool { return len(a.Names)+len(a.Labels) > 0 }

// CheckSingle returns an error for an acceptance that is limited to clusters by name or label, where
// one cluster is judged, which has neither.
func CheckSingle(all []Acceptance) error {
	if at := slices.IndexFunc(all, Acceptance.named); at >= 0 {
		return fmt.Errorf("%s is limited to clusters by name or label, which only \"fleet\" knows: limit it by cluster IDs, or leave it out", all[at])
	}
	return nil
}

// For are the acceptances for the cluster that a fleet knows by this name and these labels.
func For(all []Acceptance, name string, labels map[string]string) []Acceptance {
	var kept []Acceptance
	for _, each := range all {
		if len(each.Names) > 0 && !slices.Contains(each.Names, name) {
			continue
		}
		met := true
		for key, value := range each.Labels {
			found, ok := labels[key]
			met = met && ok && found == value
		}
		if met {
			kept = append(kept, each)
		}
	}
	return kept
}

// apart reports whether no cluster of a fleet is named or labeled as both require.
func (a Acceptance) apart(b Acceptance) bool {
	if len(a.Names) > 0 && len(b.Names) > 0 && !slices.ContainsFunc(a.Names, func(name string) bool { return slices.Contains(b.Names, name) }) {
		return true
	}
	for key, value := range a.Labels {
		if other, ok := b.Labels[key]; ok && other != value {
			return true
		}
	}
	return false
}

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
