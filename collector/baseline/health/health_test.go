package health_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/health"
)

func now() time.Time { return time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC) }

// state is the state of an object, YAML without its metadata. One without a kind is a Widget.
func state(tb testing.TB, text string) baseline.Object {
	tb.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	if content["kind"] == nil {
		content["apiVersion"], content["kind"] = "example.com/v1", "Widget"
	}
	encoded, err := json.Marshal(content)
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(encoded) // with the numbers that an API server sends
	}
	if err != nil {
		tb.Fatalf("%v: %s", err, text)
	}
	object.SetName("a")
	return health.Of(object, now())
}

// row is what an object says, and the reasons of its problems.
type row struct {
	reason, object string
	want           []string
}

func test(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, each := range state(t, tc.object).Problems {
				got = append(got, each.Reason)
				if each.Message == "" || strings.Contains(each.Message, "<nil>") {
					t.Errorf("%s has the message %q", each.Reason, each.Message)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// conditions is a status with conditions, each "TYPE STATUS REASON".
func conditions(all ...string) string { return "{status: {conditions: [" + listed(all...) + "]}}" }

func listed(all ...string) string {
	var items []string
	for _, each := range all {
		fields := append(strings.Fields(each), "")
		items = append(items, "{type: "+fields[0]+", status: '"+fields[1]+"', reason: '"+fields[2]+
			"', lastTransitionTime: '2026-11-25T11:00:00Z'}")
	}
	return strings.Join(items, ", ")
}

func TestConditions(t *testing.T) {
	test(t, map[string]row{
		"Ready":    {reason: "all is well", object: conditions("Ready True")},
		"NotReady": {reason: "a good type that is False", object: conditions("Ready False Pending"), want: []string{"NotReady"}},
		"Unknown":  {reason: "what is not known is not good", object: conditions("Synced Unknown"), want: []string{"NotSynced"}},
		"Degraded": {
			reason: "a bad type that is True", object: conditions("Available True", "ControllerDegraded True"),
			want: []string{"ControllerDegraded"},
		},
		"NotDegraded": {reason: "a bad type that is False", object: conditions("Available True", "Degraded False")},
		"Autoscaler": {
			reason: "the type is unclear, and the reason says that something failed",
			object: conditions("AbleToScale True", "ScalingActive False FailedGetResourceMetric"), want: []string{"NotScalingActive"},
		},
		"ToZero":      {reason: "its workload is scaled to none", object: conditions("ScalingActive False ScalingDisabled")},
		"Budget":      {reason: "it is at its limit", object: conditions("DisruptionAllowed False InsufficientPods")},
		"Upgradeable": {reason: "it is about the next update", object: conditions("Upgradeable False AdminAckRequired")},
		"Progressing": {reason: "a rollout is none of its problems", object: conditions("Available True", "Progressing True")},
		"Negated":     {reason: "a good type that is negated", object: conditions("NotReady True"), want: []string{"NotReady"}},
		"Listener": {reason: "a list of its status has conditions", object: "{status: {conditions: [" + listed("Programmed True") +
			"], listeners: [{name: https, conditions: [" + listed("Programmed False Invalid") + "]}]}}", want: []string{"NotProgrammed"}},
		"Parent": {reason: "so has a route, for each of its parents", object: "{status: {parents: [{conditions: [" +
			listed("Accepted True") + "]}, {conditions: [" + listed("Accepted False NoMatchingParent") + "]}]}}", want: []string{"NotAccepted"}},
		"Garbage":      {reason: "it has another form", object: "{status: {conditions: {Ready: 'False'}}}"},
		"GarbageItems": {reason: "it has items of another form", object: "{status: {conditions: [Ready, 7, {status: 'False'}, {type: 3}]}}"},
		"Error":        {reason: "its status has an error", object: "{status: {error: {message: no quota}}}", want: []string{"ReportsError"}},
		"NoError":      {reason: "it has none", object: "{status: {error: ''}}"},
		"Knative": {
			reason: "a service that is scaled to none without traffic is as it should be",
			object: conditions("Active False NoTraffic", "Ready False NoTraffic"),
		},
		"NoStatus": {reason: "it says nothing", object: "{spec: {a: b}}"},
	})
}

func TestPhases(t *testing.T) {
	test(t, map[string]row{
		"Failed": {reason: "the phase is a word for it", object: "{status: {phase: Failed}}", want: []string{"PhaseFailed"}},
		"Ceph": {
			reason: "in capitals, in a part of the status", object: "{status: {ceph: {health: HEALTH_ERR}}}",
			want: []string{"HealthHealthErr"},
		},
		"CephWarns": {reason: "a warning is no error", object: "{status: {ceph: {health: HEALTH_WARN}}}"},
		"Volume":    {reason: "in lower case", object: "{status: {robustness: faulted}}", want: []string{"RobustnessFaulted"}},
		"Search":    {reason: "a color", object: "{status: {health: red}}", want: []string{"HealthRed"}},
		"Machine": {
			reason: "in camel case", object: "{status: {printableStatus: ErrorUnschedulable}}",
			want: []string{"PrintableStatusErrorunschedulable"},
		},
		"NoError":  {reason: "it is negated", object: "{status: {state: NoError}}"},
		"NoErrors": {reason: "so is this", object: "{status: {state: no errors}}"},
		"Node": {
			reason: "it begins with No, which is no negation", object: "{status: {phase: NodeFailed}}",
			want: []string{"PhaseNodefailed"},
		},
		"Last":     {reason: "it was so before", object: "{status: {lastState: Failed, previousPhase: Error, phase: Running}}"},
		"Why":      {reason: "a reason is none", object: "{status: {statusReason: Failed, errorMessage: ''}}"},
		"Name":     {reason: "it is a name", object: "{status: {serviceName: error, currentRevisionName: failed-1}}"},
		"Selector": {reason: "a selector is no phase", object: "{status: {selector: app=error-pages, replicas: 1}}"},
		"Policy":   {reason: "it is what is wanted", object: "{status: {failurePolicy: Failed, desiredState: Lost}}"},
		"Sentence": {reason: "a sentence is no phase", object: "{status: {note: 'the error was: x'}}"},
		"Health": {
			reason: "of Argo CD", object: "{status: {health: {status: Degraded}, sync: {status: OutOfSync}}}",
			want: []string{"StatusDegraded"},
		},
		"Innocent":   {reason: "these are good", object: "{status: {phase: Succeeded, state: Active, health: green, robustness: healthy}}"},
		"Deployable": {reason: "a word within a word is another one", object: "{status: {phase: Colored, state: Errorless}}"},
	})
}

func TestParts(t *testing.T) {
	test(t, map[string]row{
		"All":     {reason: "all are ready", object: "{spec: {replicas: 3}, status: {replicas: 3, readyReplicas: 3}}"},
		"Lacking": {reason: "one is not", object: "{spec: {replicas: 3}, status: {readyReplicas: 2}}", want: []string{"PartsNotReady"}},
		"Instances": {
			reason: "a database counts its instances", object: "{spec: {instances: 3}, status: {readyInstances: 2}}",
			want: []string{"PartsNotReady"},
		},
		"Groups": {reason: "its parts are in groups", object: "{spec: {workerGroupSpecs: [{replicas: 2}, {replicas: 3}]}, status: " +
			"{readyWorkerReplicas: 4}}", want: []string{"PartsNotReady"}},
		"None":      {reason: "it should have none", object: "{spec: {replicas: 0}, status: {readyReplicas: 0}}"},
		"Uncounted": {reason: "it does not count them", object: "{spec: {replicas: 3}, status: {phase: Running}}"},
		"False":     {reason: "it states that it is not ready", object: "{status: {ready: false}}", want: []string{"NotReady"}},
		"Two": {
			reason: "another part of the spec has replicas of something else",
			object: "{spec: {replicas: 3, backup: {replicas: 1}}, status: {readyReplicas: 3}}",
		},
		"TwoCounts": {
			reason: "zones that are ready are no replicas", object: "{spec: {replicas: 3}, status: {readyReplicas: 1, readyZones: 2}}",
			want: []string{"PartsNotReady"},
		},
		"Balancer": {reason: "it has no address", object: "{status: {loadBalancer: {}}}", want: []string{"NoAddress"}},
		"Address":  {reason: "it has one", object: "{status: {loadBalancer: {ingress: [{hostname: a.example.com}]}}}"},
		"Huge": {
			reason: "a number that is too large is cut",
			object: "{spec: {replicas: 99999999999}, status: {readyReplicas: 99999999999}}",
		},
		"Negative": {reason: "a negative one counts as none", object: "{spec: {replicas: -1}, status: {readyReplicas: -1}}"},
	})
}

func TestSchedules(t *testing.T) {
	cron := func(spec, status string) string {
		return "{apiVersion: batch/v1, kind: CronJob, spec: {" + spec + "}, status: {" + status + "}}"
	}
	const hourly = "schedule: '0 * * * *'"
	late := []string{"NotScheduled"}
	test(t, map[string]row{
		"OnTime":    {reason: "it ran at 12", object: cron(hourly, "lastScheduleTime: '2026-11-25T12:00:00Z'")},
		"Once":      {reason: "it was due once, a moment ago", object: cron(hourly, "lastScheduleTime: '2026-11-25T11:00:00Z'")},
		"Twice":     {reason: "it was due at 10 and 11", object: cron(hourly, "lastScheduleTime: '2026-11-25T09:00:00Z'"), want: late},
		"JustTwice": {reason: "the controller may be late", object: cron("schedule: '55 * * * *'", "lastScheduleTime: '2026-11-25T09:55:00Z'")},
		"Suspended": {reason: "its owner has suspended it", object: cron(hourly+", suspend: true", "lastScheduleTime: '2026-11-20T09:00:00Z'")},
		"Resumed": {
			reason: "false is the default", object: cron(hourly+", suspend: false", "lastScheduleTime: '2026-11-20T09:00:00Z'"),
			want: late,
		},
		"Never": {reason: "it is new", object: cron(hourly, "")},
		"Zone": {
			reason: "in its zone the day has just begun",
			object: cron("schedule: '0 0 * * *', timeZone: Pacific/Auckland", "lastScheduleTime: '2026-11-24T11:00:00Z'"),
		},
		"ZoneLate": {
			reason: "and the day before as well",
			object: cron("schedule: '0 0 * * *', timeZone: Pacific/Auckland", "lastScheduleTime: '2026-11-22T11:00:00Z'"), want: late,
		},
		"NoZone": {
			reason: "the zone does not exist",
			object: cron(hourly+", timeZone: Mars/Base", "lastScheduleTime: '2026-11-20T09:00:00Z'"),
		},
		"Broken": {reason: "the schedule cannot be read", object: cron("schedule: 'each hour'", "lastScheduleTime: '2026-11-20T09:00:00Z'")},
		"Seconds": {
			reason: "a schedule of another kind has seconds",
			object: cron("schedule: '0 0 * * * *'", "lastScheduleTime: '2026-11-20T09:00:00Z'"),
		},
		"Impossible": {reason: "the day does not exist", object: cron("schedule: '0 0 30 2 *'", "lastScheduleTime: '2026-11-20T09:00:00Z'")},
		"Word": {
			reason: "a schedule may be a word", object: cron("schedule: '@hourly'", "lastScheduleTime: '2026-11-25T08:00:00Z'"),
			want: late,
		},
		"Busy": {
			reason: "it forbids a second Job beside the one that still runs",
			object: cron(hourly+", concurrencyPolicy: Forbid", "active: [{name: a-1}], lastScheduleTime: '2026-11-25T06:00:00Z'"),
		},
	})
}

func TestProgress(t *testing.T) {
	test(t, map[string]row{
		"Unobserved": {
			reason: "its controller has not seen the last change",
			object: "{metadata: {generation: 3}, spec: {a: b}, status: {observedGeneration: 2}}", want: []string{"InProgress"},
		},
		"Observed":   {reason: "it has", object: "{metadata: {generation: 3}, spec: {a: b}, status: {observedGeneration: 3}}"},
		"Reconciles": {reason: "it is being reconciled", object: conditions("Reconciling True"), want: []string{"InProgress"}},
		"Stalled": {
			reason: "the condition says it, so that kstatus adds nothing", object: conditions("Stalled True"),
			want: []string{"Stalled"},
		},
		"Ended": {
			reason: "a run that has ended stays as it is",
			object: "{status: {completionTime: '2026-11-25T11:00:00Z', phase: Failed, conditions: [" + listed("Succeeded False Failed") + "]}}",
		},
		"Backup":   {reason: "so does a backup", object: "{status: {completionTimestamp: '2026-11-25T11:00:00Z', phase: PartiallyFailed}}"},
		"Workflow": {reason: "and a workflow", object: "{status: {finishedAt: '2026-11-25T11:00:00Z', phase: Error}}"},
		"Runs": {
			reason: "one that has failed and has not ended is bad", object: "{status: {finishedAt: null, phase: Error}}",
			want: []string{"PhaseError"},
		},
		"WrongForm": {
			reason: "it has not the form of its kind",
			object: "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: 7, status: []}",
		},
	})
}

// Since when, and until when: a time in the future is none.
func TestTimes(t *testing.T) {
	at := now().Add(-time.Hour)
	if bad := state(t, conditions("Ready False", "Synced True")); len(bad.Problems) != 1 || !bad.Problems[0].Since.Equal(at) ||
		!bad.Recovered.Equal(at) {
		t.Errorf("%+v", bad)
	}
	future := strings.ReplaceAll(conditions("Ready False"), "2026-11-25T11", "2026-11-25T13")
	if bad := state(t, future); len(bad.Problems) != 1 || !bad.Problems[0].Since.IsZero() {
		t.Errorf("%+v", bad)
	}
}

// The revision is what the owner decides about.
func TestRevision(t *testing.T) {
	const object = "{metadata: {labels: {a: b}}, spec: {replicas: 3, image: web, pools: [{minReplicas: 1, size: 2}]}, status: " +
		"{phase: Running}}"
	want := state(t, object).Revision
	for name, tc := range map[string]struct {
		reason, old, text string
		same              bool
	}{
		"Replicas":   {reason: "an autoscaler changes it", old: "replicas: 3", text: "replicas: 5", same: true},
		"Inner":      {reason: "in a list as well", old: "minReplicas: 1", text: "minReplicas: 2", same: true},
		"Status":     {reason: "a controller writes it", old: "Running", text: "Failed", same: true},
		"Labels":     {reason: "these are no part of it", old: "a: b", text: "a: c", same: true},
		"Image":      {reason: "its owner changed it", old: "image: web", text: "image: api"},
		"InnerField": {reason: "in a list as well", old: "size: 2", text: "size: 3"},
	} {
		if got := state(t, strings.Replace(object, tc.old, tc.text, 1)).Revision; (got == want) != tc.same || got == "" {
			t.Errorf("%s: %q, and was %q: %s", name, got, want, tc.reason)
		}
	}
	if got := state(t, "{status: {phase: Running}}"); got.Revision != "" || got.Detail != "Running" {
		t.Errorf("%+v", got)
	}
}

// No status makes a name, a message or a reason that is too long, or one that a State cannot have.
func TestHostileStatus(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	got := state(t, "{status: {phase: \"Failed\\u0007\", '"+long[:1000]+"': Failed, conditions: ["+listed("Ready"+long+"Failed True "+long)+
		"], error: \""+long+"\\n\\e[31m\"}}")
	for _, each := range got.Problems {
		if len(each.Reason) > 100 || len(each.Message) > 2000 || strings.ContainsAny(each.Message+each.Reason, "\n\x1b\x07") {
			t.Errorf("%.200q: %.200q (%d)", each.Reason, each.Message, len(each.Message))
		}
	}
	if !slices.IsSortedFunc(got.Problems, func(a, b baseline.Problem) int { return strings.Compare(a.Reason, b.Reason) }) ||
		len(got.Problems) < 3 {
		t.Errorf("%d problems", len(got.Problems))
	}
}
