package removedapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	argoUser  = "system:serviceaccount:gitops:argocd"
	argoAgent = "argocd/v2.1"
)

// dayAt is a time of the day of the tests, "14:20".
func dayAt(t *testing.T, clock string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, "2026-11-22T"+clock+":00Z")
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// uses are the hours in which one client used the API. Hours before 22 are of the day of
// the tests, the others of the day before.
type uses struct {
	user, agent string
	hours       []int
}

// through are the hours of the night and the day up to this one.
func through(last int) []int {
	hours := []int{22, 23}
	for hour := range last + 1 {
		hours = append(hours, hour)
	}
	return hours
}

// day is the count of an API whose use two API servers reported in all hours up to now,
// apart from the hour without the second one, where it is not negative.
func day(t *testing.T, now time.Time, without int, clients ...uses) *apiserverv1.APIRequestCount {
	t.Helper()
	count := usage(schemas, "1.32")
	count.Status.Last24h = make([]apiserverv1.PerResourceAPIRequestLog, 24)
	for hour := range count.Status.Last24h {
		if hour == (now.Hour()+1)%24 {
			continue // the API servers empty it in advance
		}
		log := &count.Status.Last24h[hour]
		log.ByNode = []apiserverv1.PerNodeAPIRequestLog{{NodeName: "master-0"}, {NodeName: "master-1"}}
		if hour == without {
			log.ByNode = log.ByNode[:1]
		}
		for _, client := range clients {
			for _, used := range client.hours {
				if used == hour {
					log.ByNode[0].ByUser = append(log.ByNode[0].ByUser, requests(client.user, client.agent, 3))
					log.ByNode[0].RequestCount += 3
					log.RequestCount += 3
				}
			}
		}
		count.Status.RequestCount += log.RequestCount
	}
	count.Status.CurrentHour = count.Status.Last24h[now.Hour()]
	return count
}

// owned are the workloads of the service account argocd.
type owned struct {
	pods         []metav1.PartialObjectMetadata
	deployments  []appsv1.Deployment
	daemonSets   []appsv1.DaemonSet
	statefulSets []appsv1.StatefulSet
	cronJobs     []batchv1.CronJob
}

func (o owned) responses(t *testing.T) map[string]checktest.Response {
	t.Helper()
	const apps, namespace = "/apis/apps/v1/namespaces/gitops/", "/apis/batch/v1/namespaces/gitops/"
	return map[string]checktest.Response{
		"/api/v1/namespaces/gitops/pods": podsOf(t, "argocd", o.pods),
		apps + "deployments":             checktest.Pages(t, "apps/v1", "DeploymentList", o.deployments),
		apps + "daemonsets":              checktest.Pages(t, "apps/v1", "DaemonSetList", o.daemonSets),
		apps + "statefulsets":            checktest.Pages(t, "apps/v1", "StatefulSetList", o.statefulSets),
		namespace + "cronjobs":           checktest.Pages(t, "batch/v1", "CronJobList", o.cronJobs),
	}
}

// template is a pod template with the service account argocd.
func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: "argocd"}}
}

// started is a pod of a workload that was created at a time.
func started(created time.Time, owner metav1.OwnerReference, labels map[string]string) metav1.PartialObjectMetadata {
	pod := client("pod", map[string]string{"pod-template-hash": "7d9f"}, nil, owner)
	maps.Copy(pod.Labels, labels)
	pod.CreationTimestamp = metav1.NewTime(created)
	return pod
}

// deployed is the Deployment "web" whose rollout was completed at a time, with a pod that
// was created then.
func deployed(completed, created time.Time) owned {
	web := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}, Spec: appsv1.DeploymentSpec{Template: template()}}
	web.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, Conditions: []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable",
		LastUpdateTime: metav1.NewTime(completed),
	}}}
	return owned{
		deployments: []appsv1.Deployment{web},
		pods:        []metav1.PartialObjectMetadata{started(created, by("ReplicaSet", "web-7d9f"), nil)},
	}
}

