// Package workload answers: do the pods of a hosted control plane run, and is there room to update them?
//
// [Read] reads its namespace and the nodes of the management cluster, and [State.Evaluate] evaluates them. As in
// every cluster, package eviction evaluates drains and package placement evaluates nodes.
package workload

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/drain/eviction"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	etcd, apiServer = "etcd", "kube-apiserver"
	// maxObjects bounds the objects of a kind in the namespace, and the nodes and namespaces.
	maxObjects = 1000
	// maxPods bounds the pods of the management cluster.
	maxPods = 10000
)

// State is the control plane of a hosted cluster in its management cluster, and where its pods can run.
type State struct {
	namespace string
	// etcd is nil where etcd has no StatefulSet of that name.
	etcd        *appsv1.StatefulSet
	deployments []appsv1.Deployment
	budgets     []policyv1.PodDisruptionBudget
	pods        []corev1.Pod
	// unread is why something of the namespace could not be read; nil if all was.
	unread error

	nodes      []corev1.Node
	namespaces []metav1.PartialObjectMetadata
	// all are the pods of the management cluster.
	all []corev1.Pod
	// unknownRoom is why it is unknown where pods can run; nil if it is known.
	unknownRoom error
}

// Reads are the requests of Read for a namespace. None of them is required.
func Reads(namespace string) []access.Request {
	within := func(verb, group, resource, name string) access.Request {
		return access.Request{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name}
	}
	return []access.Request{
		within("get", appsv1.GroupName, "statefulsets", etcd), within("list", appsv1.GroupName, "deployments", ""),
		within("list", policyv1.GroupName, "poddisruptionbudgets", ""), within("list", "", "pods", ""),
		check.List("", "nodes"), check.List("", "namespaces"), check.List("", "pods"),
	}
}

// Read reads the namespace of a control plane, and the nodes with their pods. Read failures become findings of
// Evaluate.
func Read(ctx context.Context, management *cluster.Cluster, namespace string) *State {
	s := &State{namespace: namespace}
	if s.unread = s.readNamespace(ctx, management); s.unread == nil {
		s.unknownRoom = s.readRoom(ctx, management)
	}
	return s
}

func (s *State) readNamespace(ctx context.Context, management *cluster.Cluster) error {
	ctx, log := gap.Track(ctx)
	limit := metav1.ListOptions{Limit: maxObjects}
	set, err := management.Kubernetes.AppsV1().StatefulSets(s.namespace).Get(ctx, etcd, metav1.GetOptions{})
	if err == nil {
		s.etcd = set
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("could not read StatefulSet %s/%s: %w", s.namespace, etcd, err)
	}
	deployments, err := management.Kubernetes.AppsV1().Deployments(s.namespace).List(ctx, limit)
	if err = complete("Deployments of namespace "+s.namespace, maxObjects, deployments, err); err != nil {
		return err
	}
	budgets, err := management.Kubernetes.PolicyV1().PodDisruptionBudgets(s.namespace).List(ctx, limit)
	if err = complete("PodDisruptionBudgets of namespace "+s.namespace, maxObjects, budgets, err); err != nil {
		return err
	}
	pods, err := management.Kubernetes.CoreV1().Pods(s.namespace).List(ctx, limit)
	if err = complete("pods of namespace "+s.namespace, maxObjects, pods, err); err != nil {
		return err
	}
	s.deployments, s.budgets, s.pods = deployments.Items, budgets.Items, pods.Items
	return gathered(log)
}

func (s *State) readRoom(ctx context.Context, management *cluster.Cluster) error {
	ctx, log := gap.Track(ctx)
	nodes, err := management.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err = complete("nodes", maxObjects, nodes, err); err != nil {
		return err
	}
	namespaces, err := management.Kubernetes.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err = complete("namespaces", maxObjects, namespaces, err); err != nil {
		return err
	}
	pods, err := management.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: maxPods})
	if err = complete("pods of the management cluster", maxPods, pods, err); err != nil {
		return err
	}
	s.nodes, s.all = nodes.Items, pods.Items
	for i := range namespaces.Items {
		s.namespaces = append(s.namespaces, metav1.PartialObjectMetadata{ObjectMeta: namespaces.Items[i].ObjectMeta})
	}
	return gathered(log)
}

