package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/words"
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
		return c, errors.New("clusters has neither ids nor names nor matchLabels: omit it to include all clusters")
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
		return errors.New("the entry has an empty cluster name")
	case slices.ContainsFunc(slices.Collect(maps.Keys(c.MatchLabels)), blank):
		return errors.New("the entry has an empty key in matchLabels")
	}
	return nil
}

// named reports whether names or labels limit the acceptance, which only a fleet knows.
func (a Acceptance) named() bool { return len(a.Names)+len(a.Labels) > 0 }

// CheckSingle returns an error for an acceptance that is limited to clusters by name or label, because a single
// evaluated cluster has neither.
func CheckSingle(all []Acceptance) error {
	if at := slices.IndexFunc(all, Acceptance.named); at >= 0 {
		return fmt.Errorf("%s is limited to clusters by name or label, which only \"fleet\" knows: limit it by cluster IDs, or omit "+
			"the limit",
			all[at])
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
	if len(a.Names) > 0 && len(b.Names) > 0 &&
		!slices.ContainsFunc(a.Names, func(name string) bool { return slices.Contains(b.Names, name) }) {
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
	// DryRun is the DryRun option of the write: the server validates the change, and stores nothing.
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
			return Change{}, fmt.Errorf("illegal risk %q: to remove a risk, put the dash at the end: %s-", text, name[1:])
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
		return Change{}, fmt.Errorf("requests both to add and to remove these risks: %s", strings.Join(slices.Compact(both), ", "))
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
		return nil, fmt.Errorf("%d accepted risks exceed the limit of ClusterVersion, %d: remove some first, with RISK-", len(wanted),
			maxEntries)
	}
	return wanted, nil
}

// Read parses an acceptance file, YAML or JSON:
//
//	apiVersion: preflight.openshift.io/v1alpha1
//	kind: AcceptedRisks
//	risks:
//	- risk: OldBootImagesPodmanMissingAuthFlag
//	  reason: no node of ours is scaled up from boot images
//	  owner: ann@example.com
//	  expires: 2027-03-31
//	  versions: ">=4.18.0 <4.19.0"
//	  clusters: [1c182977-5663-428d-92a3-3d2bdf3fffb6]
//
// Risk, reason and owner are required. The acceptance expires at the end of the day
// in expires, in UTC, or at the RFC 3339 time there. Versions is a range with the
// version of the target, compared by SemVer precedence: 4.19.0-rc.1 comes before
// 4.19.0. Clusters are IDs, or for a fleet the names and labels by which it knows them:
//
//	clusters: {names: [prod-1, prod-2], matchLabels: {env: production}}
//
// A risk may have several entries only for different targets or clusters. The
// limits are 1 MiB and 1000 risks. Errors name the file, and the entry by its number
// and risk.
func Read(name string, r io.Reader) ([]Acceptance, error) {
	acceptances, err := read(name, r)
	if err != nil {
		return nil, fmt.Errorf("acceptance file %q: %w", name, err)
	}
	return acceptances, nil
}

func read(name string, r io.Reader) ([]Acceptance, error) {
	content, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("the file is larger than %d bytes", maxFile)
	}
	file, err := decode(content)
	if err != nil {
		return nil, err
	}
	acceptances := make([]Acceptance, 0, len(file.Risks))
	for i, raw := range file.Risks {
		accepted, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("entry %d (%q): %w", i+1, accepted.Risk, err)
		}
		accepted.Origin = fmt.Sprintf("%s, entry %d", name, i+1)
		if other := slices.IndexFunc(acceptances, accepted.overlaps); other >= 0 {
			return nil, fmt.Errorf("entry %d (%q): entry %d accepts the same risk for some of the same targets and clusters; remove "+
				"one of them",
				i+1, accepted.Risk, other+1)
		}
		acceptances = append(acceptances, accepted)
	}
	return acceptances, nil
}

