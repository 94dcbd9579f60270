// Package writeguard answers: does the API server deny the writes of a run's pods?
//
// [New] returns the [Guard] of a run, two ValidatingAdmissionPolicies with their bindings: one denies the writes, the
// other denies pods that admission has changed, which would run a different program. [Guard.Begin] creates it,
// [Guard.Await] waits until it is in effect, and [Guard.Changed] reports whether it stayed in force.
package writeguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/ownsignal"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

var (
	reasonReadOnly = finding.NewReason("ReadOnly", finding.Explanation{
		Meaning: "The API server denies writes that the run's pods make with their own identity. Other credentials, " +
			"and requests to other servers, are not covered; the ServiceAccounts of the checks have only read access.",
		Cause: "The admission policy of the run is in force, and had not changed when the checks finished.",
	})
	reasonNoReadOnlyGuard = finding.NewReason("NoReadOnlyGuard", finding.Explanation{
		Meaning: "The checks run without the admission policy that denies their writes.",
		Cause: "Kubernetes before 1.30 has no ValidatingAdmissionPolicy, the user may not create one, or it was " +
			"not in force in time.",
		Remedy: "Fix the problem in the message, and grant the ServiceAccounts of the checks no more than read access.",
	})
)

// creator creates an object, or adopts an existing object of the same name if it equals the planned one.
// launch.Launcher implements it.
type creator interface {
	Create(ctx context.Context, object payload.Object) error
}

// Guard makes the API server deny every write of a run's pods, regardless of the permissions of their ServiceAccounts,
// except reviews of permissions and tokens, which store nothing. The pods are identified by the pod name in the
// identity of their tokens (authentication.kubernetes.io/pod-name), so the guard does not apply to other credentials.
// Nor does it apply to the access that rights.Unguarded returns.
//
// Its methods are called one after the other.
type Guard struct {
	client  kubernetes.Interface
	present *inventory.Set
	creator creator
	run     jobplan.Run
	plan    jobplan.Plan

	// late is true where Jobs of the run existed before the guard.
	late    bool
	created func() error
	// inForce has the objects when the guard came into force; nil before.
	inForce []bound
}

// New returns the guard of a run, which is not in force yet.
func New(objects *inventory.Objects, creator creator, run jobplan.Run) *Guard {
	return &Guard{
		client: objects.Kubernetes, present: objects.Present, creator: creator, run: run,
		created: func() error { return errors.New("the guard was not created") },
	}
}

// Begin creates the objects of the guard in the background, so that the API server loads
// it while the Jobs of the plan are validated; the run may have fewer of them. Created must be called before the objects of the run
// are deleted.
func (g *Guard) Begin(ctx context.Context, plan jobplan.Plan) {
	g.late, g.plan = g.startsLate(), plan
	ended := make(chan error, 1)
	go func() { ended <- g.create(ctx) }()
	g.created = sync.OnceValue(func() error { return <-ended })
}

func (g *Guard) create(ctx context.Context) error {
	objects, err := Objects(g.plan)
	for _, object := range objects {
		if err := g.creator.Create(ctx, object); err != nil {
			return err
		}
	}
	return err
}

// Created returns when the objects of the guard have been created, or could not be.
func (g *Guard) Created() error { return g.created() }

// Await waits until the guard that was begun is in effect. API servers load new policies
// once a second, so it waits until one of them denies a probe: a Job of the plan under
// another name, as a dry run. The others have the policy within about a second.
//
// The finding is a Warn if the cluster has no such API (Kubernetes before 1.30), the
// user may not use it, or it is not in effect within 10 seconds: the checks run
// without the guard then. The plan must have at least one check.
func (g *Guard) Await(ctx context.Context, plan jobplan.Plan) finding.Finding {
	for _, step := range []func() error{
		g.Created,
		func() error { return g.awaitEffect(ctx, plan) },
		func() error { return g.read(ctx) },
	} {
		if err := step(); err != nil {
			return notGuarded(err)
		}
	}
	return finding.Pass(gap.Proven("the denied probe"), reasonReadOnly,
		"%s %s denies the writes that this API server receives from the run's pods, and %s pods that differ from their Jobs",
		inventory.PolicyKind, guardObjectName(g.run), ownsignal.PodGuard(g.run.ID)).
		Named(guardName).
		From(finding.SourceJob)
}

const (
	// guardTime bounds the wait for the guard, probeInterval is the time between two probes.
	guardTime     = 10 * time.Second
	probeInterval = 50 * time.Millisecond
)

func (g *Guard) awaitEffect(ctx context.Context, plan jobplan.Plan) error {
	probe := plan.Checks[0].Job.DeepCopy()
	probe.Name = guardProbe(plan.Run)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	last := errors.New("the API server did not answer the probe of the guard")
	err := wait.PollUntilContextTimeout(ctx, probeInterval, guardTime, true, func(ctx context.Context) (bool, error) {
		_, err := g.client.BatchV1().Jobs(probe.Namespace).Create(ctx, probe, dryRun)
		switch {
		case err != nil && strings.Contains(err.Error(), probeDenied):
			return true, nil
		case ctx.Err() == nil: // the end of the wait is no answer
			last = cmp.Or(err, errors.New("the API server accepts the probe of the guard"))
		}
		return false, nil
	})
	if err == nil {
		return nil
	}
	if _, answered := errors.AsType[*apierrors.StatusError](last); answered && !retry.Temporary(last) {
		return &deniedError{last}
	}
	return fmt.Errorf("the guard is not in effect after %s: %w", guardTime, last)
}

// deniedError means that the API server denies the probe of the guard for another reason, such as a policy of the
// cluster, and does not evaluate the guard or does not report it.
type deniedError struct{ err error }

func (e *deniedError) Error() string {
	return "unknown whether the guard is in effect, because the API server denies its probe for another reason: " + e.err.Error()
}

func (e *deniedError) Unwrap() error { return e.err }

func notGuarded(err error) finding.Finding {
	f := finding.Warn(reasonNoReadOnlyGuard, "only their own permissions prevent writes of the checks: %s", err.Error()).
		Named(guardName).
		From(finding.SourceJob)
	if _, denied := errors.AsType[*deniedError](err); denied {
		return f.Remedy("Exempt Jobs with the label %s from the policy or webhook in the message.", label.Run).
			Do(finding.Read("oc get validatingadmissionpolicies,validatingwebhookconfigurations,mutatingwebhookconfigurations"))
	}
	if apierrors.IsNotFound(err) {
		return f.Remedy("Grant the ServiceAccounts of the checks no more than read access: Kubernetes has %s since 1.30.", inventory.PolicyKind)
	}
	return f
}

// ReasonGuardChanged means that the guard of a run is no longer in force.
var ReasonGuardChanged = finding.NewReason("GuardChanged", finding.Explanation{
	Meaning: "The admission policy that denies the writes of the run's pods, or its binding, was deleted or changed " +
		"while the checks ran. Writes of the checks may have been accepted.",
	Cause:  "A user, a controller or a check changed it.",
	Remedy: "Find the user who changed it in the audit log of the API server, then run the preflight again.",
})

// read reads the objects of the guard that were created or adopted.
func (g *Guard) read(ctx context.Context) (err error) {
	g.inForce, err = g.objects(ctx)
	return err
}

// Changed returns a finding that replaces Await's finding if the policy or its binding is not the unchanged object that
// came into force; false if both are. It compares UID, generation and content. Call it when all checks have finished,
// before the objects of the run are deleted. Without a guard in force, there is nothing to compare.
//
// It does not detect a deletion and creation before a runner takes over the run of another.
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
