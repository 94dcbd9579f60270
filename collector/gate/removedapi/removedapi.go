// Package removedapi answers: which clients would lose an API by the update?
//
// [Check] is the gate. [ParseFixTime] parses the time at which, according to an administrator, the clients were
// fixed.
package removedapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/apiuse"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameRemovedAPI = finding.NewName("RemovedAPI",
		"Blocks updates to another minor or major version whose Kubernetes removes an API in use, and warns where a later release "+
			"removes it (enhancement eus-upgrades-mvp). Other updates remove no API. Each such API has a finding "+
			"RemovedAPI-<resource.version.group>. Use is measured by the APIRequestCounts of the last 24 hours, without the requests "+
			"of Kubernetes' own controllers, which read every API; on clusters without APIRequestCounts, by the metrics of the API "+
			"server. A finding names the first 5 clients by their last hour of use and then by their requests. A service account is "+
			"listed with the workloads whose pods use it and with their installer, if the pods name it: a ClusterServiceVersion, a "+
			"Helm release or an Argo application. Without permission to list pods, only the service account is listed. Field managers "+
			"that wrote stored objects are named for a few resources. An API whose clients are all fixed passes: each client has been "+
			"silent for two of its periods since a change of its workloads. An API that an administrator reports as fixed, by a time "+
			"after the last hour of use, is a warning. Any other API is in use. A client counts as using the API for 24 hours if its "+
			"workloads cannot be read, its period is unknown, or it is not among the first 5 clients of the API.")

	reasonRemovedAPIsNotInUse = finding.NewReason("RemovedAPIsNotInUse", finding.Explanation{
		Meaning: "No client uses an API that the target or a later release removes.",
		Cause:   "All clients use APIs that the target serves.",
	})
	reasonUnknownClients = finding.NewReason("UnknownClients", finding.Explanation{
		Meaning: "The cluster counts requests to an API that the target removes, but names no client except Kubernetes' own controllers.",
		Cause:   "The cluster names only the clients with the most requests.",
		Remedy: "Make the cluster name more clients, and run the preflight again after some hours: `oc patch apirequestcount NAME " +
			"--type merge --patch '{\"spec\":{\"numberOfUsersToReport\":100}}'`.",
	})
)

const deprecationGuide = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/"

// Check is the check RemovedAPI.
func Check(fixed FixTime) check.Check {
	return check.Check{
		Name: nameRemovedAPI, Kind: finding.SourceGate,
		Reads: slices.Concat(check.ReadsClusterVersion(), readsReplaced(), []access.Request{
			check.List(apiserverv1.GroupName, "apirequestcounts"), check.List(corev1.GroupName, "pods"),
			check.List(appsv1.GroupName, "daemonsets"), check.List(appsv1.GroupName, "deployments"), check.List(appsv1.GroupName, "statefulsets"),
			check.List(batchv1.GroupName, "cronjobs"),
		}),
		Run: measure.Run(measure.RetargetFree, func(ctx context.Context, s check.Subject, m measure.Measure) ([]finding.Finding, error) {
			uses, err := s.Cluster.APIUses(ctx, s.Now)
			if apierrors.IsNotFound(err) {
				return fromMetrics(ctx, s, m)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the APIRequestCounts: %w", err)
			}
			r := newRemovals(m, gap.ExtentOf(ctx))
			inUse, unused := r.inUse(uses)
			if len(inUse) == 0 {
				return []finding.Finding{r.notInUse(len(uses), unused)}, nil
			}
			stated, err := fixed.At(s.Now)
			if err != nil {
				return nil, err
			}
			owned := readOwners(ctx, s.Cluster, accountsOf(inUse))
			for i, api := range inUse {
				api.clients.owners, api.clients.writers = owned, readWriters(ctx, s.Cluster, api.name)
				inUse[i] = fixes{now: s.Now.UTC(), stated: stated, owners: owned}.evaluate(api)
			}
			return r.describeUses(inUse), nil
		}),
	}
}

// fromMetrics is for a cluster without APIRequestCounts.
func fromMetrics(ctx context.Context, s check.Subject, m measure.Measure) ([]finding.Finding, error) {
	topology, err := s.Topology(ctx)
	if err != nil {
		return nil, err
	}
	if topology == snapshot.SelfManaged {
		return []finding.Finding{check.APIMissing("APIRequestCounts", apiserverv1.GroupName)}, nil
	}
	deprecated, err := s.Cluster.DeprecatedAPIs(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the API server's metrics at /metrics: %w", err)
	}
	return newRemovals(m, gap.ExtentOf(ctx)).judgeDeprecated(deprecated), nil
}

