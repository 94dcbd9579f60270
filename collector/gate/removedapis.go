package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonUnknownClients  finding.Reason = "UnknownClients"
	ReasonUnknownRelease  finding.Reason = "UnknownRelease"
	ReasonRemovedAPIInUse finding.Reason = "RemovedAPIInUse"
	ReasonAPIRemovalAhead finding.Reason = "APIRemovalAhead"
)

const ReasonRemovedAPIsNotInUse finding.Reason = "RemovedAPIsNotInUse"

// RemovedAPIs is the gate that keeps the clients of an API from losing it: a
// finding RemovedAPI-<resource.version.group> for each API in use that the
// target's Kubernetes removes, which blocks, or that a later one does, which is
// good to know (enhancement eus-upgrades-mvp: inform far ahead, block what is
// imminent). It concerns updates that leave the current minor version: others
// remove no API.
//
// Use is what APIRequestCounts tell of the last 24 hours, but for the requests
// of Kubernetes' own controllers, which ask for every API that there is. On
// other clusters than OpenShift it is what the API server's metrics tell.
func RemovedAPIs() check.Check {
	return check.Check{
		Name: "RemovedAPI", Kind: finding.SourceGate, Concerns: update.Update.LeavesMinor,
		Reads: append(clusterVersionReads(), check.List(apiserverv1.GroupName, "apirequestcounts")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			uses, err := s.Cluster.APIUses(ctx)
			if apierrors.IsNotFound(err) {
				return fromMetrics(ctx, s.Cluster, s.Update)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the APIRequestCounts: %w", err)
			}
			return newRemovals(s.Update).judgeUses(uses), nil
		},
	}
}

// fromMetrics is for a cluster that does not count requests.
func fromMetrics(ctx context.Context, cluster *snapshot.Cluster, u update.Update) ([]finding.Finding, error) {
	topology, err := cluster.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
	}
	if topology == snapshot.SelfManaged {
		return apiMissing("APIRequestCounts", apiserverv1.GroupName), nil
	}
	deprecated, err := cluster.DeprecatedAPIs(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not read the API server's metrics at /metrics: %w", err)
	}
	return newRemovals(u).judgeDeprecated(deprecated), nil
}

// removals judges the removal of APIs by one update.
type removals struct {
	u update.Update
	// from and to are the minors of Kubernetes; from is 0 where it is not known.
	from, to uint64
	known    bool
}

func newRemovals(u update.Update) removals {
	from, _ := update.Kubernetes(u.From)
	to, known := update.Kubernetes(u.To)
	return removals{u: u, from: from, to: to, known: known}
}

func (r removals) judgeUses(uses []snapshot.APIUse) []finding.Finding {
	var found []removal
	var quiet []string
	for _, use := range uses {
		clients := clientsOf(use)
		if !clients.any() {
			if use.Requests > 0 {
				quiet = append(quiet, use.Name)
			}
			continue
		}
		removal := r.classify(use.Name, use.RemovedInRelease)
		removal.clients = clients
		if len(clients.named) == 0 && removal.outcome == preflight.Fail {
			removal.outcome, removal.reason = preflight.Unknown, ReasonUnknownClients // Kubernetes' own controllers, perhaps
		}
		found = append(found, removal)
	}
	findings := r.tell(found)
	if len(findings) > 0 {
		return findings
	}
	pass := fmt.Sprintf("in the last 24 hours no client used an API that %s or a later release removes; %d such APIs are known",
		update.Line(r.u.To), len(uses))
	if len(quiet) > 0 {
		pass += ". Only Kubernetes' own controllers, which look at every API, asked for " + someOf(quiet, 5)
	}
	return []finding.Finding{finding.Pass(ReasonRemovedAPIsNotInUse, "%s", pass)}
}

func (r removals) judgeDeprecated(deprecated []snapshot.DeprecatedAPI) []finding.Finding {
	var found []removal
	for _, api := range deprecated {
		found = append(found, r.classify(api.Name, api.RemovedInRelease))
	}
	findings := r.tell(found)
	for i := range findings {
		findings[i].Objects = nil
		findings[i].Remediation = "Find the clients in the audit log (annotation k8s.io/deprecated), and move them to the API that replaces it. " +
			"The metric is that of one API server since it started: kubectl get --raw /metrics"
	}
	if len(findings) > 0 {
		return findings
	}
	return []finding.Finding{finding.Pass(ReasonRemovedAPIsNotInUse,
		"since the API server that answered started, it was asked for no API that %s or a later release removes", update.Line(r.u.To))}
}

// removal is that of one API in use.
type removal struct {
	// name is the API's, removed the release that removes it.
	name, removed string
	minor         uint64
	clients       clients
	// outcome is empty where the removal does not concern the update.
	outcome preflight.Outcome
	reason  finding.Reason
}

// classify compares the removal of an API with the update. It does not concern
// an API that the cluster's own release has removed already.
func (r removals) classify(name, removed string) removal {
	minor, ok := removedMinor(removed)
	found := removal{name: name, removed: removed, minor: minor}
	switch {
	case !ok:
		found.outcome, found.reason = preflight.Unknown, ReasonUnknownRelease
	case minor <= r.from:
	case !r.known:
		found.outcome, found.reason = preflight.Unknown, ReasonUnknownKubernetesVersion
	case minor <= r.to:
		found.outcome, found.reason = preflight.Fail, ReasonRemovedAPIInUse
	default:
		found.outcome, found.reason = preflight.Warn, ReasonAPIRemovalAhead
	}
	return found
}

