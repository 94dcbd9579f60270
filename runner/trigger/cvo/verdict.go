package cvo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Namespace and Name identify the ConfigMap with the published verdicts. Its key of a
// release is the digest of its image with "-" for ":", and the value a JSON list of verdict.json
// (package runner/record).
const (
	Namespace = "openshift-config-managed"
	Name      = "update-preflight"
)

// uninstalled is the key that is "true" before an uninstallation deletes the ConfigMap.
const uninstalled = "uninstalled"

// verdict has the fields of verdict.json (package runner/record) that are used; JSON
// spells them with a small first letter. Times are RFC 3339, in UTC.
type verdict struct {
	Digest, Version, Phase, Decision, CompletionTime, ValidUntil, From, Ended string
	Blocking, Undecided, Accepted, Narrowed                                   []string
	Provisional, Forced                                                       bool
}

// target is an update of the cluster.
type target struct {
	// digest identifies the release image, "sha256:" and hex digits; empty where it is
	// unknown. from is the version that the cluster runs.
	version, digest, from string
}

// newest decodes a list of verdict.json. It returns the complete run of the target that
// ended last, nil without one, and whether another run is in progress. Of a path only its
// first update counts.
func (t target) newest(entry string) (newest *verdict, running bool, err error) {
	if entry == "" || t.digest == "" {
		return nil, false, nil
	}
	var all []verdict
	if err := json.Unmarshal([]byte(entry), &all); err != nil { //nolint:musttag // fewer lines for CVO to link
		return nil, false, fmt.Errorf("the published verdicts on %s cannot be decoded: %w", t.digest, err)
	}
	for _, found := range all {
		switch {
		case found.Digest != t.digest || found.Version != t.version || found.Provisional:
		case found.Phase == "Running":
			running = true
		case found.Phase == "Complete" && (newest == nil || found.isAfter(*newest)):
			newest = &found
		}
	}
	return newest, running, nil
}

// isAfter reports whether the run ended after another; of two that ended in the same
// second, one that is not Ready is the later one.
func (v verdict) isAfter(other verdict) bool {
	return v.CompletionTime > other.CompletionTime || v.CompletionTime == other.CompletionTime && other.Decision == "Ready"
}

// isValid reports whether the verdict holds: it is about an update from the present
// version, and has not ended.
func (v verdict) isValid(from string) bool {
	return v.From == from && time.Now().UTC().Format(time.RFC3339) < v.ValidUntil
}

// since is when the verdict was given, or when it ended; zero where there is none, or its
// time is unknown.
func (v *verdict) since() time.Time {
	if v == nil {
		return time.Time{}
	}
	given, _ := time.Parse(time.RFC3339, v.CompletionTime)
	if ended, err := time.Parse(time.RFC3339, v.ValidUntil); err == nil && ended.After(given) && !ended.After(time.Now()) {
		return ended
	}
	return given
}

// Gate is a precondition of CVO: Gate[precondition.ReleaseContext] implements
// precondition.Precondition. All fields are required.
type Gate[R any] struct {
	// Version is the version of the update.
	Version func(R) string
	// Refuse converts a problem into CVO's error.
	Refuse func(Problem) error
	// Judge is [Verdicts.Selected].
	Judge func(version string) *Problem
}

// Name implements precondition.Precondition.
func (*Gate[R]) Name() string { return "Preflight" }

// Run implements precondition.Precondition: nil if the newest verdict on the update is
// Ready and valid, or if the preflight is not installed.
func (g *Gate[R]) Run(_ context.Context, release R) error {
	if problem := g.Judge(g.Version(release)); problem != nil {
		return g.Refuse(*problem)
	}
	return nil
}
