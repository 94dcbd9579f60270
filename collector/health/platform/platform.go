// Package platform answers: which object of the platform reports that something is wrong?
//
// [Check] reads what operators report in their own objects, of every kind that the release ships: conditions by the
// conventions of the Kubernetes API, a phase, an error, and installers of static pods that failed. The kinds come from
// the CustomResourceDefinitions of the cluster and from what ClusterOperators name as theirs, and the meaning of a
// condition from its type ([reported.MeaningOf]). No kind and no type of a condition has to be known: one whose meaning does not
// follow from its type is listed as not evaluated. What another check reports of an object is left to it ([elsewhere]).
//
// A finding warns: an operator whose trouble stops an update says so in its ClusterOperator, which is checked by
// itself.
package platform

import (
	"context"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/health/migration"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
)

// Check is the check PlatformConditions.
func Check() check.Check {
	return check.Check{
		Name: namePlatformConditions, Kind: finding.SourceHealth,
		Reads: append(append(check.ReadsTopology(), check.List(apiextensionsv1.GroupName, "customresourcedefinitions"), check.List(configv1.GroupName, "clusteroperators")), groups()...),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			topology, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			if topology == snapshot.Kubernetes {
				return []finding.Finding{check.PlainKubernetes("operators")}, nil
			}
			definitions, err := s.Cluster.Definitions(ctx)
			if err != nil {
				return check.Unread("CustomResourceDefinitions", err), ctx.Err()
			}
			operators, err := s.Cluster.ClusterOperators(ctx)
			if err != nil && !apierrors.IsNotFound(err) {
				return check.Unread("ClusterOperators", err), ctx.Err()
			}
			of := platform{now: s.Now, operators: operators, kinds: kindsOf(definitions, operators)}
			if len(of.kinds) == 0 {
				return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), reasonNoKinds, "the cluster has no CustomResourceDefinition of the release")}, nil
			}
			if err := of.read(ctx, s.Cluster); err != nil {
				return nil, err
			}
			return of.judge(gap.ExtentOf(ctx)), nil
		},
	}
}

// groups are the requests for the kinds of the platform. A kind of another group is read by users who may read everything, and
// reported as unread by others.
func groups() []access.Request {
	var all []access.Request
	for _, group := range reported.Groups() {
		all = append(all, check.List(group, access.All))
	}
	return all
}

// kind is a kind of the platform, and what could be read of it.
type kind struct {
	snapshot.Definition

	resource schema.GroupVersionResource
	reports  []reported.Object
	unread   error
}

// kindsOf are the kinds that the release ships, or that a ClusterOperator names as its own, whose objects report
// anything.
func kindsOf(definitions []snapshot.Definition, operators []configv1.ClusterOperator) []*kind {
	var kinds []*kind
	for i := range definitions {
		resource, reports := definitions[i].Reporting()
		ours := check.OfRelease(&definitions[i]) || slices.ContainsFunc(operators, func(operator configv1.ClusterOperator) bool {
			return slices.ContainsFunc(operator.Status.RelatedObjects, func(r configv1.ObjectReference) bool { return isOf(r, resource) })
		})
		if reports && ours && !whollyElsewhere(resource) {
			kinds = append(kinds, &kind{Definition: definitions[i], resource: resource})
		}
	}
	return kinds
}

func isOf(reference configv1.ObjectReference, resource schema.GroupVersionResource) bool {
	return reference.Group == resource.Group && reference.Resource == resource.Resource
}

// elsewhere are the conditions of which other checks have findings, by the resource: no types are all of them. What is missing
// here is said twice.
func elsewhere() map[string][]string {
	return map[string][]string{
		"clusterversions.config.openshift.io":                       nil, // the gates of ClusterVersion
		"apirequestcounts.apiserver.openshift.io":                   nil, // RemovedAPIs; it has no conditions of its own
		"kubeletconfigs.machineconfiguration.openshift.io":          nil, // GeneratedConfigs
		"containerruntimeconfigs.machineconfiguration.openshift.io": nil,
		"storageversionmigrations.migration.k8s.io":                 nil, // Migrations
		"clusteroperators.config.openshift.io":                      {"Available", "Degraded"},
		"machineconfigpools.machineconfiguration.openshift.io":      {"Updating", "Degraded", "NodeDegraded", "RenderDegraded"},
		"machineconfignodes.machineconfiguration.openshift.io":      {"NodeDegraded"}, // NodesDegraded
	}
}

// operatorsOfUsers is the group of OLM: the check Subscriptions reads its objects, which are those of users.
const operatorsOfUsers = "operators.coreos.com"

func whollyElsewhere(resource schema.GroupVersionResource) bool {
	types, known := elsewhere()[resource.GroupResource().String()]
	return known && types == nil || resource.Group == operatorsOfUsers
}

func isElsewhere(resource schema.GroupVersionResource, condition string) bool {
	name := resource.GroupResource().String()
	return slices.Contains(elsewhere()[name], condition) || migration.Reports(name, condition)
}

// atOnce bounds the lists that are read at the same time.
const atOnce = 8

// read reads the objects of all kinds. A kind that is not served has none.
func (p *platform) read(ctx context.Context, cluster *snapshot.Cluster) error {
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(atOnce)
	for _, each := range p.kinds {
		reading.Go(func() error {
			found, err := cluster.Reports(ctx, each.resource)
			if err != nil && !apierrors.IsNotFound(err) {
				each.unread = err
			}
			each.reports = found
			return ctx.Err()
		})
	}
	return reading.Wait()
}

// newestRuns are the reports without those of runs that a later one replaces: of the builds and backups of one owner,
// only the newest states how things are.
func newestRuns(reports []reported.Object) []*reported.Object {
	newest := map[run]*reported.Object{}
	var all []*reported.Object
	for i := range reports {
		of := &reports[i]
		if !isRun(of) {
			all = append(all, of)
			continue
		}
		owner := run{namespace: of.Namespace}
		if len(of.OwnerReferences) > 0 {
			owner.owner = of.OwnerReferences[0].UID
		}
		if before := newest[owner]; before == nil || before.CreationTimestamp.Before(&of.CreationTimestamp) {
			newest[owner] = of
		}
	}
	for _, of := range newest {
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b *reported.Object) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return all
}

// run is what the executions of one owner have in common.
type run struct {
	namespace string
	owner     types.UID
}

// isRun is true for an object that stands for one execution: it ends with either of two conditions.
func isRun(of *reported.Object) bool {
	has := func(types ...string) bool {
		return slices.ContainsFunc(types, func(kind string) bool { _, ok := of.Condition(kind); return ok })
	}
	return has("Failed") && has("Succeeded", "Complete", "Completed")
}
