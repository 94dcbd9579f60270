package removedapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// hours is the count of an API that 4.19 does not have, with requests in the current hour
// and in these hours of the day in UTC.
func hours(current []apiserverv1.PerUserAPIRequestCount, byHour map[int][]apiserverv1.PerUserAPIRequestCount) *apiserverv1.APIRequestCount {
	count := usage(schemas, "1.32")
	log := func(users []apiserverv1.PerUserAPIRequestCount) apiserverv1.PerResourceAPIRequestLog {
		var hour apiserverv1.PerResourceAPIRequestLog
		for _, user := range users {
			hour.RequestCount += user.RequestCount
		}
		if len(users) > 0 {
			hour.ByNode = []apiserverv1.PerNodeAPIRequestLog{{NodeName: "master-0", RequestCount: hour.RequestCount, ByUser: users}}
		}
		return hour
	}
	count.Status.CurrentHour, count.Status.Last24h = log(current), nil
	if byHour != nil {
		count.Status.Last24h = make([]apiserverv1.PerResourceAPIRequestLog, 30)
	}
	for hour, users := range byHour {
		count.Status.Last24h[hour] = log(users)
		count.Status.RequestCount += count.Status.Last24h[hour].RequestCount
	}
	return count
}

// listing responds with one APIRequestCount, which a real server might reject.
func listing(t *testing.T, count *apiserverv1.APIRequestCount) checktest.Response {
	t.Helper()
	return checktest.Pages(t, "apiserver.openshift.io/v1", "APIRequestCountList", []*apiserverv1.APIRequestCount{count})
}

// messageAt is the message of the one finding of RemovedAPI, which fails.
func messageAt(t *testing.T, at checktest.Server) string {
	t.Helper()
	findings := checktest.RunAt(t, removedapi.Check(removedapi.FixTime{}), at.Snapshot(t),
		check.Subject{Update: checktest.MinorUpdate(t, "", ""), Now: twentyPastTwo()})
	want := map[string]checktest.Result{"RemovedAPI-" + schemas: {Outcome: preflight.Fail, Reason: "RemovedAPIInUse"}}
	if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
		t.Fatalf("results: -want +got:\n%s", diff)
	}
	return findings[0].Message
}

func TestLastHourOfUse(t *testing.T) {
	type users = []apiserverv1.PerUserAPIRequestCount
	type byHour = map[int][]apiserverv1.PerUserAPIRequestCount
	one := users{requests("one", "a/1", 3)}
	watching := users{{UserName: "one", UserAgent: "a/1", RequestCount: 3, ByVerb: []apiserverv1.PerVerbAPIRequestCount{
		{Verb: "watch", RequestCount: 2}, {Verb: "get", RequestCount: 1}, {Verb: "delete"},
	}}}
	for name, tc := range map[string]struct {
		reason string
		count  *apiserverv1.APIRequestCount
		want   string // the clients
	}{
		"CurrentHourOnly": {
			reason: "a new count has no other hours", count: hours(one, nil),
			want: `one with "a/1": 3 requests (list), last used 2026-11-22 14:00-14:59 UTC`,
		},
		"Today": {
			reason: "an hour before the present one is today", count: hours(nil, byHour{9: one}),
			want: `one with "a/1": 3 requests (list), last used 2026-11-22 09:00-09:59 UTC`,
		},
		"Yesterday": {
			reason: "an hour after the present one is yesterday", count: hours(nil, byHour{16: one}),
			want: `one with "a/1": 3 requests (list), last used 2026-11-21 16:00-16:59 UTC`,
		},
		"HourBegan": {
			reason: "the API server empties the next hour, so it has begun since", count: hours(nil, byHour{15: one}),
			want: `one with "a/1": 3 requests (list), last used 2026-11-22 15:00-15:59 UTC`,
		},
		"Latest": {
			reason: "the latest of several hours, with the verbs of all", count: hours(nil, byHour{20: one, 3: watching}),
			want: `one with "a/1": 6 requests (get, list, watch), last used 2026-11-22 03:00-03:59 UTC`,
		},
		"Duplicate": {
			reason: "the current hour repeats that of the day", count: hours(one, byHour{14: one}),
			want: `one with "a/1": 3 requests (list), last used 2026-11-22 14:00-14:59 UTC`,
		},
		"CopyOfPreviousHour": {
			reason: "when an hour has just begun, the current hour is still the previous one", count: hours(one, byHour{13: one}),
			want: `one with "a/1": 3 requests (list), last used 2026-11-22 13:00-13:59 UTC`,
		},
		"CurrentHourMissing": {
			reason: "the day does not have the current hour yet", count: hours(watching, byHour{10: one}),
			want: `one with "a/1": 3 requests (get, list, watch), last used 2026-11-22 14:00-14:59 UTC`,
		},
		"ZeroRequests": {
			reason: "an hour without requests is no use", count: hours(nil, byHour{8: one, 11: {requests("one", "a/1", 0)}}),
			want: `one with "a/1": 3 requests (list), last used 2026-11-22 08:00-08:59 UTC`,
		},
		"NoHour": {
			reason: "a day has 24 hours", count: hours(nil, byHour{27: one}),
			want: `one with "a/1": 3 requests (list)`,
		},
		"SeveralAgents": {
			reason: "one user with several programs", count: hours(nil, byHour{8: one, 9: {requests("one", "kubectl/1.31", 1)}}),
			want: `one with "kubectl/1.31": 1 request (list), last used 2026-11-22 09:00-09:59 UTC; one with "a/1": 3 requests (list), last used 2026-11-22 08:00-08:59 UTC`,
		},
		"Order": {
			reason: "the latest use first, then the most requests",
			count:  hours(nil, byHour{8: {requests("early", "a", 900)}, 12: {requests("few", "a", 1), requests("many", "a", 7)}}),
			want: `many with "a": 7 requests (list), last used 2026-11-22 12:00-12:59 UTC; few with "a": 1 request (list), last used 2026-11-22 12:00-12:59 UTC; ` +
				`early with "a": 900 requests (list), last used 2026-11-22 08:00-08:59 UTC`,
		},
		"NoVerbs": {
			reason: "a count without verbs", count: hours(nil, byHour{12: {{UserName: "one", UserAgent: "a", RequestCount: 2}}}),
			want: `one with "a": 2 requests, last used 2026-11-22 12:00-12:59 UTC`,
		},
		"Control": {
			reason: "control characters are removed", count: hours(nil, byHour{12: {requests("o\x1b[2Jn\ne\u202e", "a\x07", 2)}}),
			want: `on e with "a": 2 requests (list), last used 2026-11-22 12:00-12:59 UTC`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			message := messageAt(t, server.Responding(map[string]checktest.Response{countsPath: listing(t, tc.count)}))
			if want := "in use (by " + tc.want + "), and"; !strings.Contains(message, want) {
				t.Errorf("%s: message %q, want %q", tc.reason, message, want)
			}
		})
	}
}

