package deadlock_test

import (
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	hookName  = "hook"
	firstNode = "simulated-000"
	yearLater = 365 * 24 * time.Hour
)

// topology is a webhook or a policy, the placement of its pods, and the expected results.
type topology struct {
	// replicas of the webhook; stateful is true for a StatefulSet.
	replicas int32
	stateful bool
	// spread is true for replicas on different nodes; otherwise they prefer the first.
	spread bool
	// budget is true for a PodDisruptionBudget with maxUnavailable 1.
	budget bool
	// withoutService omits the Service.
	withoutService bool
	// expires is the time from now until the certificate expires; 0 is a year.
	expires time.Duration
	// change changes the webhook, which by default receives all new pods of the
	// namespaces of the topology; nil if there is none.
	change func(*admissionregistrationv1.ValidatingWebhook)
	// policy and binding are for new pods; nil if there are none.
	policy  *admissionregistrationv1.ValidatingAdmissionPolicySpec
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec

	predicted preflight.Outcome
	// drains is the result of the drains. It is empty if the result depends on which
	// controller is first: that of the ReplicaSet, which replaces a pod when its deletion
	// begins, or that of the EndpointSlice.
	drains string
}

type hook = admissionregistrationv1.ValidatingWebhook

// unchanged keeps the webhook, which receives its own pods, too.
func unchanged(*hook) {}

// excludesItself excludes the pods of the webhook.
func excludesItself(w *hook) {
	w.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "webhook", Operator: metav1.LabelSelectorOpDoesNotExist}}
}

// requests returns a change of the requests that the webhook receives.
func requests(operation admissionregistrationv1.OperationType, resource string) func(*hook) {
	return func(w *hook) {
		w.NamespaceSelector = &metav1.LabelSelector{}
		w.Rules = rules(operation, resource)
	}
}

// condition returns a change that adds a match condition.
func condition(expression string) func(*hook) {
	return func(w *hook) {
		w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "condition", Expression: expression}}
	}
}

func rules(operation admissionregistrationv1.OperationType, resource string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{operation},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}}
}

// newPods returns the constraints of a policy for new pods in namespaces of a topology.
func newPods() *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"topology": "this"}}, ObjectSelector: &metav1.LabelSelector{},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rules(admissionregistrationv1.Create, "pods")[0]}},
	}
}

func validating(expression string) *admissionregistrationv1.ValidatingAdmissionPolicySpec {
	return &admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: newPods(), Validations: []admissionregistrationv1.Validation{{Expression: expression}},
	}
}

func denying() *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}
}

