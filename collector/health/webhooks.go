package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// Webhooks is the check for webhooks with the failure policy Fail that receive a request
// which every update makes, and may then not respond: pods of the cluster itself are
// created, bound, reported, evicted and deleted, nodes are cordoned and reported, leases
// renewed, CustomResourceDefinitions and ClusterOperators updated. A finding
// <kind><reason>-<configuration> for each configuration and reason. A webhook whose
// conditions or selectors depend on more than the metadata of an object is only warned
// of. On a cluster with a single node, which is not drained, replicas on one node are
// expected.
func Webhooks() check.Check {
	return check.Check{
		Name: "Webhooks", Kind: finding.SourceHealth,
		Reads: slices.Concat(readsRequests(), []access.Request{
			check.List(admissionregistrationv1.GroupName, "validatingwebhookconfigurations"),
			check.List(admissionregistrationv1.GroupName, "mutatingwebhookconfigurations"),
			check.List("", "services"), check.List(discoveryv1.GroupName, "endpointslices"),
			check.List(policyv1.GroupName, "poddisruptionbudgets"),
		}),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			webhooks, err := webhooksOf(ctx, s.Cluster)
			if err != nil {
				return nil, err
			}
			requests, err := requestsOf(ctx, s.Cluster)
			if err != nil {
				return nil, err
			}
			backends, err := backendsOf(ctx, s.Cluster)
			if err != nil {
				return nil, err
			}
			budgets, err := s.Cluster.PodDisruptionBudgets(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not list the PodDisruptionBudgets: %w", err)
			}
			judge := &webhookJudge{requests: requests, backends: backends, budgets: budgets, now: s.Now}
			return judge.judge(ctx, webhooks), ctx.Err()
		},
	}
}

// readsRequests are the requests of requestsOf.
func readsRequests() []access.Request {
	return []access.Request{
		check.List("", "namespaces"), check.List("", "pods"), check.List("", "nodes"), check.List(configv1.GroupName, "clusteroperators"),
	}
}

// webhook is one webhook of a configuration.
type webhook struct {
	admissionregistrationv1.ValidatingWebhook

	// kind is Validating or Mutating.
	kind          string
	configuration string
	hook          *admission.Hook
}

const (
	validating = "Validating"
	mutating   = "Mutating"
)

// webhooksOf are all webhooks, sorted by kind and configuration.
func webhooksOf(ctx context.Context, cluster *snapshot.Cluster) ([]webhook, error) {
	version := admissionregistrationv1.SchemeGroupVersion
	validators, validatingErr := snapshot.List[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, cluster, version.WithResource("validatingwebhookconfigurations"))
	mutators, mutatingErr := snapshot.List[admissionregistrationv1.MutatingWebhookConfiguration](ctx, cluster, version.WithResource("mutatingwebhookconfigurations"))
	if err := errors.Join(validatingErr, mutatingErr); err != nil {
		return nil, fmt.Errorf("could not list the webhook configurations: %w", err)
	}
	var all []webhook
	for i := range validators {
		for j := range validators[i].Webhooks {
			all = append(all, webhook{ValidatingWebhook: validators[i].Webhooks[j], kind: validating, configuration: validators[i].Name})
		}
	}
	for i := range mutators {
		for j := range mutators[i].Webhooks {
			all = append(all, webhook{ValidatingWebhook: admission.Mutating(&mutators[i].Webhooks[j]), kind: mutating, configuration: mutators[i].Name})
		}
	}
	for i := range all {
		hook, err := admission.Webhook(all[i].ValidatingWebhook)
		if err != nil {
			return nil, fmt.Errorf("a selector of %s is invalid: %w", all[i].subject(), err)
		}
		all[i].hook = hook
	}
	return all, nil
}

// object is the configuration of the webhook.
func (w webhook) object() finding.Object {
	return finding.Object{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: w.kind + "WebhookConfiguration", Name: w.configuration}
}

// subject names the webhook in a message.
func (w webhook) subject() string {
	return fmt.Sprintf("webhook %q of %s", w.Name, check.Describe(w.object()))
}

// updateRequests are the requests that an update makes.
type updateRequests struct {
	matcher *admission.Matcher
	groups  []admission.Group
	// replicas are pods of all namespaces, one of each controller.
	replicas []metav1.PartialObjectMetadata
	// node is the name of a node, and nodes is the number of nodes.
	node  string
	nodes int
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
	return found, nil
}

// named is what is known of an object in a request.
func named(object metav1.ObjectMeta) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Labels: object.Labels}}
}

// groupsOf are the requests of an update. Pods of all namespaces are evicted and
// deleted; those of other namespaces than the cluster's own may stay away during the
// update.
func groupsOf(replicas, nodes, operators []metav1.PartialObjectMetadata) []admission.Group {
	var own, drained []metav1.PartialObjectMetadata
	for i := range replicas {
		if ofOpenShift(replicas[i].Namespace) {
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

func backendsOf(ctx context.Context, cluster *snapshot.Cluster) (*admission.Backends, error) {
	services, err := cluster.Services(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the Services: %w", err)
	}
	endpoints, err := cluster.EndpointSlices(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the EndpointSlices: %w", err)
	}
	return admission.NewBackends(services, endpoints), nil
}

// webhookJudge judges webhooks by the state of the cluster.
type webhookJudge struct {
	requests *updateRequests
	backends *admission.Backends
	budgets  []policyv1.PodDisruptionBudget
	now      time.Time
}
