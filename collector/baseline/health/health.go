// Package health answers: which problems does an object report about itself?
//
// [Of] evaluates an object of any kind by the fields that the conventions of the Kubernetes API make its
// controller report: by kstatus of cli-utils, by the words of its conditions and phases (package reported), by the
// number of its ready parts, and by its addresses. Objects with other conventions are not evaluated.
package health

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/snapshot/reported"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = catalog.Reasons("An object of any kind has a problem after the update that it did not have before. A reason that is not "+
	"listed is the type of a condition, or a phase, of the object.", `
InProgress | Its controller has not reconciled it, or has not seen its last change. | Read its conditions, and the log of its controller.
	| oc describe KIND NAME -n NAMESPACE
NoAddress | Its status contains no load balancer address. | Read the events of the object, and the log of the load balancer controller.
	| oc describe KIND NAME -n NAMESPACE
ReportsError | Its status reports an error. | Fix the cause in the message. | oc describe KIND NAME -n NAMESPACE
NotScheduled | A CronJob was due twice since it last created a Job. | Read its events. | oc describe cronjob NAME -n NAMESPACE
PartsNotReady | Fewer of its parts are ready than requested. | Read its conditions, and its pods. | oc describe KIND NAME -n NAMESPACE`)

// Of returns the state of an object, with its problems, at a time of the cluster's clock. A run, which ends, has
// no problems.
func Of(object *unstructured.Unstructured, now time.Time) baseline.Object {
	made := baseline.Object{Revision: Revision(object.Object), Desired: desired(object.Object["spec"]), Detail: phaseOf(object.Object)}
	stated, _ := object.Object["status"].(map[string]any)
	if hasEnded(stated) {
		return baseline.Object{Revision: made.Revision}
	}
	idle := addConditions(&made, object, now)
	addPhases(&made, stated)
	addParts(&made, stated)
	addAddresses(&made, stated)
	addSchedule(&made, object, now)
	if len(made.Problems) == 0 && !idle {
		addProgress(&made, object)
	}
	return made
}

// hasEnded reports whether a status belongs to a run: it records when the run ended, as Jobs, TaskRuns, builds and
// backups do.
func hasEnded(stated map[string]any) bool {
	for _, field := range []string{"completionTime", "completionTimestamp", "finishedAt", "endTime", "stopTimestamp"} {
		if text, _ := stated[field].(string); text != "" {
			return true
		}
	}
	return false
}

const maxMessage = 400

// addConditions adds the conditions whose status is against the object, also those in lists of its status, such as the
// listeners of a Gateway.
//
// It reports whether one of them is against the object only because of what is so by choice, such as no traffic.
func addConditions(made *baseline.Object, object *unstructured.Unstructured, now time.Time) (idles bool) {
	of := reported.Object{Status: maps.Clone(mapOf(object.Object["status"]))}
	of.Reduce()
	idle := map[string]bool{}
	for _, each := range of.Conditions {
		against, _ := meaning(each)
		idle[each.Reason] = idle[each.Reason] || !against && each.Status == "False" && each.Reason != "" &&
			reported.MeaningOf(each.Type) == reported.Unclear
	}
	for _, each := range of.Conditions {
		against, reason := meaning(each)
		if against && idle[each.Reason] {
			against, idles = false, true
		}
		transition := each.LastTransitionTime.UTC()
		switch {
		case against:
			message := fmt.Sprintf("%s is %s", words.Line(each.Type, maxPhase),
				words.Condition(each.Status, words.External(each.Reason), words.Line(each.Message, maxMessage)))
			if each.LastTransitionTime.IsZero() || transition.After(now) {
				transition = time.Time{}
			}
			made.Add(baseline.Problem{Reason: reason, Since: transition, Message: message})
		case !each.LastTransitionTime.IsZero() && transition.After(made.Recovered) && reported.MeaningOf(each.Type) != reported.Unclear:
			made.Recovered = transition
		}
	}
	for _, each := range append(of.Errors, errorOf(object)...) {
		made.Add(baseline.Problem{Reason: "ReportsError", Message: words.External(each)})
	}
	return idles
}

// errorOf is the error in a status, as snapshots have it; none where there is none.
func errorOf(object *unstructured.Unstructured) []string {
	stated := mapOf(object.Object["status"])["error"]
	if of, ok := stated.(map[string]any); ok {
		stated = of["message"]
	}
	if text, ok := stated.(string); ok && text != "" {
		return []string{"status.error is " + words.Line(text, maxMessage)}
	}
	return nil
}

// meaning reports whether a condition is against its object, and the reason of that problem.
func meaning(of reported.Condition) (against bool, reason string) {
	switch reported.MeaningOf(of.Type) {
	case reported.Good:
		return of.Status != "True", camel("Not" + of.Type)
	case reported.Bad:
		return of.Status == "True", camel(of.Type)
	case reported.Progress:
	case reported.Unclear: // what is not so because something failed
		return of.Status == "False" && bad(of.Reason), camel("Not" + of.Type)
	}
	return false, ""
}

