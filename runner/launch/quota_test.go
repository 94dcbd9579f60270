package launch_test

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/rights"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
)

// limit creates a quota, and waits until it is in force.
func limit(t *testing.T, namespace string, hard corev1.ResourceList) {
	t.Helper()
	watching, err := api.CoreV1().ResourceQuotas(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	created := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "compute"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if _, err := api.CoreV1().ResourceQuotas(namespace).Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for event := range watching.ResultChan() {
		if quota, ok := event.Object.(*corev1.ResourceQuota); ok && len(quota.Status.Used) == len(hard) {
			return
		}
	}
	t.Fatal("the quota has no status")
}

// supplyLimits creates a LimitRange with a default limit of CPU.
func supplyLimits(t *testing.T, namespace string) {
	t.Helper()
	ranges := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	}}}}
	if _, err := api.CoreV1().LimitRanges(namespace).Create(t.Context(), ranges, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// mutatePods creates a webhook that receives the pods of a namespace.
func mutatePods(t *testing.T, namespace string) {
	t.Helper()
	webhooks := api.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := webhooks.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "pods.example.com", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := webhooks.Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// A pod that a quota can never accept has no Job; one that waits for the quota has.
func TestQuotaOfPods(t *testing.T) {
	cpu := corev1.ResourceList{corev1.ResourceLimitsCPU: resource.MustParse("4")}
	for name, tc := range map[string]struct {
		reason   string
		hard     corev1.ResourceList
		prepare  func(t *testing.T, namespace string)
		user     func(t *testing.T, namespace string) *process
		want     string // the reason of the finding
		exceeded string
	}{
		"Requires": {reason: "the pod specifies no limit", hard: cpu, want: "QuotaRequires"},
		"Default":  {reason: "a LimitRange supplies the limit", hard: cpu, prepare: supplyLimits},
		"Webhook":  {reason: "a webhook may supply the limit", hard: cpu, prepare: mutatePods},
		"Forbidden": {
			reason: "the quota cannot be read", hard: cpu,
			user: func(t *testing.T, namespace string) *process {
				t.Helper()
				return allowed(t, checksOf(namespace).And(access.Needs{Required: rights.GrantsNeeds()}))
			},
		},
		"UsedUp": {
			reason: "the quota may be freed", hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
			exceeded: "compute (pods: requested 1, used 0, limited 0)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			limit(t, namespace, tc.hard)
			launcher := newLauncher(t, config)
			if tc.prepare != nil {
				tc.prepare(t, namespace)
			}
			if tc.user != nil {
				launcher = tc.user(t, namespace)
			}
			plan := releasetest.Plan(newRun(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) { job.Namespace = namespace })))
			findings, valid := launcher.Validate(t.Context(), plan)
			if tc.want == "" {
				if len(findings) > 0 || len(valid.Checks) != 1 || valid.Checks[0].Exceeded != tc.exceeded {
					t.Fatalf("%s: want a Job that waits for %q, got %+v and findings %+v", tc.reason, tc.exceeded, valid.Checks, findings)
				}
				return
			}
			if len(valid.Checks) > 0 || len(findings) != 1 || findings[0].Outcome != preflight.Unknown || findings[0].Reason != tc.want {
				t.Fatalf("%s: want no Job and Unknown(%s), got %d Jobs and %+v", tc.reason, tc.want, len(valid.Checks), findings)
			}
			if got := findings[0].Message; !strings.Contains(got, "compute: must specify limits.cpu for: check") {
				t.Errorf("%s: the message does not name what is required: %s", tc.reason, got)
			}
			for _, want := range []string{"Create a LimitRange with defaults in namespace " + namespace, "describe quota"} {
				if got := remedyOf(findings[0]); !strings.Contains(got, want) {
					t.Errorf("%s: the remedy lacks %q: %s", tc.reason, want, got)
				}
			}
		})
	}
}
