package writeguard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// ReasonGuardChanged is reported when the guard of a run no longer holds.
var ReasonGuardChanged = finding.NewReason("GuardChanged", finding.Explanation{
	Meaning: "Reported when the admission policy that denies the writes of the run's pods, or its binding, was deleted " +
		"or changed while the checks ran: writes of the checks may not have been denied.",
	Cause:  "A user, a controller or a check changed it.",
	Remedy: "Find the user who changed it in the audit log of the API server, then run the preflight again.",
})

// guardUIDs are the UIDs of the objects of the guard when it came into force.
type guardUIDs struct {
	policy, binding types.UID
}

// read reads the UIDs of the guard that was created or adopted.
func (g *Guard) read(ctx context.Context) error {
	policy, binding, err := g.objects(ctx)
	if err != nil {
		return err
	}
	g.inForce = &guardUIDs{policy: policy.UID, binding: binding.UID}
	return nil
}

// Changed returns a finding that replaces the one of Await if the policy or its
// binding is not the unchanged object that came into force; false if both are.
// It compares UID, generation and content, and is to be called when all checks have
// ended, before the objects of the run are deleted. Without a guard in force there is
// nothing to compare.
//
// A deletion and creation before a runner takes over the run of another is not detected.
func (g *Guard) Changed(ctx context.Context) (finding.Finding, bool) {
	if g.inForce == nil {
		return finding.Finding{}, false
	}
	err := g.compare(ctx)
	if err == nil {
		return finding.Finding{}, false
	}
	name := guardObjectName(g.run)
	return finding.Unknown(ReasonGuardChanged, "unknown whether all writes of the checks were denied: %s", err.Error()).
		Named(guardName).
		From(finding.SourceJob).
		Remedy("Find the user who changed the policy in the audit log of the API server, then run the preflight again.").
		Do(finding.Run("oc adm node-logs --role=master --path=kube-apiserver/audit.log | grep %s", name), finding.Retry("")).
		About(
			finding.Object{APIVersion: admissionVersion, Kind: inventory.PolicyKind, Name: name},
			finding.Object{APIVersion: admissionVersion, Kind: inventory.BindingKind, Name: name},
		), true
}

// compare returns an error unless the guard is the one created, unchanged.
func (g *Guard) compare(ctx context.Context) error {
	if g.late {
		return fmt.Errorf("%s %s did not exist when the run was continued", inventory.PolicyKind, guardObjectName(g.run))
	}
	wantedPolicy, wantedBinding, err := g.wanted(ctx)
	if err != nil {
		return err
	}
	policy, binding, err := g.objects(ctx)
	if err != nil {
		return err
	}
	policyEqual := equality.Semantic.DeepEqual(policy.Spec, wantedPolicy.Spec)
	bindingEqual := equality.Semantic.DeepEqual(binding.Spec, wantedBinding.Spec)
	return errors.Join(
		compareObject(inventory.PolicyKind, policy, g.inForce.policy, policyEqual),
		compareObject(inventory.BindingKind, binding, g.inForce.binding, bindingEqual),
	)
}

// compareObject returns an error for an object with another UID, or that was updated.
func compareObject(kind string, object metav1.Object, uid types.UID, equal bool) error {
	switch {
	case object.GetUID() != uid:
		return fmt.Errorf("%s %s was deleted and created again", kind, object.GetName())
	case object.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s %s is being deleted", kind, object.GetName())
	case !equal || object.GetGeneration() != 1:
		return fmt.Errorf("%s %s was changed", kind, object.GetName())
	}
	return nil
}

func (g *Guard) objects(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	client, name := g.client.AdmissionregistrationV1(), guardObjectName(g.run)
	policy, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
		return client.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, nil, guardError(inventory.PolicyKind, name, err)
	}
	binding, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
		return client.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, nil, guardError(inventory.BindingKind, name, err)
	}
	return policy, binding, nil
}

func guardError(kind, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s was deleted: %w", kind, name, err)
	}
	return fmt.Errorf("could not read %s %s: %w", kind, name, err)
}

// wanted returns the guard with the defaults of the API server, by a dry run under another name.
func (g *Guard) wanted(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	policy, binding := guardPolicy(g.run), guardBinding(g.run)
	name := policy.Name
	policy.Name, binding.Name = name+"-expected", name+"-expected"
	client, dryRun := g.client.AdmissionregistrationV1(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	wantedPolicy, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
		return client.ValidatingAdmissionPolicies().Create(ctx, policy, dryRun)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("could not verify %s %s: %w", inventory.PolicyKind, name, err)
	}
	wantedBinding, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
		return client.ValidatingAdmissionPolicyBindings().Create(ctx, binding, dryRun)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("could not verify %s %s: %w", inventory.BindingKind, name, err)
	}
	wantedPolicy.Name, wantedBinding.Name = name, name
	return wantedPolicy, wantedBinding, nil
}

// startsLate is true when Jobs of the run, which another runner has created, exist without the policy.
func (g *Guard) startsLate() bool {
	present := g.present.Of(g.run.ID)
	has := func(kind string) bool {
		return slices.ContainsFunc(present, func(object preflight.Object) bool { return object.Kind == kind })
	}
	return has(inventory.JobKind) && !has(inventory.PolicyKind)
}