func TestManyClientsOfARemovedAPI(t *testing.T) {
	var early []apiserverv1.PerUserAPIRequestCount
	for i := range 10_000 {
		user := requests(fmt.Sprintf("\x1b[1muser-%05d", i), strings.Repeat("agent", 50), int64(1000+i))
		for verb := range 20 {
			user.ByVerb = append(user.ByVerb, apiserverv1.PerVerbAPIRequestCount{
				Verb:         fmt.Sprintf("verb-%02d-%s", verb, strings.Repeat("x", 50)),
				RequestCount: 1,
			})
		}
		early = append(early, user)
	}
	count := hours(nil, map[int][]apiserverv1.PerUserAPIRequestCount{2: early, 13: {requests("latest", "kubectl", 1)}})
	message := messageAt(t, server.Responding(map[string]checktest.Response{countsPath: listing(t, count)}))
	checktest.Contains(t, "message", message,
		[]string{"by latest with", "; user-09999 with", "; user-09996 with", "; 95 more clients; unnamed clients: "})
	if len(message) > 3500 || strings.Contains(message, "user-09995") {
		t.Errorf("a message of %d bytes, which names more than five clients: %s", len(message), message)
	}
}

// client is a pod of the namespace gitops that uses the service account of argo.
func client(name string, labels, annotations map[string]string, owner ...metav1.OwnerReference) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "gitops", Labels: labels, Annotations: annotations, OwnerReferences: owner,
			CreationTimestamp: metav1.NewTime(twentyPastTwo().Add(-time.Hour)),
		},
	}
}

// by is the reference to the controller of a pod.
func by(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "1", Controller: new(true)}
}