// scheduled is the CronJob "backup", which was changed and succeeded at these times.
func scheduled(schedule string, suspended bool, changed, succeeded time.Time) owned {
	job := batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "backup", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Time: new(metav1.NewTime(changed)), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:jobTemplate":{}}}`)},
		{Manager: "kube-controller-manager", Time: new(metav1.NewTime(succeeded)), FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
	}}}
	job.Spec = batchv1.CronJobSpec{
		Schedule: schedule, Suspend: &suspended,
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template()}},
	}
	job.Status.LastSuccessfulTime = new(metav1.NewTime(succeeded))
	return owned{cronJobs: []batchv1.CronJob{job}}
}

// TestKindsOfClients is the table of the clients that use a removed API: which of them are
// known to be fixed, and when.
func TestKindsOfClients(t *testing.T) {
	const fail, warn, pass = "Fail RemovedAPIInUse", "Warn RemovedAPIFixStated", "Pass RemovedAPIFixed"
	hourly := uses{argoUser, argoAgent, through(14)}
	rolledOut := deployed(dayAt(t, "14:20"), dayAt(t, "14:19"))
	olm := deployed(dayAt(t, "14:20"), dayAt(t, "14:19"))
	olm.pods[0].Labels["olm.owner"] = "gitops.v2"
	agent := func(created time.Time) owned {
		return owned{
			daemonSets: []appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{Template: template()}}},
			pods:       []metav1.PartialObjectMetadata{started(created, by("DaemonSet", "agent"), nil)},
		}
	}
	controller := owned{
		statefulSets: []appsv1.StatefulSet{{ObjectMeta: metav1.ObjectMeta{Name: "argo"}, Spec: appsv1.StatefulSetSpec{Template: template()}}},
		pods:         []metav1.PartialObjectMetadata{started(dayAt(t, "15:01"), by("StatefulSet", "argo"), nil)},
	}
	hook := rolledOut
	hook.pods = append(hook.pods[:1:1], started(dayAt(t, "15:01"), by("Job", "shop-hook"), map[string]string{"helm.sh/chart": "shop-1"}))
	progressing := deployed(dayAt(t, "14:20"), dayAt(t, "14:19"))
	progressing.deployments[0].Generation = 3
	idle := deployed(dayAt(t, "14:20"), dayAt(t, "14:19"))
	idle.pods = nil
	withJob := rolledOut
	withJob.cronJobs = scheduled("0 3 * * *", false, dayAt(t, "01:00"), dayAt(t, "03:01")).cronJobs
	cron := uses{argoUser, "kubectl/v1.31", []int{11}}
	for name, tc := range map[string]struct {
		reason  string
		now     string
		clients []uses
		owned   owned
		without int // hour; 0 is none
		stated  string
		want    string
		message string
	}{
		"Controller": {
			reason: "silent for two of its periods since the rollout", now: "19:15", clients: []uses{hourly}, owned: rolledOut, want: pass,
			message: "Deployment gitops/web completed its rollout at 2026-11-22 14:20 UTC, and silent since 2026-11-22 15:00 UTC, for " +
				"longer than two periods of 2h00m",
		},
		"ControllerTooEarly": {
			reason: "a minute less", now: "19:14", clients: []uses{hourly}, owned: rolledOut, want: fail,
			message: "without further use this passes from 2026-11-22 19:15 UTC (" + argoUser,
		},
		"ControllerLateRollout": {
			reason: "the silence before the rollout does not count", now: "19:30", clients: []uses{hourly},
			owned: deployed(dayAt(t, "17:20"), dayAt(t, "17:20")), want: fail,
			message: "without further use this passes from 2026-11-22 21:35 UTC",
		},
		"ControllerRolloutInProgress": {
			reason: "old pods may run", now: "19:15", clients: []uses{hourly}, owned: progressing, want: fail,
			message: "has not completed a rollout since 2026-11-22 14:00 UTC",
		},
		"ControllerUsedSince": {
			reason: "a request after the rollout", now: "20:30", clients: []uses{{argoUser, argoAgent, through(15)}}, owned: rolledOut, want: fail,
			message: "has not completed a rollout since 2026-11-22 15:00 UTC",
		},
		"ControllerWithoutPods": {
			reason: "scaled to zero, it is silent and not fixed", now: "19:15", clients: []uses{hourly}, owned: idle, want: fail,
			message: "has no pod now",
		},
		"APIServerSilent": {
			reason: "requests to an API server that does not report are unknown", now: "19:15", clients: []uses{hourly}, owned: rolledOut,
			without: 17, want: fail,
			message: "an API server did not report the hour from 2026-11-22 17:00 UTC",
		},
		"APIServerSilentStated": {
			reason: "a statement does not replace the missing hours", now: "19:15", clients: []uses{hourly}, owned: rolledOut, without: 17,
			stated: "2026-11-22T15:00:00Z", want: fail,
		},
		"LongResync": {
			reason: "two hours of use show no period", now: "19:15", clients: []uses{{argoUser, argoAgent, []int{4, 14}}}, owned: rolledOut,
			want:    fail,
			message: "its period is unknown: it used the API in 2 hours, but 6 are needed",
		},
		"Burst": {
			reason: "a client that is used in working hours is silent in others", now: "19:15",
			clients: []uses{{argoUser, argoAgent, []int{8, 9, 10, 11, 12, 13, 14}}}, owned: rolledOut, want: fail,
			message: "without further use this passes from 2026-11-23 14:00 UTC",
		},
		"CronJob": {
			reason: "two periods since the change, and it has succeeded", now: "18:15", clients: []uses{cron},
			owned: scheduled("*/20 * * * *", false, dayAt(t, "15:05"), dayAt(t, "18:00")), want: pass,
			message: "CronJob gitops/backup was changed at 2026-11-22 15:05 UTC",
		},
		"CronJobTooEarly": {
			reason: "an hour for the grain, twice", now: "17:59", clients: []uses{cron},
			owned: scheduled("*/20 * * * *", false, dayAt(t, "15:05"), dayAt(t, "17:40")), want: fail,
			message: "without further use this passes from 2026-11-22 18:00 UTC",
		},
		"CronJobNotRun": {
			reason: "it has not run since the change", now: "18:15", clients: []uses{cron},
			owned: scheduled("*/20 * * * *", false, dayAt(t, "15:05"), dayAt(t, "15:00")), want: fail,
			message: "has not succeeded since",
		},
		"CronJobSuspended": {
			reason: "it will use the API when it is resumed", now: "18:15", clients: []uses{cron},
			owned: scheduled("*/20 * * * *", true, dayAt(t, "15:05"), dayAt(t, "18:00")), want: fail,
			message: "is suspended",
		},
		"CronJobOnMondays": {
			reason: "the period of other schedules is unknown", now: "18:15", clients: []uses{cron},
			owned: scheduled("*/20 * * * 1", false, dayAt(t, "15:05"), dayAt(t, "18:00")), want: fail,
			message: "the period of CronJob gitops/backup is unknown",
		},
		"CronJobBesideController": {
			reason: "both use the account", now: "19:15", clients: []uses{hourly}, owned: withJob, want: fail,
			message: "CronJob gitops/backup has not been changed since 2026-11-22 14:00 UTC",
		},
		"KubectlOnce": {
			reason: "a user has no rollout", now: "19:15", clients: []uses{{"alice", "kubectl/v1.31", []int{14}}}, want: fail,
			message: `without further use this passes from 2026-11-23 14:00 UTC (alice with "kubectl/v1.31": no workload of it is known)`,
		},
		"KubectlStated": {
			reason: "the administrator states it", now: "19:15", clients: []uses{{"alice", "kubectl/v1.31", []int{14}}},
			stated: "2026-11-22T15:00:00Z", want: warn,
			message: "last hour of use ended at 2026-11-22 15:00 UTC, before the given time of the fix, 2026-11-22 15:00 UTC",
		},
		"StatedWithinHour": {
			reason: "an hour that contains the stated time is use", now: "19:15", clients: []uses{{"alice", "kubectl/v1.31", []int{14}}},
			stated: "2026-11-22T14:59:59Z", want: fail,
			message: "ends at 2026-11-22 15:00 UTC, after the given time of the fix, 2026-11-22 14:59 UTC; request counts are hourly",
		},
		"StatedAgo": {
			reason: "a duration before the run", now: "19:15", clients: []uses{{"alice", "kubectl/v1.31", []int{14}}}, stated: "4h", want: warn,
		},
		"StatedJustNow": {
			reason: "requests since may not be counted yet", now: "19:15", clients: []uses{{"alice", "kubectl/v1.31", []int{14}}}, stated: "14m",
			want:    fail,
			message: "may not be counted yet",
		},
		"KubectlWithToken": {
			reason: "a program run by hand with the token of a controller", now: "19:15", clients: []uses{{argoUser, "kubectl/v1.31", through(14)}},
			owned: rolledOut, want: fail,
			message: "its program is run by hand",
		},
		"LostLease": {
			reason: "the pods of a leader that lost its lease are not replaced", now: "19:15", clients: []uses{hourly},
			owned: deployed(dayAt(t, "14:20"), dayAt(t, "09:00")), want: fail,
			message: "has not completed a rollout since",
		},
		"LostLeaseOnNodes": {
			reason: "a DaemonSet has no time of its rollout", now: "19:15", clients: []uses{hourly}, owned: agent(dayAt(t, "14:59")), want: fail,
			message: "has pods from before 2026-11-22 15:00 UTC",
		},
		"DaemonSet": {
			reason: "all pods started after its last use", now: "19:16", clients: []uses{hourly}, owned: agent(dayAt(t, "15:01")), want: pass,
			message: "DaemonSet gitops/agent started its pods from 2026-11-22 15:01 UTC",
		},
		"HelmHook": {
			reason: "a hook runs again with the next release of the chart", now: "19:15", clients: []uses{hourly}, owned: hook, want: fail,
			message: "the next run of Job gitops/shop-hook is unknown",
		},
		"ArgoSync": {
			reason: "a sync runs when the source changes", now: "19:15", clients: []uses{{argoUser, argoAgent, []int{1, 9, 14}}}, owned: controller,
			want: fail, message: "its period is unknown",
		},
		"ArgoWatch": {
			reason: "a controller that watches uses the API in every hour", now: "19:16", clients: []uses{hourly}, owned: controller, want: pass,
		},
		"OLMOperator": {
			reason: "the new version of an operator", now: "19:15", clients: []uses{hourly}, owned: olm, want: pass,
			message: "from Deployment gitops/web (ClusterServiceVersion gitops.v2)",
		},
		"Kubelet": {
			reason: "a node has no rollout", now: "19:15", clients: []uses{{"system:node:worker-1", "kubelet/v1.31", through(14)}}, want: fail,
			message: "no workload of it is known",
		},
		"ControlPlane": {
			reason: "Kubernetes' own controllers are not clients", now: "19:15", want: pass,
			clients: []uses{hourly, {"system:kube-controller-manager", "kube-controller-manager/v1.31", through(19)}}, owned: rolledOut,
		},
		"SeveralAgents": {
			reason: "one program of the user is not fixed", now: "19:15", clients: []uses{hourly, {argoUser, "repo-server/v2.1", through(18)}},
			owned: rolledOut, want: fail,
			message: `with "repo-server/v2.1": Deployment gitops/web has not completed a rollout since`,
		},
		"SeveralAgentsFixed": {
			reason: "both programs are", now: "19:15", clients: []uses{hourly, {argoUser, "repo-server/v2.1", through(13)}}, owned: rolledOut,
			want:    pass,
			message: `with "repo-server/v2.1": Deployment`,
		},
		"FutureRollout": {
			reason: "a time after now is no proof", now: "19:15", clients: []uses{hourly}, owned: deployed(dayAt(t, "23:20"), dayAt(t, "23:20")),
			want: fail,
		},
		"FutureUse": {
			reason: "the next hour may have begun", now: "14:20", clients: []uses{{argoUser, argoAgent, through(14)}}, owned: rolledOut, want: fail,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now, without := dayAt(t, tc.now), tc.without
			if without == 0 {
				without = -1
			}
			responses := tc.owned.responses(t)
			responses[countsPath] = listing(t, day(t, now, without, tc.clients...))
			var fixed removedapi.FixTime
			if tc.stated != "" {
				var err error
				if fixed, err = removedapi.ParseFixTime(tc.stated); err != nil {
					t.Fatal(err)
				}
			}
			findings := checktest.RunAt(t, removedapi.Check(fixed), server.Responding(responses).Snapshot(t),
				check.Subject{Update: checktest.MinorUpdate(t, "", ""), Now: now})
			outcome, reason, _ := strings.Cut(tc.want, " ")
			want := map[string]checktest.Result{"RemovedAPI-" + schemas: {Outcome: preflight.Outcome(outcome), Reason: reason}}
			if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s%s", tc.reason, diff, checktest.Messages(findings))
			}
			checktest.Contains(t, tc.reason, findings[0].Message, []string{tc.message})
		})
	}
}

