// Package survey answers: which objects of this cluster does a rehearsal of its drains read?
//
// [Read] reads them, and reports the ones that could not be read ([Gap]); results that depend on those are unknown
// in the rehearsal.
package survey

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	quotav1 "github.com/openshift/api/quota/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/drain"
	"github.com/openshift/update-preflight/collector/drain/order"
	"github.com/openshift/update-preflight/collector/drain/placement"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/drain/reviewer"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Gap is a resource that could not be read.
type Gap struct {
	Resource string
	Err      error
}

// Error is the error with the resource.
func (g Gap) Error() string { return fmt.Sprintf("could not list the %s: %s", g.Resource, g.Err) }

// Unwrap is the error of the API server.
func (g Gap) Unwrap() error { return g.Err }

// Names for people of what the snapshot lists by methods of its own.
const (
	services      = "Services"
	allNamespaces = "Namespaces"
)

type resource struct {
	schema.GroupVersionResource

	name string
}

func of(version schema.GroupVersion, plural, name string) resource {
	return resource{version.WithResource(plural), name}
}

// Reads are the requests of Read. All are optional but those for the Infrastructure, the nodes,
// the MachineConfigPools, the pods and the PodDisruptionBudgets.
func Reads() []access.Request {
	needs := []access.Request{{Verb: "get", Group: configv1.GroupName, Resource: "infrastructures", Name: "cluster"}}
	for _, each := range []schema.GroupVersionResource{
		corev1.SchemeGroupVersion.WithResource("nodes"), machineconfigurationv1.GroupVersion.WithResource("machineconfigpools"),
		corev1.SchemeGroupVersion.WithResource("pods"), policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
		corev1.SchemeGroupVersion.WithResource("namespaces"), corev1.SchemeGroupVersion.WithResource("services"),
		appsv1.SchemeGroupVersion.WithResource("daemonsets"), replicaSets().GroupVersionResource, statefulSets().GroupVersionResource,
		controllers().GroupVersionResource, jobs().GroupVersionResource, quotas().GroupVersionResource, limits().GroupVersionResource,
		priorities().GroupVersionResource, runtimes().GroupVersionResource, clusterQuotas().GroupVersionResource, claims().GroupVersionResource,
		volumes().GroupVersionResource, classes().GroupVersionResource,
		drivers().GroupVersionResource, attachments().GroupVersionResource, validating().GroupVersionResource, mutating().GroupVersionResource,
		policies().GroupVersionResource, bindings().GroupVersionResource, endpoints().GroupVersionResource, accounts().GroupVersionResource,
		machines().GroupVersionResource, virts().GroupVersionResource, postgres().GroupVersionResource,
		autoscalers().GroupVersionResource, machineAutoscalers().GroupVersionResource, machineObjects().GroupVersionResource,
		machineSets().GroupVersionResource,
		egressIPs().GroupVersionResource, keepalivedGroups().GroupVersionResource, l2Advertisements().GroupVersionResource,
	} {
		needs = append(needs, access.Request{Verb: "list", Group: each.Group, Resource: each.Resource})
	}
	return needs
}

// Read reads the objects that a rehearsal needs, at a time of the cluster's clock. It returns an error only for
// objects that every rehearsal needs. NodePools are the updated NodePools of a hosted cluster; nil if they are
// unknown, and for any other cluster.
//
// If asks is not nil, Read asks the API server about the next pods of the controllers whose pods are on nodes that
// are drained.
func Read(
	ctx context.Context, cluster *snapshot.Cluster, now time.Time, nodePools []order.NodePool, asks *recreation.Asks,
) (drain.Input, []Gap, error) {
	r := &reader{cluster: cluster, nodePools: nodePools}
	pods, err := cluster.Pods(ctx)
	if err != nil {
		return drain.Input{}, nil, fmt.Errorf("could not list the pods: %w", err)
	}
	pods = r.withoutChecks(ctx, pods)
	found, nodes, err := r.order(ctx, pods)
	if err != nil {
		return drain.Input{}, nil, err
	}
	budgets, err := cluster.PodDisruptionBudgets(ctx)
	if err != nil {
		return drain.Input{}, nil, fmt.Errorf("could not list the PodDisruptionBudgets: %w", err)
	}
	input := drain.Input{Order: found, Budgets: budgets, Now: now}
	input.Cluster = r.placement(ctx, append(slices.Clip(nodes), surgeNodes(found.Pools, nodes, pods)...), pods)
	input.Workloads = r.workloads(ctx, input.Cluster.Namespaces)
	reviewers := r.reviewers(ctx, input.Cluster.Namespaces)
	input.Admission, input.Creation = reviewer.Evictions(reviewers), reviewer.Creations(reviewers)
	if input.Services, err = cluster.Services(ctx); err != nil {
		input.Services = nil // which the reviewers have reported
	}
	input.DaemonSet = r.daemonSets(ctx)
	input.Room, input.Addresses = r.room(ctx, nodes), r.addresses(ctx, nodes)
	input.Owners = r.owners(ctx, input.Admission.Names())
	r.ask(ctx, input, asks)
	return input, r.gaps, nil
}

