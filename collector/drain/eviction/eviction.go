// Package eviction answers: what does the API server answer to the eviction of a pod?
//
// [Of] is the answer, given a [Pod] and the budgets that select it, which [Budgets] finds. The
// rules are those of kubectl's drain (pkg/drain/filters.go) and of the eviction subresource
// (kubernetes pkg/registry/core/pod/storage/eviction.go) of Kubernetes 1.37, without those of
// admission.
package eviction

// Outcome is what becomes of a pod on a node that is drained.
type Outcome string

// The outcomes.
const (
	// KeptOnNode is a pod that is not evicted, and does not hinder the drain.
	KeptOnNode Outcome = "Kept"
	// Evicted pods are deleted at the first request.
	Evicted Outcome = "Evicted"
	// WaitsFor is a request that is refused now and repeated: it succeeds once other pods of
	// the budget are healthy.
	WaitsFor Outcome = "WaitsFor"
	// Never is a request that is refused as long as the objects are as they are.
	Never Outcome = "Never"
	// Refused is a request that admission refuses.
	Refused Outcome = "Refused"
	// Unknown is a request whose answer depends on what is not known.
	Unknown Outcome = "Unknown"
)

// Cause is why a request has its outcome.
type Cause string

// The causes.
const (
	// NotAsked is a pod that has not started, has ended or is being deleted: budgets are not read.
	NotAsked Cause = "NotAsked"
	// NoBudget is a pod that no budget selects.
	NoBudget Cause = "NoBudget"
	// Allowed is a budget that allows a disruption.
	Allowed Cause = "Allowed"
	// Unhealthy is a pod that is not ready and may be evicted by the budget's unhealthyPodEvictionPolicy.
	Unhealthy Cause = "Unhealthy"
	// SeveralBudgets is a pod that more than one budget selects: error 500.
	SeveralBudgets Cause = "SeveralBudgets"
	// StaleBudget is a budget whose status is of an earlier generation: error 429.
	StaleBudget Cause = "StaleBudget"
	// NegativeBudget is a status with negative disruptionsAllowed: error 403.
	NegativeBudget Cause = "NegativeBudget"
	// TooManyDisrupted is a status with more than 2000 disrupted pods: error 403.
	TooManyDisrupted Cause = "TooManyDisrupted"
	// SyncFailed is a status that the disruption controller cannot compute: error 429.
	SyncFailed Cause = "SyncFailed"
	// RequiresAll is a budget that requires all expected pods to be healthy: error 429.
	RequiresAll Cause = "RequiresAll"
	// Unmanaged is a budget that expects no pods, since those that it selects have no controller: error 429.
	Unmanaged Cause = "Unmanaged"
	// TooFewHealthy is a budget of which too few pods are healthy at present: error 429.
	TooFewHealthy Cause = "TooFewHealthy"
)

// Answer is the answer to one request.
type Answer struct {
	Outcome Outcome
	Cause   Cause
}

// Of is the answer to the eviction of a pod that these budgets select: the first rule that
// matches, as in the API server.
func Of(pod Pod, budgets []*Budget) Answer {
	switch {
	case pod.Kept != "":
		return Answer{Outcome: KeptOnNode}
	case pod.Unstarted || pod.Ended || pod.Terminating:
		return Answer{Outcome: Evicted, Cause: NotAsked}
	case len(budgets) == 0:
		return Answer{Outcome: Evicted, Cause: NoBudget}
	case len(budgets) > 1:
		return Answer{Outcome: Never, Cause: SeveralBudgets}
	}
	budget := budgets[0]
	if !pod.Ready && (budget.AlwaysAllow || (budget.Healthy >= budget.Desired && budget.Desired > 0)) {
		return Answer{Outcome: Evicted, Cause: Unhealthy}
	}
	return budget.answer()
}

func (b *Budget) answer() Answer {
	switch {
	case b.Failure != "": // whose status stays that of the earlier generation, or of none
		return Answer{Outcome: Never, Cause: SyncFailed}
	case b.Stale:
		return Answer{Outcome: Unknown, Cause: StaleBudget}
	case b.Allowed < 0:
		return Answer{Outcome: Never, Cause: NegativeBudget}
	case b.Disrupted > maxDisrupted:
		return Answer{Outcome: WaitsFor, Cause: TooManyDisrupted}
	case b.Allowed > 0:
		return Answer{Outcome: Evicted, Cause: Allowed}
	}
	if cause := b.Permanent(); cause != "" {
		return Answer{Outcome: Never, Cause: cause}
	}
	return Answer{Outcome: WaitsFor, Cause: TooFewHealthy}
}