func TestUnknownUseOfARemovedAPI(t *testing.T) {
	now := dayAt(t, "19:15")
	for name, tc := range map[string]struct {
		reason string
		change func(*apiserverv1.APIRequestCountStatus)
		forbid string
		want   string
	}{
		"Unnamed": {
			reason: "a client that is not named may be the same",
			change: func(s *apiserverv1.APIRequestCountStatus) {
				s.Last24h[17].ByNode[1].RequestCount, s.Last24h[17].RequestCount, s.RequestCount = 2, 2, s.RequestCount+2
			},
			want: "passes from 2026-11-23 17:00 UTC (unnamed clients: no workload of it is known)",
		},
		"UnknownHour": {
			reason: "the total has more requests than the hours", change: func(s *apiserverv1.APIRequestCountStatus) { s.RequestCount++ },
			want: "when the counts no longer include it is unknown (unnamed clients: the hour of its last use is unknown)",
		},
		"Forbidden": {
			reason: "workloads that cannot be read", change: func(*apiserverv1.APIRequestCountStatus) {},
			forbid: "/apis/batch/v1/namespaces/gitops/cronjobs",
			want:   `last used 2026-11-22 14:00-14:59 UTC, from Deployment gitops/web), and`,
		},
		"ForbiddenPods": {
			reason: "the owner is not named", change: func(*apiserverv1.APIRequestCountStatus) {}, forbid: "/api/v1/namespaces/gitops/pods",
			want: "its workloads could not be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			count := day(t, now, -1, uses{argoUser, argoAgent, through(14)})
			tc.change(&count.Status)
			responses := deployed(dayAt(t, "14:20"), dayAt(t, "14:19")).responses(t)
			responses[countsPath] = listing(t, count)
			if tc.forbid != "" {
				responses[tc.forbid] = func(*http.Request) (int, []byte) { return http.StatusForbidden, []byte("{}") }
			}
			findings := checktest.RunAt(t, removedapi.Check(removedapi.FixTime{}), server.Responding(responses).Snapshot(t),
				check.Subject{Update: checktest.MinorUpdate(t, "", ""), Now: now})
			if findings[0].Outcome != preflight.Fail {
				t.Errorf("%s: %s", tc.reason, findings[0].Outcome)
			}
			checktest.Contains(t, tc.reason, findings[0].Message, []string{tc.want})
		})
	}
}

