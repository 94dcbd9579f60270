// Package migration answers: which migration of the cluster itself is in progress?
//
// [Check] reads what operators report of themselves, by one table: the objects of which a cluster has one
// each, with the conditions and fields by which an operator documents that it moves the cluster to another
// network, encryption, storage version, storage or revision. A migration is a warning, since no operator
// documents that an update breaks it, and each documents that it ends by itself or by a last step of the
// administrator. Where an operator blocks updates meanwhile, its Upgradeable=False is a gate of its own: the
// cluster-network-operator does so since 4.16.
//
// An update costs nine requests, one for each resource. A resource that the API server does not serve has
// nothing to migrate: those of a hosted cluster, of a disabled capability such as ImageRegistry, and of an
// older release. Where a resource may not be read, or an archive does not have it, the check is Unknown, and
// what the others report stays.
package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// maxNamed bounds the signs and the objects in one finding.
const maxNamed = 5

// Check is the check Migrations.
func Check() check.Check {
	var reads []access.Request
	for _, each := range sources() {
		reads = append(reads, each.request())
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
			return judge(gap.ExtentOf(ctx), objects, err), err
		},
	}
}

// read returns the objects of each resource that is served and may be read, by the resource. The error has
// every other failure.
func read(ctx context.Context, cluster *snapshot.Cluster) (map[string][]object, error) {
	objects := map[string][]object{}
	var failures []error
	for _, each := range sources() {
		found, err := each.read(ctx, cluster)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			failures = append(failures, fmt.Errorf("could not read %s: %w", each.resource(), err))
		default:
			objects[each.resource()] = found
		}
	}
	return objects, errors.Join(failures...)
}

// judge returns a finding for each migration that is in progress; none where there is none and something
// could not be read.
func judge(extent gap.Extent, objects map[string][]object, failure error) []finding.Finding {
	var findings []finding.Finding
	for _, each := range migrations() {
		if f, inProgress := each.judge(objects); inProgress {
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
		return []finding.Finding{finding.Skipped(extent, reasonNothingReports, "the cluster has no object by which an operator reports a migration")}
	}
	return []finding.Finding{finding.Pass(extent, check.ReasonAsExpected, "no migration is in progress, by %s of operators", words.Count(count, "object"))}
}

// judge is the finding about a migration that is in progress; false for one that is not.
func (m migration) judge(objects map[string][]object) (finding.Finding, bool) {
	var texts, failures []string
	var about []finding.Object
	for _, each := range m.signs {
		for i := range objects[each.resource] {
			object := &objects[each.resource][i]
			text := each.of(object)
			if text == "" {
				continue
			}
			identity := object.identity()
			texts = append(texts, check.Describe(identity)+": "+text)
			failures = append(failures, object.failures()...)
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
		f = f.Noted("%s", words.Clauses(failures, maxNamed)).Remedy("Fix what the installer reports, and wait until all nodes are at the latest revision, then update.")
	}
	return f, true
}
