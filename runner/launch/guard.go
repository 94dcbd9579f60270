package launch

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
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
// check does with other credentials. It takes effect when the API servers have
// seen it, which is well within the time that a pod takes to start.
//
// The finding is a Warn where the cluster has no such API (Kubernetes before
// 1.30), or the caller may not use it: the checks run without the guard then.
func (l *Launcher) Guard(ctx context.Context, run Run) preflight.Finding {
	policy, binding := guardPolicy(run), guardBinding(run)
	for _, create := range []func() error{
		func() error { return l.create(ctx, policy) },
		func() error { return l.create(ctx, binding) },
	} {
		if err := create(); err != nil {
			return unguarded(err)
		}
	}
	return preflight.Finding{
		Name: guardName, Source: preflight.SourceJob, Outcome: preflight.Pass, Reason: "ReadOnly",
		Message: fmt.Sprintf("writes of the run's pods are denied by %s %s", policyKind, policy.Name),
	}
}

// guardName is the name of the guard's finding.
const guardName = "ReadOnlyGuard"

func unguarded(err error) preflight.Finding {
	finding := preflight.Finding{
		Name: guardName, Source: preflight.SourceJob, Outcome: preflight.Warn, Reason: "NoReadOnlyGuard",
		Message:     "nothing but their own permissions keeps the checks from writing: " + err.Error(),
		Remediation: "See what the message names. The checks' ServiceAccounts should be allowed to read only.",
	}
	if apierrors.IsNotFound(err) {
		finding.Remediation = "Kubernetes has " + policyKind + " from 1.30 on. Until then, allow the checks' ServiceAccounts to read only."
	}
	return finding
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
				Name: "from-a-pod-of-this-run",
				Expression: fmt.Sprintf("has(request.userInfo.extra) && '%s' in request.userInfo.extra && "+
					"request.userInfo.extra['%s'].exists(name, name.matches('-%s-[a-z0-9]+$'))", podName, podName, run.Suffix()),
			},
			{
				Name:       "not-a-review",
				Expression: "!(request.resource.group in ['authorization.k8s.io', 'authentication.k8s.io'])",
			},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression:        "false",
			MessageExpression: "'a preflight check only reads, but this one tried to ' + request.operation.lowerAscii() + ' ' + request.resource.resource + ' ' + request.namespace + '/' + request.name",
			Reason:            new(metav1.StatusReasonForbidden),
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