// camel is a text as a reason.
func camel(text string) string {
	var made strings.Builder
	upper := true
	for _, each := range text {
		switch {
		case !unicode.IsLetter(each) && !unicode.IsDigit(each):
			upper = true
			continue
		case upper:
			each = unicode.ToUpper(each)
		}
		upper = false
		made.WriteRune(each)
	}
	const longest = 60
	return words.Cut(made.String(), longest)
}

// maxPhase is the length of the longest text that may be a phase, in bytes.
const maxPhase = 40

// addPhases adds the fields of a status, and of a part of it, whose value is a word for something that is wrong: a phase
// "Failed", a robustness "faulted", a health "HEALTH_ERR". What was, and why, is none.
func addPhases(made *baseline.Object, stated map[string]any) {
	for _, each := range phases(stated) {
		if bad(each.value) {
			made.Add(baseline.Problem{
				Reason:  camel(each.field + " " + strings.ToLower(each.value)),
				Message: fmt.Sprintf("its %s is %s", each.field, words.External(each.value)),
			})
		}
	}
}

type phase struct{ field, value string }

// phases are the fields with a text that may be a phase, sorted.
func phases(stated map[string]any) []phase {
	var all []phase
	for _, field := range slices.Sorted(maps.Keys(stated)) {
		switch value := stated[field].(type) {
		case string:
			if states(field) && len(value) <= maxPhase && !strings.ContainsAny(value, ".:/=") {
				all = append(all, phase{field, value})
			}
		case map[string]any:
			for _, inner := range slices.Sorted(maps.Keys(value)) {
				if text, ok := value[inner].(string); ok && states(field) && states(inner) && len(text) <= maxPhase &&
					!strings.ContainsAny(text, ".:/=") {
					all = append(all, phase{inner, text})
				}
			}
		}
	}
	return all
}

// states reports whether a field states how the object is now: not what was before, why, or a name.
func states(field string) bool {
	lower := strings.ReplaceAll(strings.ToLower(field), "lastobserved", "")
	return !slices.ContainsFunc([]string{"last", "previous", "reason", "message", "name", "policy", "desired", "conditions", "history"},
		func(word string) bool {
			return strings.Contains(lower, word)
		})
}

// bad reports whether a phase has a word for something that is wrong, in any spelling.
func bad(value string) bool {
	negated := false
	for _, word := range strings.FieldsFunc(spaced(value), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if word == "" {
			continue
		}
		if reported.MeaningOf(strings.ToUpper(word[:1])+strings.ToLower(word[1:])) == reported.Bad {
			return !negated
		}
		negated = strings.EqualFold(word, "no") || strings.EqualFold(word, "not") || strings.EqualFold(word, "none")
	}
	return false
}

// spaced is a text in camel case as words.
func spaced(text string) string {
	var made strings.Builder
	before := ' '
	for _, each := range text {
		if unicode.IsUpper(each) && unicode.IsLower(before) {
			made.WriteRune(' ')
		}
		made.WriteRune(each)
		before = each
	}
	return made.String()
}

// phaseOf is the phase of an object, by which a later one is compared.
func phaseOf(object map[string]any) string {
	stated := mapOf(object["status"])
	for _, field := range []string{"phase", "state", "printableStatus", "health", "status"} {
		if text, ok := stated[field].(string); ok && len(text) <= maxPhase {
			return words.Line(text, maxPhase)
		}
	}
	return ""
}

// addParts adds the problem of an object whose parts are counted, and of which fewer are ready.
func addParts(made *baseline.Object, stated map[string]any) {
	counts := map[bool]int64{}
	for _, field := range slices.Sorted(maps.Keys(stated)) {
		count, ok := integer(stated[field])
		if strings.HasPrefix(strings.ToLower(field), "ready") && stated[field] == false {
			made.Add(baseline.Problem{Reason: camel("Not " + field), Message: "status." + words.External(field) + " is false"})
		}
		if lower := strings.ToLower(field); ok && (strings.HasPrefix(lower, "ready") || lower == "numberready") {
			counts[strings.HasSuffix(lower, "replicas") || strings.HasSuffix(lower, "instances")] += count
		}
	}
	ready, counted := counts[true]
	if !counted {
		ready, counted = counts[false]
	}
	if !counted {
		return
	}
	made.Ready = int32(min(max(ready, 0), math.MaxInt32))
	if made.Ready < made.Desired {
		made.Add(baseline.Problem{Reason: "PartsNotReady", Message: fmt.Sprintf("%d of %d are ready", made.Ready, made.Desired)})
	}
}

