package guard

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/ownsignal"
)

func clusterOperator() object {
	return object{
		GroupVersionResource: configv1.GroupVersion.WithResource("clusteroperators"),
		kind:                 "ClusterOperator", name: ownsignal.ClusterOperator, hasStatus: true,
	}
}

// ClusterOperator is the switch of the ClusterOperator: Upgradeable is False exactly
// while the chosen target has no verdict that is Ready, and True without a chosen target.
// The version is that of the controller.
func ClusterOperator(client dynamic.Interface, version string, now func() time.Time) *Switch {
	return &Switch{
		name: "clusterOperator", client: client, now: now, objects: []object{clusterOperator()},
		build: func(verdicts []Verdict, present []*unstructured.Unstructured, now time.Time) ([]*unstructured.Unstructured, error) {
			var before configv1.ClusterOperator
			if present[0] != nil {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(present[0].Object, &before); err != nil {
					return nil, fmt.Errorf("could not read the conditions of %s: %w", clusterOperator().describe(), err)
				}
			}
			content, err := operatorContent(version, conditions(verdicts, before.Status.Conditions, now))
			return []*unstructured.Unstructured{content}, err
		},
	}
}

// operatorContent is the ClusterOperator. Its related objects are those that must-gather
// and "oc adm inspect" collect.
func operatorContent(version string, conditions []configv1.ClusterOperatorStatusCondition) (*unstructured.Unstructured, error) {
	status := configv1.ClusterOperatorStatus{
		Conditions:     conditions,
		Versions:       []configv1.OperandVersion{{Name: "operator", Version: version}},
		RelatedObjects: []configv1.ObjectReference{{Resource: "namespaces", Name: ownsignal.Namespace}},
	}
	for _, related := range append([]object{prometheusRule()}, admissionObjects()...) {
		status.RelatedObjects = append(status.RelatedObjects, configv1.ObjectReference{
			Group: related.Group, Resource: related.Resource, Namespace: related.namespace, Name: related.name,
		})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": configv1.GroupVersion.String(), "kind": "ClusterOperator",
		"metadata": map[string]any{"name": ownsignal.ClusterOperator}, "spec": map[string]any{}, "status": content,
	}}, nil
}

// conditions are those of the ClusterOperator. A condition keeps the time of its last
// transition while its status stays.
func conditions(verdicts []Verdict, before []configv1.ClusterOperatorStatusCondition, now time.Time) []configv1.ClusterOperatorStatusCondition {
	present := []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, Reason: "AsExpected", Message: "The verdict on the chosen target is reported as the condition Upgradeable."},
		{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, Reason: "AsExpected"},
		{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, Reason: "AsExpected"},
		upgradeable(verdicts, now),
	}
	for i := range present {
		present[i].LastTransitionTime = metav1.NewTime(now)
		for _, former := range before {
			if former.Type == present[i].Type && former.Status == present[i].Status {
				present[i].LastTransitionTime = former.LastTransitionTime
			}
		}
	}
	return present
}

// upgradeable is the condition for the verdict on the chosen target. Its message has no
// time, so that it changes only with the verdict.
func upgradeable(verdicts []Verdict, now time.Time) configv1.ClusterOperatorStatusCondition {
	condition := configv1.ClusterOperatorStatusCondition{
		Type: configv1.OperatorUpgradeable, Status: configv1.ConditionTrue, Reason: "NoTarget", Message: "No target is chosen.",
	}
	for _, verdict := range verdicts {
		switch {
		case !verdict.Chosen:
		case verdict.isReady(now):
			condition.Reason, condition.Message = "PreflightReady", fmt.Sprintf("The preflight of %s is Ready.", verdict.Version)
		default:
			condition.Status, condition.Reason = configv1.ConditionFalse, ownsignal.NotReady
			condition.Message = ownsignal.Message(fmt.Sprintf("the preflight of %s %s. Follow its report: oc preflight status", verdict.Version, verdict.standing(now)))
		}
	}
	return condition
}

// standing describes a verdict that is not Ready.
func (v Verdict) standing(now time.Time) string {
	switch {
	case v.Decision == "":
		return "has no verdict"
	case !now.Before(v.ValidUntil):
		return "has a verdict that has expired"
	}
	return "is " + v.Decision
}
