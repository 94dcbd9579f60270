package removedapi

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
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

// FixTime is when the clients of removed APIs were fixed, as an administrator states it:
// a time, or a duration before the run. The zero value states nothing.
type FixTime struct {
	at  time.Time
	ago time.Duration
}

// ParseFixTime parses a time of RFC 3339, such as 2026-11-22T14:20:00Z, or a positive duration, such as 3h.
func ParseFixTime(text string) (FixTime, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return FixTime{ago: ago}, nil
	}
	parsed, err := time.Parse(time.RFC3339, text)
	at := parsed.UTC()
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return FixTime{}, fmt.Errorf("%q is neither a time like 2026-11-22T14:20:00Z nor a positive duration like 3h", words.Line(text, 64))
	}
	return FixTime{at: at}, nil
}

// At is the stated time, for a run that starts now; zero where none is stated. A time after now is an error.
func (f FixTime) At(now time.Time) (time.Time, error) {
	if f.ago > 0 {
		return now.UTC().Add(-f.ago), nil
	}
	if f.at.After(now) {
		return time.Time{}, fmt.Errorf("the stated time of the fix, %s, is after the cluster's time, %s", words.Time(f.at), words.Time(now))
	}
	return f.at, nil
}

// String is the text that ParseFixTime parses, and empty where nothing is stated.
func (f FixTime) String() string {
	if f.ago > 0 {
		return f.ago.String()
	}
	if f.at.IsZero() {
		return ""
	}
	return f.at.Format(time.RFC3339Nano)
}