// topologies returns all topologies, by name.
func topologies() map[string]topology {
	return map[string]topology{
		"clean": {
			replicas: 2, spread: true, budget: true, change: excludesItself,
			predicted: preflight.Pass, drains: completes,
		},
		"spread, selects itself": {
			replicas: 2, spread: true, budget: true, change: unchanged, predicted: preflight.Warn,
			drains: completes,
		},
		"one node, budget, selects itself": {
			replicas: 2, budget: true, change: unchanged, predicted: preflight.Pass,
			drains: completes,
		},
		"StatefulSet, selects itself": {
			replicas: 1, stateful: true, change: unchanged, predicted: preflight.Fail,
			drains: blocked,
		},
		"StatefulSets on one node, select themselves": {
			replicas: 2, stateful: true, change: unchanged, predicted: preflight.Fail,
			drains: blocked,
		},
		"Deployment, selects itself": {replicas: 1, change: unchanged, predicted: preflight.Warn},
		"Deployment on one node":     {replicas: 1, change: excludesItself, predicted: preflight.Warn, drains: completes},
		"StatefulSet on one node": {
			replicas: 1, stateful: true, change: excludesItself, predicted: preflight.Warn,
			drains: completes,
		},
		"no Service":  {withoutService: true, change: unchanged, predicted: preflight.Fail, drains: blocked},
		"no endpoint": {change: unchanged, predicted: preflight.Fail, drains: blocked},
		"no port": {
			replicas: 2, spread: true, budget: true,
			change: func(w *hook) { w.ClientConfig.Service.Port = new(int32(1)) }, predicted: preflight.Fail, drains: blocked,
		},
		"expired": {
			replicas: 2, spread: true, budget: true, expires: -time.Hour, change: excludesItself,
			predicted: preflight.Fail, drains: blocked,
		},
		"expires": {
			replicas: 2, spread: true, budget: true, expires: time.Hour, change: excludesItself,
			predicted: preflight.Warn, drains: completes,
		},
		"no endpoint, evictions": {
			change:    requests(admissionregistrationv1.Create, "pods/eviction"),
			predicted: preflight.Fail, drains: blocked,
		},
		"no endpoint, nodes": {
			change: requests(admissionregistrationv1.Update, "nodes"), predicted: preflight.Fail,
			drains: blocked,
		},
		"no endpoint, bindings": {
			change: requests(admissionregistrationv1.Create, "pods/*"), predicted: preflight.Fail,
			drains: blocked,
		},
		"no endpoint, other operation": {
			change: requests(admissionregistrationv1.Connect, "pods/exec"), predicted: preflight.Pass,
			drains: completes,
		},
		"no endpoint, Ignore": {
			change:    func(w *hook) { w.FailurePolicy = new(admissionregistrationv1.Ignore) },
			predicted: preflight.Pass, drains: completes,
		},
		"no endpoint, other labels": {change: func(w *hook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
		}, predicted: preflight.Pass, drains: completes},
		"no endpoint, same labels": {change: func(w *hook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}
		}, predicted: preflight.Fail, drains: blocked},
		"no endpoint, excluded": {
			change: condition("!request.namespace.startsWith('openshift-')"), predicted: preflight.Pass,
			drains: completes,
		},
		"no endpoint, condition holds": {
			change: condition("request.namespace.startsWith('openshift-')"), predicted: preflight.Fail,
			drains: blocked,
		},
		"no endpoint, condition on spec": {
			change: condition("object.spec.containers.all(c, c.image != 'other')"), predicted: preflight.Warn,
			drains: blocked,
		},
		"no endpoint, spec excludes": {
			change: condition("object.spec.containers.all(c, c.image == 'other')"), predicted: preflight.Warn,
			drains: completes,
		},
		"policy denies": {
			policy: validating("!request.namespace.startsWith('openshift-')"), binding: denying(),
			predicted: preflight.Warn, drains: blocked,
		},
		"policy on spec": {
			policy: validating("object.spec.containers.size() > 0"), binding: denying(), predicted: preflight.Pass,
			drains: completes,
		},
	}
}

// namespaces returns the namespaces of the topology: that of the webhook, and that of the
// pods of the cluster.
func (r *trial) namespaces() []*corev1.Namespace {
	return []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: r.hooks, Labels: map[string]string{"topology": r.id, "webhook": "yes"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: r.apps, Labels: map[string]string{"topology": r.id}}},
	}
}

// template returns a pod with the label app=name and a placement.
func template(name string, affinity *corev1.Affinity) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Affinity: affinity, Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/none"}}},
	}
}

// onFirst returns a preference for the first node.
func onFirst() *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{firstNode}},
		}},
	}}}}
}

// onOtherNode returns a placement on a node without other pods of the same name.
func onOtherNode(name string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
	}}}}
}

func deployment(namespace, name string, replicas int32, affinity *corev1.Affinity) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, affinity),
		},
	}
}

func statefulSet(namespace, name string, replicas int32) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: template(name, onFirst()),
			PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}
}

func budget(namespace string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: hookName},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": hookName}},
		},
	}
}

func service(namespace, address string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: hookName},
		Spec: corev1.ServiceSpec{
			ClusterIP: address, Selector: map[string]string{"app": hookName}, Ports: []corev1.ServicePort{{Port: webhookPort}},
		},
	}
}

func (r *trial) configuration(bundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	w := hook{
		Name: "hook.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds: new(int32(2)), FailurePolicy: new(admissionregistrationv1.Fail),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{
			CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{Namespace: r.hooks, Name: hookName, Port: new(int32(webhookPort))},
		},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"topology": r.id}},
		Rules:             rules(admissionregistrationv1.Create, "pods"),
	}
	r.change(&w)
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: r.id}, Webhooks: []hook{w}}
}

func (r *trial) host() string { return fmt.Sprintf("%s.%s.svc", hookName, r.hooks) }
