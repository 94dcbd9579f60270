package launch

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/retry"
	"github.com/openshift/update-preflight/runner/payload"
)

// ReasonGuardChanged is reported when the admission policy that denies the writes of the
// run's pods, or its binding, was deleted or changed while the checks ran: writes of the
// checks may not have been denied.
//
// Cause: a user, a controller or a check changed it.
//
// Remedy: find the user who changed it in the audit log of the API server, then run the
// preflight again.
const ReasonGuardChanged finding.Reason = "GuardChanged"

// guard is the state of the guard of one run when it came into force.
type guard struct {
	policy, binding types.UID
	// late is true when Jobs of the run existed before the guard.
	late bool
}

// readGuard reads the state of the guard that Guard has created or adopted.
func (l *Launcher) readGuard(ctx context.Context, run Run, late bool) error {
	policy, binding, err := l.guardObjects(ctx, guardPolicy(run).Name)
	if err != nil {
		return err
	}
	l.guards.Store(run.ID, guard{policy: policy.UID, binding: binding.UID, late: late})
	return nil
}

// GuardChanged returns a finding that replaces the one of Guard if the policy or its
// binding is not the unchanged object that Guard has put into force; false if both are.
// It compares UID, generation and content, and is to be called when all checks have
// ended, before Cleanup. Without a guard in force there is nothing to compare.
//
// A deletion and creation before a runner takes over the run of another is not detected.
func (l *Launcher) GuardChanged(ctx context.Context, run Run) (finding.Finding, bool) {
	stored, found := l.guards.Load(run.ID)
	created, ok := stored.(guard)
	if !found || !ok {
		return finding.Finding{}, false
	}
	name := guardPolicy(run).Name
	err := l.compareGuard(ctx, run, created)
	if err == nil {
		return finding.Finding{}, false
	}
	return finding.Unknown(ReasonGuardChanged, "unknown whether all writes of the checks were denied: %s", err.Error()).
		Named(guardName).
		From(finding.SourceJob).
		Remedy("Find the user who changed the policy in the audit log of the API server, then run the preflight again.").
		Do(finding.Run("oc adm node-logs --role=master --path=kube-apiserver/audit.log | grep %s", name), finding.Retry("")).
		About(
			finding.Object{APIVersion: admissionVersion, Kind: policyKind, Name: name},
			finding.Object{APIVersion: admissionVersion, Kind: bindingKind, Name: name},
		), true
}

// compareGuard returns an error unless the guard is the one created, unchanged.
func (l *Launcher) compareGuard(ctx context.Context, run Run, created guard) error {
	if created.late {
		return fmt.Errorf("%s %s did not exist when the run was continued", policyKind, guardPolicy(run).Name)
	}
	wantedPolicy, wantedBinding, err := l.wantedGuard(ctx, run)
	if err != nil {
		return err
	}
	policy, binding, err := l.guardObjects(ctx, wantedPolicy.Name)
	if err != nil {
		return err
	}
	policyEqual := equality.Semantic.DeepEqual(policy.Spec, wantedPolicy.Spec)
	bindingEqual := equality.Semantic.DeepEqual(binding.Spec, wantedBinding.Spec)
	return errors.Join(
		compareObject(policyKind, policy, created.policy, policyEqual),
		compareObject(bindingKind, binding, created.binding, bindingEqual),
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

// guardObjects reads the policy and the binding, which have one name.
func (l *Launcher) guardObjects(ctx context.Context, name string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	client := l.client.AdmissionregistrationV1()
	policy, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
		return client.ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, nil, guardError(policyKind, name, err)
	}
	binding, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
		return client.ValidatingAdmissionPolicyBindings().Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, nil, guardError(bindingKind, name, err)
	}
	return policy, binding, nil
}

func guardError(kind, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s was deleted: %w", kind, name, err)
	}
	return fmt.Errorf("could not read %s %s: %w", kind, name, err)
}

// wantedGuard is the guard with the defaults of the API server, by a dry run under
// another name.
func (l *Launcher) wantedGuard(ctx context.Context, run Run) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	policy, binding := guardPolicy(run), guardBinding(run)
	name := policy.Name
	policy.Name, binding.Name = name+"-expected", name+"-expected"
	client, dryRun := l.client.AdmissionregistrationV1(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	wantedPolicy, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
		return client.ValidatingAdmissionPolicies().Create(ctx, policy, dryRun)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("could not verify %s %s: %w", policyKind, name, err)
	}
	wantedBinding, err := retry.Get(ctx, func(ctx context.Context) (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
		return client.ValidatingAdmissionPolicyBindings().Create(ctx, binding, dryRun)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("could not verify %s %s: %w", bindingKind, name, err)
	}
	wantedPolicy.Name, wantedBinding.Name = name, name
	return wantedPolicy, wantedBinding, nil
}

// startsLate is true when Jobs of the run, which another runner has created, exist
// without the policy.
func (l *Launcher) startsLate(run Run, policy payload.Object) bool {
	k, err := kindOf(policy)
	if err != nil || l.isPresent(k, policy) {
		return false
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for object := range l.present[run.ID] {
		if object.Kind == jobKind {
			return true
		}
	}
	return false
}
