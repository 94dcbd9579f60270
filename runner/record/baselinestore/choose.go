package baselinestore

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
)

// Reason is why no baseline counts.
type Reason string

// The reasons. Where baselines do not count for several reasons, the one that is first in this order is stated.
const (
	// NoUpdate means that the history of ClusterVersion has no update whose beginning is known.
	NoUpdate Reason = "NoUpdate"
	// Unreadable means that the baseline is not complete, or has the format of another version of the tool.
	Unreadable Reason = "Unreadable"
	// TakenDuring means that it was taken after the update had begun.
	TakenDuring Reason = "TakenDuring"
	// TakenEarlier means that it was taken before the update to the release that the update started from was complete.
	TakenEarlier Reason = "TakenEarlier"
	// Unverifiable means that it is unknown whether it was edited: the user may not read the key of the records.
	Unverifiable Reason = "Unverifiable"
	// Unauthentic means that it was edited, or that the key of the records was replaced since.
	Unauthentic Reason = "Unauthentic"
	// OtherCluster means that it is of a cluster with another ID.
	OtherCluster Reason = "OtherCluster"
	// OtherRelease means that it is of another release than the one that the update started from.
	OtherRelease Reason = "OtherRelease"
	// NotTaken means that no run has stored one.
	NotTaken Reason = "NotTaken"
)

// reasons are all of them, in the order in which they are stated.
func reasons() []Reason {
	return []Reason{NoUpdate, Unreadable, TakenDuring, TakenEarlier, Unverifiable, Unauthentic, OtherCluster, OtherRelease, NotTaken}
}

// AbsentError means that there is no baseline that counts.
type AbsentError struct {
	Reason Reason
	// Run is the ID of the run with the baseline that the reason is about; empty for none.
	Run string
	// Message is why, as a clause.
	Message string
	// Later is the newest baseline of the release that the cluster was updated to, taken since: it counts for the next
	// update. Its Run is empty for none.
	Later Candidate
}

// Error implements error.
func (e *AbsentError) Error() string { return "no baseline counts: " + e.Message }

// Candidate is a stored baseline, without its content.
type Candidate struct {
	// Run is the ID of the run that took it. Whether that run has a verdict does not matter: a baseline is a fact about
	// the cluster, which is complete also where the run was killed after it.
	Run string
	// Taken, ClusterID, Version and Image are those of its State.
	Taken                     time.Time
	ClusterID, Version, Image string
	// Authentication is the result of its verification. Unless it is Authentic, the other fields do not count.
	Authentication record.Authentication
	// Unreadable is why it cannot be read, as a clause; empty if it can.
	Unreadable string
	// Judged is of which sample the last judgement by it is, and its decision: see [Judgement.Precedes]. Empty where it has
	// not judged an update.
	Judged string
}

// Choose returns the baselines of the last update of a history, which has the newest entry first, as status.history of
// ClusterVersion has. The newest baseline is first. The error is an *[AbsentError] if there is none.
//
// The update is that of settling.ChangeOf: one that was interrupted and continued to another release began with the first
// of them, and one that was undone is still the last one. A baseline counts if it is authentic, of this cluster and of the
// release that the update started from, and was taken between the completion of that release and the beginning of the
// update. All times are by the clocks of the cluster.
func Choose(candidates []Candidate, history []configv1.UpdateHistory, clusterID string) ([]Candidate, error) {
	of, err := changeOf(history, clusterID)
	if err != nil {
		return nil, err
	}
	var counting []Candidate
	nearest := &AbsentError{Reason: NotTaken, Message: fmt.Sprintf("no run has stored one of %s", of.from.Version)}
	sorted := slices.SortedFunc(slices.Values(candidates), func(a, b Candidate) int {
		return cmp.Or(b.Taken.Compare(a.Taken), cmp.Compare(a.Run, b.Run))
	})
	for _, each := range sorted {
		refused := each.refused()
		if refused == nil {
			refused = of.refuses(each)
		}
		switch {
		case refused == nil:
			counting = append(counting, each)
		case slices.Index(reasons(), refused.Reason) < slices.Index(reasons(), nearest.Reason):
			nearest = refused
		}
	}
	if len(counting) == 0 {
		if at := slices.IndexFunc(sorted, of.precedes); at >= 0 {
			nearest.Later = sorted[at]
		}
		return nil, nearest
	}
	return counting, nil
}