// parse parses one entry. Beside an error it returns the risk, as far as it could be decoded.
func parse(raw json.RawMessage) (Acceptance, error) {
	var entry acceptedRisk
	err := strict(raw, &entry)
	accepted := Acceptance{
		Risk: entry.Risk, Reason: strings.TrimSpace(entry.Reason), Owner: strings.TrimSpace(entry.Owner),
		Expires: entry.Expires, Versions: entry.Versions,
	}
	if err != nil {
		return accepted, err
	}
	if err := CheckName(entry.Risk); err != nil {
		return accepted, err
	}
	if accepted.Reason == "" {
		return accepted, errors.New("the entry has no reason: add why the risk is acceptable")
	}
	if accepted.Owner == "" {
		return accepted, errors.New("the entry has no owner: add who accepts the risk")
	}
	members, err := readClusters(entry.Clusters)
	if err != nil {
		return accepted, err
	}
	accepted.Clusters, accepted.Names, accepted.Labels = members.IDs, members.Names, members.MatchLabels
	if accepted.until, err = parseExpiry(entry.Expires); err != nil {
		return accepted, err
	}
	accepted.versions, accepted.landmarks, err = parseVersions(entry.Versions)
	return accepted, err
}

// parseExpiry returns the time at which the acceptance expires; zero for never.
func parseExpiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("expires %q is neither a date like 2027-03-31 nor an RFC 3339 time", text)
	}
	return moment, nil
}

const (
	// apiVersion and kind of an acceptance file.
	apiVersion = "preflight.openshift.io/v1alpha1"
	kind       = "AcceptedRisks"
	// maxFile bounds a file, in bytes.
	maxFile = 1 << 20
	// maxError bounds an error of a parser, in bytes.
	maxError = 4 << 10
	// maxEntries bounds a file as ClusterVersion bounds acceptRisks.
	maxEntries = 1000
)

type document struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Risks      []json.RawMessage `json:"risks"`
}

type acceptedRisk struct {
	Risk     string `json:"risk"`
	Reason   string `json:"reason"`
	Owner    string `json:"owner"`
	Expires  string `json:"expires"`
	Versions string `json:"versions"`
	// Clusters is decoded as clusters.
	Clusters json.RawMessage `json:"clusters"`
}

// decode decodes the file without its entries.
func decode(content []byte) (document, error) {
	if err := checkPlain(content); err != nil {
		return document{}, err
	}
	converted, err := sigsyaml.YAMLToJSONStrict(content)
	if err != nil {
		return document{}, oneLine(err)
	}
	var file document
	if err := strict(converted, &file); err != nil {
		return document{}, err
	}
	if file.APIVersion != apiVersion || file.Kind != kind {
		return document{}, fmt.Errorf("the file has apiVersion %q and kind %q, not %q and %q", file.APIVersion, file.Kind, apiVersion, kind)
	}
	if len(file.Risks) > maxEntries {
		return document{}, fmt.Errorf("the file has %d risks, and %d are the limit", len(file.Risks), maxEntries)
	}
	return file, nil
}

// checkPlain returns an error for several documents, of which the strict parser
// silently drops all but the first, and for aliases, by which a small file can become
// a big one.
func checkPlain(content []byte) error {
	started := false
	for line := range bytes.Lines(content) {
		text := bytes.TrimSpace(line)
		marker := bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("..."))
		if marker && started {
			return errors.New("the file contains more than one YAML document")
		}
		started = started || (len(text) > 0 && text[0] != '#' && text[0] != '%')
	}
	var root yaml.Node
	if err := yaml.Unmarshal(content, &root); err != nil {
		return oneLine(err)
	}
	if line := alias(&root); line > 0 {
		return fmt.Errorf("line %d contains a YAML alias: write the value out", line)
	}
	return nil
}

func alias(node *yaml.Node) int {
	if node.Kind == yaml.AliasNode {
		return node.Line
	}
	for _, inner := range node.Content {
		if line := alias(inner); line > 0 {
			return line
		}
	}
	return 0
}

// strict decodes JSON. Unknown and duplicate fields are errors: an acceptance with a
// misspelled limit would have none.
func strict(data []byte, into any) error {
	unknown, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return oneLine(err)
	}
	if len(unknown) > 0 {
		return oneLine(unknown[0])
	}
	return nil
}

func oneLine(err error) error { return errors.New(words.Line(err.Error(), maxError)) }
