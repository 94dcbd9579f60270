package serving

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameNamespaces = finding.NewName("Namespaces",
		"The check for namespaces that are being deleted: a finding NamespaceTerminating-<name> for each. One "+
			"that CVO applies blocks every update; for others it warns, if the deletion has taken two minutes.")

	nameNamespaceTerminating = finding.NewName("NamespaceTerminating",
		"A finding of the check Namespaces about a namespace that is being deleted: NamespaceTerminating-<name>.")

	reasonNamespaceTerminating = finding.NewReason("NamespaceTerminating", finding.Explanation{
		Meaning: "Reported for a namespace that is being deleted.",
		Cause: "An API that is not served, or a finalizer of an object in it, stops the deletion. In a namespace of the " +
			"release the API server refuses every new object, so that CVO cannot apply the release.",
		Remedy: "Remove what its conditions name: `oc get namespace NAME -o yaml`.",
	})
)

// deletionTime is how long the deletion of a namespace may take.
const deletionTime = 2 * time.Minute

// Namespaces is the check Namespaces.
func Namespaces() check.Check {
	return check.Check{
		Name: nameNamespaces, Kind: finding.SourceHealth,
		Reads: []access.Request{check.List("", "namespaces")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			all, err := s.Cluster.TerminatingNamespaces(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not list the namespaces: %w", err)
			}
			var found []finding.Finding
			for i := range all {
				if f, ok := judgeNamespace(&all[i], s.Now); ok {
					found = append(found, f)
				}
			}
			if len(found) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected, "the deletion of no namespace has stopped")}, nil
			}
			return finding.Bounded(finding.Drafts(found...)), nil
		},
	}
}

func judgeNamespace(namespace *corev1.Namespace, now time.Time) (finding.Finding, bool) {
	since := now.Sub(namespace.DeletionTimestamp.Time)
	var f finding.Finding
	switch {
	case check.OfRelease(namespace):
		f = finding.Fail(reasonNamespaceTerminating, "namespace %s of the release is being deleted since %s, so that CVO can create nothing in it: %s",
			namespace.Name, words.Time(namespace.DeletionTimestamp.Time), stopped(namespace))
	case since >= deletionTime:
		f = finding.Warn(reasonNamespaceTerminating, "namespace %s is being deleted since %s: %s",
			namespace.Name, words.Time(namespace.DeletionTimestamp.Time), stopped(namespace))
	default:
		return finding.Finding{}, false
	}
	return f.Named(nameNamespaceTerminating+"-"+namespace.Name).
		Remedy("%s", obstaclesOf(namespace)).
		Do(finding.Read("oc get namespace %s -o yaml", namespace.Name)).Do(inspect(namespace)...).
		About(finding.Object{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name}), true
}

// stopped is what stops the deletion, in the words of the namespace controller
// (Kubernetes pkg/controller/namespace/deletion/status_condition_utils.go).
func stopped(namespace *corev1.Namespace) string {
	var causes []string
	for _, condition := range namespace.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			causes = append(causes, string(condition.Type)+": "+words.Line(condition.Message, maxCause))
		}
	}
	if len(causes) == 0 {
		return "its conditions name no cause"
	}
	return strings.Join(causes, "; ")
}

// obstacle stops the deletion of a namespace; remedy and command end that.
type obstacle struct {
	remedy  string
	inspect finding.Action
}

// obstacles are those of the conditions of the namespace controller. A new deletion changes nothing: the present one
// continues by itself when the obstacle is gone.
func obstacles(namespace string) map[corev1.NamespaceConditionType]obstacle {
	left := finding.Read("oc api-resources --verbs=list --namespaced -o name | xargs -n 1 oc -n %s get --ignore-not-found --show-kind -o "+
		"custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers", namespace)
	remaining := obstacle{"Let the operator of the objects that remain remove their finalizers; remove those of an operator that is gone.", left}
	return map[corev1.NamespaceConditionType]obstacle{
		corev1.NamespaceDeletionDiscoveryFailure: {"Repair the servers of the APIServices that are not available, or delete those of servers that were removed.", finding.Read("oc get apiservices")},
		corev1.NamespaceDeletionGVParsingFailure: {"Correct the API group whose version cannot be parsed.", finding.Read("oc api-versions")},
		corev1.NamespaceDeletionContentFailure: {
			"Restore what the message names. If it is a conversion webhook that was removed, set spec.conversion.strategy of the CustomResourceDefinition to None.",
			finding.Read("oc get crd -o custom-columns=NAME:.metadata.name,CONVERSION:.spec.conversion.strategy,SERVICE:.spec.conversion.webhook.clientConfig.service.namespace"),
		},
		corev1.NamespaceContentRemaining:    remaining,
		corev1.NamespaceFinalizersRemaining: remaining,
	}
}

// present are the obstacles of a namespace, each once, in the order of its conditions.
func present(namespace *corev1.Namespace) []obstacle {
	var found []obstacle
	for _, condition := range namespace.Status.Conditions {
		each, known := obstacles(namespace.Name)[condition.Type]
		if known && condition.Status == corev1.ConditionTrue && !slices.ContainsFunc(found, func(other obstacle) bool { return other.remedy == each.remedy }) {
			found = append(found, each)
		}
	}
	return found
}

func obstaclesOf(namespace *corev1.Namespace) string {
	var remedies []string
	for _, each := range present(namespace) {
		remedies = append(remedies, each.remedy)
	}
	if len(remedies) == 0 {
		remedies = []string{"Remove what stops the deletion."}
	}
	return strings.Join(append(remedies, "The deletion then ends by itself: check that the namespace is gone or was created again."), " ")
}

func inspect(namespace *corev1.Namespace) []finding.Action {
	var actions []finding.Action
	for _, each := range present(namespace) {
		actions = append(actions, each.inspect)
	}
	return actions
}
