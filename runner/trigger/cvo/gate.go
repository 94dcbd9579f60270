package cvo

import "context"

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