func TestWritersOfStoredObjects(t *testing.T) {
	object := metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "he\x1b[2Jlm", APIVersion: "flowcontrol.apiserver.k8s.io/v1beta3"},
			{Manager: "oc", APIVersion: "flowcontrol.apiserver.k8s.io/v1"},
		}},
	}
	message := messageAt(t, server.Responding(map[string]checktest.Response{
		countsPath: listing(t, usage(schemas, "1.32", requests("alice", "a", 1))),
		"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas": checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList",
			[]metav1.PartialObjectMetadata{object, object}),
	}))
	checktest.Contains(t, "the manager of the removed version", message,
		[]string{`; stored objects were written with it by field manager "helm" (2 objects)), and`})
}

func TestFixTime(t *testing.T) {
	now := dayAt(t, "14:20")
	for text, want := range map[string]string{
		"2026-11-22T14:20:00Z": "2026-11-22T14:20:00Z", "2026-11-22T15:00:00+01:00": "2026-11-22T14:00:00Z", "3h": "2026-11-22T11:20:00Z",
		"2026-11-22T14:20:01Z": "future", "": "invalid", "0s": "invalid", "-3h": "invalid", "yesterday\x1b[2J": "invalid",
		"0001-01-01T00:00:00Z": "invalid", "9999-12-31T23:59:59-01:00": "invalid",
	} {
		got := "invalid"
		if parsed, err := removedapi.ParseFixTime(text); err == nil {
			stated, err := parsed.At(now)
			got = stated.Format(time.RFC3339)
			if err != nil {
				got = "future"
			}
		}
		if got != want {
			t.Errorf("the time of the fix %q is %s, want %s", text, got, want)
		}
	}
}