// tell makes findings of the removals that concern the update. Those that are
// only counted have no text: there may be thousands, for hundreds of targets.
func (r removals) tell(found []removal) []finding.Finding {
	found = slices.DeleteFunc(found, func(api removal) bool { return api.outcome == "" })
	slices.SortStableFunc(found, func(a, b removal) int { return cmp.Compare(severity(a.outcome), severity(b.outcome)) })
	var findings []finding.Finding
	for i, api := range found {
		f := finding.New(api.outcome, "", "")
		if i < maxFindings {
			f = r.tellOf(api)
		}
		findings = append(findings, f)
	}
	return bounded(findings)
}

func (r removals) tellOf(api removal) finding.Finding {
	f := finding.New(api.outcome, api.reason, "%s is in use (%s), and %s", api.name, api.clients, r.explain(api)).
		Named(riskName("RemovedAPI", api.name)).
		Remedy("Move the clients to the API that replaces it. The counts are those of the last 24 hours: oc get apirequestcount %s -o yaml", api.name).
		About(finding.Object{APIVersion: apiserverv1.GroupVersion.String(), Kind: "APIRequestCount", Name: api.name}).
		Documented("https://kubernetes.io/docs/reference/using-api/deprecation-guide/")
	if api.reason == ReasonUnknownClients {
		f.Remediation = fmt.Sprintf("Have the cluster name more clients, and look again after some hours: "+
			"oc patch apirequestcount %s --type merge --patch '{\"spec\":{\"numberOfUsersToReport\":100}}'", api.name)
	}
	return f
}

// explain says what the removal means for the update.
func (r removals) explain(api removal) string {
	target := update.Line(r.u.To)
	switch api.outcome {
	case preflight.Fail:
		return fmt.Sprintf("is removed in Kubernetes 1.%d; OpenShift %s, with 1.%d, no longer has it; this does not block updates within %s",
			api.minor, target, r.to, update.Line(r.u.From))
	case preflight.Warn:
		return fmt.Sprintf("%s still has it, but %s", target, remover(api.minor))
	case preflight.Unknown, preflight.Pass, preflight.Skipped:
	}
	switch api.reason {
	case ReasonUnknownClients:
		return fmt.Sprintf("%s removes it; besides Kubernetes' own controllers the cluster names no client, so nobody can tell who uses it", target)
	case ReasonUnknownKubernetesVersion:
		return fmt.Sprintf("is removed in Kubernetes 1.%d; which Kubernetes OpenShift %s has is not known here", api.minor, target)
	}
	return fmt.Sprintf("is removed in %q, which is not a release of Kubernetes, so nobody can tell whether %s has it", short(api.removed, 64), target)
}

// remover names the release that removes an API.
func remover(minor uint64) string {
	if release, known := update.FirstWith(minor); known {
		return fmt.Sprintf("OpenShift %s (Kubernetes 1.%d) removes it", release, minor)
	}
	return fmt.Sprintf("the OpenShift release with Kubernetes 1.%d removes it", minor)
}

// removedMinor reads the y of 1.y.
func removedMinor(release string) (uint64, bool) {
	text, ok := strings.CutPrefix(release, "1.")
	minor, err := strconv.ParseUint(text, 10, 16)
	return minor, ok && err == nil
}

// clients are those of an API that are more than noise.
type clients struct {
	named []snapshot.APIClient
	// unnamed counts the requests of clients that are not known.
	unnamed int64
}

// ownControllers ask for every API that there is, so that their requests say
// nothing about use (the OpenShift documentation says to ignore them).
func ownControllers() []string {
	return []string{
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:serviceaccount:kube-system:namespace-controller",
		"system:kube-controller-manager",
		"system:cluster-policy-controller",
	}
}

func clientsOf(use snapshot.APIUse) clients {
	found := clients{unnamed: use.Requests}
	for _, client := range use.Clients {
		found.unnamed -= client.Requests
		if client.Requests > 0 && !slices.Contains(ownControllers(), client.User) {
			found.named = append(found.named, client)
		}
	}
	return found
}

func (c clients) any() bool { return len(c.named) > 0 || c.unnamed > 0 }

// String names those with most requests. Without any it is the API server's
// metrics that say no more.
func (c clients) String() string {
	const most, length = 5, 100
	var texts []string
	for _, client := range c.named[:min(len(c.named), most)] {
		texts = append(texts, fmt.Sprintf("%s with %q: %d requests", short(client.User, length), short(client.Agent, length), client.Requests))
	}
	if more := len(c.named) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more clients", more))
	}
	if c.unnamed > 0 {
		texts = append(texts, fmt.Sprintf("clients that are not named: %d requests", c.unnamed))
	}
	if len(texts) == 0 {
		return "by whom, the API server's metrics do not tell"
	}
	return "by " + strings.Join(texts, ", ")
}
