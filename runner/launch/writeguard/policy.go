package writeguard

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

const admissionVersion = "admissionregistration.k8s.io/v1"

var guardName = finding.NewName("ReadOnlyGuard",
	"The findings about the admission policy that denies writes of the run's pods.")

// guardProbe is the name of the Job that the guard denies to every user. The Job is
// never created: the probe is a dry run.
func guardProbe(run jobplan.Run) string { return "preflight-probe-" + run.Suffix() }

const probeDenied = "the guard of this preflight is in effect"

func guardMeta(run jobplan.Run, kind string) (metav1.TypeMeta, metav1.ObjectMeta) {
	return metav1.TypeMeta{APIVersion: admissionVersion, Kind: kind}, run.Meta("", guardObjectName(run))
}

func guardObjectName(run jobplan.Run) string { return ownsignal.Guard(run.ID) }

// Objects returns the objects of the guard of a run, in the order of their creation.
func Objects(run jobplan.Run) []payload.Object {
	return []payload.Object{guardPolicy(run), guardBinding(run)}
}

func guardPolicy(run jobplan.Run) *admissionregistrationv1.ValidatingAdmissionPolicy {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.TypeMeta, policy.ObjectMeta = guardMeta(run, inventory.PolicyKind)
	isProbe := fmt.Sprintf("request.dryRun && request.resource.resource == 'jobs' && request.?name.orValue('') == '%s'", guardProbe(run))
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
				Name:       "from-a-pod-of-this-run-or-its-probe",
				Expression: isProbe + " || " + ownsignal.Requester(run.Suffix()),
			},
			{
				Name:       "not-a-review",
				Expression: "!(request.resource.group in ['authorization.k8s.io', 'authentication.k8s.io'])",
			},
		},
		Validations: []admissionregistrationv1.Validation{{
			Expression: "false",
			MessageExpression: fmt.Sprintf("%s ? '%s' : ", isProbe, probeDenied) +
				"'a preflight check only reads, but this one tried to ' + request.operation.lowerAscii() + ' ' + request.resource.resource + ' ' + " +
				"(request.?namespace.orValue('') == '' ? '' : request.namespace + '/') + request.?name.orValue('')", // absent for objects of the cluster, and for generateName
			Reason: new(metav1.StatusReasonForbidden),
		}},
	}
	return policy
}

func guardBinding(run jobplan.Run) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	binding.TypeMeta, binding.ObjectMeta = guardMeta(run, inventory.BindingKind)
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        binding.Name,
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	return binding
}

// Needs are the permissions to create and delete the guard.
func Needs() access.Needs {
	var needs access.Needs
	for _, k := range inventory.Kinds() {
		if k.Guard {
			needs.Optional = append(needs.Optional, access.Verbs(k.Request(), "create", "get", "list", "watch", "delete")...)
		}
	}
	return needs
}
