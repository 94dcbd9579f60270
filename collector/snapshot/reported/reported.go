// Package reported answers: what does an object report about itself?
//
// An [Object] contains the conditions, the phase and the errors that its controller reports, by the conventions of
// the Kubernetes API. A snapshot lists the objects of any resource as such.
package reported

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/words"
)

// Object is an object with the problems that its controller reports ([Parts]).
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   map[string]any `json:"spec"`
	Status map[string]any `json:"status"`
	// Phase is the phase in the status, and Errors its errors, as clauses.
	Phase  string   `json:"-"`
	Errors []string `json:"-"`
	// Conditions are the conditions of the object, and of the items of lists in its status.
	Conditions []Condition `json:"-"`
}

// Condition is one of an Object.
type Condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
	// LastTransitionTime is zero if the controller sets none.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// Of is the field of the status whose items have the condition; empty for one of the object.
	Of string `json:"-"`
}

// For returns how long the condition has had its status; zero if it does not record the time.
func (c Condition) For(now time.Time) time.Duration {
	if c.LastTransitionTime.IsZero() {
		return 0
	}
	return now.Sub(c.LastTransitionTime.Time)
}

// The fields of a status by which a controller reports a failure without a condition: a phase, and the errors of Cluster
// API, of its predecessor and of Metal³.
const (
	phaseField      = "phase"
	errorMessage    = "errorMessage"
	failureMessage  = "failureMessage"
	conditionsField = "conditions"
)

// NotEvaluated is the fact of a finding that lists the types of conditions with an unknown meaning.
const NotEvaluated = "notEvaluated"

// Is reports whether a field of a status is one by which an object reports how it is.
func Is(field string) bool {
	return slices.Contains([]string{conditionsField, phaseField, errorMessage, failureMessage}, field)
}

