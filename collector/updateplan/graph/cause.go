package graph

import "fmt"

// Cause is why a graph is refused, or what a Notice is about.
type Cause string

// The reasons of an Error.
const (
	TooLarge         Cause = "TooLarge"
	Malformed        Cause = "Malformed"
	InvalidVersion   Cause = "InvalidVersion"
	DuplicateVersion Cause = "DuplicateVersion"
	InvalidEdge      Cause = "InvalidEdge"
	// Contradictory graphs have different images of one version.
	Contradictory Cause = "Contradictory"
)

// The reasons of a Notice.
const (
	// SelfEdge: an update from a release to itself.
	SelfEdge Cause = "SelfEdge"
	// NotOneHop: an update to an older release, which makes a cycle possible, or one that skips a minor version.
	NotOneHop Cause = "NotOneHop"
	// NoImage: a release without an image by digest.
	NoImage Cause = "NoImage"
	// AmbiguousRisks: an update in two groups of conditional updates. CVO ignores it.
	AmbiguousRisks Cause = "AmbiguousRisks"
	// UnknownRelease: a conditional update from or to a release that the graph lacks.
	UnknownRelease Cause = "UnknownRelease"
	// NoRisks: conditional updates without a risk.
	NoRisks Cause = "NoRisks"
	// InvalidRiskName: a risk whose name cannot be accepted.
	InvalidRiskName Cause = "InvalidRiskName"
)

// Notice is a part of a graph that is ignored, or a limitation that follows from it.
type Notice struct {
	Reason  Cause
	Message string
}

// Error is the error of a graph that is refused.
type Error struct {
	Source  string
	Reason  Cause
	message string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("the update graph %s %s", e.Source, e.message) }
