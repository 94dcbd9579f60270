package deadlock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The results of the drains of all nodes, one after the other.
const (
	completes = "completes"
	blocked   = "blocked"
)

// attempts is the number of rejected requests of a controller that counts as blocked,
// while nothing in progress can change the result.
const attempts = 4

// scene is one topology in the cluster.
type scene struct {
	topology

	id, address string
	// hooks is the namespace of the webhook, apps that of the cluster's pods.
	hooks, apps string

	found    []finding.Finding
	happened string
	details  string
}

// TestDrains compares predictions with what happens when kubectl drains each node.
func TestDrains(t *testing.T) {
	assignAddresses(t)
	cidr := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "loopback"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"127.204.0.0/24"}}}
	if _, err := server.Kubernetes.NetworkingV1().ServiceCIDRs().Create(t.Context(), cidr, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	all, scenes := topologies(), map[string]*scene{}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		id := fmt.Sprintf("t%d", i)
		s := &scene{topology: all[name], id: id, address: fmt.Sprintf("127.204.0.%d", i+10), hooks: "hooks-" + id, apps: "openshift-" + id}
		scenes[name] = s
		t.Run(name, s.run)
	}
	t.Log(table(scenes))
}

// run predicts the drains, then drains each node.
func (s *scene) run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s.create(ctx, t)
	s.found = predict(ctx, t)
	for i := range 3 {
		node := fmt.Sprintf("simulated-%03d", i)
		if err := s.drain(ctx, node); err != nil {
			s.happened, s.details = blocked, err.Error()
			break
		}
	}
	if s.happened == "" {
		s.happened = completes
	}
	if got := worst(s.found); got != s.predicted || s.happens != "" && s.happened != s.happens {
		t.Errorf("predicted %s, want %s; %s, want %s: %s %s", got, s.predicted, s.happened, s.happens, messages(s.found), s.details)
	}
	if worst(s.found) == preflight.Fail && s.happened == completes {
		t.Errorf("a false Fail: %s", messages(s.found))
	}
	if worst(s.found) == preflight.Pass && s.happened == blocked {
		t.Errorf("not predicted: %s", s.details)
	}
}

// create makes the objects of the topology. The webhook is made last, since some could
// not be created after it.
func (s *scene) create(ctx context.Context, t *testing.T) {
	t.Helper()
	kubernetes := server.Kubernetes
	certificates := certify(t, s.host(), time.Now().Add(orDefault(s.expires, yearLater)))
	var errs []error
	add := func(_ any, err error) { errs = append(errs, err) }
	for _, namespace := range s.namespaces() {
		add(kubernetes.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}))
	}
	if !s.withoutService {
		add(kubernetes.CoreV1().Services(s.hooks).Create(ctx, service(s.hooks, s.address), metav1.CreateOptions{}))
		serve(ctx, t, fmt.Sprintf("%s:%d", s.address, webhookPort), s.hooks, certificates.serving)
	}
	affinity := onFirst()
	if s.spread {
		affinity = apart(hookName)
	}
	if s.stateful {
		add(kubernetes.AppsV1().StatefulSets(s.hooks).Create(ctx, statefulSet(s.hooks, hookName, s.replicas), metav1.CreateOptions{}))
	} else {
		add(kubernetes.AppsV1().Deployments(s.hooks).Create(ctx, deployment(s.hooks, hookName, s.replicas, affinity), metav1.CreateOptions{}))
	}
	if s.budget {
		add(kubernetes.PolicyV1().PodDisruptionBudgets(s.hooks).Create(ctx, budget(s.hooks), metav1.CreateOptions{}))
	}
	add(kubernetes.AppsV1().Deployments(s.apps).Create(ctx, deployment(s.apps, "app", 1, onFirst()), metav1.CreateOptions{}))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	s.await(ctx, t, func() bool {
		return s.running(ctx) && (s.replicas == 0 || ready(ctx, s.hooks)) && (!s.budget || s.evictable(ctx))
	})
	s.admit(ctx, t, certificates.bundle)
}

func orDefault(duration, other time.Duration) time.Duration {
	if duration == 0 {
		return other
	}
	return duration
}

// admit makes the webhook or the policy, and waits until it is in effect.
func (s *scene) admit(ctx context.Context, t *testing.T, bundle []byte) {
	t.Helper()
	registration := server.Kubernetes.AdmissionregistrationV1()
	var errs []error
	add := func(_ any, err error) { errs = append(errs, err) }
	if s.change != nil {
		add(registration.ValidatingWebhookConfigurations().Create(ctx, s.configuration(bundle), metav1.CreateOptions{}))
	}
	if s.policy != nil {
		s.policy.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"topology": s.id}}
		s.binding.PolicyName = s.id
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.id}, Spec: *s.policy}
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: s.id}, Spec: *s.binding}
		add(registration.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}))
		add(registration.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}))
	}
	t.Cleanup(func() { s.remove(context.WithoutCancel(ctx), t) })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if s.happens == blocked && s.policy != nil {
		s.await(ctx, t, func() bool {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: template("app", nil).Spec}
			_, err := server.Kubernetes.CoreV1().Pods(s.apps).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
		})
	}
}

