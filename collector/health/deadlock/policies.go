package deadlock

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameAdmissionPolicies = finding.NewName("AdmissionPolicies",
		"Checks for ValidatingAdmissionPolicies that deny a request of every update (see the check Webhooks): each binding has a "+
			"finding PolicyBinding-<binding>. A denial by the validations is only a warning, and only if they depend on the attributes "+
			"of a request, or the name and labels of its object; policies on anything else, such as the policies of OpenShift and Kubernetes, "+
			"are not evaluated. Parameters can be of any kind in any namespace and are not read, so a missing parameter, which denies "+
			"everything if parameterNotFoundAction is Deny, is not found.")

	namePolicyBinding = finding.NewName("PolicyBinding",
		"A binding whose policy may deny a request of the update, found by the check AdmissionPolicies: PolicyBinding-<binding>.")

	reasonPolicyDenies = finding.NewReason("PolicyDenies", finding.Explanation{
		Meaning: "A ValidatingAdmissionPolicy denies requests that an update makes. Only validations on the attributes of a request, " +
			"and on the name and labels of its object, are evaluated.",
		Cause:  "A validation is false for the request, and the binding has the action Deny.",
		Remedy: "Exclude the namespaces of the cluster in the binding: `oc edit validatingadmissionpolicybinding NAME`.",
	})
)

// Policies is the check AdmissionPolicies.
func Policies() check.Check {
	return check.Check{
		Name: nameAdmissionPolicies, Kind: finding.SourceHealth,
		Reads: slices.Concat(readsRequests(), []access.Request{
			check.List(admissionregistrationv1.GroupName, "validatingadmissionpolicies"),
			check.List(admissionregistrationv1.GroupName, "validatingadmissionpolicybindings"),
		}),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			bindings, err := boundPolicies(ctx, s.Cluster)
			if apierrors.IsNotFound(err) { // before Kubernetes 1.30
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected, "the cluster has no ValidatingAdmissionPolicies")}, nil
			}
			if err != nil {
				return nil, err
			}
			if len(bindings) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected, "no ValidatingAdmissionPolicy is bound")}, nil
			}
			requests, err := requestsOf(ctx, s.Cluster)
			if err != nil {
				return nil, err
			}
			return judgePolicies(ctx, requests, bindings)
		},
	}
}

type boundPolicy struct {
	policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// boundPolicies are the bindings of policies that exist, sorted by name.
func boundPolicies(ctx context.Context, cluster *snapshot.Cluster) ([]boundPolicy, error) {
	version := admissionregistrationv1.SchemeGroupVersion
	policies, err := snapshot.List[admissionregistrationv1.ValidatingAdmissionPolicy](ctx, cluster,
		version.WithResource("validatingadmissionpolicies"))
	if err != nil {
		return nil, fmt.Errorf("could not list the ValidatingAdmissionPolicies: %w", err)
	}
	bindings, err := snapshot.List[admissionregistrationv1.ValidatingAdmissionPolicyBinding](ctx, cluster,
		version.WithResource("validatingadmissionpolicybindings"))
	if err != nil {
		return nil, fmt.Errorf("could not list the ValidatingAdmissionPolicyBindings: %w", err)
	}
	byName := make(map[string]*admissionregistrationv1.ValidatingAdmissionPolicy, len(policies))
	for i := range policies {
		byName[policies[i].Name] = &policies[i]
	}
	var bound []boundPolicy
	for i := range bindings {
		if policy, ok := byName[bindings[i].Spec.PolicyName]; ok {
			bound = append(bound, boundPolicy{policy, &bindings[i]})
		}
	}
	return bound, nil
}

func judgePolicies(ctx context.Context, requests *updateRequests, bindings []boundPolicy) ([]finding.Finding, error) {
	var drafts []finding.Draft
	for _, bound := range bindings {
		denied, ok, err := bound.denies(ctx, requests)
		if err != nil {
			return finding.Bounded(drafts), err
		}
		if ok {
			drafts = append(drafts, finding.Draft{Outcome: preflight.Warn, Describe: func() finding.Finding { return bound.describeDenial(denied) }})
		}
	}
	if len(drafts) == 0 {
		drafts = finding.Drafts(finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected,
			"none of %d ValidatingAdmissionPolicyBindings is expected to deny a "+
				"request of the update, as far as metadata decides", len(bindings)))
	}
	return finding.Bounded(drafts), ctx.Err()
}

