// Package migration answers: which migration of the cluster itself is in progress?
//
// [Check] reads the status of operators by one table: the singleton objects of the cluster, with the conditions
// and fields by which an operator documents that it moves the cluster to another network, encryption, storage
// version, storage or revision. A migration is a warning, since no operator documents that an update breaks it,
// and each documents that it ends by itself or by a last step of the administrator. If an operator blocks updates
// meanwhile, its Upgradeable=False is a separate gate: the cluster-network-operator does so since 4.16.
//
// An update costs nine lists, which package platform reads as well. A resource that the API server does not serve
// has nothing to migrate: on a hosted cluster, with a disabled capability such as ImageRegistry, or on an older
// release. If a resource may not be read, or an archive does not contain it, the check is Unknown, and the other
// resources are still reported.
package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	"github.com/openshift/update-preflight/collector/words"
)

// maxNamed bounds the signs and the objects in one finding.
const maxNamed = 5

// Check is the check Migrations.
func Check() check.Check {
	var reads []access.Request
	for _, each := range sources() {
		reads = append(reads, check.List(each.Group, each.Resource))
	}
	return check.Check{
		Name: nameMigrations, Kind: finding.SourceHealth,
		Reads: append(check.ReadsTopology(), reads...),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			topology, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			if topology == snapshot.Kubernetes {
				return []finding.Finding{check.PlainKubernetes("operators")}, nil
			}
			objects, err := read(ctx, s.Cluster)
			return evaluate(gap.ExtentOf(ctx), objects, err), err
		},
	}
}

// read returns the objects of each resource that is served and may be read, by the resource. The error has
// every other failure.
func read(ctx context.Context, cluster *snapshot.Cluster) (map[string][]reported.Object, error) {
	objects := map[string][]reported.Object{}
	var failures []error
	for _, each := range sources() {
		found, err := cluster.Reports(ctx, each)
		resource := each.GroupResource().String()
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			failures = append(failures, fmt.Errorf("could not read %s: %w", resource, err))
		default:
			objects[resource] = found
		}
	}
	return objects, errors.Join(failures...)
}

// evaluate returns a finding for each migration that is in progress; none if there is none and something could not be
// read.
func evaluate(extent gap.Extent, objects map[string][]reported.Object, failure error) []finding.Finding {
	var findings []finding.Finding
	for _, each := range migrations() {
		if f, inProgress := each.evaluate(objects); inProgress {
			findings = append(findings, f)
		}
	}
	count := 0
	for _, found := range objects {
		count += len(found)
	}
	switch {
	case len(findings) > 0 || failure != nil:
		return findings
	case count == 0:
		return []finding.Finding{finding.Skipped(extent, reasonNothingReports,
			"the cluster has no object in which an operator reports a migration")}
	}
	return []finding.Finding{finding.Pass(extent, check.ReasonAsExpected, "no migration is in progress, according to %s of operators",
		words.Count(count, "object"))}
}

// evaluate returns the finding about a migration that is in progress; false if it is not.
func (m migration) evaluate(objects map[string][]reported.Object) (finding.Finding, bool) {
	var texts, failures []string
	var about []finding.Object
	for _, each := range m.signs {
		for i := range objects[each.resource] {
			object := &objects[each.resource][i]
			text := each.of(object, each.condition)
			if text == "" {
				continue
			}
			identity := finding.Object{APIVersion: object.APIVersion, Kind: object.Kind, Name: object.Name}
			texts = append(texts, check.Describe(identity)+": "+text)
			failures = append(failures, Failures(object)...)
			if len(about) < maxNamed && (len(about) == 0 || about[len(about)-1] != identity) {
				about = append(about, identity)
			}
		}
	}
	if len(texts) == 0 {
		return finding.Finding{}, false
	}
	f := finding.Warn(m.reason, "%s: %s", m.what, words.Clauses(texts, maxNamed)).Named(m.name).Do(m.actions...).About(about...)
	slices.Sort(failures)
	if failures = slices.Compact(failures); len(failures) > 0 { // waiting alone ends nothing
		f = f.Noted("%s", words.Clauses(failures, maxNamed)).Remedy(
			"Fix what the installer reports, and wait until all nodes are at the latest revision, then update.")
	}
	return f, true
}

// Reports is true if the check has a finding while an object of the resource has a condition of that type, so that
// other checks need none.
func Reports(resource, condition string) bool {
	return slices.ContainsFunc(migrations(), func(m migration) bool {
		return slices.ContainsFunc(m.signs, func(s sign) bool { return s.resource == resource && s.condition == condition })
	})
}

// Failures lists the nodes that cannot move to a later revision: the installer of a static pod failed, and no
// newer revision is being installed (StaticPodOperatorStatus of operator.openshift.io; library-go
// pkg/operator/staticpod/controller/installer).
func Failures(report *reported.Object) []string {
	var status struct {
		NodeStatuses []struct {
			NodeName                 string   `json:"nodeName"`
			CurrentRevision          int64    `json:"currentRevision"`
			TargetRevision           int64    `json:"targetRevision"`
			LastFailedRevision       int64    `json:"lastFailedRevision"`
			LastFailedReason         string   `json:"lastFailedReason"`
			LastFailedCount          int64    `json:"lastFailedCount"`
			LastFailedRevisionErrors []string `json:"lastFailedRevisionErrors"`
		} `json:"nodeStatuses"`
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(report.Status, &status) != nil {
		return nil // of another shape, as objects of other kinds may be
	}
	var failures []string
	for _, node := range status.NodeStatuses {
		if node.LastFailedRevision <= node.CurrentRevision || node.TargetRevision > node.LastFailedRevision {
			continue
		}
		count := ""
		if node.LastFailedCount > 1 {
			count = " " + words.Count(node.LastFailedCount, "time")
		}
		failures = append(failures, fmt.Sprintf("revision %d failed%s on %s%s: %s", node.LastFailedRevision, count, words.External(node.NodeName),
			words.Aside(words.External(node.LastFailedReason)), words.Line(strings.Join(node.LastFailedRevisionErrors, "; "), maxStated)))
	}
	return failures
}
