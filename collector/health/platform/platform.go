// Package platform answers: which object of the platform reports that something is wrong?
//
// [Check] reads the status of the operators' own objects, of every kind that the release ships: conditions by the
// conventions of the Kubernetes API, a phase, an error, and failed installers of static pods. The kinds come from
// the CustomResourceDefinitions of the cluster and from the related objects of ClusterOperators, and the meaning
// of a condition from its type ([reported.MeaningOf]). No kind and no type of a condition must be known: a
// condition whose meaning does not follow from its type is listed as not evaluated. Problems that another check
// reports are left to it ([elsewhere]).
//
// A finding warns: an operator whose problem blocks an update reports it in its ClusterOperator, which has its own
// check.
package platform

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/health/migration"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	"github.com/openshift/update-preflight/collector/words"
)

// Check is the check PlatformConditions.
func Check() check.Check {
	return check.Check{
		Name: namePlatformConditions, Kind: finding.SourceHealth,
		Reads: append(append(check.ReadsTopology(), check.List(apiextensionsv1.GroupName, "customresourcedefinitions"),
			check.List(configv1.GroupName, "clusteroperators")), groups()...),
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
				return []finding.Finding{finding.Skipped(gap.ExtentOf(ctx), reasonNoKinds,
					"the cluster has no CustomResourceDefinition of the release")}, nil
			}
			if err := of.read(ctx, s.Cluster); err != nil {
				return nil, err
			}
			return of.evaluate(gap.ExtentOf(ctx)), nil
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

// operatorsOfUsers is the group of OLM: the check Subscriptions reads its objects, which belong to users.
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

// newestRuns returns the reports without runs that a later one replaces: of the builds and backups of one owner,
// only the newest shows the current state.
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

// run identifies the executions of one owner.
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

var (
	namePlatformConditions = finding.NewName("PlatformConditions",
		"Checks for objects of the platform that report a failure, that is a failing condition, a phase Failed, an error, or static "+
			"pods whose installer failed. Each object of a kind that the release ships, or that a ClusterOperator names as its own, "+
			"has a finding PlatformConditions-<kind>.<namespace>.<name>. The last word of a condition's type determines its meaning: "+
			"Available, Degraded. Objects of an operator whose ClusterOperator is degraded or not available, failures that another "+
			"check reports, and objects in namespaces of users are excluded. It concerns every update, and warns.")

	reasonReportsFailure = finding.NewReason("ReportsFailure", finding.Explanation{
		Meaning: "The operator of a platform object reports a problem in the object's status.",
		Cause:   "A condition such as Degraded is True, or a condition such as Available is False.",
		Remedy:  "Fix the cause in the message, then update: `oc describe KIND NAME`.",
	})
	reasonProgressesLong = finding.NewReason("ProgressingForHours", finding.Explanation{
		Meaning: "An object of the platform has been progressing for more than two hours.",
		Cause:   "A rollout does not complete. No operator of the platform takes that long for one of its own.",
		Remedy:  "Find out what the rollout waits for: `oc describe KIND NAME`. Waiting longer rarely helps.",
	})
	reasonNothingReported = finding.NewReason("NothingReported", finding.Explanation{
		Meaning: "No object of the platform reports a failure.",
		Cause:   "All conditions with a known meaning have the expected status.",
	})
	reasonNoKinds = finding.NewReason("NoKindsOfRelease", finding.Explanation{
		Meaning: "The cluster has no CustomResourceDefinition of the release.",
		Cause:   "Each release of OpenShift ships dozens of them, so this is not a complete cluster.",
	})
	reasonMeaningUnknown = finding.NewReason("ConditionNotEvaluated", finding.Explanation{
		Meaning: "Some conditions of the platform's objects are not evaluated.",
		Cause:   "Their type does not show whether True is good or bad.",
	})
)

const (
	// settled is from when a condition counts: operators pass most of their own on after this time only
	// (library-go pkg/operator/status, the inertia of conditions).
	settled = 2 * time.Minute
	// long is from when progress does not look like progress.
	long = 2 * time.Hour
	// maxText bounds a text of an object, in bytes, and maxNamed the conditions or kinds in a message.
	maxText, maxNamed = 512, 5
	// maxUnclear bounds the types of conditions that are listed as not evaluated.
	maxUnclear = 60
)

type platform struct {
	now       time.Time
	operators []configv1.ClusterOperator
	kinds     []*kind
}

func (p *platform) evaluate(read gap.Extent) []finding.Finding {
	var found []finding.Finding
	others, count := map[string]bool{}, 0
	for _, each := range p.kinds {
		for _, report := range ofPlatform(each.reports) {
			count++
			if f, ok := p.judgeReport(each, report, others); ok {
				found = append(found, f)
			}
		}
	}
	drafts := append(finding.Bounded(finding.Drafts(found...)), p.unread()...)
	if len(drafts) == 0 {
		drafts = append(drafts, finding.Pass(read, reasonNothingReported, "none of %s of %s of the platform reports a failure",
			words.Count(count, "object"), words.Count(len(p.kinds), "kind")))
	}
	if len(others) > 0 {
		list := words.List(slices.Sorted(maps.Keys(others)), maxUnclear)
		drafts = append(drafts, finding.Skipped(read, reasonMeaningUnknown, "the types of these conditions do not show their meaning: "+
			"%s", list).
			Observed(map[string]string{reported.NotEvaluated: list}))
	}
	return drafts
}

// unread is about the kinds that could not be read.
func (p *platform) unread() []finding.Finding {
	var names []string
	var failure error
	for _, each := range p.kinds {
		if each.unread != nil {
			names, failure = append(names, each.Spec.Names.Kind), each.unread
		}
	}
	if failure == nil {
		return nil
	}
	return check.Unread(words.List(names, maxNamed), failure)
}

// ofPlatform are the reports of objects that are the platform's: not in namespaces of users, and no run that a later one
// replaces.
func ofPlatform(reports []reported.Object) []*reported.Object {
	return slices.DeleteFunc(newestRuns(reports), func(report *reported.Object) bool {
		return report.Namespace != "" && !check.OfCluster(report.Namespace) || report.Name == ownsignal.ClusterOperator
	})
}

// judgeReport is false for an object without a failure, or with one that its ClusterOperator reports.
func (p *platform) judgeReport(of *kind, report *reported.Object, others map[string]bool) (finding.Finding, bool) {
	if report.Spec["managementState"] == "Removed" || p.saidByOperator(of, report) {
		return finding.Finding{}, false
	}
	s := p.statementsOf(of, report, others)
	reason, remedy := reasonReportsFailure, "Fix the cause in the message, then update."
	switch {
	case len(s.failures) > 0:
	case len(s.slow) > 0:
		reason, remedy = reasonProgressesLong, "Find out what it waits for: waiting longer rarely helps."
	default:
		return finding.Finding{}, false
	}
	name := of.Spec.Names.Kind
	object := finding.Object{APIVersion: of.resource.GroupVersion().String(), Kind: name, Namespace: report.Namespace, Name: report.Name}
	describe := finding.Read("oc describe %s %s", of.resource.GroupResource().String(), report.Name).Namespaced(report.Namespace)
	return finding.Warn(reason, "%s: %s", check.Describe(object), words.Clauses(append(s.failures, s.slow...), maxNamed)).
		Named(finding.NameOf(namePlatformConditions,
			strings.Join(slices.DeleteFunc([]string{name, report.Namespace, report.Name}, isEmpty), "."))).
		Remedy("%s", remedy).Do(describe).About(object), true
}

func isEmpty(text string) bool { return text == "" }

// statements are the problems that an object reports, as clauses.
type statements struct{ failures, slow []string }

func (p *platform) statementsOf(of *kind, report *reported.Object, others map[string]bool) statements {
	var s statements
	known := false
	for _, each := range report.Conditions {
		if isElsewhere(of.resource, each.Type) {
			known = known || each.Status == metav1.ConditionTrue
			continue
		}
		meaning, age := reported.MeaningOf(each.Type), each.For(p.now)
		against := meaning == reported.Good && each.Status == metav1.ConditionFalse || meaning == reported.Bad &&
			each.Status == metav1.ConditionTrue
		switch {
		case against && (each.LastTransitionTime.IsZero() || age >= settled):
			s.failures = append(s.failures, describe(each))
		case meaning == reported.Progress && each.Status == metav1.ConditionTrue && age >= long:
			s.slow = append(s.slow, describe(each))
		case meaning == reported.Unclear:
			others[words.External(each.Type)] = true
		}
	}
	s.failures = append(s.failures, report.Errors...)
	if reported.MeaningOf(report.Phase) == reported.Bad {
		s.failures = append(s.failures, "its phase is "+words.External(report.Phase))
	}
	if !known {
		s.failures = append(s.failures, migration.Failures(report)...)
	}
	return s
}

func describe(c reported.Condition) string {
	text := c.Type + " is " + words.Condition(c.Status, words.External(c.Reason), words.Line(c.Message, maxText))
	if c.Of != "" {
		text = "in status." + c.Of + ", " + text
	}
	if !c.LastTransitionTime.IsZero() {
		text += ", since " + words.Time(c.LastTransitionTime.Time)
	}
	return text
}

// saidByOperator is true where a ClusterOperator that names the object as its own, or is it, is degraded or not
// available.
func (p *platform) saidByOperator(of *kind, report *reported.Object) bool {
	for i := range p.operators {
		troubled := slices.ContainsFunc(p.operators[i].Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool {
			return c.Type == configv1.OperatorDegraded && c.Status == configv1.ConditionTrue || c.Type == configv1.OperatorAvailable &&
				c.Status == configv1.ConditionFalse
		})
		itself := of.resource.GroupResource() == configv1.Resource("clusteroperators") && p.operators[i].Name == report.Name
		if troubled && (itself || slices.ContainsFunc(p.operators[i].Status.RelatedObjects, func(r configv1.ObjectReference) bool {
			return isOf(r, of.resource) && cmp.Or(r.Name, report.Name) == report.Name && cmp.Or(r.Namespace, report.Namespace) == report.Namespace
		})) {
			return true
		}
	}
	return false
}
