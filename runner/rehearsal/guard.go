package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
)

// guardDenies is the message by which the probe is recognized.
const guardDenies = "the guard of this rehearsal is in effect"

// guard denies the writes of one rehearsal: a ValidatingAdmissionPolicy that rejects every request with the rehearsal's ID
// that would store something. Its methods are called one after the other: create, await until the API server has loaded
// the policy, intact at the end, and delete.
//
// The client of a rehearsal sends nothing else by itself (package dryrun); the guard is the second of two locks. The API
// server does not apply policies to policies and to webhook configurations, for which only the first lock exists.
type guard struct {
	client kubernetes.Interface
	id     string
	// policy and binding are the UIDs of what was created.
	policy, binding types.UID
}

// newGuard returns the guard of the rehearsal with this ID, which is also the ID of its run. Nothing is created.
func newGuard(client kubernetes.Interface, id string) *guard { return &guard{client: client, id: id} }

// name is the name of the policy and of its binding. Its suffix and the label make them objects of the run, which its
// cleanup deletes.
func (g *guard) name() string { return "preflight-rehearsal-" + label.Suffix(g.id) }

func (g *guard) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: g.name(), Labels: map[string]string{label.Run: g.id}}
}

// probe is the object whose creation as a dry run the guard denies, which proves that the API server has loaded it.
func (g *guard) probe() *unstructured.Unstructured {
	probe := &unstructured.Unstructured{}
	probe.SetAPIVersion("v1")
	probe.SetKind(inventory.ConfigMapKind)
	probe.SetNamespace(metav1.NamespaceDefault)
	probe.SetName(g.name())
	return probe
}

func (g *guard) wanted() (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	requester := fmt.Sprintf("has(request.userInfo.extra) && '%[1]s' in request.userInfo.extra && "+
		"request.userInfo.extra['%[1]s'].exists(id, id == '%[2]s')",
		dryrun.ExtraKey, g.id)
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: g.meta()}
	policy.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{
		// A guard that cannot be evaluated must not block the requests of the cluster.
		FailurePolicy: new(admissionregistrationv1.Ignore),
		MatchConstraints: &admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{
						admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect,
					},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
				},
			}},
		},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "of-this-rehearsal", Expression: requester}},
		Validations: []admissionregistrationv1.Validation{{
			Expression: fmt.Sprintf("request.?dryRun.orValue(false) && request.?name.orValue('') != '%s'", g.name()),
			MessageExpression: fmt.Sprintf("request.?dryRun.orValue(false) ? '%s' : 'a rehearsal stores nothing, but this one tried to ' + "+
				"request.operation.lowerAscii() + ' ' + request.resource.resource", guardDenies),
			Reason: new(metav1.StatusReasonForbidden),
		}},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: g.meta()}
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        g.name(),
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	return policy, binding
}

// create creates the policy and its binding, or takes over those that another process of the same run has left. The error is for
// people: the API does not exist (Kubernetes before 1.30), the user may not create them, or another object has their name.
func (g *guard) create(ctx context.Context) error {
	policy, binding := g.wanted()
	client := g.client.AdmissionregistrationV1()
	created, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
		return client.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		created, err = client.ValidatingAdmissionPolicies().Get(ctx, g.name(), metav1.GetOptions{})
		if err == nil && !g.same(created, policy) {
			err = fmt.Errorf("another %s has the name %s", inventory.PolicyKind, g.name())
		}
	}
	if err != nil {
		return fmt.Errorf("could not create %s %s: %w", inventory.PolicyKind, g.name(), err)
	}
	bound, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
		return client.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		bound, err = client.ValidatingAdmissionPolicyBindings().Get(ctx, g.name(), metav1.GetOptions{})
		if err == nil && (bound.Labels[label.Run] != g.id || !equality.Semantic.DeepEqual(bound.Spec, binding.Spec)) {
			err = fmt.Errorf("another %s has the name %s", inventory.BindingKind, g.name())
		}
	}
	if err != nil {
		return fmt.Errorf("could not create %s %s: %w", inventory.BindingKind, g.name(), err)
	}
	g.policy, g.binding = created.UID, bound.UID
	return nil
}