func TestOwnersOfServiceAccounts(t *testing.T) {
	type labels = map[string]string
	hash := func(more labels) labels {
		all := labels{"pod-template-hash": "7d9f"}
		maps.Copy(all, more)
		return all
	}
	minutes := twentyPastTwo().Add(-time.Hour).Unix() / 60
	for name, tc := range map[string]struct {
		reason string
		pods   []metav1.PartialObjectMetadata
		want   string // after the last hour of use
	}{
		"NoPods": {reason: "no pod uses the account now", want: "UTC)"},
		"Pod": {
			reason: "a pod without a controller", pods: []metav1.PartialObjectMetadata{client("debug", nil, nil)},
			want: ", from Pod gitops/debug)",
		},
		"Deployment": {reason: "the ReplicaSet has the hash of its pods' template", pods: []metav1.PartialObjectMetadata{client("a",
			hash(nil), nil, by("ReplicaSet", "argo-cd-7d9f"))}, want: ", from Deployment gitops/argo-cd)"},
		"ReplicaSet": {reason: "a ReplicaSet without a Deployment", pods: []metav1.PartialObjectMetadata{client("a", nil, nil,
			by("ReplicaSet", "argo-7d9f"))}, want: ", from ReplicaSet gitops/argo-7d9f)"},
		"OtherHash": {
			reason: "a ReplicaSet that no Deployment named",
			pods:   []metav1.PartialObjectMetadata{client("a", hash(nil), nil, by("ReplicaSet", "argo"))}, want: ", from ReplicaSet gitops/argo)",
		},
		"DaemonSet": {
			reason: "an agent on every node",
			pods:   []metav1.PartialObjectMetadata{client("a", nil, nil, by("DaemonSet", "agent"))}, want: ", from DaemonSet gitops/agent)",
		},
		"StatefulSet": {
			reason: "a server with storage", pods: []metav1.PartialObjectMetadata{client("a-0", nil, nil, by("StatefulSet", "a"))},
			want: ", from StatefulSet gitops/a)",
		},
		"CronJob": {reason: "the name of the Job has its scheduled minute", pods: []metav1.PartialObjectMetadata{client("a", nil, nil,
			by("Job", fmt.Sprintf("backup-%d", minutes)))}, want: ", from CronJob gitops/backup)"},
		"Job": {
			reason: "a Job without a CronJob", pods: []metav1.PartialObjectMetadata{client("a", nil, nil, by("Job", "migrate"))},
			want: ", from Job gitops/migrate)",
		},
		"JobOfDay": {reason: "a date is not a scheduled minute of today", pods: []metav1.PartialObjectMetadata{client("a", nil, nil,
			by("Job", "migrate-20261122"))}, want: ", from Job gitops/migrate-20261122)"},
		"OLM": {
			reason: "an operator that OLM installed",
			pods:   []metav1.PartialObjectMetadata{client("a", hash(labels{"olm.owner": "gitops.v1.2.3"}), nil, by("ReplicaSet", "op-7d9f"))},
			want:   ", from Deployment gitops/op (ClusterServiceVersion gitops.v1.2.3))",
		},
		"HelmAnnotation": {reason: "a Helm hook has the name of the release", pods: []metav1.PartialObjectMetadata{client("a", nil,
			labels{"meta.helm.sh/release-name": "shop"}, by("Job", "shop-hook"))}, want: ", from Job gitops/shop-hook (Helm release shop))"},
		"HelmLabels": {
			reason: "charts name the release in a label",
			pods: []metav1.PartialObjectMetadata{client("a",
				hash(labels{"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "shop"}), nil, by("ReplicaSet", "web-7d9f"))},
			want: ", from Deployment gitops/web (Helm release shop))",
		},
		"HelmChart": {
			reason: "the pods of many charts have this label only",
			pods:   []metav1.PartialObjectMetadata{client("a", labels{"helm.sh/chart": "shop-1.2", "app.kubernetes.io/instance": "shop"}, nil)},
			want:   ", from Pod gitops/a (Helm release shop))",
		},
		"ArgoTracking": {
			reason: "Argo CD tracks by an annotation",
			pods:   []metav1.PartialObjectMetadata{client("a", nil, labels{"argocd.argoproj.io/tracking-id": "shop:/Pod:gitops/a"})},
			want:   ", from Pod gitops/a (Argo application shop))",
		},
		"ArgoLabel": {reason: "Argo CD tracks by a label", pods: []metav1.PartialObjectMetadata{client("a",
			labels{"argocd.argoproj.io/instance": "shop"}, nil)}, want: ", from Pod gitops/a (Argo application shop))"},
		"Instance": {reason: "the label alone does not name what installed the pod", pods: []metav1.PartialObjectMetadata{client("a",
			labels{"app.kubernetes.io/instance": "shop"}, nil)}, want: ", from Pod gitops/a (application shop))"},
		"Several": {
			reason: "workloads are named once each, the first three",
			pods: []metav1.PartialObjectMetadata{
				client("d", nil, nil), client("c", nil, nil), client("x-1", hash(nil), nil, by("ReplicaSet", "x-7d9f")),
				client("x-2", hash(nil), nil, by("ReplicaSet", "x-7d9f")), client("b", nil, nil),
			},
			want: ", from Deployment gitops/x, Pod gitops/b, Pod gitops/c and 1 more)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			count := usage(schemas, "1.32", requests("system:serviceaccount:gitops:argocd", "argocd/v2.1", 30))
			message := messageAt(t, server.Responding(map[string]checktest.Response{
				countsPath: listing(t, count), "/api/v1/namespaces/gitops/pods": podsOf(t, "argocd", tc.pods),
			}))
			if want := "last used 2026-11-22 14:00-14:59 UTC" + strings.TrimPrefix(tc.want, "UTC"); !strings.Contains(message, want) {
				t.Errorf("%s: message %q, want %q", tc.reason, message, want)
			}
		})
	}
}

// podsOf responds with the metadata of pods, to a list of those that use the account.
func podsOf(t *testing.T, account string, pods []metav1.PartialObjectMetadata) checktest.Response {
	t.Helper()
	respond := checktest.Pages(t, "meta.k8s.io/v1", "PartialObjectMetadataList", pods)
	return func(request *http.Request) (int, []byte) {
		if selector := request.URL.Query().Get("fieldSelector"); selector != "spec.serviceAccountName="+account {
			t.Errorf("pods are listed with the selector %q", selector)
		}
		return respond(request)
	}
}

func TestOwnersOnARealServer(t *testing.T) {
	pod := func(name, account string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "removed-apis", Labels: map[string]string{"app.kubernetes.io/instance": "shop"}},
			Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "a", Image: "example.com/a"}}},
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: "removed-apis"}}
	other := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "removed-apis"}}
	server.Create(t, account, other, pod("uses", "reader"), pod("does-not", "other"),
		usage(schemas, "1.32", requests("system:serviceaccount:removed-apis:reader", "a", 1)))
	message := messageAt(t, server)
	checktest.Contains(t, "the pods of another account are not named", message,
		[]string{"UTC, from Pod removed-apis/uses (application shop))"})
}