// refused is why the baseline does not count for any update; nil if it may.
func (c Candidate) refused() *AbsentError {
	switch {
	case c.Authentication.State != record.Authentic:
		return unauthentic(c.Run, c.Authentication)
	case c.Unreadable != "":
		return c.unreadable("%s", c.Unreadable)
	}
	return nil
}

func (c Candidate) unreadable(cause string, args ...any) *AbsentError {
	return &AbsentError{Reason: Unreadable, Run: c.Run, Message: fmt.Sprintf("the one of run %s cannot be read: ", c.Run) + fmt.Sprintf(cause, args...)}
}

// unauthentic is for a baseline whose verification has that result.
func unauthentic(run string, verified record.Authentication) *AbsentError {
	if verified.State == record.Unverifiable {
		return &AbsentError{Reason: Unverifiable, Run: run, Message: fmt.Sprintf("unknown whether the one of run %s is authentic: %s", run, verified.Cause)}
	}
	return &AbsentError{Reason: Unauthentic, Run: run, Message: fmt.Sprintf("the one of run %s is not authentic: %s", run, verified.Cause)}
}

// change is an update of a cluster.
type change struct {
	clusterID string
	// from is the entry of the release that the update started from, and begun when that was.
	from  configv1.UpdateHistory
	begun time.Time
	// to is the entry of the release that the cluster runs when the update is complete; zero for one that was undone.
	to configv1.UpdateHistory
}

// precedes reports whether a baseline was taken after the update, of the release that it led to.
func (u change) precedes(c Candidate) bool {
	completed := u.to.CompletionTime
	return c.refused() == nil && c.ClusterID == u.clusterID && c.Version == u.to.Version && sameImage(c.Image, u.to.Image) &&
		completed != nil && !c.Taken.Before(completed.Time)
}

func changeOf(history []configv1.UpdateHistory, clusterID string) (change, error) {
	found, ok := settling.ChangeOf(history)
	switch {
	case !ok:
		return change{}, &AbsentError{Reason: NoUpdate, Message: "the history of ClusterVersion has no update of a release that was complete"}
	case found.Started.IsZero():
		return change{}, &AbsentError{Reason: NoUpdate, Message: fmt.Sprintf("the history of ClusterVersion does not state when the update to %s began", found.To.Version)}
	}
	made := change{clusterID: clusterID, from: found.From, begun: found.Started.UTC()}
	if !found.RolledBack {
		made.to = found.To
	}
	return made, nil
}

// refuses is why the baseline does not count for the update; nil if it does.
func (u change) refuses(c Candidate) *AbsentError {
	because := func(reason Reason, message string, args ...any) *AbsentError {
		return &AbsentError{Reason: reason, Run: c.Run, Message: fmt.Sprintf("the one of run %s ", c.Run) + fmt.Sprintf(message, args...)}
	}
	completed := u.from.CompletionTime
	switch {
	case c.ClusterID != u.clusterID:
		return because(OtherCluster, "is of cluster %s, and this one is %s", c.ClusterID, u.clusterID)
	case c.Version != u.from.Version:
		return because(OtherRelease, "is of %s, and the update started from %s", c.Version, u.from.Version)
	case !sameImage(c.Image, u.from.Image):
		return because(OtherRelease, "is of %s, and the update started from %s", c.Image, u.from.Image)
	case c.Taken.After(u.begun):
		return because(TakenDuring, "was taken at %s, after the update had begun at %s", words.Time(c.Taken), words.Time(u.begun))
	case completed != nil && c.Taken.Before(completed.Time):
		return because(TakenEarlier, "was taken at %s, before the update to %s was complete at %s", words.Time(c.Taken), c.Version, words.Time(completed.UTC()))
	}
	return nil
}

// sameImage reports whether two pull specs are of one image, or one is not known. A mirror has another name for it.
func sameImage(a, b string) bool {
	digest := update.Release{Image: a}.Digest()
	return a == "" || b == "" || a == b || digest != "" && digest == update.Release{Image: b}.Digest()
}
