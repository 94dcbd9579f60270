package drain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/health/draining"
	"github.com/openshift/update-preflight/collector/snapshot"
	testcluster "github.com/openshift/update-preflight/test/cluster"
)

func one() *intstr.IntOrString { return new(intstr.FromInt32(1)) }

// machine is a VirtualMachineInstance with evictionStrategy LiveMigrate.
func machine(role, migratable, reason string) operated {
	condition := map[string]any{"type": "LiveMigratable", "status": migratable, "reason": reason}
	return operated{
		GroupVersionKind: schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"},
		plural:           "virtualmachineinstances", role: role,
		fields: map[string]any{
			"spec":   map[string]any{"evictionStrategy": "LiveMigrate"},
			"status": map[string]any{"conditions": []any{condition}},
		},
	}
}

// primary is a Cluster of CloudNativePG with three instances, and its primary.
func primary() operated {
	return operated{
		GroupVersionKind: schema.GroupVersionKind{Group: "postgresql.cnpg.io", Version: "v1", Kind: "Cluster"}, plural: "clusters",
		role:   "worker",
		labels: map[string]string{"cnpg.io/instanceRole": "primary"},
		fields: map[string]any{"spec": map[string]any{"instances": int64(3)}, "status": map[string]any{"readyInstances": int64(3)}},
	}
}

// interceptor is the webhook of KubeVirt. It is taken for one that responds, since it is not in the
// cluster; the API server gets no response, and ignores it.
func interceptor() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-api-validator"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "virt-launcher-eviction-interceptor.kubevirt.io",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
			}},
			FailurePolicy: new(admissionregistrationv1.Ignore), SideEffects: new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
			TimeoutSeconds: new(int32(1)), AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// TestReports has states of public reports about drains, made on a real API server with its
