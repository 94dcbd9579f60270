package gate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

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
func RemovedAPIs(cluster *snapshot.Cluster, u update.Update) check.Check {
	return check.Check{
		Title: "RemovedAPI", Kind: preflight.SourceGate, Update: u, Concerns: update.Update.LeavesMinor,
		Look: func(ctx context.Context) ([]preflight.Finding, error) {
			uses, err := cluster.APIUses(ctx)
			if apierrors.IsNotFound(err) {
				return fromMetrics(ctx, cluster, u)
			}
			if err != nil {
				return nil, fmt.Errorf("could not list the APIRequestCounts: %w", err)
			}
			return newRemovals(u).judgeUses(uses), nil
		},
	}
}

// fromMetrics is for a cluster that does not count requests.
func fromMetrics(ctx context.Context, cluster *snapshot.Cluster, u update.Update) ([]preflight.Finding, error) {
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

func (r removals) judgeUses(uses []snapshot.APIUse) []preflight.Finding {
	var findings []preflight.Finding
	var quiet []string
	for _, use := range uses {
		clients := clientsOf(use)
		if !clients.any() {
			if use.Requests > 0 {
				quiet = append(quiet, use.Name)
			}
			continue
		}
		finding, concerned := r.judge(use.Name, use.RemovedInRelease, clients.String())
		if !concerned {
			continue
		}
		if len(clients.named) == 0 && finding.Outcome == preflight.Fail {
			finding = unnamedClients(use, finding, clients)
		}
		findings = append(findings, finding)
	}
	if len(findings) > 0 {
		return bounded(findings)
	}
	pass := fmt.Sprintf("in the last 24 hours no client used an API that %s or a later release removes; %d such APIs are known",
		update.Line(r.u.To), len(uses))
	if len(quiet) > 0 {
		pass += ". Only Kubernetes' own controllers, which look at every API, asked for " + someOf(quiet, 5)
	}
	return []preflight.Finding{{Outcome: preflight.Pass, Reason: "RemovedAPIsNotInUse", Message: pass}}
}

func (r removals) judgeDeprecated(deprecated []snapshot.DeprecatedAPI) []preflight.Finding {
	var findings []preflight.Finding
	for _, api := range deprecated {
		if finding, concerned := r.judge(api.Name, api.RemovedInRelease, "by whom, the API server's metrics do not tell"); concerned {
			finding.Remediation = "Find the clients in the audit log (annotation k8s.io/deprecated), and move them to the API that replaces it. " +
				"The metric is that of one API server since it started: kubectl get --raw /metrics"
			finding.Objects = nil
			findings = append(findings, finding)
		}
	}
	if len(findings) > 0 {
		return bounded(findings)
	}
	return []preflight.Finding{{
		Outcome: preflight.Pass, Reason: "RemovedAPIsNotInUse",
		Message: fmt.Sprintf("since the API server that answered started, it was asked for no API that %s or a later release removes", update.Line(r.u.To)),
	}}
}

// judge compares the removal of an API that is in use with the update. It does
// not concern an API that the cluster's own release has removed already.
func (r removals) judge(name, removed, clients string) (preflight.Finding, bool) {
	finding := preflight.Finding{
		Name: riskName("RemovedAPI", name),
		Remediation: "Move the clients to the API that replaces it. The counts are those of the last 24 hours: " +
			"oc get apirequestcount " + name + " -o yaml",
		URL:     "https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
		Objects: []preflight.Object{{APIVersion: apiserverv1.GroupVersion.String(), Kind: "APIRequestCount", Name: name}},
	}
	minor, ok := removedMinor(removed)
	switch {
	case !ok:
		finding.Outcome, finding.Reason = preflight.Unknown, "UnknownRelease"
		finding.Message = fmt.Sprintf("%s is in use (%s), and is removed in %q, which is not a release of Kubernetes, so nobody can tell whether %s has it",
			name, clients, short(removed, 64), update.Line(r.u.To))
	case minor <= r.from:
		return preflight.Finding{}, false
	case !r.known:
		finding.Outcome, finding.Reason = preflight.Unknown, "UnknownKubernetesVersion"
		finding.Message = fmt.Sprintf("%s is in use (%s), and is removed in Kubernetes 1.%d; which Kubernetes OpenShift %s has is not known here",
			name, clients, minor, update.Line(r.u.To))
	case minor <= r.to:
		finding.Outcome, finding.Reason = preflight.Fail, "RemovedAPIInUse"
		finding.Message = fmt.Sprintf("%s is in use (%s), and Kubernetes 1.%d of OpenShift %s no longer has it: it is removed in 1.%d; this does not block updates within %s",
			name, clients, r.to, update.Line(r.u.To), minor, update.Line(r.u.From))
	default:
		finding.Outcome, finding.Reason = preflight.Warn, "APIRemovalAhead"
		finding.Message = fmt.Sprintf("%s is in use (%s); %s still has it, but %s", name, clients, update.Line(r.u.To), remover(minor))
	}
	return finding, true
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

// unnamedClients is for an API that only unknown clients use: they may be
// Kubernetes' own controllers.
func unnamedClients(use snapshot.APIUse, finding preflight.Finding, clients clients) preflight.Finding {
	finding.Outcome, finding.Reason = preflight.Unknown, "UnknownClients"
	finding.Message = fmt.Sprintf("%s is removed by the target, and %d of the %d requests for it in 24 hours are by clients that the cluster does not name",
		use.Name, clients.unnamed, use.Requests)
	finding.Remediation = fmt.Sprintf("Have the cluster name more clients, and look again after some hours: "+
		"oc patch apirequestcount %s --type merge --patch '{\"spec\":{\"numberOfUsersToReport\":100}}'", use.Name)
	return finding
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

// String names those with most requests.
func (c clients) String() string {
	const most, length = 5, 100
	var texts []string
	for _, client := range c.named {
		texts = append(texts, fmt.Sprintf("%s with %q: %d requests", short(client.User, length), short(client.Agent, length), client.Requests))
	}
	text := "by " + someOf(texts, most)
	switch {
	case len(texts) == 0:
		return fmt.Sprintf("by clients that are not named: %d requests", c.unnamed)
	case c.unnamed > 0:
		return fmt.Sprintf("%s, and others that are not named: %d requests", text, c.unnamed)
	}
	return text
}
