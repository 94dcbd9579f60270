package writeguard

import (
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/runner/launch/alteration"
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

func guardMeta(run jobplan.Run, kind, name string) (metav1.TypeMeta, metav1.ObjectMeta) {
	return metav1.TypeMeta{APIVersion: admissionVersion, Kind: kind}, run.Meta("", name)
}

func guardObjectName(run jobplan.Run) string { return ownsignal.Guard(run.ID) }

// bound is a policy with its binding, which has the same name.
type bound struct {
	policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// policies are the policies of the guard of a run, in the order of their creation. An API server loads them in this
// order, so the probe of the last policy is denied once all are in effect.
func policies(plan jobplan.Plan) ([]bound, error) {
	pods, err := podPolicy(plan)
	if err != nil {
		return nil, err
	}
	writes := guardPolicy(plan.Run)
	return []bound{{pods, bindingOf(plan.Run, pods.Name)}, {writes, bindingOf(plan.Run, writes.Name)}}, nil
}

// Objects returns the objects of the guard of a run, in the order of their creation.
func Objects(plan jobplan.Plan) ([]payload.Object, error) {
	all, err := policies(plan)
	var objects []payload.Object
	for _, each := range all {
		objects = append(objects, each.policy, each.binding)
	}
	return objects, err
}

// podPolicy denies the pods of the run that differ from their Jobs, before they exist. A pod for which it cannot be evaluated
// is denied, too: no other object meets its condition.
func podPolicy(plan jobplan.Plan) (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
	variables, validations, err := alteration.Prevention(plan)
	if err != nil {
		return nil, err
	}
	namespaces := map[string]bool{}
	for _, check := range plan.Checks {
		namespaces[check.Job.Namespace] = true
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.TypeMeta, policy.ObjectMeta = guardMeta(plan.Run, inventory.PolicyKind, ownsignal.PodGuard(plan.Run.ID))
	rule := func(resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		}}
	}
	policy.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionregistrationv1.Fail),
		MatchConstraints: &admissionregistrationv1.MatchResources{
			// The API server sets this label, and rejects a change of it.
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Sorted(maps.Keys(namespaces)),
			}}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				rule("pods", admissionregistrationv1.Create, admissionregistrationv1.Update),
				rule("pods/ephemeralcontainers", admissionregistrationv1.Update), rule("pods/resize", admissionregistrationv1.Update),
			},
		},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "a-pod-of-this-run", Expression: ownsignal.Subject(plan.Run.Suffix())}},
		Variables:       variables, Validations: validations,
	}
	return policy, nil
}

func guardPolicy(run jobplan.Run) *admissionregistrationv1.ValidatingAdmissionPolicy {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.TypeMeta, policy.ObjectMeta = guardMeta(run, inventory.PolicyKind, guardObjectName(run))
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
				// absent for objects of the cluster, and for generateName
				"(request.?namespace.orValue('') == '' ? '' : request.namespace + '/') + request.?name.orValue('')",
			Reason: new(metav1.StatusReasonForbidden),
		}},
	}
	return policy
}

func bindingOf(run jobplan.Run, policy string) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	binding.TypeMeta, binding.ObjectMeta = guardMeta(run, inventory.BindingKind, policy)
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        policy,
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