// complete is the error about a list that could not be read, or has more objects than may be read.
func complete(name string, most int, list metav1.ListInterface, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("could not list the %s: %w", name, err)
	case list.GetContinue() != "":
		return fmt.Errorf("there are more than %d %s", most, name)
	}
	return nil
}

// gathered is the error about what an archive of the management cluster lacks.
func gathered(log *gap.Log) error {
	if gaps := log.All(); len(gaps) > 0 {
		return fmt.Errorf("the archive has %s", gaps[0])
	}
	return nil
}

// Name is the name of the check whose findings Evaluate returns.
var Name = finding.NewName("HostedControlPlanePods",
	"Checks the pods of the control plane in its namespace of the management cluster: replicas of etcd and of the API server, "+
		"PodDisruptionBudgets that allow no eviction, and room on the nodes for the pods that a rollout adds.")

var (
	reasonPodsReady = finding.NewReason("ControlPlanePodsReady", finding.Explanation{
		Meaning: "The pods of the control plane are ready, and the nodes have room for a rollout.",
		Cause:   "All replicas are ready, budgets allow evictions, and each Deployment has a node for one more pod.",
	})
	reasonPodsUnknown = finding.NewReason("ControlPlanePodsUnknown", finding.Explanation{
		Meaning: "The namespace of the control plane cannot be read, or contains no etcd or API server.",
		Cause:   "A permission is missing in the management cluster, or the control plane does not exist yet.",
		Remedy: "Grant the permissions in the management cluster, with the roles that are printed for it: `oc preflight auth targets " +
			"--hosted-cluster NAMESPACE/NAME`.",
	})
	reasonEtcdNotReady = finding.NewReason("EtcdMemberNotReady", finding.Explanation{
		Meaning: "A member of etcd is not ready. An update restarts the members one after another, and may cost etcd its quorum while " +
			"another member is not ready.",
		Cause:  "A pod of the StatefulSet etcd is not running, or is not ready.",
		Remedy: "Restore the member before the update: check the pods of the StatefulSet etcd.",
	})
	reasonAPIServerNotReady = finding.NewReason("APIServerNotReady", finding.Explanation{
		Meaning: "Replicas of the guest's API server are not ready. Without a ready replica the update cannot start; with fewer " +
			"replicas the rollout waits.",
		Cause:  "A pod of the Deployment kube-apiserver is not running, or is not ready.",
		Remedy: "Check the pods of the Deployment kube-apiserver in the namespace of the control plane.",
	})
	reasonBudgetNever = finding.NewReason("ControlPlaneBudgetNever", finding.Explanation{
		Meaning: "Pods of the control plane can never be evicted. The update of a hosted cluster evicts none of them, but when the " +
			"management cluster is updated, the drains of their nodes hang.",
		Cause: "The PodDisruptionBudget requires all replicas, its status cannot be computed, or several budgets select the same pods.",
		Remedy: "Check the replicas of the workload and its budget: `oc -n NAMESPACE get poddisruptionbudgets`. HyperShift restores " +
			"its own budgets.",
	})
	reasonBudgetAtLimit = finding.NewReason("ControlPlaneBudgetAtLimit", finding.Explanation{
		Meaning: "A PodDisruptionBudget of the control plane currently allows no eviction.",
		Cause:   "Too few pods of the budget are ready.",
		Remedy:  "Check why the pods are not ready before the update.",
	})
	reasonNoSurge = finding.NewReason("NoRoomForRollout", finding.Explanation{
		Meaning: "No node of the management cluster suits one more pod of a Deployment whose rollout adds a pod before it removes one, " +
			"so the rollout hangs.",
		Cause: "The message counts the nodes by why they do not suit, such as pod anti-affinity with as many replicas as nodes. An " +
			"autoscaler may add nodes, the scheduler may preempt pods, and the next release may have another strategy.",
		Remedy: "Add a node that suits the pods, or make room: `oc describe nodes`.",
	})
	reasonRoomUnknown = finding.NewReason("RolloutRoomUnknown", finding.Explanation{
		Meaning: "Whether the management cluster has room for the rollout of a control plane is unknown.",
		Cause: "Nodes, namespaces or pods of the management cluster cannot be read, or the placement depends on more than oc-preflight " +
			"evaluates.",
		Remedy: "Check that each Deployment of the control plane has a node for one more pod.",
	})
)