// each calls do for the requests that the policy with these match conditions and the
// binding match, until it returns false.
func (b boundPolicy) each(ctx context.Context, requests *updateRequests, conditions []admissionregistrationv1.MatchCondition,
	do func(admission.Request) bool,
) error {
	policy, err := admission.Resources(b.policy.Spec.MatchConstraints, conditions)
	if err != nil {
		return fmt.Errorf("a selector of ValidatingAdmissionPolicy %q is invalid: %w", b.policy.Name, err)
	}
	binding, err := admission.Resources(b.binding.Spec.MatchResources, nil)
	if err != nil {
		return fmt.Errorf("a selector of ValidatingAdmissionPolicyBinding %q is invalid: %w", b.binding.Name, err)
	}
	for _, group := range requests.groups {
		if !requests.matcher.Concerns(policy, group) || !requests.matcher.Concerns(binding, group) {
			continue
		}
		for _, request := range group {
			matched := requests.matcher.Match(ctx, binding, request) == admission.Matched &&
				requests.matcher.Match(ctx, policy, request) == admission.Matched
			if ctx.Err() != nil || matched && !do(request) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// denies returns a request for which a validation is false.
func (b boundPolicy) denies(ctx context.Context, requests *updateRequests) (request admission.Request, denied bool, err error) {
	validations := admission.Validations(b.policy)
	if validations == nil || !slices.Contains(b.binding.Spec.ValidationActions, admissionregistrationv1.Deny) {
		return request, false, nil
	}
	err = b.each(ctx, requests, b.policy.Spec.MatchConditions, func(matched admission.Request) bool {
		if requests.matcher.Match(ctx, validations, matched) == admission.Excluded {
			request, denied = matched, true
		}
		return !denied
	})
	return request, denied, err
}

func (b boundPolicy) describeDenial(request admission.Request) finding.Finding {
	return b.finding(preflight.Warn, reasonPolicyDenies, fmt.Sprintf(
		"%s denies requests like one that the update makes, by a "+
			"validation of ValidatingAdmissionPolicy %q: %s", check.Describe(b.object()),
		b.policy.Name, request.Action),
		"Exclude the namespaces of the cluster in matchResources of the binding.")
}

func (b boundPolicy) finding(outcome preflight.Outcome, reason finding.Reason, message, remedy string) finding.Finding {
	return finding.New(outcome, reason, "%s", message).
		Named(finding.NameOf(namePolicyBinding, b.binding.Name)).
		Remedy("%s", remedy).
		Do(finding.Read("oc get validatingadmissionpolicybinding %s -o yaml", b.binding.Name),
			finding.Read("oc get validatingadmissionpolicy %s -o yaml", b.policy.Name)).
		About(b.object(), finding.Object{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy",
			Name: b.policy.Name,
		})
}

func (b boundPolicy) object() finding.Object {
	return finding.Object{
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding",
		Name: b.binding.Name,
	}
}

func readsRequests() []access.Request {
	return []access.Request{
		check.List("", "namespaces"), check.List("", "pods"), check.List("", "nodes"), check.List(configv1.GroupName, "clusteroperators"),
	}
}

type updateRequests struct {
	matcher *admission.Matcher
	groups  []admission.Group
	// heartbeats are the groups by which kubelets report their nodes.
	heartbeats []admission.Group
	// replicas are pods of all namespaces, one of each controller.
	replicas []metav1.PartialObjectMetadata
	node     string
	nodes    int
}

// definitions are CustomResourceDefinitions that every update applies.
func definitions() []string {
	return []string{"clusteroperators.config.openshift.io", "clusterversions.config.openshift.io"}
}

func requestsOf(ctx context.Context, cluster *snapshot.Cluster) (*updateRequests, error) {
	namespaces, err := cluster.Namespaces(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the namespaces: %w", err)
	}
	replicas, err := cluster.Replicas(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the pods: %w", err)
	}
	nodes, err := cluster.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the nodes: %w", err)
	}
	operators, err := cluster.ClusterOperators(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("could not list the ClusterOperators: %w", err)
	}
	found := &updateRequests{matcher: admission.NewMatcher(namespaces), replicas: replicas, nodes: len(nodes)}
	var nodeNames, operatorNames []metav1.PartialObjectMetadata
	for i := range nodes {
		found.node = nodes[i].Name
		nodeNames = append(nodeNames, named(nodes[i].ObjectMeta))
	}
	for i := range operators {
		operatorNames = append(operatorNames, named(operators[i].ObjectMeta))
	}
	found.groups = groupsOf(replicas, nodeNames, operatorNames)
	found.heartbeats = []admission.Group{admission.RenewLeases(nodeNames), admission.ReportNodes(nodeNames)}
	return found, nil
}

// named returns the known metadata of an object in a request.
func named(object metav1.ObjectMeta) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Labels: object.Labels}}
}

// groupsOf returns the requests of an update. Pods of all namespaces are evicted and deleted; pods outside the
// cluster's own namespaces may stay away during the update.
func groupsOf(replicas, nodes, operators []metav1.PartialObjectMetadata) []admission.Group {
	var own, drained []metav1.PartialObjectMetadata
	for i := range replicas {
		if check.OfCluster(replicas[i].Namespace) {
			own = append(own, replicas[i])
		}
		if owner := metav1.GetControllerOfNoCopy(&replicas[i]); owner == nil || owner.Kind != "DaemonSet" && owner.Kind != "Node" {
			drained = append(drained, replicas[i])
		}
	}
	node := ""
	if len(nodes) > 0 {
		node = nodes[0].Name
	}
	groups := []admission.Group{
		admission.CreatePods(own, node), admission.BindPods(own), admission.ReportPods(own, node),
		admission.EvictPods(drained), admission.DeletePods(drained, node),
		admission.CordonNodes(nodes), admission.ReportNodes(nodes), admission.RenewLeases(nodes),
		admission.UpdateOperators("", operators), admission.UpdateOperators("status", operators),
	}
	if len(operators) > 0 {
		groups = append(groups, admission.UpdateDefinitions(definitions()...))
	}
	return groups
}
