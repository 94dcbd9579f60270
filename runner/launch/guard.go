package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift/update-preflight/collector/finding"
)

// ReasonReadOnly is reported when the API server denies the writes that it receives from
// the run's pods with the identity of the pod. Other credentials, and requests to other
// servers, are not covered; the ServiceAccounts of the checks have only read access.
//
// Cause: the admission policy of the run is in effect, and was unchanged when the
// checks had ended.
//
// Remedy: none needed.
const ReasonReadOnly finding.Reason = "ReadOnly"

// ReasonNoReadOnlyGuard is reported when the checks run without the admission
// policy that denies their writes.
//
// Cause: Kubernetes before 1.30 has no ValidatingAdmissionPolicy, the user may not
// create one, or it was not in effect in time.
//
// Remedy: fix what the message names, and grant the ServiceAccounts of the checks
// no more than read access.
const ReasonNoReadOnlyGuard finding.Reason = "NoReadOnlyGuard"

const (
	admissionVersion = "admissionregistration.k8s.io/v1"
	policyKind       = "ValidatingAdmissionPolicy"
	bindingKind      = "ValidatingAdmissionPolicyBinding"
)

// Guard makes the API server deny every write of the run's pods, regardless of the
// permissions of their ServiceAccounts, except reviews of permissions and tokens,
// which store nothing. The pods are identified by the pod name in the identity of
// their tokens (authentication.kubernetes.io/pod-name), so the guard does not apply
// to other credentials. It does not apply to what access.Unguarded returns either.
//
// API servers load new policies once a second, so Guard waits until one of them
// denies a probe: a Job of the plan under another name, as a dry run. The others
// have the policy within about a second.
//
// The finding is a Warn if the cluster has no such API (Kubernetes before 1.30), the
// user may not use it, or it is not in effect within 10 seconds: the checks run
// without the guard then. The plan must have at least one check.
func (l *Launcher) Guard(ctx context.Context, plan Plan) finding.Finding {
	policy, binding := guardPolicy(plan.Run), guardBinding(plan.Run)
	late := l.startsLate(plan.Run, policy)
	for _, step := range []func() error{
		func() error { return l.create(ctx, policy) },
		func() error { return l.create(ctx, binding) },
		func() error { return l.awaitGuard(ctx, plan) },
		func() error { return l.readGuard(ctx, plan.Run, late) },
	} {
		if err := step(); err != nil {
			return notGuarded(err)
		}
	}
	return finding.Pass(ReasonReadOnly, "%s %s denies the writes that this API server receives from the run's pods", policyKind, policy.Name).
		Named(guardName).
		From(finding.SourceJob)
}

const (
	// guardName names the findings about the admission policy that denies writes of
	// the run's pods.
	guardName = "ReadOnlyGuard"
	// guardTime bounds the wait for the guard, probeInterval is the time between two
	// probes.
	guardTime     = 10 * time.Second
	probeInterval = 50 * time.Millisecond
)

// awaitGuard waits until the guard denies its probe.
func (l *Launcher) awaitGuard(ctx context.Context, plan Plan) error {
	probe := plan.Checks[0].Job.DeepCopy()
	probe.Name = guardProbe(plan.Run)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var last error
	err := wait.PollUntilContextTimeout(ctx, probeInterval, guardTime, true, func(ctx context.Context) (bool, error) {
		_, err := l.client.BatchV1().Jobs(probe.Namespace).Create(ctx, probe, dryRun)
		if err != nil && strings.Contains(err.Error(), probeDenied) {
			return true, nil
		}
		last = cmp.Or(err, errors.New("the API server accepts the probe of the guard"))
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the guard is not in effect after %s: %w", guardTime, last)
	}
	return nil
}

// guardProbe is the name of the Job that the guard denies to every user. The Job is
// never created: the probe is a dry run.
func guardProbe(run Run) string { return "preflight-probe-" + run.Suffix() }

// probeDenied is the message with which the guard denies its probe.
const probeDenied = "the guard of this preflight is in effect"

func notGuarded(err error) finding.Finding {
	f := finding.Warn(ReasonNoReadOnlyGuard, "only their own permissions prevent writes of the checks: %s", err.Error()).
		Named(guardName).
		From(finding.SourceJob).
		Remedy("Fix what the message names, and grant the ServiceAccounts of the checks no more than read access.")
	if apierrors.IsNotFound(err) {
		return f.Remedy("Grant the ServiceAccounts of the checks no more than read access: Kubernetes has %s since 1.30.", policyKind)
	}
	return f
}

func guardMeta(run Run, kind string) (metav1.TypeMeta, metav1.ObjectMeta) {
	return typeMeta(admissionVersion, kind), run.meta("", "preflight-read-only-"+run.Suffix())
}

func guardPolicy(run Run) *admissionregistrationv1.ValidatingAdmissionPolicy {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.TypeMeta, policy.ObjectMeta = guardMeta(run, policyKind)
	const podName = "authentication.kubernetes.io/pod-name"
	isProbe := fmt.Sprintf("request.dryRun && request.resource.resource == 'jobs' && request.name == '%s'", guardProbe(run))
	policy.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{
		// A guard that cannot be evaluated must not block the requests of the cluster.
		FailurePolicy: new(admissionregistrationv1.Ignore),
		MatchConstraints: &admissionregistrationv1.MatchResources{
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{
						admissionregistrationv1.Create, admissionregistrationv1.Update,
						admissionregistrationv1.Delete, admissionregistrationv1.Connect,
					},
					Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
				},
			}},
		},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{
				Name: "from-a-pod-of-this-run-or-its-probe",
				Expression: fmt.Sprintf("%s || has(request.userInfo.extra) && '%s' in request.userInfo.extra && "+
					"request.userInfo.extra['%s'].exists(name, name.matches('-%s-[a-z0-9]+$'))", isProbe, podName, podName, run.Suffix()),
			},
			{
				Name:       "not-a-review",
				Expression: "!(request.resource.group in ['authorization.k8s.io', 'authentication.k8s.io'])",
			},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression: "false",
			MessageExpression: fmt.Sprintf("%s ? '%s' : ", isProbe, probeDenied) +
				"'a preflight check only reads, but this one tried to ' + request.operation.lowerAscii() + ' ' + request.resource.resource + ' ' + request.namespace + '/' + request.name",
			Reason: new(metav1.StatusReasonForbidden),
		}},
	}
	return policy
}

func guardBinding(run Run) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	binding.TypeMeta, binding.ObjectMeta = guardMeta(run, bindingKind)
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        binding.Name,
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	return binding
}