// remove removes the topology, but for its namespaces, which could not be drained while
// they are deleted.
func (s *scene) remove(ctx context.Context, t *testing.T) {
	t.Helper()
	kubernetes := server.Kubernetes
	registration := kubernetes.AdmissionregistrationV1()
	var errs []error
	add := func(err error) {
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	add(registration.ValidatingWebhookConfigurations().Delete(ctx, s.id, metav1.DeleteOptions{}))
	add(registration.ValidatingAdmissionPolicyBindings().Delete(ctx, s.id, metav1.DeleteOptions{}))
	add(registration.ValidatingAdmissionPolicies().Delete(ctx, s.id, metav1.DeleteOptions{}))
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	for _, namespace := range s.namespaces() {
		add(kubernetes.AppsV1().Deployments(namespace.Name).DeleteCollection(ctx, background, metav1.ListOptions{}))
		add(kubernetes.AppsV1().StatefulSets(namespace.Name).DeleteCollection(ctx, background, metav1.ListOptions{}))
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	s.await(ctx, t, func() bool { return s.count(ctx, s.hooks) == 0 && s.count(ctx, s.apps) == 0 })
	for i := range 3 {
		s.await(ctx, t, func() bool { return kubectl(ctx, "uncordon", fmt.Sprintf("simulated-%03d", i)) == nil })
	}
}

func (s *scene) await(ctx context.Context, t *testing.T, done func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return done(), nil }); err != nil {
		t.Fatal(err)
	}
}

// predict are the findings of both checks.
func predict(ctx context.Context, t *testing.T) []finding.Finding {
	t.Helper()
	var found []finding.Finding
	for _, c := range []check.Check{health.Webhooks(), health.Policies()} {
		findings, err := c.Run(ctx, check.Subject{Cluster: snapshot.Of(server.Cluster), Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, findings...)
	}
	return found
}

// drain drains a node and returns when all pods are back, or an error when none of the
// requests in progress can bring them back.
func (s *scene) drain(ctx context.Context, node string) error {
	if err := kubectl(ctx, "drain", node, "--timeout=8s"); err != nil {
		return err
	}
	drained, err := server.Kubernetes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil || !drained.Spec.Unschedulable { // which kubectl only warns of
		return fmt.Errorf("node %s is not cordoned: %w", node, err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if s.running(ctx) {
			return true, nil
		}
		return false, s.stuck(ctx)
	})
	if err != nil {
		return err
	}
	return kubectl(ctx, "uncordon", node)
}

func kubectl(ctx context.Context, arguments ...string) error {
	out, err := exec.CommandContext(ctx, server.kubectl, append([]string{"--kubeconfig", server.kubeconfig}, arguments...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", arguments[0], err, out)
	}
	return nil
}

// running reports whether all pods run.
func (s *scene) running(ctx context.Context) bool {
	return s.count(ctx, s.hooks) == int(s.replicas) && s.count(ctx, s.apps) == 1
}

// count counts the pods that are ready and not being deleted.
func (s *scene) count(ctx context.Context, namespace string) int {
	pods, err := server.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return -1
	}
	count := 0
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" {
			count++
		}
	}
	return count
}

// evictable reports whether the budget allows an eviction.
func (s *scene) evictable(ctx context.Context) bool {
	budget, err := server.Kubernetes.PolicyV1().PodDisruptionBudgets(s.hooks).Get(ctx, hookName, metav1.GetOptions{})
	return err == nil && budget.Status.DisruptionsAllowed > 0
}

// stuck returns an error if a controller or the scheduler was rejected repeatedly, and
// no pod of a webhook is left that could become ready.
func (s *scene) stuck(ctx context.Context) error {
	if s.replicas > 0 && s.expires >= 0 && ready(ctx, s.hooks) && !s.wrongPort() {
		return nil
	}
	pods, err := server.Kubernetes.CoreV1().Pods(s.hooks).List(ctx, metav1.ListOptions{})
	if err != nil || (len(pods.Items) > 0 && s.expires >= 0 && !s.wrongPort()) {
		return err
	}
	for _, namespace := range []string{s.hooks, s.apps} {
		events, err := server.Kubernetes.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if err := rejected(events.Items); err != nil {
			return err
		}
	}
	return nil
}

// rejected returns an error if events report that pods were rejected repeatedly.
func rejected(events []corev1.Event) error {
	var count int32
	for _, event := range events {
		if event.Reason == "FailedScheduling" && strings.Contains(event.Message, "webhook") {
			return errors.New(event.Message)
		}
		if event.Reason == "FailedCreate" {
			count += max(event.Count, 1)
		}
		if count >= attempts {
			return errors.New(event.Message)
		}
	}
	return nil
}

// wrongPort reports whether the webhook names a port that its Service does not have.
func (s *scene) wrongPort() bool {
	return s.change != nil && *s.configuration(nil).Webhooks[0].ClientConfig.Service.Port != webhookPort
}

// worst is the worst outcome of the findings.
func worst(found []finding.Finding) preflight.Outcome {
	return slices.MinFunc(found, func(a, b finding.Finding) int { return a.Outcome.Compare(b.Outcome) }).Outcome
}

func messages(found []finding.Finding) string {
	var text strings.Builder
	for _, f := range found {
		fmt.Fprintf(&text, "\n    %s %s: %s", f.Outcome, f.Name, f.Message)
	}
	return text.String()
}

// table lists what was predicted and what happened.
func table(scenes map[string]*scene) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-45s %-10s %s\n", "topology", "predicted", "happened")
	for _, name := range slices.Sorted(maps.Keys(scenes)) {
		if s := scenes[name]; len(s.found) > 0 {
			fmt.Fprintf(&text, "%-45s %-10s %s\n", name, worst(s.found), s.happened)
		}
	}
	return text.String()
}