// Parts returns the parts of the spec and of the status from which an [Object] is built. For the storage of the
// image registry, this is its type.
func Parts(object map[string]any) map[string]map[string]any {
	spec, _ := object["spec"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	parts := map[string]map[string]any{
		"spec": only(spec, "managementState", "migration", storageField),
		"status": only(status, phaseField, errorMessage, failureMessage, "observedGeneration", "nodeStatuses", "migration", storageField,
			conditionsField),
	}
	for field, value := range status {
		if items := conditionsOf(value); items != nil {
			parts["status"][field] = items
		}
	}
	for _, part := range parts {
		types, _ := part[storageField].(map[string]any)
		for name, value := range types {
			if _, ok := value.(map[string]any); ok {
				types = maps.Clone(types)
				types[name] = map[string]any{}
				part[storageField] = types
			}
		}
	}
	return parts
}

// maxText bounds an error of an object, in bytes.
const maxText = 512

const storageField = "storage"

func only(fields map[string]any, names ...string) map[string]any {
	kept := map[string]any{}
	for _, name := range names {
		if value, ok := fields[name]; ok {
			kept[name] = value
		}
	}
	return kept
}

// conditionsOf are the items of a list that have conditions, with nothing else.
func conditionsOf(value any) []any {
	listed, _ := value.([]any)
	var items []any
	for _, item := range listed {
		of, _ := item.(map[string]any)
		if conditions, ok := of[conditionsField]; ok {
			items = append(items, map[string]any{conditionsField: conditions})
		}
	}
	return items
}

// Condition returns the condition of the object of that type; false if it has none.
func (r *Object) Condition(kind string) (Condition, bool) {
	at := slices.IndexFunc(r.Conditions, func(each Condition) bool { return each.Type == kind && each.Of == "" })
	if at < 0 {
		return Condition{}, false
	}
	return r.Conditions[at], true
}

// Reduce keeps only the reported parts of a decoded object.
func (r *Object) Reduce() {
	parts := Parts(map[string]any{"spec": r.Spec, "status": r.Status})
	r.Spec, r.Status = parts["spec"], parts["status"]
	r.add(r.Status[conditionsField], "")
	r.Phase, _ = r.Status[phaseField].(string)
	for _, field := range []string{errorMessage, failureMessage} {
		if text, _ := r.Status[field].(string); text != "" {
			r.Errors = append(r.Errors, fmt.Sprintf("status.%s is %q", field, words.Line(text, maxText)))
		}
	}
	for _, field := range slices.Sorted(maps.Keys(r.Status)) {
		items, _ := r.Status[field].([]any)
		for _, item := range items {
			of, _ := item.(map[string]any)
			r.add(of[conditionsField], field)
		}
	}
	maps.DeleteFunc(r.Status, func(field string, value any) bool { return field == conditionsField || conditionsOf(value) != nil })
}

// add adds the conditions of a list; what is none is left out.
func (r *Object) add(listed any, of string) {
	items, _ := listed.([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		var condition Condition
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &condition) == nil && condition.Type != "" {
			condition.Of = of
			r.Conditions = append(r.Conditions, condition)
		}
	}
}

// Groups returns the API groups of the platform, whose kinds are all read: only the cluster knows which kinds
// exist, and a role names groups. A test compares them with the definitions of openshift/api.
func Groups() []string {
	return []string{
		"apiextensions.openshift.io", "cloud.network.openshift.io", "cloudcredential.openshift.io", "config.openshift.io",
		"controlplane.operator.openshift.io",
		"etcd.openshift.io", "helm.openshift.io", "imageregistry.operator.openshift.io", "ingress.operator.openshift.io", "insights.openshift.io",
		"machine.openshift.io", "machineconfiguration.openshift.io", "metal3.io", "monitoring.coreos.com", "monitoring.openshift.io",
		"network.openshift.io",
		"network.operator.openshift.io", "operator.openshift.io", "route.openshift.io", "samples.operator.openshift.io",
		"sharedresource.openshift.io", "tuned.openshift.io",
	}
}

// Meaning says whether a True condition, or a phase of this name, is good or bad for an object.
type Meaning int

const (
	// Unclear is a type that does not say it: "Upgradeable", "Encrypted".
	Unclear Meaning = iota
	// Good is a condition that is True while all is well.
	Good
	// Bad is a condition that is True while something is wrong.
	Bad
	// Progress is a condition that is True while something changes.
	Progress
)

// vocabulary are the last words of the types of conditions, by their meaning. The types themselves are open:
// "CanaryChecksSucceeding" and "NodeControllerDegraded" are of operators which add others as they need them. Sources:
// Kubernetes API conventions, "Typical status properties"; openshift/api config/v1, ClusterStatusConditionType; library-go
// pkg/operator/condition; cli-utils pkg/kstatus, whose Reconciling and Stalled are among them.
func vocabulary() map[Meaning][]string {
	return map[Meaning][]string{
		Good: {
			"Accepted", "Admitted", "Available", "Bound", "Connected", "Established", "Healthy", "Programmed", "Reachable", "Ready", "Reconciled",
			"Succeeded", "Succeeding", "Success", "Synced", "Valid",
		},
		Bad: {
			"Crashed", "Degraded", "Denied", "Err", "Error", "Errors", "Expired", "Failed", "Failing", "Failure", "Faulted", "Invalid", "Lost",
			"Red", "Rejected", "Stalled",
			"Unavailable", "Unhealthy", "Unreachable",
		},
		Progress: {"Progressing", "Reconciling", "Updating"},
	}
}

// MeaningOf is the meaning of a type by its last word. "Not" or "No" before that makes the opposite of it.
func MeaningOf(condition string) Meaning {
	rest, word := lastWord(condition)
	_, before := lastWord(rest)
	negated := before == "Not" || before == "No"
	for _, each := range []struct{ of, opposite Meaning }{{Good, Bad}, {Bad, Good}, {Progress, Unclear}} {
		switch {
		case !slices.Contains(vocabulary()[each.of], word):
		case negated:
			return each.opposite
		default:
			return each.of
		}
	}
	return Unclear
}

// lastWord is the last word of a name in camel case, and what is before it.
func lastWord(name string) (rest, word string) {
	at := strings.LastIndexFunc(name, unicode.IsUpper)
	if at < 0 {
		return "", name
	}
	return name[:at], name[at:]
}
