package removedapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Tests of: collector/apiuse, collector/internal/checktest

const (
	countsPath = "/apis/apiserver.openshift.io/v1/apirequestcounts"
	schemas    = "flowschemas.v1beta3.flowcontrol.apiserver.k8s.io"
)

// requests are the requests of one user in one hour on one node.
func requests(user, agent string, count int64) apiserverv1.PerUserAPIRequestCount {
	return apiserverv1.PerUserAPIRequestCount{
		UserName: user, UserAgent: agent, RequestCount: count,
		ByVerb: []apiserverv1.PerVerbAPIRequestCount{{Verb: "list", RequestCount: count}},
	}
}

// usage is the count of an API that a release removes, with these requests in each
// of two hours.
func usage(name, removed string, users ...apiserverv1.PerUserAPIRequestCount) *apiserverv1.APIRequestCount {
	count := &apiserverv1.APIRequestCount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiserver.openshift.io/v1", Kind: "APIRequestCount"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: apiserverv1.APIRequestCountSpec{NumberOfUsersToReport: 10},
	}
	hour := apiserverv1.PerResourceAPIRequestLog{ByNode: []apiserverv1.PerNodeAPIRequestLog{{NodeName: "master-0", ByUser: users}}}
	for _, user := range users {
		hour.RequestCount += user.RequestCount
		hour.ByNode[0].RequestCount += user.RequestCount
	}
	count.Status = apiserverv1.APIRequestCountStatus{
		RemovedInRelease: removed, RequestCount: 2 * hour.RequestCount,
		CurrentHour: hour, Last24h: []apiserverv1.PerResourceAPIRequestLog{hour, {}, hour},
	}
	return count
}

// twentyPastTwo is the time at which the tests that name the hour of use run.
func twentyPastTwo() time.Time { return time.Date(2026, time.November, 22, 14, 20, 0, 0, time.UTC) }

