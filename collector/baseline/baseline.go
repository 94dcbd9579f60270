// Package baseline answers: what was this cluster like before the update?
//
// A [State] has every object that an update may break, by a key that survives a rollout, with
// what is wrong with it. That of a run before the update is the baseline, with which package
// afterupdate compares later ones; package sample reads one. [State.Pack] makes the bytes that are
// stored beside the record of the run, and [Unpack] reads them.
package baseline

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Key identifies an object of a State: never a pod, which does not survive a rollout.
type Key struct {
	Kind Kind
	// Namespace is empty for an object of the cluster.
	Namespace, Name string
}

// String is the key for people: "Deployment shop/web".
func (k Key) String() string {
	if k.Namespace == "" {
		return string(k.Kind) + " " + k.Name
	}
	return string(k.Kind) + " " + k.Namespace + "/" + k.Name
}

// Compare orders keys by kind, namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// Platform reports whether the release, not a user, decides about the object: one of the cluster that only
// operators of the release make, or one in a namespace "openshift", "openshift-*" or "kube-*".
func (k Key) Platform() bool {
	if slices.Contains([]Kind{ClusterVersion, ClusterOperator, MachineConfigPool, IngressController}, k.Kind) {
		return true
	}
	return k.Namespace == "openshift" || strings.HasPrefix(k.Namespace, "openshift-") || strings.HasPrefix(k.Namespace, "kube-")
}

// Kind is the kind of an object, as in its API, but for Alert, ValidatingWebhook and MutatingWebhook.
type Kind string

// The kinds of a State.
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
	// ValidatingWebhook and MutatingWebhook are configurations of webhooks, by the name of their object.
	ValidatingWebhook     Kind = "ValidatingWebhookConfiguration"
	MutatingWebhook       Kind = "MutatingWebhookConfiguration"
	StorageClass          Kind = "StorageClass"
	CSIDriver             Kind = "CSIDriver"
	PersistentVolumeClaim Kind = "PersistentVolumeClaim"
	VolumeAttachment      Kind = "VolumeAttachment"
	ClusterServiceVersion Kind = "ClusterServiceVersion"
	Subscription          Kind = "Subscription"
	EgressIP              Kind = "EgressIP"
	EgressFirewall        Kind = "EgressFirewall"
	HostedCluster         Kind = "HostedCluster"
	NodePool              Kind = "NodePool"
	// Alert is a firing alert of severity warning or critical: Name is its alertname, a slash and the severity,
	// Namespace its label.
	Alert Kind = "Alert"
)

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{
		ClusterVersion, ClusterOperator, MachineConfigPool, MachineSet, Node, CSINode, CertificateSigningRequest, Deployment, StatefulSet,
		DaemonSet, ReplicationController, Service, Route, IngressController, APIService, CustomResourceDefinition, ValidatingWebhook,
		MutatingWebhook, StorageClass, CSIDriver, PersistentVolumeClaim, VolumeAttachment, ClusterServiceVersion, Subscription, EgressIP,
		EgressFirewall, HostedCluster, NodePool, Alert,
	}
}

// State is the state of one cluster at one time.
type State struct {
	// Taken is when it was read, by the clock of the cluster; of a baseline, when the reading had ended.
	Taken time.Time
	// ClusterID is spec.clusterID of ClusterVersion; Version and Image are the release of its status.desired.
	ClusterID, Version, Image string
	Objects                   map[Key]Object
	// Unread is why a kind was not read, or not completely. What the State lacks of it is unknown.
	Unread map[Kind]string
}

// Object is the state of one object.
type Object struct {
	// Desired and Ready count the replicas of a workload or a MachineSet, the nodes of a pool, and the ready
	// endpoints of a Service, of which Desired is 0.
	Desired, Ready int32
	// Restarts is how often the containers of a workload restarted per pod and day, since each pod began.
	Restarts float64
	// Revision changes when the owner of the object changes it in more than its number of replicas; of a Service, when
	// the pods change that it selects. It is empty where that cannot be known.
	Revision string
	// Generation is metadata.generation, which every change of the spec increases, also one of the number of
	// replicas; 0 where the API has none, or where every update or a controller changes it, too.
	Generation int64
	// Detail is another fact by which kinds are compared: the versions of an operator, the boot ID of a node, the
	// phase of a claim, the revision of the pods of a StatefulSet, the drivers of a CSINode, the Service of an APIService
	// and the last one of the webhooks of a configuration as NAMESPACE/NAME, the node for which a kubelet requests a
	// certificate or [AnyNode], and [Ephemeral] of a Service.
	Detail string
	// Problems are sorted by reason, one of each. None means that the object is good.
	Problems []Problem
}

// Problem is one thing that is wrong with an object.
type Problem struct {
	// Reason is in CamelCase.
	Reason string
	// Since is since when, by the object itself; zero where it does not state that. A packed State does not have it.
	Since time.Time
	// Message is a clause about it, such as "2 of 3 pods are ready". A packed State does not have it.
	Message string
	// Node is where, for a problem of pods of one node; empty for others. A packed State does not have it.
	Node string
}

// NoEndpoints is the reason of a Service that selects no pod, and of a webhook by its Service: it may be scaled to none
// by choice.
const NoEndpoints = "NoEndpoints"

// Ephemeral is the Detail of a Service that selects only pods which nothing makes again: those of a Job, which ends, and
// those without an owner, which a drain deletes for good.
const Ephemeral = "ephemeral"

// AnyNode is the Detail of the first CertificateSigningRequest of a kubelet, which does not state its node.
const AnyNode = "*"

// Problem is the problem of that reason; false if the object does not have it.
func (o Object) Problem(reason string) (Problem, bool) {
	at := slices.IndexFunc(o.Problems, func(p Problem) bool { return p.Reason == reason })
	if at < 0 {
		return Problem{}, false
	}
	return o.Problems[at], true
}

// Add adds a problem, of which the first of each reason is kept.
func (o *Object) Add(found Problem) {
	at, exists := slices.BinarySearchFunc(o.Problems, found.Reason, func(p Problem, reason string) int { return cmp.Compare(p.Reason, reason) })
	if !exists {
		o.Problems = slices.Insert(o.Problems, at, found)
	}
}

// Keys are the keys of all objects, sorted.
func (s State) Keys() []Key {
	keys := make([]Key, 0, len(s.Objects))
	for key := range s.Objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, Key.Compare)
	return keys
}