// Said lists what the conditions of the HostedCluster report already, so that it is not reported again.
type Said struct {
	// Etcd and APIServer are true where they are reported as unavailable. Unmanaged is true for etcd
	// outside of the management cluster.
	Etcd, APIServer, Unmanaged bool
}

// Evaluate returns at least one finding. Read failures in the namespace are one inconclusive finding; budgets and
// room only warn.
func (s *State) Evaluate(said Said) []finding.Finding {
	if s.unread != nil {
		return []finding.Finding{finding.Unknown(reasonPodsUnknown, "the pods of the control plane are unknown: %s", s.unread).
			About(finding.Object{APIVersion: "v1", Kind: "Namespace", Name: s.namespace})}
	}
	found := s.replicas(said)
	found = append(found, s.evictions()...)
	found = append(found, s.room()...)
	if len(found) == 0 {
		return []finding.Finding{finding.Pass(gap.Proven("the lists of the namespace of the control plane"), reasonPodsReady,
			"the pods of the control plane in namespace %s are ready, and the nodes have room for their rollout", s.namespace)}
	}
	return found
}

func (s *State) replicas(said Said) []finding.Finding {
	var found []finding.Finding
	if !said.Etcd && !said.Unmanaged {
		found = append(found, s.etcdReplicas()...)
	}
	if said.APIServer {
		return found
	}
	at := slices.IndexFunc(s.deployments, func(d appsv1.Deployment) bool { return d.Name == apiServer })
	if at < 0 {
		return append(found, s.missing("Deployment", apiServer))
	}
	wanted, ready := wantedOf(s.deployments[at].Spec.Replicas), s.deployments[at].Status.ReadyReplicas
	report := finding.Warn
	if ready == 0 {
		report = finding.Fail
	}
	if ready < wanted || wanted == 0 {
		found = append(found, s.about("Deployment", apiServer,
			report(reasonAPIServerNotReady, "%d of %d replicas of Deployment %s/%s are ready", ready, wanted, s.namespace, apiServer)))
	}
	return found
}

func (s *State) etcdReplicas() []finding.Finding {
	if s.etcd == nil {
		return []finding.Finding{s.missing("StatefulSet", etcd)}
	}
	if wanted, ready := wantedOf(s.etcd.Spec.Replicas), s.etcd.Status.ReadyReplicas; ready < wanted || wanted == 0 {
		return []finding.Finding{s.about("StatefulSet", etcd,
			finding.Fail(reasonEtcdNotReady, "%d of %d members of etcd in StatefulSet %s/%s are ready", ready, wanted, s.namespace, etcd))}
	}
	return nil
}

