package removedapi

import (
	"strconv"
	"strings"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	reasonRemovedAPIInUse = finding.NewReason("RemovedAPIInUse", finding.Explanation{
		Meaning: "Reported when clients use an API that the target does not have.",
		Cause:   "The Kubernetes version of the target, or one before it, removes the API.",
		Remedy:  "Move the clients to the API that replaces it: `oc get apirequestcount NAME -o yaml`.",
	})
	reasonAPIRemovalAhead = finding.NewReason("APIRemovalAhead", finding.Explanation{
		Meaning: "Reported when clients use an API that a release after the target removes.",
		Cause:   "The API is deprecated.",
		Remedy:  "Move the clients to the API that replaces it: `oc get apirequestcount NAME -o yaml`.",
	})
	reasonUnknownRelease = finding.NewReason("UnknownRelease", finding.Explanation{
		Meaning: "Reported when the release that removes an API is not a release of Kubernetes, such as 1.32.",
		Cause:   "A defect of the API server that serves the API.",
		Remedy:  "Move the clients to the API that replaces it: `oc get apirequestcount NAME -o yaml`.",
	})
)

type removal struct {
	// name is the name of the API, removed the release that removes it.
	name, removed string
	minor         uint64
	clients       clients
	// outcome is empty where the removal does not concern the update.
	outcome preflight.Outcome
	reason  finding.Reason
	// note is why the clients are fixed, or when the removal passes. It is empty where the
	// API server's metrics measured the use.
	note string
}

type removals struct {
	measure.Measure
	// from and to are the minors of Kubernetes; from is 0 where it is unknown.
	from, to uint64
	known    bool
	read     gap.Extent
}

// newRemovals compares with the last completed release: while an update is in
// progress, the API server may still be of that release.
func newRemovals(m measure.Measure, read gap.Extent) removals {
	from, _ := update.Kubernetes(m.Completed)
	to, known := update.Kubernetes(m.Update.To)
	return removals{Measure: m, read: read, from: from, to: to, known: known}
}

// classify compares the removal of an API with the update. It does not concern
// an API that the cluster's own release has removed already.
func (r removals) classify(name, removed string) removal {
	minor, ok := removedMinor(removed)
	found := removal{name: name, removed: removed, minor: minor}
	switch {
	case !ok:
		found.outcome, found.reason = preflight.Unknown, reasonUnknownRelease
	case minor <= r.from:
	case !r.known:
		found.outcome, found.reason = preflight.Unknown, check.ReasonUnknownKubernetesVersion
	case minor <= r.to:
		found.outcome, found.reason = preflight.Fail, reasonRemovedAPIInUse
	default:
		found.outcome, found.reason = preflight.Warn, reasonAPIRemovalAhead
	}
	return found
}

// removedMinor parses the y of 1.y.
func removedMinor(release string) (uint64, bool) {
	text, ok := strings.CutPrefix(release, "1.")
	minor, err := strconv.ParseUint(text, 10, 16)
	return minor, ok && err == nil
}
