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

// Update is the update that the checks judge. A field is empty when nobody
// told. The runner always tells the first four, and the others where it knows
// them; on a laptop the flags --from, --to, --image, --path and --fact tell.
type Update struct {
	// RunID identifies the preflight run; empty on a laptop.
	RunID string
	// From is the version that the cluster runs, e.g. 4.20.5.
	From string
	// To is the version that is asked about, e.g. 4.21.3.
	To string
	// Image is the pull spec by digest of the release image of To.
	Image string
	// Path are the versions on the way, From first and To last. Where it is
	// empty nobody knows whether the update goes through other versions. At
	// most 32 versions.
	Path []string
	// Facts are what the runner knows about the target, by name. Which names
	// there are depends on the runner, so a check must do without: skip or
	// return an error where it cannot. At most 256 facts, 64 KiB in all.
	Facts map[string]string
}

// clone keeps what one check does to the update from the others.
func (u Update) clone() Update {
	u.Path, u.Facts = slices.Clone(u.Path), maps.Clone(u.Facts)
	return u
}

// Limits of what is told about an update.
const (
	maxPath       = 32
	maxFacts      = 256
	maxFactsBytes = 64 << 10
)

// parsePath reads versions with commas between them. No text is no path.
func parsePath(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	path := strings.SplitN(text, ",", maxPath+1)
	if len(path) > maxPath {
		return nil, fmt.Errorf("more than %d versions", maxPath)
	}
	version := regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+-]{0,127}$`)
	for _, v := range path {
		if !version.MatchString(v) {
			return nil, fmt.Errorf("version %.128q: want versions like 4.21.3, with commas between them", v)
		}
	}
	return path, nil
}

// parseFacts reads a JSON object of strings. No text is no facts. A name that
// is there twice is an error: the runner and the check might read another one.
func parseFacts(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // No facts are no error.
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
			return nil, fmt.Errorf("fact %.128q is there twice", name)
		}
		if len(facts) == maxFacts {
			return nil, fmt.Errorf("more than %d facts", maxFacts)
		}
		facts[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, errors.New("want a JSON object of strings, and it does not end")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one JSON object of strings, and there is more behind it")
	}
	return facts, nil
}

func parseFact(decoder *json.Decoder) (name, value string, err error) {
	token, err := decoder.Token()
	if err != nil {
		return "", "", errors.New("want a JSON object of strings, and it is not JSON")
	}
	name, _ = token.(string)
	token, err = decoder.Token()
	if err != nil {
		return "", "", fmt.Errorf("fact %.128q: not JSON", name)
	}
	value, ok := token.(string)
	if name == "" || !ok {
		return "", "", fmt.Errorf("fact %.128q: want a name, and a string as its value", name)
	}
	return name, value, nil
}
