package sample

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/sweep"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/hypershift/hostedcondition"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var _ = catalog.Reasons("A HostedCluster or a NodePool has a problem after the update that it did not have before.", `
NotConnected | DataPlaneConnectionAvailable or ControlPlaneConnectionAvailable is False: the control plane and the nodes cannot reach each other. | Check the
	konnectivity pods on both sides. | oc get pods -A
NotReconciled | HyperShift does not reconcile it: a condition such as ValidReleaseImage gives the cause. | Fix the cause that the condition reports.
	| oc describe KIND NAME -n NAMESPACE
VersionSkew | Its version is further behind the control plane than HyperShift supports, or newer. | Update the NodePool: set its spec.release.`)

// errManagement is why a guest that is read without its management cluster has neither HostedCluster nor NodePools.
var errManagement = errors.New("it is in the management cluster of this guest: use the kubeconfig of that cluster, with --hosted-cluster")

// pools reads what the nodes belong to: MachineConfigPools and MachineSets, or the NodePools of a guest with their
// HostedCluster, which its management cluster has; of is nil for none.
func (m machinery) pools(ctx context.Context, of *hypershift.State) {
	s := m.sampler
	topology, err := s.cluster.Topology(ctx)
	switch isGuest := err == nil && topology == snapshot.HyperShift; {
	case of != nil:
		m.hosted(of)
	case isGuest:
		s.unread(errManagement, baseline.HostedCluster, baseline.NodePool)
	default:
		m.machines(ctx)
	}
}

func (m machinery) hosted(of *hypershift.State) {
	s := m.sampler
	s.keep(baseline.Key{Kind: baseline.HostedCluster, Namespace: of.Cluster.Namespace, Name: of.Cluster.Name}, hostedClusterOf(of))
	if of.PoolsError != nil {
		s.unread(of.PoolsError, baseline.NodePool)
	}
	for i := range of.Pools {
		pool := &of.Pools[i]
		s.keep(baseline.Key{Kind: baseline.NodePool, Namespace: pool.Namespace, Name: pool.Name}, nodePoolOf(pool, s.now))
	}
}

// hostedClusterOf is a HostedCluster. Its condition Progressing compares spec.release with the release of the control plane,
// so it stays True where spec.controlPlaneRelease replaces that one; with the reason Blocked it is False because of another condition
// (hypershift at 3ee9615: hostedcluster_controller.go, isProgressing).
func hostedClusterOf(of *hypershift.State) baseline.Object {
	var object baseline.Object
	for _, stated := range hostedcondition.Unmet(of.Cluster) {
		reason := "Unavailable"
		switch stated.Type {
		case "Degraded":
			reason = "Degraded"
		case "DataPlaneConnectionAvailable", "ControlPlaneConnectionAvailable":
			reason = "NotConnected"
		case "ReconciliationSucceeded", "ValidConfiguration", "SupportedHostedCluster", "ValidReleaseImage", "PlatformCredentialsFound",
			"ValidHostedControlPlaneConfiguration":
			reason = "NotReconciled"
		}
		object.Add(unmet(stated, reason))
	}
	if progressing := meta.FindStatusCondition(of.Cluster.Status.Conditions, "Progressing"); progressing != nil &&
		of.Cluster.Spec.ControlPlaneRelease == nil {
		switch {
		case progressing.Status == metav1.ConditionTrue:
			object.Add(unmet(*progressing, "NotUpdated"))
		case progressing.Reason == "Blocked":
			object.Add(unmet(*progressing, "NotReconciled"))
		}
	}
	return object
}