// inUse are removed APIs that clients use; unused ones were requested only by Kubernetes' own controllers.
func (r removals) inUse(uses []apiuse.Use) (inUse []removal, unused []string) {
	for _, use := range uses {
		clients := clientsOf(use)
		if !clients.any() {
			if use.Requests > 0 {
				unused = append(unused, use.Name)
			}
			continue
		}
		api := r.classify(use.Name, use.RemovedInRelease)
		api.clients = clients
		if len(clients.named) == 0 && api.outcome == preflight.Fail {
			api.outcome, api.reason = preflight.Unknown, reasonUnknownClients // perhaps Kubernetes' own controllers
		}
		if api.outcome != "" {
			inUse = append(inUse, api)
		}
	}
	return inUse, unused
}

func (r removals) describeUses(inUse []removal) []finding.Finding {
	drafts := make([]finding.Draft, 0, len(inUse))
	for _, api := range inUse {
		drafts = append(drafts, finding.Draft{Outcome: api.outcome, Describe: func() finding.Finding { return r.countedUse(api) }})
	}
	return finding.Bounded(drafts)
}

// notInUse is the result for a cluster that counts the requests to this many APIs that
// a release removes, and has no client of them.
func (r removals) notInUse(known int, unused []string) finding.Finding {
	note := ""
	if len(unused) > 0 {
		note = ". Only Kubernetes' own controllers, which read every API, requested " + words.List(unused, 5)
	}
	return finding.Pass(r.read, reasonRemovedAPIsNotInUse,
		"in the last 24 hours no client used an API that %s or a later release removes; %d such APIs are known%s", update.Line(r.Update.To),
		known, note)
}

func (r removals) judgeDeprecated(deprecated []apiuse.Deprecated) []finding.Finding {
	var drafts []finding.Draft
	for _, deprecated := range deprecated {
		if api := r.classify(deprecated.Name, deprecated.RemovedInRelease); api.outcome != "" {
			drafts = append(drafts, finding.Draft{Outcome: api.outcome, Describe: func() finding.Finding { return r.measuredUse(api) }})
		}
	}
	if len(drafts) > 0 {
		return finding.Bounded(drafts)
	}
	return []finding.Finding{finding.Pass(r.read, reasonRemovedAPIsNotInUse,
		"the API server has received no request to an API that %s or a later release removes, since it started", update.Line(r.Update.To))}
}

func (r removals) describe(api removal) finding.Finding {
	note := ""
	if api.note != "" {
		note = "; " + api.note
	}
	return finding.Reported(r.read, api.outcome, api.reason, "%s is in use (%s), and %s%s", api.name, api.clients, r.explain(api), note).
		Named(finding.NameOf(nameRemovedAPI, api.name)).
		Documented(deprecationGuide)
}

func (r removals) describeFixed(api removal) finding.Finding {
	f := finding.Reported(r.read, api.outcome, api.reason, "%s was used in the last 24 hours (%s), and is no longer in use: %s", api.name,
		api.clients, api.note).
		Named(finding.NameOf(nameRemovedAPI, api.name)).
		Documented(deprecationGuide)
	if api.outcome == preflight.Pass {
		return f
	}
	return f.Remedy("Check that the clients use the replacement API.").Do(finding.Read("oc get apirequestcount %s -o yaml", api.name))
}

func (r removals) countedUse(api removal) finding.Finding {
	count := finding.Object{APIVersion: apiserverv1.GroupVersion.String(), Kind: "APIRequestCount", Name: api.name}
	if api.fixed() {
		return r.describeFixed(api).About(count)
	}
	f := r.describe(api).About(count)
	if api.reason == reasonUnknownClients {
		return f.Remedy("Make the cluster name more clients, and run the preflight again after some hours.").
			Do(finding.Change(`oc patch apirequestcount %s --type merge --patch {"spec":{"numberOfUsersToReport":100}}`, api.name))
	}
	return f.Remedy("Move the clients to the replacement API. The counts cover the last 24 hours; to pass earlier, give the time at "+
		"which the clients were fixed.").
		Do(finding.Read("oc get apirequestcount %s -o yaml", api.name), finding.Retry(finding.OptionFixTime))
}

