// Package label answers: by which labels and names is everything that belongs
// to one run found again?
//
// The package that creates Jobs and the one that records runs both depend on
// these names; neither depends on the other.
package label

import "strings"

// Prefix begins every label and annotation of this project.
const Prefix = "preflight.openshift.io/"

// The labels of every object that a run creates, and of its pods.
const (
	// Run holds the ID of the run.
	Run = Prefix + "run"
	// Release holds the first 12 hex digits of the target's digest.
	Release = Prefix + "release"
	// Component holds the component whose manifest the object comes from.
	Component = Prefix + "component"
)

const (
	suffixDigits  = 10
	releaseDigits = 12
)

// Suffix makes the names of a run's objects unique: the first ten hex digits of
// its ID.
func Suffix(runID string) string {
	return first(strings.ReplaceAll(runID, "-", ""), suffixDigits)
}

// ReleaseValue is the value of the label [Release]: the first 12 hex digits of
// the release's digest ("sha256:…").
func ReleaseValue(digest string) string {
	return first(strings.TrimPrefix(digest, "sha256:"), releaseDigits)
}

func first(text string, n int) string {
	return text[:min(n, len(text))]
}