// nodePoolOf is a NodePool. Machines of one that is being updated are replaced, and those are not ready yet.
func nodePoolOf(pool *hypershift.NodePool, now time.Time) baseline.Object {
	object := baseline.Object{Ready: pool.Status.Replicas}
	if pool.Spec.Replicas != nil {
		object.Desired = *pool.Spec.Replicas
	}
	updating := pool.Updating()
	for _, stated := range hostedcondition.UnmetOfPool(pool) {
		reason := "NotReconciled"
		switch stated.Type {
		case "AllMachinesReady", "AllNodesHealthy":
			if updating != nil {
				continue
			}
			reason = "MachinesNotReady"
		case "UpdatingVersion", "UpdatingConfig":
			reason = "Degraded"
		case "SupportedVersionSkew":
			reason = "VersionSkew"
		}
		object.Add(unmet(stated, reason))
	}
	pause, err := hypershift.PausedUntil(pool.Spec.PausedUntil, now)
	switch {
	case err == nil && pause.Active:
		object.Detail = paused
	case updating != nil:
		object.Add(unmet(*updating, "NotUpdated"))
	}
	return object
}

// unmet is a condition as a problem, by its type, since its reason often repeats no word of it.
func unmet(of metav1.Condition, reason string) baseline.Problem {
	message := of.Type + " is " + cmp.Or(words.External(string(of.Status)), "absent")
	if stated := clause(of.Reason, of.Message); stated != "" {
		message += ": " + stated
	}
	return baseline.Problem{Reason: reason, Since: at(of.LastTransitionTime), Message: message}
}

var _ = catalog.Reasons("An operator of OLM has a problem after the update that it did not have before.", `
BundleUnpackFailed | OLM could not unpack the bundle of its next version. | Read the conditions of the Subscription. | `+describe+`
CatalogSourcesUnhealthy | A catalog cannot be read, so OLM updates no operator of its namespace. | Read the state of the catalogs. | oc get catalogsources -A -o yaml
InstallPlanFailed | The InstallPlan of its next version failed. | Read the InstallPlan. | oc get installplans -n NAMESPACE -o yaml
InstallPlanMissing | The InstallPlan that its Subscription names does not exist. | Read the conditions of the Subscription. | `+describe+`
NotSucceeded | Its ClusterServiceVersion has a phase other than Succeeded. | Read its status. | oc describe clusterserviceversion NAME -n NAMESPACE
ResolutionFailed | OLM finds no set of operators that satisfies all dependencies. | Read the conditions of the Subscription. | `+describe+`
UpgradeFailed | OLM could not update the operator. | Read the status of the Subscription. | `+describe)

const describe = "oc describe subscription.operators.coreos.com NAME -n NAMESPACE"

// replaced are the phases of a ClusterServiceVersion that another one replaces, which has the same key (operator-framework/api
// pkg/operators/v1alpha1, CSVPhaseReplacing).
func replaced() []string { return []string{"Replacing", "Deleting"} }

// installed are the operators of OLM.
func (c configured) installed(ctx context.Context) {
	s := c.sampler
	subscriptions := kept(s, baseline.Subscription, read(ctx, s, s.cluster.Subscriptions, "Subscriptions", baseline.Subscription))
	subscribed := map[string][]baseline.Key{}
	for i := range subscriptions {
		of := &subscriptions[i]
		object, key := subscriptionOf(of), baseline.Key{Kind: baseline.Subscription, Namespace: of.Namespace, Name: of.Name}
		s.describe(&object, of, "operators.coreos.com", "subscriptions")
		for _, name := range []string{of.Status.InstalledCSV, of.Status.CurrentCSV} {
			subscribed[of.Namespace+"/"+name] = []baseline.Key{key}
		}
		s.keep(key, object)
	}
	operators := kept(s, baseline.ClusterServiceVersion,
		read(ctx, s, s.cluster.InstalledOperators, "ClusterServiceVersions", baseline.ClusterServiceVersion))
	for i := range operators {
		of := &operators[i]
		if of.Copied() || slices.Contains(replaced(), of.Status.Phase) {
			continue
		}
		object := baseline.Object{Detail: fact(of.Name)}
		s.describe(&object, of, "operators.coreos.com", "clusterserviceversions")
		object.UID, object.Owner = "", baseline.Key{} // each version is another object
		object.Refs = subscribed[of.Namespace+"/"+of.Name]
		if of.Status.Phase != "Succeeded" {
			object.Add(baseline.Problem{Reason: "NotSucceeded", Message: "its phase is " + phase(of)})
		}
		s.keep(baseline.Key{Kind: baseline.ClusterServiceVersion, Namespace: of.Namespace, Name: operatorName(of)}, object)
	}
}

