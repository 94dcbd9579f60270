package baseline

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Kind is the kind of an object, as in its API. A kind without a row in [Rows] is followed by its API group:
// "Certificate.cert-manager.io".
type Kind string

// The kinds with a row, whose health is read in a way of its own. Alert is one that fires: Name is its alertname, a slash and
// the severity, with its other labels, and Namespace its label.
const (
	ClusterVersion            Kind = "ClusterVersion"
	ClusterOperator           Kind = "ClusterOperator"
	MachineConfigPool         Kind = "MachineConfigPool"
	MachineSet                Kind = "MachineSet"
	Node                      Kind = "Node"
	CSINode                   Kind = "CSINode"
	CertificateSigningRequest Kind = "CertificateSigningRequest"
	Deployment                Kind = "Deployment"
	StatefulSet               Kind = "StatefulSet"
	DaemonSet                 Kind = "DaemonSet"
	ReplicationController     Kind = "ReplicationController"
	Service                   Kind = "Service"
	Route                     Kind = "Route"
	IngressController         Kind = "IngressController"
	APIService                Kind = "APIService"
	CustomResourceDefinition  Kind = "CustomResourceDefinition"
	ValidatingWebhook         Kind = "ValidatingWebhookConfiguration"
	MutatingWebhook           Kind = "MutatingWebhookConfiguration"
	StorageClass              Kind = "StorageClass"
	CSIDriver                 Kind = "CSIDriver"
	PersistentVolumeClaim     Kind = "PersistentVolumeClaim"
	VolumeAttachment          Kind = "VolumeAttachment"
	ClusterServiceVersion     Kind = "ClusterServiceVersion"
	Subscription              Kind = "Subscription"
	EgressIP                  Kind = "EgressIP"
	EgressFirewall            Kind = "EgressFirewall"
	HostedCluster             Kind = "HostedCluster"
	NodePool                  Kind = "NodePool"
	Alert                     Kind = "Alert"
)

// The kinds of core objects without a row that are named otherwise: a Namespace, of which the name alone is kept, and a Pod that
// mirrors a static one.
const (
	Namespace Kind = "Namespace"
	Pod       Kind = "Pod"
)

// Row is all that is known about a kind.
type Row struct {
	Kind Kind
	// Version is the group and version of its API, and Resource names it for oc; empty for an alert.
	Version, Resource string
	// Limit is how long a problem must last before it counts, and Limits are the limits of the reasons that have
	// another one.
	Limit  time.Duration
	Limits map[string]time.Duration
	// Independent is true where problems of an object do not follow from each other.
	Independent bool
	// Pods is true for a controller of pods, whose problems are the problems of its pods.
	Pods bool
	// Served is true if a Service, which its Detail names, serves the object.
	Served bool
	// Named is true if the Detail contains the name of a user's object.
	Named bool
	// Updating is true for what makes the update: its problems count while nodes are still being updated. Workloads are
	// evicted by that, and alerts follow them.
	Updating bool
	// Absence says what a missing object means.
	Absence Absence
	// Changes describes a change of an object since the baseline, besides a new UID, Revision or a scale to zero, that
	// explains its problem and is no part of an update; nil if there is no such change.
	Changes func(was, is Object) string
}

// Absence says what a missing object of a kind means.
type Absence string

const (
	// Listed is no problem: the object is listed.
	Listed Absence = "Listed"
	// Fleeting is as it should be: such an object ends.
	Fleeting Absence = "Fleeting"
	// Lost is a loss; its cause is unknown if the object belonged to a user.
	Lost Absence = "Lost"
	// OfNodes is decided for all nodes together.
	OfNodes Absence = "OfNodes"
)

// The limits follow the alerts KubePodNotReady (15 minutes) and KubePodCrashLooping (10 minutes). Containers that
// restart until their dependencies are up do so for some minutes after a reboot, and count as Restarting for 15
// more.
func limitsOfPods() map[string]time.Duration {
	const short = 10 * time.Minute
	return map[string]time.Duration{
		"ContainerCreating": short, "CrashLoopBackOff": short, "CreateContainerError": short, "FailedCreate": short, "ImagePullBackOff": short,
		"ProgressDeadlineExceeded": 0, "Restarting": 30 * time.Minute, "RestartsHourly": 30 * time.Minute, "Rolled": 0,
	}
}