// controllers: what the API server answers to an eviction, and what the product finds. Operators
// that are not run are imitated by their objects.
func TestReports(t *testing.T) {
	for role, count := range map[string]int{"master": 3, "worker": 3, "virt": 1, "infra": 1} {
		nodes(t, role, count, role == "infra")
	}
	webhooks := oracle.Clients.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := webhooks.Create(t.Context(), interceptor(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := webhooks.Delete(context.WithoutCancel(t.Context()), "virt-api-validator", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	rows := map[string]struct { // by namespace
		reason string
		build  func(*place)
		answer int    // of the API server to the eviction; 0 if it evicts
		want   string // findings
	}{
		"quota": {
			reason: "the quota refuses the recreated pod, which has no requests (operate-first/operations#400)",
			want:   "DrainPending Warn NoNodeAfterDrain",
			build: func(p *place) {
				p.deploy(template("worker"))
				p.settle()
				_, err := p.clients.CoreV1().ResourceQuotas(p.namespace).Create(p.t.Context(), &corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Name: "compute"},
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("10")}},
				}, metav1.CreateOptions{})
				p.must(err)
			},
		},
		"grace": {
			reason: "a pod may take a day to end (Azure/AKS#3008)", want: "DrainGracePeriods Warn LongGracePeriod",
			build: func(p *place) {
				of := template("worker")
				of.Spec.TerminationGracePeriodSeconds = new(int64(86400))
				p.deploy(of)
			},
		},
		"always-allow": {
			reason: "the only pod is unready, and AlwaysAllow lets it go (berops/claudie#1508)",
			build: func(p *place) {
				of := template("worker")
				of.Annotations[testcluster.AnnotationReady] = testcluster.NeverReady
				p.deploy(of)
				p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: one(), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow)})
			},
		},
		"daemon": {
			reason: "a drain does not evict pods of DaemonSets, whatever their budget (DataDog/datadog-operator#401)",
			answer: http.StatusTooManyRequests,
			build: func(p *place) {
				_, err := p.clients.AppsV1().DaemonSets(p.namespace).Create(p.t.Context(), &appsv1.DaemonSet{
					ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: template("worker")},
				}, metav1.CreateOptions{})
				p.must(err)
				p.budget(policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0))})
			},
		},
		"pending": {
			reason: "the only pod is on no node, and is evicted without a look at its budget (gravitational/gravity#1277)",
			build: func(p *place) {
				p.deploy(template("none"))
				p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: one()})
			},
		},
		"paused": {
			reason: "all pods of the budget are on nodes of a paused pool", answer: http.StatusTooManyRequests,
			build: func(p *place) {
				p.deploy(template("infra"))
				p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: one()})
			},
		},
		"machine": {
			reason: "the eviction starts the migration of the virtual machine (kubevirt/kubevirt#6982)", answer: http.StatusTooManyRequests,
			build: func(p *place) {
				p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: one()}, p.operate(machine("worker", "True", "")))
			},
		},
		"machine-stays": {
			reason: "the webhook of KubeVirt denies the eviction of a machine that cannot migrate, without a budget",
			want:   "DrainOperator-machine-stays.o Fail OperatorMovesPods",
			build:  func(p *place) { p.operate(machine("virt", "False", "DisksNotLiveMigratable")) },
		},
		"openshift-kube-scheduler": {
			reason: "the guards of static pods have no controller, and a budget that allows one (openshift/library-go)",
			build: func(p *place) {
				for i := range 3 {
					of := template("master")
					node := fmt.Sprintf("master-%d", i)
					of.Labels["app"], of.Spec.NodeName = "guard", node
					_, err := p.clients.CoreV1().Pods(p.namespace).Create(p.t.Context(),
						&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "openshift-kube-scheduler-guard-" + node, Labels: of.Labels}, Spec: of.Spec},
						metav1.CreateOptions{})
					p.must(err)
				}
				_, err := p.clients.PolicyV1().PodDisruptionBudgets(p.namespace).Create(p.t.Context(), &policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Name: "openshift-kube-scheduler-guard-pdb"},
					Spec: policyv1.PodDisruptionBudgetSpec{
						MinAvailable: new(intstr.FromInt32(2)),
						Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guard"}},
					},
				}, metav1.CreateOptions{})
				p.must(err)
			},
		},
		"primary": {
			reason: "CloudNativePG makes another instance the primary when the node is cordoned", answer: http.StatusTooManyRequests,
			build: func(p *place) {
				p.budget(policyv1.PodDisruptionBudgetSpec{MinAvailable: one()}, p.operate(primary()))
			},
		},
	}
	for name, row := range rows {
		p := newPlace(t, name)
		row.build(p)
		pods := p.settle()
		if got := evict(t, &pods[0]); got != row.answer {
			t.Errorf("%s: the API server answers %d to the eviction, want %d", row.reason, got, row.answer)
		}
	}
	found := findings(t)
	for name, row := range rows {
		if diff := cmp.Diff(row.want, strings.Join(found[name], ", ")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", row.reason, diff)
		}
	}
}

// evict is the code of the API server's answer to the eviction of a pod, which is not evicted; 0 for
// success.
func evict(t *testing.T, pod *corev1.Pod) int {
	t.Helper()
	err := oracle.Clients.PolicyV1().Evictions(pod.Namespace).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &status):
		t.Fatal(err)
	}
	return int(status.Status().Code)
}

// findings are those of the rehearsal, by the namespaces that they are about.
func findings(t *testing.T) map[string][]string {
	t.Helper()
	api, err := cluster.Connect(local.Config, "reports")
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour) // no pod has started a moment ago
	plan, err := draining.Rehearse(t.Context(), snapshot.Of(api), later, draining.Selection{})
	if err != nil || len(plan.Unread) > 0 {
		t.Fatalf("the rehearsal lacks %v: %v", plan.Unread, err)
	}
	found := map[string][]string{}
	for _, each := range plan.Findings {
		text := fmt.Sprintf("%s %s %s", each.Name, each.Outcome, each.Reason)
		for _, object := range each.Objects {
			if !slices.Contains(found[object.Namespace], text) {
				found[object.Namespace] = append(found[object.Namespace], text)
			}
		}
	}
	return found
}