func phase(of *snapshot.InstalledOperator) string {
	if of.Status.Phase == "" {
		return "not set"
	}
	return clause(of.Status.Phase, clause(of.Status.Reason, of.Status.Message))
}

// operatorLabel begins the label by which OLM marks what belongs to an operator; PACKAGE.NAMESPACE follows.
const operatorLabel = "operators.coreos.com/"

// versioned matches the name of a ClusterServiceVersion, which ends with a version.
var versioned = regexp.MustCompile(`^(.+?)\.v?[0-9]`)

// operatorName is the name of an operator without its version.
func operatorName(of *snapshot.InstalledOperator) string {
	var names []string
	for label := range of.Labels {
		qualified, ok := strings.CutPrefix(label, operatorLabel)
		if name, own := strings.CutSuffix(qualified, "."+of.Namespace); ok && own && name != "" {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		return slices.Min(names)
	}
	if match := versioned.FindStringSubmatch(of.Name); match != nil {
		return match[1]
	}
	return of.Name
}

// faults are the conditions of a Subscription that are True while OLM does not update the operator (package health/subscription).
func faults() []string {
	return []string{"ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed", "InstallPlanMissing", "CatalogSourcesUnhealthy"}
}

// upgradeFailed is a state of a Subscription (operator-framework/api pkg/operators/v1alpha1, SubscriptionStateFailed).
const upgradeFailed = "UpgradeFailed"

func subscriptionOf(of *snapshot.Subscription) baseline.Object {
	object := baseline.Object{Generation: of.Generation}
	if of.Spec.InstallPlanApproval != "Manual" && of.Spec.Source != "" {
		object.Detail = baseline.Automatic
		object.Refs = []baseline.Key{{
			Kind: baseline.KindOf("operators.coreos.com", "CatalogSource"), Namespace: of.Spec.SourceNamespace,
			Name: of.Spec.Source,
		}}
	}
	for _, each := range of.Status.Conditions {
		if each.Status == corev1.ConditionTrue && slices.Contains(faults(), each.Type) {
			object.Add(condition{each.Type, string(each.Status), each.Reason, each.Message, each.LastTransitionTime}.problem(each.Type))
		}
	}
	if of.Status.State == upgradeFailed {
		object.Add(baseline.Problem{Reason: upgradeFailed, Message: "the update of the operator has failed"})
	}
	return object
}

// namespaces notes the namespaces that are being deleted: the API server marks only the namespace, and its pods, first.
func (s *sampler) namespaces(ctx context.Context) {
	found := read(ctx, s, s.cluster.Namespaces, "namespaces", baseline.Namespace)
	for i := range found {
		of := &found[i]
		if of.DeletionTimestamp != nil {
			s.state.Leaving[of.Name] = true
			continue
		}
		object := baseline.Object{Release: s.owners.Namespace(of.Name)}
		s.state.Objects[baseline.Key{Kind: baseline.Namespace, Name: of.Name}] = object
	}
}

// describe adds what the metadata of an object of this resource state.
func (s *sampler) describe(object *baseline.Object, of metav1.Object, group, resource string) {
	sweep.Describe(object, of, schema.GroupResource{Group: group, Resource: resource}, s.owners)
}

// definitions are the CustomResourceDefinitions; serving adds the Services that convert their objects.
func (s *sampler) definitions(ctx context.Context) {
	s.defined = map[string]bool{}
	found := kept(s, baseline.CustomResourceDefinition,
		read(ctx, s, s.cluster.Definitions, "CustomResourceDefinitions", baseline.CustomResourceDefinition))
	for i := range found {
		of := &found[i]
		s.defined[of.Name] = of.HasStatus()
		var object baseline.Object
		s.describe(&object, of, "apiextensions.k8s.io", "customresourcedefinitions")
		s.keep(baseline.Key{Kind: baseline.CustomResourceDefinition, Name: of.Name}, object)
	}
}

// others are the objects of all kinds that have no row.
func (s *sampler) others(ctx context.Context, only map[baseline.Kind]bool) {
	swept, err := sweep.Read(ctx, s.cluster, sweep.Options{
		Now: s.now, Owners: s.owners, Definitions: s.defined, Only: only, Keep: s.keep,
		Deleting: func(key baseline.Key) { s.state.Deleting[key] = true },
	})
	if err != nil {
		s.unread(err, everything)
		return
	}
	s.state.APIs, s.state.Occupied, s.state.Named = swept.APIs, swept.Occupied, map[baseline.Key]string{}
	kinds := map[schema.GroupResource]baseline.Kind{}
	for kind, api := range swept.APIs {
		group, _ := schema.ParseGroupVersion(api.Version) // the API server has served it
		kinds[schema.GroupResource{Group: group.Group, Resource: api.Resource}] = kind
	}
	for operator, named := range s.owners.Named {
		for _, each := range named {
			if kind := kinds[schema.GroupResource{Group: each.Group, Resource: each.Resource}]; kind != "" {
				s.state.Named[baseline.Key{Kind: kind, Namespace: each.Namespace, Name: each.Name}] = operator
			}
		}
	}
	s.state.Forbidden = map[baseline.Kind]bool{}
	for kind, cause := range swept.Unread {
		s.state.Forbidden[kind] = apierrors.IsForbidden(cause)
		if !apierrors.IsNotFound(cause) {
			s.unread(cause, kind)
		}
	}
}

// podController returns the object that recreates a pod; false if it is unknown.
func (s *sampler) podController(namespace, pod string) (baseline.Key, bool) {
	at := slices.IndexFunc(s.pods, func(each corev1.Pod) bool { return each.Namespace == namespace && each.Name == pod })
	if at < 0 {
		return baseline.Key{}, false
	}
	key, known := s.controllers[&s.pods[at]]
	return key, known
}

// everything stands for the kinds without a row, where it is not known which there are.
const everything = baseline.Kind("objects of other kinds")

// inherit marks objects as the release's by their owners: objects whose owner belongs to the release, and cluster
// objects that a Service in a namespace of the release serves. An owner that is a cluster object has no namespace.
func (s *sampler) inherit() {
	for key, object := range s.state.Objects {
		object.Owner = s.existing(object.Owner)
		for i, each := range object.Refs {
			object.Refs[i] = s.existing(each)
		}
		if namespace, _, served := strings.Cut(object.Detail, "/"); served && key.Namespace == "" && baseline.RowOf(key.Kind).Served {
			object.Release = object.Release || s.owners.Namespace(namespace)
		}
		s.state.Objects[key] = object
	}
	for key, object := range s.state.Objects {
		if !object.Release && s.ofRelease(object.Owner) {
			object.Release = true
			s.state.Objects[key] = object
		}
	}
}

// existing is a key that an object has of another one, without the namespace where that is one of the cluster.
func (s *sampler) existing(key baseline.Key) baseline.Key {
	ofCluster := baseline.Key{Kind: key.Kind, Name: key.Name}
	if _, exists := s.state.Objects[ofCluster]; exists {
		return ofCluster
	}
	return key
}

// maxOwners bounds the owners of an object that are followed.
const maxOwners = 5

// ofRelease reports whether an owner, or one of its owners, belongs to the release.
func (s *sampler) ofRelease(owner baseline.Key) bool {
	for range maxOwners {
		object, exists := s.state.Objects[owner]
		if !exists || object.Release {
			return exists
		}
		owner = object.Owner
	}
	return false
}
