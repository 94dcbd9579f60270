package guard

import (
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

const (
	asExpected = "AsExpected"
	// maxMessage bounds the message of a condition, in bytes.
	maxMessage = 1024
)

var _ = catalog.Reasons("The condition Upgradeable of the ClusterOperator of the controller does not block.", `
NoTarget | No update is selected or offered.`)

func clusterOperator() owned.Object {
	return owned.Object{
		GroupVersionResource: configv1.GroupVersion.WithResource("clusteroperators"),
		Kind:                 "ClusterOperator", Name: ownsignal.ClusterOperator, HasStatus: true,
	}
}

// ClusterOperator is the switch of the ClusterOperator: that of [Operator], with the
// condition Upgradeable, which is False exactly while the chosen target has no verdict
// that is Ready, and True without a chosen target.
func ClusterOperator(client dynamic.Interface, version string, now func() time.Time) *Switch {
	made := Operator(client, version, now)
	made.objects.Optional = false
	made.build = operatorBuilder(version, func(state State, now time.Time) []configv1.ClusterOperatorStatusCondition {
		return append(health(state), upgradeable(state.Verdicts, now))
	})
	return made
}

// Operator is the ClusterOperator while the switch is off: it has no effect on updates, and
// is not applied where the API is not served. The version is the version of the controller.
//
// Available is True once it was applied, and stays True when the controller ends.
// Degraded is True while [State.Degraded] has a cause. Progressing is False: the
// controller has nothing to roll out.
func Operator(client dynamic.Interface, version string, now func() time.Time) *Switch {
	objects := objectsOf(nameOperator, client, clusterOperator())
	objects.Optional = true
	return &Switch{
		objects: objects, now: now,
		build: operatorBuilder(version, func(state State, _ time.Time) []configv1.ClusterOperatorStatusCondition { return health(state) }),
	}
}

// operatorBuilder makes the content of the ClusterOperator with these conditions.
func operatorBuilder(version string, conditions func(State, time.Time) []configv1.ClusterOperatorStatusCondition) builder {
	return func(state State, present []*unstructured.Unstructured, now time.Time) ([]*unstructured.Unstructured, error) {
		before, err := readOperator(present[0])
		if err != nil {
			return nil, err
		}
		content, err := operatorContent(version, dated(conditions(state, now), before.Status.Conditions, now))
		return []*unstructured.Unstructured{content}, err
	}
}

// readOperator is the content of the ClusterOperator; empty where it does not exist.
func readOperator(present *unstructured.Unstructured) (configv1.ClusterOperator, error) {
	var read configv1.ClusterOperator
	if present == nil {
		return read, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(present.Object, &read); err != nil {
		return read, fmt.Errorf("could not read the conditions of %s: %w", clusterOperator().Describe(), err)
	}
	return read, nil
}

// operatorContent is the ClusterOperator. Its related objects are those that must-gather
// and "oc adm inspect" collect; without a name, all of the resource.
func operatorContent(version string, conditions []configv1.ClusterOperatorStatusCondition) (*unstructured.Unstructured, error) {
	status := configv1.ClusterOperatorStatus{
		Conditions: conditions,
		Versions:   []configv1.OperandVersion{{Name: "operator", Version: version}},
		RelatedObjects: []configv1.ObjectReference{
			{Resource: "namespaces", Name: ownsignal.Namespace},
			{Resource: "configmaps", Namespace: record.Namespace},
			{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: ownsignal.Definition},
			{Group: "preflight.openshift.io", Resource: "updatepreflights"},
		},
	}
	for _, related := range append([]owned.Object{prometheusRule()}, admissionObjects()...) {
		status.RelatedObjects = append(status.RelatedObjects, configv1.ObjectReference{
			Group: related.Group, Resource: related.Resource, Namespace: related.Namespace, Name: related.Name,
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

// health are the conditions that every ClusterOperator has.
func health(state State) []configv1.ClusterOperatorStatusCondition {
	degraded := configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, Reason: asExpected}
	if state.Degraded != "" {
		degraded.Status, degraded.Reason, degraded.Message = configv1.ConditionTrue, "VerdictsNotCurrent", words.Line(state.Degraded, maxMessage)
	}
	return []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, Reason: asExpected, Message: "The verdicts on the selected and the offered targets are recorded. Show one: oc preflight status --to VERSION"},
		{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, Reason: asExpected},
		degraded,
	}
}

// dated has the time of the last transition of each condition: that of the condition
// before while its status stays, and otherwise now.
func dated(conditions, before []configv1.ClusterOperatorStatusCondition, now time.Time) []configv1.ClusterOperatorStatusCondition {
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.NewTime(now)
		for _, former := range before {
			if former.Type == conditions[i].Type && former.Status == conditions[i].Status {
				conditions[i].LastTransitionTime = former.LastTransitionTime
			}
		}
	}
	return conditions
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
			condition.Reason, condition.Message = "PreflightReady", fmt.Sprintf("The preflight of %s is Ready%s.", verdict.target(), verdict.remark())
		default:
			condition.Status, condition.Reason = configv1.ConditionFalse, ownsignal.NotReady
			condition.Message = ownsignal.Message(fmt.Sprintf("the preflight of %s %s. Follow its report: oc preflight status%s", verdict.target(), verdict.standing(now), verdict.flag()))
		}
	}
	return condition
}

// flag names the target to "oc preflight status"; empty where nothing does.
func (v Verdict) flag() string {
	switch {
	case v.Version != "":
		return " --to " + v.Version
	case v.Digest != "":
		return " --to-image " + v.Digest
	}
	return ""
}

// standing describes a verdict that is not Ready.
func (v Verdict) standing(now time.Time) string {
	switch {
	case v.Digest == "":
		return "has no verdict, since the image has no digest"
	case v.Decision == "":
		return "has no verdict"
	case v.Decision == Ready && v.Refusal != "":
		return "has no verdict that counts: " + words.Line(v.Refusal, maxCause)
	case !now.Before(v.ValidUntil):
		return "has a verdict that is no longer valid"
	}
	return "is " + v.Decision
}

// remark is the remark in parentheses; empty for none.
func (v Verdict) remark() string {
	if v.Remark == "" {
		return ""
	}
	return " (" + words.Line(v.Remark, maxCause) + ")"
}
