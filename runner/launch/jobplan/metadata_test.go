package jobplan_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// authored adds labels and annotations of an author to an object.
func authored[T payload.Object](object T, key string) T {
	object.SetLabels(map[string]string{key: "true"})
	object.SetAnnotations(map[string]string{key: "true"})
	return object
}

// TestCopiesHaveNoAuthorMetadata tests every kind of object that a run creates.
func TestCopiesHaveNoAuthorMetadata(t *testing.T) {
	clusterRole := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}
	clusterBinding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "wide"}, Subjects: []rbacv1.Subject{releasetest.Subject("checker")},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "wide"},
	}
	for name, tc := range map[string]struct{ reason, key string }{
		"Aggregation": {"the ClusterRole would be added to the role view of every user", "rbac.authorization.k8s.io/aggregate-to-view"},
		"OAuth": {
			"the ServiceAccount would become an OAuth client with that redirection",
			"serviceaccounts.openshift.io/oauth-redirecturi.first",
		},
		"Selector":      {"the selector of a Service or of a controller would match", "app"},
		"Queue":         {"a queue controller would suspend the Job", "kueue.x-k8s.io/queue-name"},
		"TrustBundle":   {"the network operator would write to the ConfigMap", "config.openshift.io/inject-trusted-cabundle"},
		"Operator":      {"the cluster-version operator would apply the copy", "include.release.openshift.io/self-managed-high-availability"},
		"JobController": {"the label is that of the Job controller", "batch.kubernetes.io/controller-uid"},
		"Forged":        {"labels of this project have the values of the run", label.Run},
	} {
		t.Run(name, func(t *testing.T) {
			release := releasetest.Release(authored(releasetest.Job(func(job *batchv1.Job) {
				spec := &job.Spec.Template.Spec
				spec.ServiceAccountName = "checker"
				spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
				}}}}
			}), tc.key))
			settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default"}}
			release.Supporting = releasetest.Supporting(
				authored(releasetest.Account("checker"), tc.key), authored(releasetest.Role(), tc.key),
				authored(releasetest.Binding("Role", "reader", releasetest.Subject("checker")), tc.key),
				authored(settings, tc.key), authored(clusterRole.DeepCopy(), tc.key), authored(clusterBinding.DeepCopy(), tc.key),
			)
			plan := releasetest.Draft(releasetest.Run(), release)
			if len(plan.Checks) != 1 || len(plan.Supporting) != 6 {
				t.Fatalf("%s: want one check and six objects, got %d and %d, refused %v", tc.reason, len(plan.Checks), len(plan.Supporting),
					plan.Refused)
			}
			for _, object := range append(plan.Supporting, plan.Checks[0].Job) {
				kind := object.GetObjectKind().GroupVersionKind().Kind
				if diff := cmp.Diff(runLabels(), object.GetLabels()); diff != "" {
					t.Errorf("%s: labels of the %s (-want, +got):\n%s", tc.reason, kind, diff)
				}
				if diff := cmp.Diff(runAnnotations(kind), slices.Sorted(maps.Keys(object.GetAnnotations()))); diff != "" {
					t.Errorf("%s: annotations of the %s (-want, +got):\n%s", tc.reason, kind, diff)
				}
			}
		})
	}
}

// runLabels are all labels of the objects of aRun.
func runLabels() map[string]string {
	return map[string]string{
		label.Run: releasetest.Run().ID, label.Release: label.ReleaseValue(releasetest.Target().Digest()),
		label.Component: "etcd",
	}
}

// runAnnotations are the keys of all annotations of a kind of objects of aRun.
func runAnnotations(kind string) []string {
	keys := []string{"manifest", "payload-digest", "release-version", "start-time", "tool-version"}
	if kind == "Job" {
		keys = append(keys, "check")
	}
	for i := range keys {
		keys[i] = label.Prefix + keys[i]
	}
	slices.Sort(keys)
	return keys
}

// TestPodLabels checks that the pod template has the labels of the run only.
func TestPodLabels(t *testing.T) {
	for name, tc := range map[string]struct{ reason, key string }{
		"Service":       {"the pod would join the EndpointSlices of a Service with the selector", "app"},
		"JobController": {"the label is that of the Job controller", "job-name"},
		"Forged":        {"labels of this project have the values of the run", label.Component},
	} {
		t.Run(name, func(t *testing.T) {
			plan := releasetest.Draft(releasetest.Run(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
				job.Spec.Template.Labels = map[string]string{tc.key: "production"}
			})))
			if len(plan.Checks) != 1 {
				t.Fatalf("%s: refused %v", tc.reason, plan.Refused)
			}
			if diff := cmp.Diff(runLabels(), plan.Checks[0].Job.Spec.Template.Labels); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPodAnnotations(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, key string
		want        map[string]string
	}{
		"SCC": {
			reason: "the SCC decides with which user the check runs", key: "openshift.io/required-scc",
			want: map[string]string{"openshift.io/required-scc": "x"},
		},
		"Workload": {
			reason: "a pod of the management workload runs on the reserved CPUs", key: "target.workload.openshift.io/management",
			want: map[string]string{"target.workload.openshift.io/management": "x"},
		},
		"Autoscaler":  {reason: "the pod would keep its node from being removed", key: "cluster-autoscaler.kubernetes.io/safe-to-evict"},
		"OtherSCC":    {reason: "the SCC of a pod is the result of admission", key: "openshift.io/scc"},
		"Project":     {reason: "annotations of this project are those of the runner", key: label.Prefix + "run"},
		"Description": {reason: "no component evaluates it", key: "description"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := releasetest.Draft(releasetest.Run(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
				job.Spec.Template.Annotations = map[string]string{tc.key: "x"}
			})))
			if len(plan.Checks) != 1 {
				t.Fatalf("%s: refused %v", tc.reason, plan.Refused)
			}
			if diff := cmp.Diff(tc.want, plan.Checks[0].Job.Spec.Template.Annotations); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}
