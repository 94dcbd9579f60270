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
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/health/deadlock"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The results of draining all nodes, one after the other.
const (
	completes = "completes"
	blocked   = "blocked"
)

// attempts is the number of rejected requests of a controller after which a drain counts as
// blocked, if no pod of the webhook can become ready.
const attempts = 4

// trial is one topology, the findings about it and the result of the drains.
type trial struct {
	topology

	id, address string
	// hooks is the namespace of the webhook, apps that of the pods of the cluster.
	hooks, apps string

	found   []finding.Finding
	actual  string
	details string
}

// TestDrains compares the predictions with the results when kubectl drains each node.
func TestDrains(t *testing.T) {
	assignAddresses(t)
	cidr := &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "loopback"},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{"127.204.0.0/24"}},
	}
	if _, err := server.Kubernetes.NetworkingV1().ServiceCIDRs().Create(t.Context(), cidr, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	all, trials := topologies(), map[string]*trial{}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		id := fmt.Sprintf("t%d", i)
		r := &trial{topology: all[name], id: id, address: fmt.Sprintf("127.204.0.%d", i+10), hooks: "hooks-" + id, apps: "openshift-" + id}
		trials[name] = r
		t.Run(name, r.run)
	}
	t.Log(table(trials))
}

// run predicts the drains, then drains each node.
func (r *trial) run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r.create(ctx, t)
	r.found = predict(ctx, t)
	for i := range 3 {
		node := fmt.Sprintf("simulated-%03d", i)
		if err := r.drain(ctx, node); err != nil {
			r.actual, r.details = blocked, err.Error()
			break
		}
	}
	if r.actual == "" {
		r.actual = completes
	}
	if got := worst(r.found); got != r.predicted || r.drains != "" && r.actual != r.drains {
		t.Errorf("predicted %s, want %s; actual %s, want %s: %s %s", got, r.predicted, r.actual, r.drains, messages(r.found), r.details)
	}
	if worst(r.found) == preflight.Fail && r.actual == completes {
		t.Errorf("a false Fail: %s", messages(r.found))
	}
	if worst(r.found) == preflight.Pass && r.actual == blocked {
		t.Errorf("not predicted: %s", r.details)
	}
}

// create creates the objects of the topology. It creates the webhook last, since the webhook
// could reject the others.
func (r *trial) create(ctx context.Context, t *testing.T) {
	t.Helper()
	kubernetes := server.Kubernetes
	certificates := certify(t, r.host(), time.Now().Add(orDefault(r.expires, yearLater)))
	var errs []error
	add := func(_ any, err error) { errs = append(errs, err) }
	for _, namespace := range r.namespaces() {
		add(kubernetes.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}))
	}
	if !r.withoutService {
		add(kubernetes.CoreV1().Services(r.hooks).Create(ctx, service(r.hooks, r.address), metav1.CreateOptions{}))
		serve(ctx, t, fmt.Sprintf("%s:%d", r.address, webhookPort), r.hooks, certificates.serving)
	}
	affinity := onFirst()
	if r.spread {
		affinity = onOtherNode(hookName)
	}
	if r.stateful {
		add(kubernetes.AppsV1().StatefulSets(r.hooks).Create(ctx, statefulSet(r.hooks, hookName, r.replicas), metav1.CreateOptions{}))
	} else {
		add(kubernetes.AppsV1().Deployments(r.hooks).Create(ctx, deployment(r.hooks, hookName, r.replicas, affinity), metav1.CreateOptions{}))
	}
	if r.budget {
		add(kubernetes.PolicyV1().PodDisruptionBudgets(r.hooks).Create(ctx, budget(r.hooks), metav1.CreateOptions{}))
	}
	add(kubernetes.AppsV1().Deployments(r.apps).Create(ctx, deployment(r.apps, "app", 1, onFirst()), metav1.CreateOptions{}))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	r.await(ctx, t, func() bool {
		return r.running(ctx) && ready(ctx, r.hooks) >= int(r.replicas) && (!r.budget || r.evictable(ctx))
	})
	r.admit(ctx, t, certificates.bundle)
}

// orDefault returns the duration, or other if it is 0.
func orDefault(duration, other time.Duration) time.Duration {
	if duration == 0 {
		return other
	}
	return duration
}

// admit creates the webhook or the policy, and returns when it is in effect.
func (r *trial) admit(ctx context.Context, t *testing.T, bundle []byte) {
	t.Helper()
	registration := server.Kubernetes.AdmissionregistrationV1()
	var errs []error
	add := func(_ any, err error) { errs = append(errs, err) }
	if r.change != nil {
		add(registration.ValidatingWebhookConfigurations().Create(ctx, r.configuration(bundle), metav1.CreateOptions{}))
	}
	if r.policy != nil {
		r.policy.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"topology": r.id}}
		r.binding.PolicyName = r.id
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: r.id}, Spec: *r.policy}
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: r.id}, Spec: *r.binding}
		add(registration.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}))
		add(registration.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}))
	}
	t.Cleanup(func() { r.remove(context.WithoutCancel(ctx), t) })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if r.drains == blocked && r.policy != nil {
		r.await(ctx, t, func() bool {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: template("app", nil).Spec}
			_, err := server.Kubernetes.CoreV1().Pods(r.apps).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
		})
	}
}

