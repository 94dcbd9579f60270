package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

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