func TestOwnersAreOptional(t *testing.T) {
	rejects := func(code int, reason metav1.StatusReason) checktest.Response {
		return func(*http.Request) (int, []byte) {
			status := metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code),
				Reason: reason,
			}
			body, err := json.Marshal(status)
			if err != nil {
				t.Error(err)
			}
			return code, body
		}
	}
	for name, tc := range map[string]struct {
		reason, user string
		pods         checktest.Response
	}{
		"Forbidden": {
			reason: "without permission the owner is not named", user: "system:serviceaccount:gitops:argocd",
			pods: rejects(http.StatusForbidden, metav1.StatusReasonForbidden),
		},
		"Gone": {
			reason: "the API server fails", user: "system:serviceaccount:gitops:argocd",
			pods: rejects(http.StatusGone, metav1.StatusReasonExpired),
		},
		"Malformed":     {reason: "the list cannot be decoded", user: "system:serviceaccount:gitops:argocd", pods: checktest.Body(`{"items":3}`)},
		"User":          {reason: "a user has no pods", user: "alice"},
		"Node":          {reason: "a kubelet has no pods", user: "system:node:worker-1"},
		"InvalidName":   {reason: "the path of a request has no other segments", user: "system:serviceaccount:..:pods"},
		"NoName":        {reason: "half a user name", user: "system:serviceaccount:gitops"},
		"ControlInName": {reason: "the name is no service account", user: "system:serviceaccount:gitops:a\u202eb"},
	} {
		t.Run(name, func(t *testing.T) {
			message := messageAt(t, server.Responding(map[string]checktest.Response{
				countsPath: listing(t, usage(schemas, "1.32", requests(tc.user, "a", 1))), "/api/v1/namespaces/gitops/pods": tc.pods,
			}))
			if !strings.Contains(message, `with "a": 2 requests (list), last used 2026-11-22 14:00-14:59 UTC), and`) {
				t.Errorf("%s: %q", tc.reason, message)
			}
		})
	}
}

func FuzzServiceAccount(f *testing.F) {
	for _, seed := range []string{
		"system:serviceaccount:a:b", "system:serviceaccount:a", "system:serviceaccount:..:b",
		"system:serviceaccount:a:b:c", "alice", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, user string) {
		namespace, account, ok := removedapi.ServiceAccount(user)
		if ok && (user != "system:serviceaccount:"+namespace+":"+account || strings.ContainsAny(namespace+account, "/%:,=\\ ") ||
			strings.Trim(namespace+account, ".") == "") {
			t.Errorf("%q is parsed as namespace %q, account %q", user, namespace, account)
		}
	})
}