func FuzzFixTime(f *testing.F) {
	for _, seed := range []string{"3h", "2026-11-22T14:20:00Z", "-1h", "", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59-01:00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		now := dayAt(t, "14:20")
		parsed, err := removedapi.ParseFixTime(text)
		if err != nil {
			return
		}
		if stated, err := parsed.At(now); err == nil && (stated.IsZero() || stated.After(now)) {
			t.Errorf("%q is %s", text, stated)
		}
		if again, err := removedapi.ParseFixTime(parsed.String()); err != nil || again != parsed {
			t.Errorf("%q is written as %q, which is parsed as %v: %v", text, parsed, again, err)
		}
	})
}

func TestCronPeriod(t *testing.T) {
	for schedule, want := range map[string]time.Duration{
		"* * * * *": time.Minute, "*/20 * * * *": 20 * time.Minute, "5 * * * *": time.Hour, "0 */6 * * *": 6 * time.Hour,
		"0 3 * * *":       24 * time.Hour,
		"0 8-10,20 * * ?": 12 * time.Hour, "10/30 * * * *": 30 * time.Minute, "59,0 0 * * *": 24*time.Hour - 59*time.Minute, "@hourly": time.Hour,
		"@every 90m": 90 * time.Minute, "@every -1m": 0, "@every 2000000h": 0, "@daily": 0, "0 3 * * 1": 0, "0 3 1 * *": 0, "TZ=UTC 0 * * * *": 0,
		"": 0, "60 * * * *": 0,
		"5-1 * * * *": 0, "*/0 * * * *": 0, "a * * * *": 0, ", * * * *": 0, "TZ=UTC": 0, "CRON_TZ=UTC": 0, "0 3 1-31 * *": 0,
		"*/7 */5 * * *": 4*time.Hour + 4*time.Minute,
	} {
		if got, ok := removedapi.CronPeriod(schedule); got != want || ok != (want > 0) {
			t.Errorf("the period of %q is %s, %t; want %s", schedule, got, ok, want)
		}
	}
}