func integer(value any) (int64, bool) {
	switch number := value.(type) {
	case int64:
		return number, true
	case float64:
		return int64(number), number == math.Trunc(number) && math.Abs(number) < math.MaxInt32
	}
	return 0, false
}

// addAddresses adds the problem of an object whose load balancer has no address.
func addAddresses(made *baseline.Object, stated map[string]any) {
	balancer, ok := stated["loadBalancer"].(map[string]any)
	if !ok {
		return
	}
	if addresses, _ := balancer["ingress"].([]any); len(addresses) == 0 {
		made.Add(baseline.Problem{Reason: "NoAddress", Message: "its load balancer has no address"})
	}
}

// addSchedule adds the problem of an object that runs by a schedule, as a CronJob does, and was due twice since it last did.
func addSchedule(made *baseline.Object, object *unstructured.Unstructured, now time.Time) {
	spec, stated := mapOf(object.Object["spec"]), mapOf(object.Object["status"])
	text, _ := spec["schedule"].(string)
	zone, _ := spec["timeZone"].(string)
	last, err := time.Parse(time.RFC3339, fmt.Sprint(stated["lastScheduleTime"]))
	active, _ := stated["active"].([]any)
	if text == "" || err != nil || spec["suspend"] == true || spec["concurrencyPolicy"] == "Forbid" && len(active) > 0 {
		return
	}
	if zone != "" {
		text = "CRON_TZ=" + zone + " " + text
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return
	}
	second := schedule.Next(schedule.Next(last))
	const late = 10 * time.Minute // by which the controller may be
	if !second.IsZero() && second.Add(late).Before(now) {
		made.Add(baseline.Problem{Reason: "NotScheduled", Message: "it was due twice since " + words.Time(last)})
	}
}

// addProgress adds what kstatus says of an object that states nothing else against itself.
func addProgress(made *baseline.Object, object *unstructured.Unstructured) {
	result, err := status.Compute(object)
	if err != nil {
		return // it does not have the form that its kind has
	}
	switch result.Status {
	case status.FailedStatus:
		made.Add(baseline.Problem{Reason: "Failed", Message: words.Line(result.Message, maxMessage)})
	case status.InProgressStatus:
		made.Add(baseline.Problem{Reason: "InProgress", Message: words.Line(cmp.Or(result.Message, "it is not reconciled"), maxMessage)})
	case status.CurrentStatus, status.TerminatingStatus, status.NotFoundStatus, status.UnknownStatus:
	}
}

// desired is how many parts an object should have: the numbers of replicas and instances in its spec.
func desired(value any) int32 {
	var count int64
	for _, field := range []string{"replicas", "instances"} { // which decide alone
		if number, ok := integer(mapOf(value)[field]); ok {
			return int32(min(max(number, 0), math.MaxInt32))
		}
	}
	walk(value, func(field string, value any) {
		if number, ok := integer(value); ok && (field == "replicas" || field == "instances") {
			count += max(number, 0)
		}
	}, 0)
	return int32(min(count, math.MaxInt32)) //nolint:gosec // min bounds it to an int32
}

// maxDepth bounds how deep the spec of an object is read.
const maxDepth = 8

func walk(value any, visit func(field string, value any), depth int) {
	if depth > maxDepth {
		return
	}
	switch of := value.(type) {
	case map[string]any:
		for field, inner := range of {
			visit(field, inner)
			walk(inner, visit, depth+1)
		}
	case []any:
		for _, inner := range of {
			walk(inner, visit, depth+1)
		}
	}
}

// Revision identifies the part of an object that its owner decides about: everything except its metadata, its
// status and its number of replicas, which autoscalers change. It is empty if it cannot be encoded.
func Revision(object map[string]any) string {
	content := maps.Clone(object)
	for _, field := range []string{"metadata", "status", "apiVersion", "kind"} {
		delete(content, field)
	}
	if len(content) == 0 {
		return ""
	}
	text, err := json.Marshal(withoutReplicas(content, 0))
	if err != nil {
		return ""
	}
	sum := fnv.New32a()
	_, _ = sum.Write(text) // it never fails
	return strconv.FormatUint(uint64(sum.Sum32()), 16)
}

// withoutReplicas is a value without the numbers of replicas in it.
func withoutReplicas(value any, depth int) any {
	if depth > maxDepth {
		return value
	}
	switch of := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(of))
		for field, inner := range of {
			if lower := strings.ToLower(field); !strings.HasSuffix(lower, "replicas") && lower != "instances" {
				kept[field] = withoutReplicas(inner, depth+1)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(of))
		for _, inner := range of {
			kept = append(kept, withoutReplicas(inner, depth+1))
		}
		return kept
	}
	return value
}

func mapOf(value any) map[string]any {
	of, _ := value.(map[string]any)
	return of
}