const (
	// standardLimit is the limit of a kind without a row, and of rows without a limit.
	standardLimit = 10 * time.Minute
	// inProgress is how long a kind without a row may be reconciled, or its object have an unobserved generation.
	inProgress = time.Hour
	// MaxUnavailable is how long an operator may be unavailable before that counts as a failure of an update: this and
	// the next two are the limits after which "oc adm upgrade status" reports an error (openshift/oc,
	// pkg/cli/admin/upgrade/status), and so are the limits of nodes.
	MaxUnavailable = 20 * time.Minute
	// MaxDegraded is how long an operator may be degraded.
	MaxDegraded = 40 * time.Minute
	// MaxFailing is how long the cluster-version operator may be failing.
	MaxFailing = MaxUnavailable
	// MaxProgressing is how long an operator may be progressing after the nodes are updated.
	MaxProgressing = 2 * time.Hour
)

// Rows are the kinds whose health is read in a special way, or that have their own limit.
func Rows() []Row {
	return append(rowsOfWorkloads(), rowsOfPlatform()...)
}

func rowsOfPlatform() []Row {
	return []Row{
		{
			Kind: ClusterVersion, Version: "config.openshift.io/v1", Resource: "clusterversion", Independent: true, Updating: true, Absence: Lost,
			Limits: map[string]time.Duration{"Failing": MaxFailing},
		},
		{
			Kind: ClusterOperator, Version: "config.openshift.io/v1", Resource: "clusteroperator", Limit: MaxDegraded, Independent: true,
			Updating: true, Absence: Lost,
			Limits: map[string]time.Duration{
				"Unavailable": MaxUnavailable, "OutdatedVersion": time.Hour, "Progressing": MaxProgressing,
				Missing: standardLimit,
			},
		},
		{
			Kind: MachineConfigPool, Version: "machineconfiguration.openshift.io/v1", Resource: "machineconfigpool", Limit: 20 * time.Minute,
			Independent: true, Updating: true,
			Absence: Lost, Limits: map[string]time.Duration{"NotUpdated": time.Hour},
		},
		{
			Kind: MachineSet, Version: "machine.openshift.io/v1beta1", Resource: "machineset.machine.openshift.io", Limit: 30 * time.Minute,
			Absence: Listed, Changes: scaledUp,
		},
		{
			Kind: Node, Version: "v1", Resource: "node", Limit: 20 * time.Minute, Independent: true, Updating: true, Absence: OfNodes,
			Limits: map[string]time.Duration{"OutdatedConfig": time.Hour, "Draining": time.Hour},
		},
		{Kind: CSINode, Version: "storage.k8s.io/v1", Resource: "csinode", Limit: standardLimit, Absence: Listed},
		{
			Kind: CertificateSigningRequest, Version: "certificates.k8s.io/v1", Resource: "certificatesigningrequest", Limit: standardLimit,
			Absence: Fleeting,
		},
		{
			Kind: APIService, Version: "apiregistration.k8s.io/v1", Resource: "apiservice", Limit: 5 * time.Minute, Served: true, Updating: true,
			Absence: Listed,
		},
		{
			Kind: CustomResourceDefinition, Version: "apiextensions.k8s.io/v1", Resource: "customresourcedefinition", Limit: standardLimit,
			Served: true, Absence: Lost,
		},
		{Kind: StorageClass, Version: "storage.k8s.io/v1", Resource: "storageclass", Limit: standardLimit, Absence: Lost},
		{Kind: CSIDriver, Version: "storage.k8s.io/v1", Resource: "csidriver", Limit: standardLimit, Absence: Listed},
		{Kind: VolumeAttachment, Version: "storage.k8s.io/v1", Resource: "volumeattachment", Limit: standardLimit, Absence: Fleeting},
		{
			Kind: HostedCluster, Version: "hypershift.openshift.io/v1beta1", Resource: "hostedcluster", Limit: MaxDegraded, Independent: true,
			Updating: true, Absence: Listed,
		},
		{
			Kind: NodePool, Version: "hypershift.openshift.io/v1beta1", Resource: "nodepool", Limit: time.Hour, Independent: true, Updating: true,
			Absence: Listed, Changes: scaledUp,
		},
		{Kind: Alert, Limit: 15 * time.Minute, Absence: Fleeting},
	}
}

