package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Update is the update that is checked. A field is empty if its value is unknown.
// The runner always sets the first four fields, and the others if it knows them.
// Outside of a Job the flags --from, --to, --image, --path and --fact set them.
type Update struct {
	// RunID identifies the preflight run; empty outside of a Job.
	RunID string
	// From is the current version of the cluster, e.g. 4.20.5.
	From string
	// To is the target version, e.g. 4.21.3.
	To string
	// Image is the pull spec of the target's release image, by digest.
	Image string
	// Path contains the versions that the update goes through, From first and To
	// last. It is empty if the path is unknown. At most 32 versions.
	Path []string
	// Facts are what the runner knows about the target, by name. The names depend
	// on the runner, so a check must not rely on a fact: skip the check or return an
	// error if it is missing. At most 256 facts and 64 KiB.
	Facts map[string]string
}

// clone returns a deep copy, so that checks cannot change each other's update.
func (u Update) clone() Update {
	u.Path, u.Facts = slices.Clone(u.Path), maps.Clone(u.Facts)
	return u
}

// Limits of the values that describe an update.
const (
	maxPath       = 32
	maxFacts      = 256
	maxFactsBytes = 64 << 10
)

var versionPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,127}$`)

// parsePath parses versions separated by commas. An empty text is an empty path.
func parsePath(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	path := strings.SplitN(text, ",", maxPath+1)
	if len(path) > maxPath {
		return nil, fmt.Errorf("more than %d versions", maxPath)
	}
	for _, v := range path {
		if !versionPattern.MatchString(v) {
			return nil, fmt.Errorf("version %.128q: want versions like 4.21.3, separated by commas", v)
		}
	}
	return path, nil
}

// parseFacts parses a JSON object of strings. An empty text contains no facts. A
// duplicate name is an error, because readers differ in which value they use.
func parseFacts(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // Facts are optional.
	}
	if len(text) > maxFactsBytes {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(text), maxFactsBytes)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("want a JSON object of strings")
	}
	facts := map[string]string{}
	for decoder.More() {
		name, value, err := parseFact(decoder)
		if err != nil {
			return nil, err
		}
		if _, taken := facts[name]; taken {
			return nil, fmt.Errorf("duplicate fact %.128q", name)
		}
		if len(facts) == maxFacts {
			return nil, fmt.Errorf("more than %d facts", maxFacts)
		}
		facts[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("want a JSON object of strings: unexpected end")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one JSON object of strings: unexpected data after it")
	}
	return facts, nil
}

func parseFact(decoder *json.Decoder) (name, value string, err error) {
	token, err := decoder.Token()
	if err != nil {
		return "", "", errors.New("want a JSON object of strings: invalid JSON")
	}
	name, _ = token.(string)
	token, err = decoder.Token()
	if err != nil {
		return "", "", fmt.Errorf("fact %.128q: invalid JSON", name)
	}
	value, ok := token.(string)
	if name == "" || !ok {
		return "", "", fmt.Errorf("fact %.128q: want a non-empty name and a string value", name)
	}
	return name, value, nil
}