// remove deletes the objects of the topology, except for its namespaces: pods in a namespace
// that is being deleted could not be recreated by a drain.
func (r *trial) remove(ctx context.Context, t *testing.T) {
	t.Helper()
	kubernetes := server.Kubernetes
	registration := kubernetes.AdmissionregistrationV1()
	var errs []error
	add := func(err error) {
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	add(registration.ValidatingWebhookConfigurations().Delete(ctx, r.id, metav1.DeleteOptions{}))
	add(registration.ValidatingAdmissionPolicyBindings().Delete(ctx, r.id, metav1.DeleteOptions{}))
	add(registration.ValidatingAdmissionPolicies().Delete(ctx, r.id, metav1.DeleteOptions{}))
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	for _, namespace := range r.namespaces() {
		add(kubernetes.AppsV1().Deployments(namespace.Name).DeleteCollection(ctx, background, metav1.ListOptions{}))
		add(kubernetes.AppsV1().StatefulSets(namespace.Name).DeleteCollection(ctx, background, metav1.ListOptions{}))
	}
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	r.await(ctx, t, func() bool { return r.count(ctx, r.hooks) == 0 && r.count(ctx, r.apps) == 0 })
	for i := range 3 {
		r.await(ctx, t, func() bool { return kubectl(ctx, "uncordon", fmt.Sprintf("simulated-%03d", i)) == nil })
	}
}

func (r *trial) await(ctx context.Context, t *testing.T, done func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return done(), nil }); err != nil {
		t.Fatal(err)
	}
}

// predict returns the findings of both checks.
func predict(ctx context.Context, t *testing.T) []finding.Finding {
	t.Helper()
	var found []finding.Finding
	for _, c := range []check.Check{deadlock.Webhooks(), deadlock.Policies()} {
		tracked, _ := gap.Track(ctx) // as every examination does: a check passes only by what it has read
		findings, err := c.Run(tracked, check.Subject{Cluster: snapshot.Of(server.Cluster), Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, findings...)
	}
	return found
}

// drain drains a node and returns when all pods run again. It returns an error if they
// cannot run again without an intervention.
func (r *trial) drain(ctx context.Context, node string) error {
	if err := kubectl(ctx, "drain", node, "--timeout=8s"); err != nil {
		return err
	}
	drained, err := server.Kubernetes.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil || !drained.Spec.Unschedulable { // kubectl only warns about this
		return fmt.Errorf("node %s is not cordoned: %w", node, err)
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if r.running(ctx) {
			return true, nil
		}
		return false, r.stuck(ctx)
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

// running reports whether all pods of the topology run.
func (r *trial) running(ctx context.Context) bool {
	return r.count(ctx, r.hooks) == int(r.replicas) && r.count(ctx, r.apps) == 1
}

// count returns the number of pods that run and are not being deleted; -1 after an error.
func (r *trial) count(ctx context.Context, namespace string) int {
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
func (r *trial) evictable(ctx context.Context) bool {
	budget, err := server.Kubernetes.PolicyV1().PodDisruptionBudgets(r.hooks).Get(ctx, hookName, metav1.GetOptions{})
	return err == nil && budget.Status.DisruptionsAllowed > 0
}

// stuck returns an error if a controller or the scheduler was rejected repeatedly, and
// no pod of a webhook is left that could become ready.
func (r *trial) stuck(ctx context.Context) error {
	if r.replicas > 0 && r.expires >= 0 && ready(ctx, r.hooks) > 0 && !r.wrongPort() {
		return nil
	}
	pods, err := server.Kubernetes.CoreV1().Pods(r.hooks).List(ctx, metav1.ListOptions{})
	if err != nil || (len(pods.Items) > 0 && r.expires >= 0 && !r.wrongPort()) {
		return err
	}
	for _, namespace := range []string{r.hooks, r.apps} {
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
func (r *trial) wrongPort() bool {
	return r.change != nil && *r.configuration(nil).Webhooks[0].ClientConfig.Service.Port != webhookPort
}

// worst returns the worst outcome of the findings.
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

// table returns the predictions and the results as a table.
func table(trials map[string]*trial) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-45s %-10s %s\n", "topology", "predicted", "actual")
	for _, name := range slices.Sorted(maps.Keys(trials)) {
		if r := trials[name]; len(r.found) > 0 {
			fmt.Fprintf(&text, "%-45s %-10s %s\n", name, worst(r.found), r.actual)
		}
	}
	return text.String()
}