// ask asks about the next pods. What the API server could not be asked about at all is a gap.
func (r *reader) ask(ctx context.Context, input drain.Input, asks *recreation.Asks) {
	if asks == nil {
		return
	}
	drained := map[string]bool{}
	for _, pool := range input.Order.Pools {
		for _, node := range slices.Concat(pool.Nodes, pool.Later) {
			drained[node] = true
		}
	}
	known := map[preflight.Object]bool{}
	var controllers []preflight.Object
	for i := range input.Cluster.Pods {
		pod := &input.Cluster.Pods[i]
		if of, ok := recreation.ControllerOf(pod); ok && drained[pod.Spec.NodeName] && !known[of] {
			known[of] = true
			controllers = append(controllers, of)
		}
	}
	said, err := asks.Ask(ctx, controllers)
	if err != nil {
		r.gap("answers of the API server to the next pods", err)
		return
	}
	input.Workloads.Use(said, asks.Differs)
}

// reader reads resources, and collects those that could not be read.
type reader struct {
	cluster   *snapshot.Cluster
	nodePools []order.NodePool
	gaps      []Gap
}

func (r *reader) gap(name string, err error) { r.gaps = append(r.gaps, Gap{Resource: name, Err: err}) }

// withoutChecks leaves out the pods of preflights in progress, which are deleted before an update.
func (r *reader) withoutChecks(ctx context.Context, pods []corev1.Pod) []corev1.Pod {
	guards := map[string]bool{}
	found, err := snapshot.List[admissionregistrationv1.ValidatingAdmissionPolicyBinding](ctx, r.cluster, bindings().GroupVersionResource)
	if err != nil {
		return pods // the reviewers report it
	}
	for i := range found {
		guards[found[i].Name] = true
	}
	checks := func(pod corev1.Pod) bool {
		run := pod.Labels[ownsignal.RunLabel]
		return run != "" && ownsignal.PodOfRun(run, pod.Name) && guards[ownsignal.Guard(run)]
	}
	if !slices.ContainsFunc(pods, checks) {
		return pods // which are many megabytes
	}
	return slices.DeleteFunc(slices.Clone(pods), checks)
}

// list reads a resource; one that the API server does not serve has no objects.
func list[T any](ctx context.Context, r *reader, of resource) []T {
	return listed(ctx, r, of, func(ctx context.Context) ([]T, error) {
		return snapshot.List[T](ctx, r.cluster, of.GroupVersionResource)
	})
}

// few is list for a kind of which a cluster has few objects. All such kinds share what reads them: a program has the code
// of list for each type.
func few[T any](ctx context.Context, r *reader, of resource) []T {
	all := list[map[string]any](ctx, r, of)
	found := make([]T, len(all))
	for i := range all {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all[i], &found[i]); err != nil {
			r.gap(of.name, fmt.Errorf("%s cannot be decoded: %w", (&unstructured.Unstructured{Object: all[i]}).GetName(), err))
			return nil
		}
	}
	return found
}

func listed[T any](ctx context.Context, r *reader, of resource, read func(context.Context) ([]T, error)) []T {
	all, err := read(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		r.gap(of.name, err)
	}
	return all
}

// operatorNamespace has the pod of the machine-config-operator, whose node is the last of its pool.
const operatorNamespace = "openshift-machine-config-operator"

func (r *reader) order(ctx context.Context, pods []corev1.Pod) (order.Order, []corev1.Node, error) {
	infrastructure, err := r.cluster.Infrastructure(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return order.Order{}, nil, fmt.Errorf("could not read the Infrastructure \"cluster\": %w", err)
	}
	nodes, err := r.cluster.Nodes(ctx)
	if err != nil {
		return order.Order{}, nil, fmt.Errorf("could not list the nodes: %w", err)
	}
	pools, err := r.cluster.MachineConfigPools(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return order.Order{}, nil, fmt.Errorf("could not list the MachineConfigPools: %w", err)
	}
	input := order.Input{Nodes: nodes, Pools: pools, NodePools: r.nodePools}
	for i := range pods {
		if pods[i].Namespace == operatorNamespace && pods[i].Labels["k8s-app"] == "machine-config-operator" {
			input.Last = pods[i].Spec.NodeName
		}
	}
	if infrastructure != nil {
		input.Topology = infrastructure.Status.ControlPlaneTopology
	}
	found, err := order.Of(input)
	return found, nodes, err
}

// Resources that are read besides those with a method of the snapshot.
func replicaSets() resource { return of(appsv1.SchemeGroupVersion, "replicasets", "ReplicaSets") }

