package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/words"
)

const (
	// apiVersion and kind are those of every acceptance file.
	apiVersion = "preflight.openshift.io/v1alpha1"
	kind       = "AcceptedRisks"
	// maxFile bounds a file, in bytes.
	maxFile = 1 << 20
	// maxError bounds an error of a parser, in bytes.
	maxError = 4 << 10
	// maxEntries bounds a file as ClusterVersion bounds acceptRisks.
	maxEntries = 1000
)

// document is the acceptance file.
type document struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Risks      []json.RawMessage `json:"risks"`
}

// acceptedRisk is one entry of the file.
type acceptedRisk struct {
	Risk     string   `json:"risk"`
	Reason   string   `json:"reason"`
	Owner    string   `json:"owner"`
	Expires  string   `json:"expires"`
	Versions string   `json:"versions"`
	Clusters []string `json:"clusters"`
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
// 4.19.0. A risk may have several entries only for different targets or clusters. The
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
		return nil, fmt.Errorf("the file has more than %d bytes", maxFile)
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
			return nil, fmt.Errorf("entry %d (%q): entry %d accepts the same risk for some of the same targets and clusters; remove one of the two",
				i+1, accepted.Risk, other+1)
		}
		acceptances = append(acceptances, accepted)
	}
	return acceptances, nil
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
			return errors.New("the file has more than one YAML document")
		}
		started = started || (len(text) > 0 && text[0] != '#' && text[0] != '%')
	}
	var root yaml.Node
	if err := yaml.Unmarshal(content, &root); err != nil {
		return oneLine(err)
	}
	if line := alias(&root); line > 0 {
		return fmt.Errorf("line %d has a YAML alias: write it out", line)
	}
	return nil
}

// alias returns the line of the first alias, or 0.
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

// oneLine is an error of a parser on one line.
func oneLine(err error) error { return errors.New(words.Line(err.Error(), maxError)) }

// parse parses one entry. Beside an error it returns the risk, as far as it was
// decoded.
func parse(raw json.RawMessage) (Acceptance, error) {
	var entry acceptedRisk
	err := strict(raw, &entry)
	accepted := Acceptance{
		Risk: entry.Risk, Reason: strings.TrimSpace(entry.Reason), Owner: strings.TrimSpace(entry.Owner),
		Expires: entry.Expires, Versions: entry.Versions, Clusters: entry.Clusters,
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
	if slices.ContainsFunc(entry.Clusters, func(id string) bool { return strings.TrimSpace(id) == "" }) {
		return accepted, errors.New("the entry has an empty cluster ID")
	}
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
