package removedapi

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/apiuse"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	reasonRemovedAPIFixed = finding.NewReason("RemovedAPIFixed", finding.Explanation{
		Meaning: "All clients of an API that the target or a later release removes were changed and have not used it since, for longer " +
			"than two of their periods of use.",
		Cause: "The requests of the last 24 hours precede the change.",
	})
	reasonRemovedAPIFixStated = finding.NewReason("RemovedAPIFixStated", finding.Explanation{
		Meaning: "The last 24 hours contain requests to an API that the target or a later release removes, and all of them precede the " +
			"time at which, according to an administrator, the clients were fixed.",
		Cause: "The administrator set the time, and no request since then contradicts it. Clients with a long period may not have sent " +
			"their next request yet.",
		Remedy: "Check that the clients use the replacement API: `oc get apirequestcount NAME -o yaml`.",
	})
)

const (
	// reportDelay is longer than an API server holds counts back: it writes them every
	// 5 minutes, spread over 4 minutes.
	reportDelay = 15 * time.Minute
	// observed is the time that the counts cover in addition to the current hour.
	observed = 22 * time.Hour
	// minHours is the number of hours with a request that are needed to derive the period of a client.
	minHours = 6
)

// fixes evaluates whether the clients of APIs are fixed. A client is fixed if it has been silent since its
// workloads changed, for two periods of use, each an hour longer than the counts show, because counts are hourly.
// If stated is not zero, a client is also fixed if all its requests belong to hours that ended before stated.
//
// Unknown facts count as use: an hour that an API server did not report, requests without a client, a client
// without a workload or with one that is not read, and a period that cannot be derived.
type fixes struct {
	now, stated time.Time
	owners      owners
}

func (r removal) fixed() bool {
	return r.reason == reasonRemovedAPIFixed || r.reason == reasonRemovedAPIFixStated
}

type progress struct {
	client apiuse.Client
	// proof is why it is fixed; doubt is why it is not known to be. One is empty.
	proof, doubt string
	// stated is true where the statement of the administrator is the only proof.
	stated bool
	// passes is when it will be fixed if it stays silent, at the latest when the counts
	// no longer have its use. It is zero where that is unknown.
	passes time.Time
}

// evaluate changes the outcome of the removal of an API if all its clients are fixed, and sets its note.
func (f fixes) evaluate(api removal) removal {
	if api.reason == reasonUnknownRelease {
		return api
	}
	var proofs []string
	var last progress
	stated, fixed := false, true
	for _, each := range f.all(api.clients) {
		stated = stated || each.stated
		if each.doubt == "" {
			proofs = append(proofs, each.proof)
			continue
		}
		if fixed || each.laterThan(last) {
			last = each
		}
		fixed = false
	}
	switch {
	case !fixed:
		api.note = f.outlook(last)
		return api
	case stated:
		api.outcome, api.reason = preflight.Warn, reasonRemovedAPIFixStated
	default:
		api.outcome, api.reason = preflight.Pass, reasonRemovedAPIFixed
	}
	api.note = words.Clauses(proofs, maxNamedClients)
	return api
}

// all returns the progress of each client, and of the clients without a name.
func (f fixes) all(c clients) []progress {
	var found []progress
	for _, client := range c.named {
		found = append(found, f.of(client, c.reported))
	}
	if c.unnamed > 0 {
		unnamed := apiuse.Client{Hours: c.unnamedHours}
		if len(unnamed.Hours) == 0 {
			unnamed.Hours = []time.Time{{}}
		}
		unnamed.LastUse = unnamed.Hours[len(unnamed.Hours)-1]
		found = append(found, f.of(unnamed, c.reported))
	}
	return found
}

func (p progress) laterThan(other progress) bool {
	return !other.passes.IsZero() && (p.passes.IsZero() || p.passes.After(other.passes))
}

func (p progress) name() string {
	if p.client.User == "" && p.client.Agent == "" {
		return "unnamed clients"
	}
	return fmt.Sprintf("%s with %q", words.Line(p.client.User, maxClientName), words.Line(p.client.Agent, maxClientName))
}

