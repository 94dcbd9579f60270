package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/openshift/update-preflight/collector/finding"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	ReasonReadOnly        finding.Reason = "ReadOnly"
	ReasonNoReadOnlyGuard finding.Reason = "NoReadOnlyGuard"
)

const (
	admissionVersion = "admissionregistration.k8s.io/v1"
	policyKind       = "ValidatingAdmissionPolicy"
	bindingKind      = "ValidatingAdmissionPolicyBinding"
)

// Guard has the API server deny every write that comes from a pod of the run,
// whatever its ServiceAccount may do; only reviews of permissions and tokens,
// which change nothing, are let through. The pods are recognized by the name
// that the API server itself puts into the identity of their tokens
// (authentication.kubernetes.io/pod-name), so the guard does not reach what a
// check does with other credentials.
//
// API servers look for new policies once a second only, so Guard waits until the
// one that answers denies a probe: a Job of the plan under another name, dry-run.
// The others of the cluster have the policy within about a second of it.
//
// The finding is a Warn where the cluster has no such API (Kubernetes before
// 1.30), the caller may not use it, or it is not in effect within guardTime: the
// checks run without the guard then. The plan has at least one check.
func (l *Launcher) Guard(ctx context.Context, plan Plan) finding.Finding {
	policy, binding := guardPolicy(plan.Run), guardBinding(plan.Run)
	for _, step := range []func() error{
		func() error { return l.create(ctx, policy) },
		func() error { return l.create(ctx, binding) },
		func() error { return l.guarded(ctx, plan) },
	} {
		if err := step(); err != nil {
			return unguarded(err)
		}
	}
	return finding.Pass(ReasonReadOnly, "writes of the run's pods are denied by %s %s", policyKind, policy.Name).
		Named(guardName).
		From(finding.SourceJob)
}

const (
	// guardName is the name of the guard's finding.
	guardName = "ReadOnlyGuard"
	// guardTime bounds the wait for the guard, probeInterval is how often it is
	// tried meanwhile.
	guardTime     = 10 * time.Second
	probeInterval = 50 * time.Millisecond
)

// guarded waits until the guard denies its probe.
func (l *Launcher) guarded(ctx context.Context, plan Plan) error {
	probe := plan.Checks[0].Job.DeepCopy()
	probe.Name = guardProbe(plan.Run)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var last error
	err := wait.PollUntilContextTimeout(ctx, probeInterval, guardTime, true, func(ctx context.Context) (bool, error) {
		_, err := l.client.BatchV1().Jobs(probe.Namespace).Create(ctx, probe, dryRun)
		if err != nil && strings.Contains(err.Error(), probeDenied) {
			return true, nil
		}
		last = cmp.Or(err, errors.New("the API server lets the guard's probe pass"))
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("the guard is not in effect after %s: %w", guardTime, last)
	}
	return nil
}

// guardProbe names the Job that the guard denies to everybody. It is never
// created: the probe is a dry run.
func guardProbe(run Run) string { return "preflight-probe-" + run.Suffix() }

// probeDenied is what the guard says to its probe.
const probeDenied = "the guard of this preflight is in effect"

func unguarded(err error) finding.Finding {
	f := finding.Warn(ReasonNoReadOnlyGuard, "nothing but their own permissions keeps the checks from writing: %s", err.Error()).
		Named(guardName).
		From(finding.SourceJob).
		Remedy("See what the message names. The checks' ServiceAccounts should be allowed to read only.")
	if apierrors.IsNotFound(err) {
		f.Remediation = "Kubernetes has " + policyKind + " from 1.30 on. Until then, allow the checks' ServiceAccounts to read only."
	}
	return f
}

func guardMeta(run Run, kind string) (metav1.TypeMeta, metav1.ObjectMeta) {
	return typeMeta(admissionVersion, kind), metav1.ObjectMeta{
		Name:        "preflight-read-only-" + run.Suffix(),
		Labels:      run.labels(nil, "preflight"),
		Annotations: run.annotations(nil, ""),
	}
}

func guardPolicy(run Run) *admissionregistrationv1.ValidatingAdmissionPolicy {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.TypeMeta, policy.ObjectMeta = guardMeta(run, policyKind)
	const podName = "authentication.kubernetes.io/pod-name"
	isProbe := fmt.Sprintf("request.dryRun && request.resource.resource == 'jobs' && request.name == '%s'", guardProbe(run))
	policy.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{
		// A guard that cannot be evaluated must not stop the cluster.
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