func FuzzCronPeriod(f *testing.F) {
	for _, seed := range []string{"*/20 * * * *", "0 8-10,20 * * ?", "@every 1h", "5-1/0 * * * *", "TZ=", ", , * * *"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, schedule string) {
		period, ok := removedapi.CronPeriod(schedule)
		if ok && (period <= 0 || period > 24*time.Hour) {
			t.Errorf("the period of %q is %s", schedule, period)
		}
	})
}

func TestFutureFixTime(t *testing.T) {
	fixed, err := removedapi.ParseFixTime(dayAt(t, "14:21").Format(time.RFC3339))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]checktest.Response{countsPath: listing(t, usage(schemas, "1.32", requests("alice", "a", 1)))}
	findings := checktest.RunAt(t, removedapi.Check(fixed), server.Responding(counts).Snapshot(t),
		check.Subject{Update: checktest.MinorUpdate(t, "", ""), Now: twentyPastTwo()})
	if diff := cmp.Diff(map[string]checktest.Result{"RemovedAPI": {Outcome: preflight.Unknown, Reason: "Error"}},
		checktest.Results(findings)); diff != "" {
		t.Errorf("a time after now is inconclusive: -want +got:\n%s", diff)
	}
}

func TestFixOnARealServer(t *testing.T) {
	const namespace = "removed-apis-fixed"
	changed := time.Now().UTC()
	now, succeeded := changed.Add(4*time.Hour), changed.Add(2*time.Hour)
	job := scheduled("*/20 * * * *", false, changed, succeeded).cronJobs[0]
	job.Namespace, job.ManagedFields = namespace, nil
	job.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.JobTemplate.Spec.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "example.com/a"}}
	other := job.DeepCopy()
	other.Name, other.Spec.JobTemplate.Spec.Template.Spec.ServiceAccountName, other.Spec.Suspend = "other", "other", new(true)
	user := "system:serviceaccount:" + namespace + ":argocd"
	server.Create(t, &job, other)
	counts := listing(t, day(t, now, -1, uses{user, "backup/v1", []int{changed.Hour()}}))
	findings := checktest.RunAt(t, removedapi.Check(removedapi.FixTime{}),
		server.Responding(map[string]checktest.Response{countsPath: counts}).Snapshot(t),
		check.Subject{Update: checktest.MinorUpdate(t, "", ""), Now: now})
	if diff := cmp.Diff(map[string]checktest.Result{"RemovedAPI-" + schemas: {Outcome: preflight.Pass, Reason: "RemovedAPIFixed"}},
		checktest.Results(findings)); diff != "" {
		t.Errorf("the API server records the change of the CronJob (-want +got):\n%s%s", diff, checktest.Messages(findings))
	}
	checktest.Contains(t, "the CronJob of the account", findings[0].Message, []string{"CronJob " + namespace + "/backup was changed at "})
}

func TestManyClientsThatAreStatedToBeFixed(t *testing.T) {
	now := dayAt(t, "19:15")
	var clients []uses
	for i := range 10_000 {
		clients = append(clients, uses{fmt.Sprintf("\x1b[1muser-%05d", i), "a\u202e/1", []int{3}})
	}
	count := day(t, now, -1, clients...)
	for hour, want := range map[string]string{"2026-11-22T04:00:00Z": "RemovedAPIFixStated", "2026-11-22T03:59:00Z": "RemovedAPIInUse"} {
		fixed, err := removedapi.ParseFixTime(hour)
		if err != nil {
			t.Fatal(err)
		}
		findings := checktest.RunAt(t, removedapi.Check(fixed),
			server.Responding(map[string]checktest.Response{countsPath: listing(t, count)}).Snapshot(t),
			check.Subject{Update: checktest.MinorUpdate(t, "", ""), Now: now})
		got := findings[0]
		if got.Reason != want || len(got.Message) > 3500 || strings.ContainsAny(got.Message, "\x1b\u202e") {
			t.Errorf("fixed at %s, want %s, got %s in %d bytes: %q", hour, want, got.Reason, len(got.Message), got.Message)
		}
	}
}