// wantedOf is the number of replicas, whose default is 1.
func wantedOf(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

func (s *State) missing(kind, name string) finding.Finding {
	return s.about(kind, name, finding.Unknown(reasonPodsUnknown, "namespace %s has no %s %s, so its replicas are unknown", s.namespace, kind,
		name).
		Remedy("Check that the control plane is installed, and that the kubeconfig belongs to its management cluster."))
}

func (s *State) about(kind, name string, f finding.Finding) finding.Finding {
	return f.About(finding.Object{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kind, Namespace: s.namespace, Name: name}).
		Do(finding.Read("oc -n %s get pods -o wide", s.namespace).In(finding.Management))
}

// refused are the pods that one budget, or several, keep on their nodes for one cause.
type refused struct {
	outcome eviction.Outcome
	cause   eviction.Cause
	budget  string
	pods    []string
}

// evictions are the budgets that refuse the eviction of a pod now or always.
func (s *State) evictions() []finding.Finding {
	index := eviction.NewBudgets(s.budgets)
	states := make([]eviction.Budget, len(s.budgets))
	for i := range s.budgets {
		states[i] = eviction.BudgetOf(&s.budgets[i])
	}
	var causes []refused
	for i := range s.pods {
		var budgets []*eviction.Budget
		for _, at := range index.Of(s.namespace, s.pods[i].Labels) {
			budgets = append(budgets, &states[at])
		}
		answer := eviction.Of(eviction.PodOf(&s.pods[i], nil), budgets)
		if answer.Outcome == eviction.Evicted || answer.Outcome == eviction.KeptOnNode {
			continue
		}
		causes = refuse(causes, refused{outcome: answer.Outcome, cause: answer.Cause, budget: budgets[0].Name}, s.pods[i].Name)
	}
	var found []finding.Finding
	for _, each := range causes {
		found = append(found, s.describe(each))
	}
	return found
}

// refuse adds a pod to those with the same cause.
func refuse(causes []refused, of refused, pod string) []refused {
	at := slices.IndexFunc(causes, func(c refused) bool { return c.budget == of.budget && c.cause == of.cause })
	if at < 0 {
		at, causes = len(causes), append(causes, of)
	}
	causes[at].pods = append(causes[at].pods, pod)
	return causes
}

// maxNamed bounds the names in a message.
const maxNamed = 5

func (s *State) describe(of refused) finding.Finding {
	pods := words.List(of.pods, maxNamed)
	found := finding.Warn(reasonBudgetAtLimit, "PodDisruptionBudget %s/%s currently allows no eviction (%s): %s", s.namespace, of.budget,
		of.cause, pods)
	if of.outcome == eviction.Never {
		found = finding.Warn(reasonBudgetNever, "PodDisruptionBudget %s/%s never allows an eviction (%s), so a drain of the management "+
			"cluster hangs: %s", s.namespace, of.budget, of.cause, pods)
	}
	return found.About(finding.Object{
		APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget", Namespace: s.namespace,
		Name: of.budget,
	}).
		Do(finding.Read("oc -n %s get poddisruptionbudgets,pods -o wide", s.namespace).In(finding.Management))
}

// room is about the Deployments whose rollout needs a node for one more pod.
func (s *State) room() []finding.Finding {
	if s.unknownRoom != nil {
		return []finding.Finding{finding.Warn(reasonRoomUnknown,
			"whether the management cluster has room for the rollout of the control plane is unknown: %s", s.unknownRoom)}
	}
	type group struct {
		reason finding.Reason
		why    string
	}
	var order []group
	grouped := map[group][]string{}
	for _, each := range s.rollouts() {
		key := group{each.reason, each.why}
		if grouped[key] == nil {
			order = append(order, key)
		}
		grouped[key] = append(grouped[key], each.deployment)
	}
	var found []finding.Finding
	for _, key := range order {
		text := "no node of the management cluster suits one more pod of Deployment %s in namespace %s, which its rollout adds before " +
			"it removes one: %s"
		if key.reason == reasonRoomUnknown {
			text = "whether a node of the management cluster suits one more pod of Deployment %s in namespace %s is unknown: %s"
		}
		var objects []finding.Object
		for _, name := range grouped[key] {
			objects = append(objects, finding.Object{
				APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Namespace: s.namespace,
				Name: name,
			})
		}
		found = append(found, finding.Warn(key.reason, text, words.List(grouped[key], maxNamed), s.namespace,
			words.External(key.why)).About(objects...).
			Do(finding.Read("oc -n %s get pods -o wide", s.namespace).In(finding.Management)))
	}
	return found
}

func running(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// surges reports whether a rollout of the Deployment adds a pod before it removes one: where no pod may
// be unavailable. A percentage of maxUnavailable is rounded down and one of maxSurge up, and both
// are never 0 (kubernetes pkg/controller/deployment/util, ResolveFenceposts).
func surges(d *appsv1.Deployment) (bool, error) {
	replicas := int(wantedOf(d.Spec.Replicas))
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || d.Spec.Paused || replicas == 0 {
		return false, nil
	}
	surge, unavailable, err := limits(d.Spec.Strategy.RollingUpdate, replicas)
	if err != nil {
		return false, fmt.Errorf("its strategy is invalid: %w", err)
	}
	return unavailable == 0 && surge > 0, nil
}
