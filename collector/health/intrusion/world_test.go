package intrusion_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/intrusion"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

type fields = map[string]any

const (
	constraintsPath = "/apis/security.openshift.io/v1/securitycontextconstraints"
	webhooksPath    = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	policiesPath    = "/apis/networking.k8s.io/v1/networkpolicies"
	quotasPath      = "/api/v1/resourcequotas"
	rangesPath      = "/api/v1/limitranges"
	podsPath        = "/api/v1/pods"
	daemonSetsPath  = "/apis/apps/v1/daemonsets"
	authentication  = "openshift-authentication"
	network         = "openshift-ovn-kubernetes"
)

// world is a cluster. What is forbidden, or not served, is by path.
type world struct {
	constraints, policies, quotas, ranges []fields
	webhooks                              []admissionregistrationv1.MutatingWebhookConfiguration
	workloads                             []workload
	denied                                map[string]int
	kubernetes                            bool
}

// workload is a pod of a DaemonSet, with its template.
type workload struct {
	template appsv1.DaemonSet
	pod      corev1.Pod
}

// workloadIn is a workload that admission has not changed; the changes are made to its pod.
func workloadIn(namespace string, changes ...func(*workload)) workload {
	spec := corev1.PodSpec{ServiceAccountName: "app", Containers: []corev1.Container{{Name: "app"}}}
	w := workload{
		template: appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "app",
				Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"},
			},
			Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "app"}},
				Spec:       spec,
			}},
		},
		pod: corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "app-x2x4z", Labels: map[string]string{"app": "app", "pod-template-generation": "2"},
				Annotations:     map[string]string{},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "app", Controller: new(true)}},
			},
			Spec: *spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodRunning},
		},
	}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func annotated(keys ...string) func(*workload) {
	return func(w *workload) {
		for _, key := range keys {
			name, value, _ := strings.Cut(key, "=")
			w.pod.Annotations[name] = value
		}
	}
}

// requesting changes what the controller requests, and so the pod.
func requesting(change func(*corev1.PodSpec)) func(*workload) {
	return func(w *workload) {
		change(&w.template.Spec.Template.Spec)
		change(&w.pod.Spec)
	}
}

func (w world) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	body, code := w.body(request.URL.Path), http.StatusOK
	if body == nil {
		body = discovery(request.URL.Path)
	}
	if denied := w.denied[request.URL.Path]; denied != 0 || body == nil {
		code = http.StatusNotFound
		if denied != 0 {
			code = denied
		}
		reason := map[int]metav1.StatusReason{
			http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusNotFound:  metav1.StatusReasonNotFound,
		}[code]
		body = fields{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
			"message": "\x1b[2Jno permission",
		}
	}
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(code)
	_ = json.NewEncoder(out).Encode(body) // the client reports what is missing
}

func (w world) body(path string) fields {
	var pods, sets, namespaces []any
	for i := range w.workloads {
		pods, sets = append(pods, w.workloads[i].pod), append(sets, w.workloads[i].template)
		namespace := w.workloads[i].pod.Namespace
		namespaces = append(namespaces, fields{"metadata": fields{"name": namespace, "labels": fields{corev1.LabelMetadataName: namespace}}})
	}
	switch path {
	case "/apis/config.openshift.io/v1/infrastructures/cluster":
		if w.kubernetes {
			return nil
		}
		return fields{"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": fields{"name": "cluster"}}
	case "/apis/config.openshift.io/v1/clusterversions":
		return list("config.openshift.io/v1", "ClusterVersion", []fields{version()})
	case "/apis/config.openshift.io/v1/clusterversions/version":
		return version()
	case constraintsPath:
		return list("security.openshift.io/v1", "SecurityContextConstraints", w.constraints)
	case webhooksPath:
		return list("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", w.webhooks)
	case policiesPath:
		return list("networking.k8s.io/v1", "NetworkPolicy", w.policies)
	case quotasPath:
		return list("v1", "ResourceQuota", w.quotas)
	case rangesPath:
		return list("v1", "LimitRange", w.ranges)
	case podsPath:
		return list("v1", "Pod", pods)
	case "/api/v1/nodes":
		return list("v1", "Node", []fields{})
	case "/api/v1/namespaces":
		return list("meta.k8s.io/v1", "PartialObjectMetadata", namespaces)
	case daemonSetsPath:
		return list("apps/v1", "DaemonSet", sets)
	case "/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets", "/apis/batch/v1/jobs":
		return list("apps/v1", "List", []fields{})
	}
	return nil
}