func (r removals) measuredUse(api removal) finding.Finding {
	return r.describe(api).
		Remedy("Find the clients in the audit log (annotation k8s.io/deprecated), and move them to the replacement API. The metric " +
			"covers one API server since it started.").
		Do(finding.Read("oc get --raw /metrics"))
}

func (r removals) explain(api removal) string {
	target := update.Line(r.Update.To)
	switch api.outcome {
	case preflight.Fail:
		return fmt.Sprintf("is removed in Kubernetes 1.%d; OpenShift %s, with 1.%d, does not serve it; this does not block updates "+
			"within %s",
			api.minor, target, r.to, r.Within)
	case preflight.Warn:
		return fmt.Sprintf("%s still serves it, but %s", target, remover(api.minor))
	case preflight.Unknown, preflight.Pass, preflight.Skipped:
	}
	if api.reason == reasonUnknownClients {
		return fmt.Sprintf("%s removes it; the cluster names no client except Kubernetes' own controllers, so its users are unknown", target)
	}
	if api.reason == check.ReasonUnknownKubernetesVersion {
		return fmt.Sprintf("is removed in Kubernetes 1.%d; this version of the preflight does not know the Kubernetes version of "+
			"OpenShift %s", api.minor,
			target)
	}
	return fmt.Sprintf("is removed in %q, which is not a release of Kubernetes, so it is unknown whether %s serves it",
		words.Line(api.removed, 64), target)
}

// remover is the release that removes an API.
func remover(minor uint64) string {
	if release, known := update.FirstWith(minor); known {
		return fmt.Sprintf("OpenShift %s (Kubernetes 1.%d) removes it", release, minor)
	}
	return fmt.Sprintf("the OpenShift release with Kubernetes 1.%d removes it", minor)
}

// maxOwned bounds the service accounts whose workloads are read.
const maxOwned = 50

// accountsOf returns the users of the first clients that are service accounts, clients of failures first, at most
// maxOwned.
func accountsOf(inUse []removal) []string {
	failing := func(api removal) bool { return api.outcome == preflight.Fail }
	rest := slices.DeleteFunc(slices.Clone(inUse), failing)
	failures := slices.DeleteFunc(slices.Clone(inUse), func(api removal) bool { return !failing(api) })
	var users []string
	for _, api := range slices.Concat(failures, rest) {
		for _, client := range api.clients.first() {
			if _, _, ok := serviceAccount(client.User); ok && len(users) < maxOwned && !slices.Contains(users, client.User) {
				users = append(users, client.User)
			}
		}
	}
	return users
}

var (
	reasonRemovedAPIInUse = finding.NewReason("RemovedAPIInUse", finding.Explanation{
		Meaning: "Clients use an API that the target does not serve. They fail after the update.",
		Cause:   "The Kubernetes version of the target, or an earlier one, removes the API.",
		Remedy:  "Move the clients to the replacement API: `oc get apirequestcount NAME -o yaml`.",
	})
	reasonAPIRemovalAhead = finding.NewReason("APIRemovalAhead", finding.Explanation{
		Meaning: "Clients use an API that a release after the target removes.",
		Cause:   "The API is deprecated.",
		Remedy:  "Move the clients to the replacement API: `oc get apirequestcount NAME -o yaml`.",
	})
	reasonUnknownRelease = finding.NewReason("UnknownRelease", finding.Explanation{
		Meaning: "An API in use is marked as removed in a version that is not a Kubernetes release such as 1.32, so it is unknown " +
			"whether the target serves it.",
		Cause:  "The API server that serves the API has a bug.",
		Remedy: "Move the clients to the replacement API: `oc get apirequestcount NAME -o yaml`.",
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

// FixTime is when the clients of removed APIs were fixed, according to an administrator: a time, or a duration
// before the run. The zero value means that no time was given.
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

// At returns the given time, for a run that starts now; zero if none was given. A time after now is an error.
func (f FixTime) At(now time.Time) (time.Time, error) {
	if f.ago > 0 {
		return now.UTC().Add(-f.ago), nil
	}
	if f.at.After(now) {
		return time.Time{}, fmt.Errorf("the given time of the fix, %s, is after the cluster's time, %s", words.Time(f.at), words.Time(now))
	}
	return f.at, nil
}

// String is the text that ParseFixTime parses, and empty if no time was given.
func (f FixTime) String() string {
	if f.ago > 0 {
		return f.ago.String()
	}
	if f.at.IsZero() {
		return ""
	}
	return f.at.Format(time.RFC3339Nano)
}
