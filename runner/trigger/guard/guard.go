// Package guard answers: how is an unmodified cluster-version operator (CVO) made to honor a verdict?
//
// With one of three switches. Each consists of a few objects in the cluster, and is off until it is applied:
//
//   - [Alert] is advice. An alert is a risk of every update to oc and, with the feature
//     gate ClusterUpdateAcceptRisks, to CVO. A second alert fires when no verdict can be
//     read, so that silence does not mean Ready.
//   - [ClusterOperator] blocks updates that leave the minor version, to all targets,
//     while the chosen target is not Ready. It takes CVO up to four minutes to notice.
//   - [Admission] warns of, or denies, the selection of a target that is not Ready, patch
//     updates included, before CVO starts. It needs Kubernetes 1.30.
//
// Force bypasses each of them. None remains after [Switch.Remove]. A [Set] contains the chosen switches, and the
// ClusterOperator, which must-gather and "oc adm inspect" follow; it exists even while its switch is off, without
// Upgradeable.
//
// The alerts select metrics with the job "update-preflight": the Service of the metrics must have that name
// ([Service]), and its ServiceMonitor no jobLabel.
//
// Without the controller, which applies the switches again when a verdict changes or expires, the objects do not
// change: the second alert fires, and Upgradeable and the verdicts of the policy remain. A target without a verdict
// then results in a warning or a denial, and one that was Ready passes although its verdict has expired, since a policy
// has no clock.
//
// The only permission in a namespace that opens a switch is the permission to edit the PrometheusRule: the other
// objects are cluster-scoped.
package guard

import (
	"cmp"
	_ "embed" // the manifests
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

// Ready is the decision that allows an update. Any other decision, and none, does not.
const Ready = "Ready"

// MaxVerdicts bounds the verdicts of one [Switch.Apply].
const MaxVerdicts = 500

// State is the content of the objects.
type State struct {
	// Verdicts are those on the targets, at most MaxVerdicts.
	Verdicts []Verdict
	// Degraded is why the verdicts may not be current; empty while they are.
	Degraded string
}

// Verdict is the newest verdict on one target.
type Verdict struct {
	// Digest identifies the release image, "sha256:" and 64 hex digits; empty for an image
	// without one, which is never Ready.
	Digest string
	// Version is the semantic version of the release; empty if unknown.
	Version string
	// Decision is the decision of the report; empty while there is none.
	Decision string
	// Refusal is why the verdict does not permit the update, as a clause about its run; empty if it does. Remark is how
	// its run differs from the controller's; empty if it does not.
	Refusal, Remark string
	// ValidUntil ends the verdict: from then on it is as if there were none.
	ValidUntil time.Time
	// Chosen marks the target that Upgradeable of the ClusterOperator depends on; at
	// most one verdict is chosen.
	Chosen bool
}

// target names the target of the verdict in a message.
func (v Verdict) target() string { return cmp.Or(v.Version, v.Digest, "an image without a digest") }

// isReady reports whether the verdict allows the update at that time.
func (v Verdict) isReady(now time.Time) bool {
	return v.Digest != "" && v.Decision == Ready && v.Refusal == "" && now.Before(v.ValidUntil)
}

// maxCause bounds the cause in an answer, in bytes.
const maxCause = 256

// Answer is Ready, or why the update is not allowed at that time, as in the policies.
func (v Verdict) Answer(now time.Time) string {
	switch {
	case v.isReady(now):
		return Ready
	case v.Decision == "":
		return "missing"
	case v.Decision != Ready:
		return words.Line(v.Decision, maxCause)
	case v.Refusal != "":
		return words.Line("not valid: "+v.Refusal, maxCause)
	}
	return "expired: it was valid until " + words.Time(v.ValidUntil)
}

var digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Check returns an error for verdicts that no object can express.
func Check(verdicts []Verdict) error {
	if len(verdicts) > MaxVerdicts {
		return fmt.Errorf("%d verdicts are more than the %d that a switch can have", len(verdicts), MaxVerdicts)
	}
	digests, chosen := map[string]bool{}, ""
	for _, verdict := range verdicts {
		if verdict.Digest != "" && !digestPattern.MatchString(verdict.Digest) {
			return fmt.Errorf("the digest %q of a verdict is not sha256: and 64 hex digits", verdict.Digest)
		}
		if _, err := semver.Parse(verdict.Version); err != nil && verdict.Version != "" {
			return fmt.Errorf("the version %q of the verdict on %s is not a semantic version: %w", verdict.Version, verdict.Digest, err)
		}
		if digests[verdict.Digest] {
			return fmt.Errorf("two verdicts are on %s", verdict.Digest)
		}
		if verdict.Chosen && chosen != "" {
			return fmt.Errorf("both %s and %s were chosen", chosen, verdict.target())
		}
		digests[verdict.Digest] = true
		if verdict.Chosen {
			chosen = verdict.target()
		}
	}
	return nil
}

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

// ClusterOperator is the switch that extends the ClusterOperator of [Operator] with the condition Upgradeable, which is
// False exactly while the chosen target has no verdict that is Ready, and True without a chosen target.
func ClusterOperator(client dynamic.Interface, version string, now func() time.Time) *Switch {
	made := Operator(client, version, now)
	made.objects.Optional = false
	made.build = operatorBuilder(version, func(state State, now time.Time) []configv1.ClusterOperatorStatusCondition {
		return append(health(state), upgradeable(state.Verdicts, now))
	})
	return made
}

// Operator is the ClusterOperator while the switch is off: it has no effect on updates, and is not applied if the API
// is not served. The version is the version of the controller.
//
// Available is True once it was applied, and stays True when the controller ends. Degraded is True while
// [State.Degraded] has a cause. Progressing is False: the controller has nothing to roll out.
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
		{
			Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, Reason: asExpected,
			Message: "The verdicts on the selected and the offered targets are recorded. Show one: oc preflight " +
				"status --to VERSION",
		},
		{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, Reason: asExpected},
		degraded,
	}
}