func rowsOfWorkloads() []Row {
	const workload = 15 * time.Minute
	return []Row{
		{Kind: Deployment, Version: "apps/v1", Resource: "deployment", Limit: workload, Limits: limitsOfPods(), Pods: true, Absence: Listed},
		{
			Kind: StatefulSet, Version: "apps/v1", Resource: "statefulset", Named: true, Limit: workload, Limits: limitsOfPods(), Pods: true,
			Absence: Listed,
		},
		{Kind: DaemonSet, Version: "apps/v1", Resource: "daemonset", Limit: workload, Limits: limitsOfPods(), Pods: true, Absence: Listed},
		{
			Kind: ReplicationController, Version: "v1", Resource: "replicationcontroller", Limit: workload, Limits: limitsOfPods(), Pods: true,
			Absence: Listed,
		},
		{Kind: Service, Version: "v1", Resource: "service", Limit: standardLimit, Absence: Listed},
		{Kind: Route, Version: "route.openshift.io/v1", Resource: "route", Limit: standardLimit, Absence: Listed},
		{
			Kind: IngressController, Version: "operator.openshift.io/v1", Resource: "ingresscontroller", Limit: standardLimit, Independent: true,
			Absence: Listed, Changes: changedSpec,
		},
		{
			Kind: ValidatingWebhook, Version: "admissionregistration.k8s.io/v1", Resource: "validatingwebhookconfiguration", Limit: standardLimit,
			Served: true, Absence: Listed,
		},
		{
			Kind: MutatingWebhook, Version: "admissionregistration.k8s.io/v1", Resource: "mutatingwebhookconfiguration", Limit: standardLimit,
			Served: true, Absence: Listed,
		},
		{Kind: PersistentVolumeClaim, Version: "v1", Resource: "persistentvolumeclaim", Limit: standardLimit, Absence: Lost},
		{
			Kind: ClusterServiceVersion, Version: "operators.coreos.com/v1alpha1", Resource: "clusterserviceversion", Named: true, Limit: workload,
			Absence: Listed,
		},
		{
			Kind: Subscription, Version: "operators.coreos.com/v1alpha1", Resource: "subscription.operators.coreos.com", Limit: workload,
			Independent: true, Absence: Listed, Changes: changedSpec,
		},
		{Kind: EgressIP, Version: "k8s.ovn.org/v1", Resource: "egressip", Limit: standardLimit, Absence: Listed, Changes: changedSpec},
		{
			Kind: EgressFirewall, Version: "k8s.ovn.org/v1", Resource: "egressfirewall", Limit: standardLimit, Absence: Listed,
			Changes: changedSpec,
		},
	}
}

// Missing is the reason of an object that was in the baseline and is gone.
const Missing = "Missing"

func scaledUp(was, is Object) string {
	if is.Desired > was.Desired && is.Ready >= was.Ready {
		return fmt.Sprintf("it was scaled from %d to %d since", was.Desired, is.Desired)
	}
	return ""
}

func changedSpec(was, is Object) string {
	if was.Generation > 0 && is.Generation > 0 && was.Generation != is.Generation {
		return "its owner changed it since"
	}
	return ""
}

// RowOf returns the row of a kind. A kind without a row gets one by which its objects are evaluated by their own
// status; their API is in [State.APIs].
func RowOf(kind Kind) Row {
	if row, known := byKind()[kind]; known {
		return row
	}
	return Row{Kind: kind, Limit: standardLimit, Independent: true, Absence: Listed, Limits: limitsOfOthers()}
}

var byKind = sync.OnceValue(func() map[Kind]Row { //nolint:gochecknoglobals // a constant that is computed once
	rows := map[Kind]Row{}
	for _, each := range Rows() {
		rows[each.Kind] = each
	}
	return rows
})

var limitsOfOthers = sync.OnceValue(func() map[string]time.Duration { //nolint:gochecknoglobals // a constant that is computed once
	limits := limitsOfPods()
	limits["InProgress"] = inProgress
	return limits
})

// LimitOf is how long a problem of a reason has to last before it counts.
func (r Row) LimitOf(reason string) time.Duration {
	if limit, known := r.Limits[reason]; known {
		return limit
	}
	return r.Limit
}

// KindOf returns the kind of an API group; only its name if it has a row, or belongs to Kubernetes' core.
func KindOf(group, kind string) Kind {
	if group == "" || Kind(kind).group() == group {
		return Kind(kind)
	}
	return Kind(kind + "." + group)
}

// group is the API group of a kind with a row.
func (k Kind) group() string {
	group, _, grouped := strings.Cut(byKind()[k].Version, "/")
	if !grouped {
		return ""
	}
	return group
}

// Known reports whether the kind has a row.
func (k Kind) Known() bool {
	_, known := byKind()[k]
	return known
}

// Name is the kind without its API group.
func (k Kind) Name() string {
	name, _, _ := strings.Cut(string(k), ".")
	return name
}

// API is how the API of a kind is named.
type API struct {
	// Version is its group and version, and Resource its name in paths.
	Version  string `json:"v"`
	Resource string `json:"r"`
}

// APIOf returns the API of a kind, from its row or from the State.
func (s State) APIOf(kind Kind) (version, resource string) {
	row, seen := RowOf(kind), s.APIs[kind]
	group, _, _ := strings.Cut(seen.Version, "/")
	if seen.Resource != "" && group != seen.Version {
		seen.Resource += "." + group
	}
	return cmp.Or(row.Version, seen.Version), cmp.Or(row.Resource, seen.Resource, strings.ToLower(kind.Name()))
}