// same reports whether an existing policy is one of this rehearsal: what the API server adds are defaults of the constraints.
func (g *guard) same(existing, wanted *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	return existing.Labels[label.Run] == g.id && existing.Generation == 1 &&
		equality.Semantic.DeepEqual(existing.Spec.Validations, wanted.Spec.Validations) &&
		equality.Semantic.DeepEqual(existing.Spec.MatchConditions, wanted.Spec.MatchConditions)
}

// The guard is loaded within about a second; awaitTime bounds the wait, probeInterval is the time between two probes.
const (
	awaitTime     = 10 * time.Second
	probeInterval = 100 * time.Millisecond
)

// await waits until the API server denies the probe, which create sends as a dry run with the identity of the rehearsal. An error
// means that it is not known whether the guard is in effect: after ten seconds, or because the probe is refused for another reason.
func (g *guard) await(ctx context.Context, create func(context.Context, *unstructured.Unstructured) error) error {
	last := errors.New("the API server did not answer the probe of the guard")
	err := wait.PollUntilContextTimeout(ctx, probeInterval, awaitTime, true, func(ctx context.Context) (bool, error) {
		err := create(ctx, g.probe())
		switch {
		case err != nil && strings.Contains(err.Error(), guardDenies):
			return true, nil
		case err != nil && apierrors.IsForbidden(err) && !strings.Contains(err.Error(), inventory.PolicyKind):
			return false, err // waiting does not help
		case ctx.Err() == nil: // the end of the wait is no answer
			last = cmp.Or(err, errors.New("the API server accepts the probe of the guard"))
		}
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case wait.Interrupted(err):
		return fmt.Errorf("the guard is not in effect after %s: %w", awaitTime, last)
	}
	return fmt.Errorf("the probe of the guard is rejected for another reason: %w", err)
}

// intact returns an error unless the policy and its binding are those that were created, unchanged.
func (g *guard) intact(ctx context.Context) error {
	client := g.client.AdmissionregistrationV1()
	policy, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
		return client.ValidatingAdmissionPolicies().Get(ctx, g.name(), metav1.GetOptions{})
	})
	if err != nil {
		return fmt.Errorf("could not read %s %s: %w", inventory.PolicyKind, g.name(), err)
	}
	binding, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
		return client.ValidatingAdmissionPolicyBindings().Get(ctx, g.name(), metav1.GetOptions{})
	})
	if err != nil {
		return fmt.Errorf("could not read %s %s: %w", inventory.BindingKind, g.name(), err)
	}
	if policy.UID != g.policy || binding.UID != g.binding || policy.Generation != 1 || binding.Generation != 1 {
		return fmt.Errorf("%s %s or its binding was changed", inventory.PolicyKind, g.name())
	}
	return nil
}

// delete deletes the binding and the policy that were created. What is not deleted has the label of the run, by which "cleanup"
// finds it.
func (g *guard) delete(ctx context.Context) error {
	client := g.client.AdmissionregistrationV1()
	of := func(uid types.UID) metav1.DeleteOptions {
		return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	}
	var errs []error
	if g.binding != "" {
		errs = append(errs, gone(retry.Do(ctx, func(ctx context.Context) error {
			return client.ValidatingAdmissionPolicyBindings().Delete(ctx, g.name(), of(g.binding))
		})))
	}
	if g.policy != "" {
		errs = append(errs, gone(retry.Do(ctx, func(ctx context.Context) error {
			return client.ValidatingAdmissionPolicies().Delete(ctx, g.name(), of(g.policy))
		})))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("could not delete the guard of the rehearsal: %w", err)
	}
	return nil
}

// gone is nil for an object that does not exist any more, or is another one.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// guardNeeds are the permissions to create, read and delete the guard, and to impersonate with an ID that it recognizes.
func guardNeeds() access.Needs {
	var needs access.Needs
	for _, kind := range inventory.Kinds() {
		if kind.Guard {
			needs.Optional = append(needs.Optional, access.Verbs(kind.Request(), "create", "get", "delete")...)
		}
	}
	needs.Optional = append(needs.Optional, access.Request{
		Verb: "impersonate", Group: "authentication.k8s.io", Resource: "userextras", Subresource: dryrun.ExtraKey,
	})
	return needs
}

// probeResource is the resource of the probe.
func probeResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("configmaps")
}