// dated sets the time of the last transition of each condition: the previous time while the status stays the same, and
// otherwise now.
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
			condition.Reason, condition.Message = "PreflightReady",
				fmt.Sprintf("The preflight of %s is Ready%s.", verdict.target(), verdict.remark())
		default:
			condition.Status, condition.Reason = configv1.ConditionFalse, ownsignal.NotReady
			condition.Message = ownsignal.Message(fmt.Sprintf("the preflight of %s %s. Follow its report: oc preflight status%s", verdict.target(),
				verdict.standing(now), verdict.flag()))
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

//go:embed admission.yaml
var admissionManifests string

// admissionObjects are in the order in which they are applied: the policy takes effect by
// its binding.
func admissionObjects() []owned.Object {
	group := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	return []owned.Object{
		{
			GroupVersionResource: group.WithResource("validatingadmissionpolicies"), Kind: "ValidatingAdmissionPolicy",
			Name: ownsignal.ClusterOperator,
		},
		{
			GroupVersionResource: group.WithResource("validatingadmissionpolicybindings"), Kind: "ValidatingAdmissionPolicyBinding",
			Name: ownsignal.ClusterOperator,
		},
	}
}

// Admission returns the switch of the admission policy. It returns an error for an unknown mode.
//
// The verdicts are part of the policy. With a ConfigMap as its parameters, its author would need to read all
// ConfigMaps, and an API server that has stopped watching them, since the last policy with such parameters was deleted,
// may not start again (k8s.io/apiserver v0.36, policy_source.go); the parameters of a kind of its own would deny forced
// updates too once the kind is deleted.
func Admission(client dynamic.Interface, mode Mode, now func() time.Time) (*Switch, error) {
	if mode != Warn && mode != Deny {
		return nil, fmt.Errorf("the mode %q of the admission policy is neither %s nor %s", mode, Warn, Deny)
	}
	return &Switch{
		objects: objectsOf(nameAdmission, client, admissionObjects()...), now: now,
		build: func(state State, _ []*unstructured.Unstructured, now time.Time) ([]*unstructured.Unstructured, error) {
			contents, err := owned.Parse(strings.Split(admissionManifests, "\n---\n")...)
			if err != nil {
				return nil, err
			}
			policy, binding := contents[0], contents[1]
			if mode == Warn { // an error of the policy must not deny anything either
				err = unstructured.SetNestedField(policy.Object, "Ignore", "spec", "failurePolicy")
			}
			if err := errors.Join(err, setVerdicts(policy, state.Verdicts, now)); err != nil {
				return nil, err
			}
			err = unstructured.SetNestedStringSlice(binding.Object, []string{string(mode)}, "spec", "validationActions")
			return []*unstructured.Unstructured{policy, binding}, err
		},
	}, nil
}

// variableVerdicts is the variable of the policy with the decision on each digest.
const variableVerdicts = "verdicts"

// setVerdicts sets the answers on the digests, as a map of the Common Expression Language (CEL). A map of strings in
// JSON is one.
func setVerdicts(policy *unstructured.Unstructured, verdicts []Verdict, now time.Time) error {
	decisions := map[string]string{}
	for _, verdict := range verdicts {
		if verdict.Digest != "" && verdict.Decision != "" {
			decisions[verdict.Digest] = verdict.Answer(now)
		}
	}
	expression, err := json.Marshal(decisions)
	if err != nil {
		return err
	}
	variables, _, err := unstructured.NestedSlice(policy.Object, "spec", "variables")
	for i, variable := range variables {
		if named, _ := variable.(map[string]any); named["name"] == variableVerdicts {
			variables[i] = map[string]any{"name": variableVerdicts, "expression": string(expression)}
		}
	}
	return errors.Join(err, unstructured.SetNestedSlice(policy.Object, variables, "spec", "variables"))
}

//go:embed alert.yaml
var alertManifest string

func prometheusRule() owned.Object {
	return owned.Object{
		GroupVersionResource: schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheusrules"},
		Kind:                 "PrometheusRule", Namespace: ownsignal.Namespace, Name: ownsignal.ClusterOperator,
	}
}

// Service is the name of the Service of the metrics in the namespace of the objects. The alerts select metrics by the
// job of its ServiceMonitor, which has that name, so the ServiceMonitor must not have a jobLabel.
const Service = "update-preflight"

// Alert is the switch of the alerts. They depend on the metrics of the controller, so the
// verdicts do not change them. The cluster's Prometheus uses them only if the namespace
// has the label openshift.io/cluster-monitoring=true, and the metrics have the job of
// [Service].
func Alert(client dynamic.Interface) *Switch {
	return &Switch{
		objects: objectsOf(nameAlert, client, prometheusRule()), now: time.Now,
		build: func(State, []*unstructured.Unstructured, time.Time) ([]*unstructured.Unstructured, error) {
			return owned.Parse(alertManifest)
		},
	}
}