func statefulSets() resource { return of(appsv1.SchemeGroupVersion, "statefulsets", "StatefulSets") }

func controllers() resource {
	return of(corev1.SchemeGroupVersion, "replicationcontrollers", "ReplicationControllers")
}

func jobs() resource { return of(batchv1.SchemeGroupVersion, "jobs", "Jobs") }

func quotas() resource { return of(corev1.SchemeGroupVersion, "resourcequotas", "ResourceQuotas") }

func limits() resource { return of(corev1.SchemeGroupVersion, "limitranges", "LimitRanges") }

func priorities() resource {
	return of(schedulingv1.SchemeGroupVersion, "priorityclasses", "PriorityClasses")
}

func runtimes() resource { return of(nodev1.SchemeGroupVersion, "runtimeclasses", "RuntimeClasses") }

func clusterQuotas() resource {
	return of(quotav1.GroupVersion, "clusterresourcequotas", "ClusterResourceQuotas")
}

func claims() resource {
	return of(corev1.SchemeGroupVersion, "persistentvolumeclaims", "PersistentVolumeClaims")
}

func volumes() resource {
	return of(corev1.SchemeGroupVersion, "persistentvolumes", "PersistentVolumes")
}

func classes() resource { return of(storagev1.SchemeGroupVersion, "storageclasses", "StorageClasses") }

func drivers() resource { return of(storagev1.SchemeGroupVersion, "csidrivers", "CSIDrivers") }

func attachments() resource { return of(storagev1.SchemeGroupVersion, "csinodes", "CSINodes") }

func accounts() resource {
	return of(corev1.SchemeGroupVersion, "serviceaccounts", "ServiceAccounts")
}

func (r *reader) workloads(ctx context.Context, namespaces []metav1.PartialObjectMetadata) *recreation.Workloads {
	before := len(r.gaps)
	ctx, missing := gap.Watch(ctx)
	input := recreation.Input{
		ReplicaSets:  listed(ctx, r, replicaSets(), r.cluster.ReplicaSets),
		StatefulSets: listed(ctx, r, statefulSets(), r.cluster.StatefulSets),
		Controllers:  listed(ctx, r, controllers(), r.cluster.ReplicationControllers),
		Jobs:         listed(ctx, r, jobs(), r.cluster.Jobs),
	}
	input.Unread = len(r.gaps) > before || missing.Err() != nil
	input.Namespaces = namespaces
	if input.Accounts = list[metav1.PartialObjectMetadata](ctx, r, accounts()); missing.Lacks(accounts().Resource) {
		input.Accounts = nil // one that is not there may exist
	}
	input.Quotas = list[corev1.ResourceQuota](ctx, r, quotas())
	input.ClusterQuotas = few[quotav1.ClusterResourceQuota](ctx, r, clusterQuotas())
	input.Limits = list[corev1.LimitRange](ctx, r, limits())
	if input.Priorities = few[schedulingv1.PriorityClass](ctx, r, priorities()); missing.Lacks(priorities().Resource) {
		input.Priorities = nil // one that is not there may exist
	}
	before = len(r.gaps)
	input.Runtimes = few[nodev1.RuntimeClass](ctx, r, runtimes())
	input.AllRuntimes = len(r.gaps) == before && !missing.Lacks(runtimes().Resource)
	return recreation.New(input)
}

func (r *reader) placement(ctx context.Context, nodes []corev1.Node, pods []corev1.Pod) placement.Input {
	input := placement.Input{Nodes: nodes, Pods: pods}
	var err error
	if input.Namespaces, err = r.cluster.Namespaces(ctx); err != nil {
		r.gap(allNamespaces, err)
	}
	before := len(r.gaps)
	ctx, missing := gap.Watch(ctx)
	input.Claims = list[corev1.PersistentVolumeClaim](ctx, r, claims())
	input.Volumes = list[corev1.PersistentVolume](ctx, r, volumes())
	input.Classes = few[storagev1.StorageClass](ctx, r, classes())
	input.Drivers = few[storagev1.CSIDriver](ctx, r, drivers())
	input.Unread, input.Partial = len(r.gaps) > before, missing.Err() != nil
	input.Attachments = list[storagev1.CSINode](ctx, r, attachments())
	return input
}

// daemonSets reports whether a DaemonSet exists; nil, for all, if not all could be read.
func (r *reader) daemonSets(ctx context.Context) func(namespace, name string) bool {
	ctx, missing := gap.Watch(ctx)
	all, err := r.cluster.DaemonSets(ctx)
	if err != nil {
		r.gap("DaemonSets", err)
	}
	if err != nil || missing.Err() != nil {
		return nil
	}
	exists := map[string]bool{}
	for i := range all {
		exists[all[i].Namespace+"/"+all[i].Name] = true
	}
	return func(namespace, name string) bool { return exists[namespace+"/"+name] }
}