// version makes it a cluster of which an archive can be made, so that each row is also judged by its archives.
func version() fields {
	return fields{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": fields{"name": "version"},
		"spec": fields{"clusterID": "6ba7b810-9dad-41d1-80b4-00c04fd430c8"},
	}
}

// discovery is what the API server has.
func discovery(path string) fields {
	served := map[string][]fields{}
	var groups []fields
	for _, each := range [][]string{
		{"v1", "Pod", "pods"},
		{"v1", "Namespace", "namespaces"},
		{"v1", "Node", "nodes"},
		{"v1", "ResourceQuota", "resourcequotas"},
		{"v1", "LimitRange", "limitranges"},
		{"apps/v1", "ReplicaSet", "replicasets"},
		{"apps/v1", "DaemonSet", "daemonsets"},
		{"apps/v1", "StatefulSet", "statefulsets"},
		{"batch/v1", "Job", "jobs"},
		{"networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"},
		{"security.openshift.io/v1", "SecurityContextConstraints", "securitycontextconstraints"},
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"},
		{"config.openshift.io/v1", "ClusterVersion", "clusterversions"},
		{"config.openshift.io/v1", "Infrastructure", "infrastructures"},
	} {
		groupVersion, namespaced := each[0], slices.Contains([]string{
			"pods", "resourcequotas", "limitranges", "replicasets", "daemonsets",
			"statefulsets", "jobs", "networkpolicies",
		}, each[2])
		if group, version, ok := strings.Cut(groupVersion, "/"); ok && served[groupVersion] == nil {
			this := fields{"groupVersion": groupVersion, "version": version}
			groups = append(groups, fields{"name": group, "versions": []fields{this}, "preferredVersion": this})
		}
		served[groupVersion] = append(served[groupVersion],
			fields{"name": each[2], "kind": each[1], "namespaced": namespaced, "verbs": []string{"get", "list"}})
	}
	switch path {
	case "/version":
		return fields{"major": "1", "minor": "31", "gitVersion": "v1.31.4"}
	case "/api":
		return fields{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		return fields{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	}
	_, groupVersion, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if served[groupVersion] == nil {
		return nil
	}
	return fields{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": served[groupVersion]}
}

func list[T any](apiVersion, kind string, items []T) fields {
	return fields{"apiVersion": apiVersion, "kind": kind + "List", "metadata": fields{}, "items": append([]T{}, items...)}
}

// run runs the check on a world.
func run(t *testing.T, w world) []finding.Finding {
	t.Helper()
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	return checktest.Run(t, intrusion.PlatformPods(), checktest.Connect(&rest.Config{Host: server.URL}).Snapshot(t),
		checktest.Update(t, "4.18.3", "4.18.9"))
}

type row struct {
	reason string
	world  world
	// want are the names of the warnings.
	want []string
	// message are parts of the messages, absent is none.
	message []string
	absent  string
}

func (r row) test(t *testing.T, reason string) {
	t.Helper()
	findings := run(t, r.world)
	want := map[string]checktest.Result{}
	for _, name := range r.want {
		want[name] = checktest.Result{Outcome: preflight.Warn, Reason: reason}
	}
	if len(want) == 0 {
		want["PlatformPods"] = checktest.Result{Outcome: preflight.Pass, Reason: "AsExpected"}
	}
	if diff := cmp.Diff(want, checktest.Results(findings)); diff != "" {
		t.Errorf("%s: -want, +got:\n%s\n%s", r.reason, diff, checktest.Messages(findings))
	}
	checktest.Contains(t, r.reason, checktest.Messages(findings), r.message)
	if r.absent != "" && strings.Contains(checktest.Messages(findings), r.absent) {
		t.Errorf("%s: %s", r.reason, checktest.Messages(findings))
	}
}

// written are managed fields of these managers, who wrote what the objects have.
func written(fieldsOf string, managers ...string) []fields {
	var all []fields
	for _, manager := range managers {
		all = append(all, fields{
			"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
			"fieldsV1": json.RawMessage(fieldsOf),
		})
	}
	return all
}

// bounded fails the test for a text that is long, or moves the cursor.
func bounded(t *testing.T, findings []finding.Finding) {
	t.Helper()
	const most = 6 << 10
	for _, f := range findings {
		for _, text := range []string{f.Message, f.Remediation} {
			if len(text) > most || strings.ContainsAny(text, "\x1b\x07") {
				t.Errorf("%s has a text of %d bytes: %.300q", f.Name, len(text), text)
			}
		}
	}
}

func at(hour int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 11, 25, hour, 0, 0, 0, time.UTC))
}
