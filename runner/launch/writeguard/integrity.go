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
	"github.com/openshift/update-preflight/collector/ownsignal"
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

// read reads the objects of the guard that were created or adopted.
func (g *Guard) read(ctx context.Context) (err error) {
	g.inForce, err = g.objects(ctx)
	return err
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
		Do(finding.Read("oc adm node-logs --role=master --path=kube-apiserver/audit.log | grep %s", name), finding.Retry("")).
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
	wanted, err := g.wanted(ctx)
	if err != nil {
		return err
	}
	found, err := g.objects(ctx)
	if err != nil {
		return err
	}
	for i, before := range g.inForce {
		policyEqual := equality.Semantic.DeepEqual(found[i].policy.Spec, wanted[i].policy.Spec)
		bindingEqual := equality.Semantic.DeepEqual(found[i].binding.Spec, wanted[i].binding.Spec)
		err = errors.Join(
			err,
			compareObject(inventory.PolicyKind, found[i].policy, before.policy.UID, policyEqual),
			compareObject(inventory.BindingKind, found[i].binding, before.binding.UID, bindingEqual),
		)
	}
	return err
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

// objects reads the policies of the guard.
func (g *Guard) objects(ctx context.Context) ([]bound, error) {
	client := g.client.AdmissionregistrationV1()
	var all []bound
	for _, name := range []string{ownsignal.PodGuard(g.run.ID), guardObjectName(g.run)} {
		policy, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
			return client.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
		})
		if err != nil {
			return nil, guardError(inventory.PolicyKind, name, err)
		}
		binding, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
			return client.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
		})
		if err != nil {
			return nil, guardError(inventory.BindingKind, name, err)
		}
		all = append(all, bound{policy, binding})
	}
	return all, nil
}

func guardError(kind, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s was deleted: %w", kind, name, err)
	}
	return fmt.Errorf("could not read %s %s: %w", kind, name, err)
}

// wanted returns the guard with the defaults of the API server, by dry runs under other names.
func (g *Guard) wanted(ctx context.Context) ([]bound, error) {
	all, err := policies(g.plan)
	client, dryRun := g.client.AdmissionregistrationV1(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for i, each := range all {
		name := each.policy.Name
		each.policy.Name, each.binding.Name = name+"-expected", name+"-expected"
		all[i].policy, err = retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
			return client.ValidatingAdmissionPolicies().Create(ctx, each.policy, dryRun)
		})
		if err != nil {
			return nil, fmt.Errorf("could not verify %s %s: %w", inventory.PolicyKind, name, err)
		}
		all[i].binding, err = retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
			return client.ValidatingAdmissionPolicyBindings().Create(ctx, each.binding, dryRun)
		})
		if err != nil {
			return nil, fmt.Errorf("could not verify %s %s: %w", inventory.BindingKind, name, err)
		}
	}
	return all, err
}

// startsLate is true when Jobs of the run, which another runner has created, exist without the policy.
func (g *Guard) startsLate() bool {
	present := g.present.Of(g.run.ID)
	has := func(kind string) bool {
		return slices.ContainsFunc(present, func(object preflight.Object) bool { return object.Kind == kind })
	}
	return has(inventory.JobKind) && !has(inventory.PolicyKind)
}