// outlook is the note for an API with a client that is not known to be fixed.
func (f fixes) outlook(last progress) string {
	if last.passes.IsZero() {
		return fmt.Sprintf("when the counts no longer include it is unknown (%s: %s)", last.name(), last.doubt)
	}
	return fmt.Sprintf("without further use this passes from %s (%s: %s)", last.passes.Format(minute), last.name(), last.doubt)
}

func (f fixes) of(client apiuse.Client, reported []time.Time) progress {
	found := progress{client: client}
	if len(client.Hours) == 0 || client.Hours[0].IsZero() {
		found.doubt = "the hour of its last use is unknown"
		return found
	}
	found.passes = client.LastUse.Add(24 * time.Hour)
	end := client.LastUse.Add(bucket)
	if missing := f.unreported(end, reported); !missing.IsZero() {
		found.doubt = "an API server did not report the hour from " + missing.Format(minute)
		return found
	}
	found = f.byChange(found, end)
	if found.doubt != "" && !f.stated.IsZero() {
		return f.byStatement(found, end)
	}
	return found
}

// unreported is the start of the first hour since a time that has ended without the report
// of an API server, and zero without one.
func (f fixes) unreported(since time.Time, reported []time.Time) time.Time {
	known := map[time.Time]bool{}
	for _, hour := range reported {
		known[hour] = true
	}
	for hour := since; !hour.Add(bucket + reportDelay).After(f.now); hour = hour.Add(bucket) {
		if !known[hour] {
			return hour
		}
	}
	return time.Time{}
}

// byStatement evaluates a client by the time that the administrator gives. An hour that contains it counts as use.
func (f fixes) byStatement(found progress, end time.Time) progress {
	switch {
	case end.After(f.stated):
		found.doubt = fmt.Sprintf("the hour of its last use ends at %s, after the given time of the fix, %s; request counts are hourly",
			end.Format(minute), f.stated.Format(minute))
	case f.stated.Add(reportDelay).After(f.now):
		found.passes = f.stated.Add(reportDelay)
		found.doubt = fmt.Sprintf("requests since the given time of the fix, %s, may not be counted yet", f.stated.Format(minute))
	default:
		found.doubt, found.stated = "", true
		found.proof = fmt.Sprintf("%s: last hour of use ended at %s, before the given time of the fix, %s", found.name(), end.Format(minute),
			f.stated.Format(minute))
	}
	return found
}

// byChange evaluates a client by the last change of its workloads and its silence since.
func (f fixes) byChange(found progress, end time.Time) progress {
	change, doubt := f.owners.changeOf(found.client, end)
	if doubt != "" {
		found.doubt = doubt
		return found
	}
	period := change.period
	if !change.scheduled {
		derived, ok := f.period(found.client.Hours)
		if !ok {
			found.doubt = fmt.Sprintf("its period is unknown: it used the API in %s, but %d are needed",
				words.Count(len(found.client.Hours), "hour"), minHours)
			return found
		}
		period = max(period, derived)
	}
	since := change.at
	if since.Before(end) {
		since = end
	}
	needed := 2 * (period + bucket)
	if passes := since.Add(needed + reportDelay); passes.After(f.now) {
		found.passes = earlier(found.passes, passes)
		found.doubt = fmt.Sprintf("%s, and silent since %s, which is too short for a client that may use the API only every %s",
			change.text, since.Format(minute), hoursOf(period+bucket))
		return found
	}
	found.proof = fmt.Sprintf("%s: %s, and silent since %s, for longer than two periods of %s", found.name(), change.text,
		since.Format(minute), hoursOf(period+bucket))
	return found
}

// period returns the longest time without a request, between the requests of the client and before its first one.
// It is unknown for a client with few requests.
func (f fixes) period(hours []time.Time) (time.Duration, bool) {
	if len(hours) < minHours {
		return 0, false
	}
	longest := bucket
	previous := f.now.Truncate(bucket).Add(-observed)
	for _, hour := range hours {
		longest = max(longest, hour.Sub(previous))
		previous = hour
	}
	return longest, true
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func hoursOf(d time.Duration) string {
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}