func TestRemovedAPIs(t *testing.T) {
	type results = map[string]checktest.Result
	pass := results{"RemovedAPI": {Outcome: preflight.Pass, Reason: "RemovedAPIsNotInUse"}}
	fails := results{"RemovedAPI-" + schemas: {Outcome: preflight.Fail, Reason: "RemovedAPIInUse"}}
	warns := results{"RemovedAPI-" + schemas: {Outcome: preflight.Warn, Reason: "APIRemovalAhead"}}
	unknown := func(reason string) results {
		return results{"RemovedAPI-" + schemas: {Outcome: preflight.Unknown, Reason: reason}}
	}
	argo := requests("system:serviceaccount:gitops:argocd", "argocd/v2.1", 30)
	collector := requests("system:serviceaccount:kube-system:generic-garbage-collector", "kube-controller-manager/v1.31", 500)
	noise := []apiserverv1.PerUserAPIRequestCount{
		collector, requests("system:serviceaccount:kube-system:namespace-controller", "a", 5),
		requests("system:kube-controller-manager", "b", 5), requests("system:cluster-policy-controller", "c", 5),
	}
	unnamed := usage(schemas, "1.32", collector)
	unnamed.Status.RequestCount += 7
	thisHour := usage(schemas, "1.32", argo)
	thisHour.Status.Last24h, thisHour.Status.RequestCount = nil, 0
	for name, tc := range map[string]struct {
		reason   string
		from, to string
		objects  []runtime.Object
		message  string // a part of it
		want     results
	}{
		"None": {reason: "no API is removed", message: "0 such APIs are known", want: pass},
		"Idle": {
			reason: "an API without requests is not in use", objects: []runtime.Object{usage(schemas, "1.32")},
			message: "1 such APIs are known", want: pass,
		},
		"Staying": {
			reason: "an API that no release removes", objects: []runtime.Object{usage("pods.v1", "", argo)},
			message: "0 such APIs are known", want: pass,
		},
		"Removed": {
			reason: "4.19 has Kubernetes 1.32", objects: []runtime.Object{usage(schemas, "1.32", argo)}, want: fails,
			message: schemas +
				` is in use (by system:serviceaccount:gitops:argocd with "argocd/v2.1": 60 requests (list), last used 2026-11-22 14:00-14:59 UTC), and is removed in Kubernetes 1.32; OpenShift 4.19, with 1.32, does not serve it; this does not block updates within 4.18`,
		},
		"Ahead": {
			reason: "the enhancement for EUS warns of later removals", objects: []runtime.Object{usage(schemas, "1.33", argo)}, want: warns,
			message: "4.19 still serves it, but OpenShift 4.20 (Kubernetes 1.33) removes it",
		},
		"FarAhead": {
			reason: "a removal later than every known release is a warning too", objects: []runtime.Object{usage(schemas, "1.60", argo)},
			want:    warns,
			message: "the OpenShift release with Kubernetes 1.60 removes it",
		},
		"NotOpenShiftsRelease": {
			reason: "1.4 is a release of Kubernetes, and not OpenShift 4.x", objects: []runtime.Object{usage(schemas, "1.4", argo)}, want: pass,
		},
		"RemovedBefore": {
			reason: "the update cannot remove an API that 4.18 does not have", objects: []runtime.Object{usage(schemas, "1.31", argo)}, want: pass,
		},
		"SkipLevel": {
			reason: "a release on the way removes the API", from: "5.0.0", to: "5.2.0", objects: []runtime.Object{usage(schemas, "1.37", argo)},
			want: fails,
		},
		"SameKubernetes": {
			reason: "5.0 removes nothing that 4.23 has", from: "4.23.0", to: "5.0.0", objects: []runtime.Object{usage(schemas, "1.36", argo)},
			want: pass,
		},
		"OwnControllers": {
			reason: "they read every API", objects: []runtime.Object{usage(schemas, "1.32", noise...)}, want: pass,
			message: "Only Kubernetes' own controllers, which read every API, requested " + schemas,
		},
		"Bootstrap": {
			reason: "in the first day they act as system:admin (the must-gather of a cluster of 4.8)", want: pass,
			objects: []runtime.Object{usage(schemas, "1.32", requests("system:admin", "kube-controller-manager/v1.21.1+38b3ecc", 7),
				requests("system:admin", "cluster-policy-controller/v0.0.0", 5))},
		},
		"Administrator": {
			reason: "system:admin with another program is an administrator", want: fails,
			objects: []runtime.Object{usage(schemas, "1.32", requests("system:admin", "kubectl/v1.31.0", 7))},
		},
		"AgentOfAnother": {
			reason: "a client may send any user agent", want: fails,
			objects: []runtime.Object{usage(schemas, "1.32", requests("system:serviceaccount:gitops:argocd", "kube-controller-manager/v1.31.0", 7))},
		},
		"AndOwnControllers": {
			reason: "other clients count", objects: []runtime.Object{usage(schemas, "1.32", append(noise, argo)...)}, want: fails,
			message: `(by system:serviceaccount:gitops:argocd with "argocd/v2.1": 60 requests (list), last used 2026-11-22 14:00-14:59 UTC)`,
		},
		"Unnamed": {
			reason: "the other clients are unknown", objects: []runtime.Object{unnamed}, want: unknown("UnknownClients"),
			message: "by unnamed clients: 7 requests",
		},
		"ThisHour": {
			reason: "a count of the current hour only", objects: []runtime.Object{thisHour}, want: fails, message: "30 requests",
		},
		"UnknownTarget": {
			reason: "the Kubernetes version of 5.3 is unknown", from: "5.2.0", to: "5.3.0", objects: []runtime.Object{usage(schemas, "1.39", argo)},
			want: unknown("UnknownKubernetesVersion"),
		},
		"UnknownTargetIdle": {
			reason: "the version does not matter where no API is in use", from: "5.2.0", to: "5.3.0",
			objects: []runtime.Object{usage(schemas, "1.39")},
			want:    pass,
		},
		"OtherMajor": {
			reason: "2.0 is no release of Kubernetes", objects: []runtime.Object{usage(schemas, "2.0", argo)}, want: unknown("UnknownRelease"),
		},
		"HugeMinor": {
			reason: "no release has such a minor version", objects: []runtime.Object{usage(schemas, "1.99999999999999999999", argo)},
			want: unknown("UnknownRelease"),
		},
		"Patch": {
			reason: "patch updates remove no API", to: "4.18.9", objects: []runtime.Object{usage(schemas, "1.32", argo)},
			want: results{"RemovedAPI": {Outcome: preflight.Skipped, Reason: "NotConcerned"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			findings := checktest.RunAt(t, removedapi.Check(removedapi.FixTime{}), server.Snapshot(t),
				check.Subject{Update: checktest.MinorUpdate(t, tc.from, tc.to), Now: twentyPastTwo()})
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			checktest.Contains(t, tc.reason, findings[0].Message, []string{tc.message})
		})
	}
}

func TestRemovedAPIsNameClients(t *testing.T) {
	var users []apiserverv1.PerUserAPIRequestCount
	for i := range 20 {
		users = append(users, requests(fmt.Sprintf("user-%d", i), strings.Repeat("agent", 200), int64(i+1)))
	}
	server.Create(t, usage(schemas, "1.32", users...))
	findings := checktest.Run(t, removedapi.Check(removedapi.FixTime{}), server.Snapshot(t), checktest.MinorUpdate(t, "", ""))
	got := findings[0]
	checktest.Contains(t, "message", got.Message,
		[]string{"by user-19 with", "40 requests (list), last used", "; user-18 with", "15 more clients"})
	if len(got.Message) > 1500 {
		t.Errorf("a message of %d bytes", len(got.Message))
	}
	checktest.Contains(t, "remedy", checktest.Remedies(findings), []string{"Run oc get apirequestcount " + schemas})
	want := []preflight.Object{{APIVersion: "apiserver.openshift.io/v1", Kind: "APIRequestCount", Name: schemas}}
	if diff := cmp.Diff(want, got.Objects); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
}

func TestRemovedAPIsUnread(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		server  checktest.Server
		want    checktest.Result
	}{
		"Forbidden": {
			reason: "without permission the check is inconclusive", server: server.Unprivileged(),
			want: checktest.Result{Outcome: preflight.Unknown, Reason: "Forbidden"},
		},
		"APIMissing": {
			reason: "every OpenShift cluster has the API", objects: []runtime.Object{checktest.Infrastructure(configv1.HighlyAvailableTopologyMode)},
			server: server.Responding(map[string]checktest.Response{countsPath: checktest.NotServed}),
			want:   checktest.Result{Outcome: preflight.Unknown, Reason: "APIMissing"},
		},
		"Malformed": {
			reason: "a count that cannot be decoded",
			server: server.Responding(map[string]checktest.Response{countsPath: checktest.Body(
				`{"kind":"APIRequestCountList","apiVersion":"apiserver.openshift.io/v1","items":[
				{"kind":"APIRequestCount","apiVersion":"apiserver.openshift.io/v1","metadata":{"name":"x"},"status":{"requestCount":"many"}}]}`)}),
			want: checktest.Result{Outcome: preflight.Unknown, Reason: "Error"},
		},
		"MetricsForbidden": {
			reason: "on plain Kubernetes the metrics are read, without permission",
			server: server.Responding(map[string]checktest.Response{countsPath: checktest.NotServed}).Unprivileged(),
			want:   checktest.Result{Outcome: preflight.Unknown, Reason: "Forbidden"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			findings := checktest.Run(t, removedapi.Check(removedapi.FixTime{}), tc.server.Snapshot(t), checktest.MinorUpdate(t, "", ""))
			if diff := cmp.Diff(map[string]checktest.Result{"RemovedAPI": tc.want}, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestManyRemovedAPIs(t *testing.T) {
	var counts []*apiserverv1.APIRequestCount
	for i := range 5000 {
		removed := ""
		if i%10 == 0 {
			removed = fmt.Sprintf("1.%d", 32+i%3)
		}
		counts = append(counts, usage(fmt.Sprintf("things.v1.group-%04d.example.com", i), removed, requests("user", "curl", 3)))
	}
	many := server.Responding(map[string]checktest.Response{countsPath: checktest.Pages(t, "apiserver.openshift.io/v1", "APIRequestCountList",
		counts)})
	findings := checktest.Run(t, removedapi.Check(removedapi.FixTime{}), many.Snapshot(t), checktest.MinorUpdate(t, "", ""))
	last := findings[len(findings)-1]
	if len(findings) != 51 || last.Outcome != preflight.Fail || !strings.Contains(last.Message, "450 more") ||
		!strings.Contains(last.Message, "Warn") {
		t.Errorf("%d findings, the last is %s: %q", len(findings), last.Outcome, last.Message)
	}
	for _, f := range findings[:50] {
		if f.Outcome != preflight.Fail {
			t.Errorf("%s is %s, and worse findings are not listed", f.Name, f.Outcome)
		}
	}
}

// metric is a line of an API server's metrics.
func metric(group, version, resource, removed string) string {
	return fmt.Sprintf("apiserver_requested_deprecated_apis{group=%q,removed_release=%q,resource=%q,subresource=\"\",version=%q} 1\n", group,
		removed, resource, version)
}

func TestRemovedAPIsOnPlainKubernetes(t *testing.T) {
	const others = "# TYPE apiserver_requested_deprecated_apis gauge\napiserver_request_total{code=\"200\"} 5\n"
	type results = map[string]checktest.Result
	pass := results{"RemovedAPI": {Outcome: preflight.Pass, Reason: "RemovedAPIsNotInUse"}}
	unknown := results{"RemovedAPI": {Outcome: preflight.Unknown, Reason: "Error"}}
	const group = "flowcontrol.apiserver.k8s.io"
	for name, tc := range map[string]struct {
		reason  string
		metrics string
		message string // a part of it
		want    results
	}{
		"None": {reason: "no deprecated API was requested", metrics: others, want: pass},
		"Removed": {
			reason: "the target's Kubernetes removes it", metrics: others + metric(group, "v1beta3", "flowschemas", "1.32"),
			message: "the API server's metrics do not name the clients",
			want:    results{"RemovedAPI-" + schemas: {Outcome: preflight.Fail, Reason: "RemovedAPIInUse"}},
		},
		"Ahead": {
			reason: "a later release removes it", metrics: metric(group, "v1beta3", "flowschemas", "1.35"),
			want: results{"RemovedAPI-" + schemas: {Outcome: preflight.Warn, Reason: "APIRemovalAhead"}},
		},
		"Deprecated": {reason: "no release removes it", metrics: metric("", "v1", "componentstatuses", ""), want: pass},
		"CoreGroup": {
			reason: "the core group has no name", metrics: metric("", "v1", "endpoints", "1.32"),
			want: results{"RemovedAPI-endpoints.v1": {Outcome: preflight.Fail, Reason: "RemovedAPIInUse"}},
		},
		"Subresource": {
			reason: "a subresource belongs to the same API",
			metrics: metric(group, "v1beta3", "flowschemas", "1.32") + strings.Replace(metric(group, "v1beta3", "flowschemas", "1.32"),
				`subresource=""`, `subresource="status"`, 1),
			want: results{"RemovedAPI-" + schemas: {Outcome: preflight.Fail, Reason: "RemovedAPIInUse"}},
		},
		"Zero": {
			reason: "0 is not in use", metrics: strings.ReplaceAll(metric(group, "v1beta3", "flowschemas", "1.32"), "} 1", "} 0"),
			want: pass,
		},
		"BadLabels": {reason: "half a line cannot be parsed", metrics: `apiserver_requested_deprecated_apis{group="x` + "\n", want: unknown},
		"BadValue":  {reason: "a value that is no number", metrics: "apiserver_requested_deprecated_apis{} often\n", want: unknown},
		"LongLine":  {reason: "the length of a line is bounded", metrics: strings.Repeat("x", 100_000), want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			plain := server.Responding(map[string]checktest.Response{countsPath: checktest.NotServed, "/metrics": checktest.Body(tc.metrics)})
			findings := checktest.Run(t, removedapi.Check(removedapi.FixTime{}), plain.Snapshot(t), checktest.MinorUpdate(t, "", ""))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			checktest.Contains(t, tc.reason, findings[0].Message, []string{tc.message})
		})
	}
}

func TestMetricsOfARealAPIServer(t *testing.T) {
	statuses := kubernetes.NewForConfigOrDie(config).CoreV1().ComponentStatuses()
	if _, err := statuses.List(t.Context(), metav1.ListOptions{}); err != nil { // deprecated, and removed by no release
		t.Fatal(err)
	}
	requested := 0
	plain := server.Responding(map[string]checktest.Response{countsPath: func(r *http.Request) (int,
		[]byte,
	) {
		requested++
		return checktest.NotServed(r)
	}})
	findings := checktest.Run(t, removedapi.Check(removedapi.FixTime{}), plain.Snapshot(t), checktest.MinorUpdate(t, "5.1.0", "5.2.0"))
	if requested == 0 || len(findings) == 0 || findings[0].Outcome == preflight.Unknown {
		t.Errorf("findings %+v, want findings of the metrics", findings)
	}
	for _, f := range findings {
		if strings.Contains(f.Name, "componentstatuses") {
			t.Errorf("%s: %s", f.Name, f.Message)
		}
	}
}

func FuzzRemovedMinor(f *testing.F) {
	for _, seed := range []string{"1.32", "1.", "1", "", "2.0", "1.+3", "1.032", "1.99999999999", "4.21.8"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, release string) {
		minor, ok := removedapi.RemovedMinor(release)
		if ok && (minor > 65535 || strings.TrimLeft(strings.TrimPrefix(release, "1."), "0") != strings.TrimLeft(fmt.Sprint(minor), "0")) {
			t.Errorf("%q is parsed as 1.%d", release, minor)
		}
	})
}
