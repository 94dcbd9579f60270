// Package baseline answers: what was this cluster like before the update?
//
// A [State] contains every object that an update may break, by a key that survives a rollout, with its problems.
// The state of a run before the update is the baseline, with which package afterupdate compares later states;
// package sample reads a state. [State.Pack] returns the bytes that are stored beside the record of the run, and
// [Unpack] reads them.
package baseline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Key identifies an object of a State: never a pod, which does not survive a rollout.
type Key struct {
	Kind Kind `json:"kind"`
	// Namespace is empty for an object of the cluster.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is the key for people: "Deployment shop/web".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind.Name() + " " + k.Name
	}
	return k.Kind.Name() + " " + k.Namespace + "/" + k.Name
}

// Compare orders keys by kind, namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Kind, other.Kind), cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// Platform reports whether the name of the object is not a secret of a user: a cluster-scoped object that only
// operators of the release create, or an object in a namespace "openshift", "openshift-*" or "kube-*". It does not
// prove who owns the object: see Object.Release.
func (k Key) Platform() bool {
	if slices.Contains([]Kind{ClusterVersion, ClusterOperator, MachineConfigPool, IngressController}, k.Kind) {
		return true
	}
	return k.Namespace == "openshift" || strings.HasPrefix(k.Namespace, "openshift-") || strings.HasPrefix(k.Namespace, "kube-")
}

// State is the state of one cluster at one time.
type State struct {
	// Taken is when it was read, by the clock of the cluster; of a baseline, when the reading had ended.
	Taken time.Time
	// ClusterID is spec.clusterID of ClusterVersion; Version and Image are the release of its status.desired.
	ClusterID, Version, Image string
	Objects                   map[Key]Object
	// Unread says why a kind was not read, or not completely. Objects of the kind that the State lacks are unknown.
	Unread map[Kind]string
	// APIs are the APIs of the kinds without a row whose objects were read, including kinds without objects.
	APIs map[Kind]API
	// Occupied are the kinds of APIs that have objects, and Forbidden the kinds that the user may not list, which are
	// Unread as well. A packed State has neither.
	Occupied, Forbidden map[Kind]bool
	// Leaving are the namespaces that are being deleted; their objects are omitted. Named maps the objects without a
	// row that a ClusterOperator names as its own to the name of the operator. A packed State has neither.
	Leaving map[string]bool
	// Deleting are the objects that are being deleted, which are left out, too.
	Deleting map[Key]bool
	Named    map[Key]string
}

// Object is the state of one object.
type Object struct {
	// Desired and Ready count the replicas of a workload or a MachineSet, the nodes of a pool, the instances of an alert, and the
	// ready endpoints of a Service, of which Desired is 0.
	Desired, Ready int32
	// Restarts is how often the containers of a workload restarted per pod and day, since each pod began.
	Restarts float64
	// Revision changes when the owner of the object changes more than its number of replicas; for a Service, when the
	// pods change that it selects. It is empty if unknown.
	Revision string
	// Generation is metadata.generation, which every change of the spec increases, including the number of replicas; 0
	// if the API has none, or if updates or controllers change it, too.
	Generation int64
	// Detail is another fact by which kinds are compared: the phase of a kind without a row, the versions of an operator,
	// the boot ID of a node, the
	// phase of a claim, the revision of the pods of a StatefulSet, the drivers of a CSINode, the Service of an APIService
	// and the last one of the webhooks of a configuration as NAMESPACE/NAME, the node for which a kubelet requests a
	// certificate or [AnyNode], and [Ephemeral] of a Service.
	Detail string
	// UID identifies the object by a digest: one that was deleted and made again has another one.
	UID string
	// Release is true for an object that the release decides about, not a user (package ownership).
	Release bool
	// Owner is the controller that created it; the zero value for none. Refs are the objects that it depends on: the
	// objects that it selects or names.
	Owner Key
	Refs  []Key
	// Recovered is when it became good, according to the object itself; zero if it does not record that. A packed
	// State does not contain it.
	Recovered time.Time
	// Restarted is how often the containers of its pods have restarted. A packed State does not contain it.
	Restarted int64
	// Cordoned is true for a node that is unschedulable. A packed State does not contain it.
	Cordoned bool
	// Problems are sorted by reason, one of each. None means that the object is good.
	Problems []Problem
}

// Problem is one thing that is wrong with an object.
type Problem struct {
	// Reason is in CamelCase.
	Reason string
	// Since is when the problem began, according to the object itself; zero if it does not record that. A packed State
	// does not contain it.
	Since time.Time
	// Message is a clause about it, such as "2 of 3 pods are ready". A packed State does not contain it.
	Message string
	// Node is the node of a problem of pods on one node; empty for others. A packed State does not contain it.
	Node string
}

// NoEndpoints is the reason of a Service that selects no pod, and of a webhook by its Service: it may be scaled to none
// by choice.
const NoEndpoints = "NoEndpoints"

// Ephemeral is the Detail of a Service that selects only pods that no controller recreates: the pods of a Job,
// which ends, and pods without an owner, which a drain deletes for good.
const Ephemeral = "ephemeral"

// Default is the Detail of the StorageClass for claims that name none, and Automatic the Detail of a Subscription
// whose operator OLM updates by itself.
const (
	Default   = "default"
	Automatic = "Automatic"
)

// AnyNode is the Detail of the first CertificateSigningRequest of a kubelet, which does not name its node.
const AnyNode = "*"

// Problem is the problem of that reason; false if the object does not have it.
func (o Object) Problem(reason string) (Problem, bool) {
	at := slices.IndexFunc(o.Problems, func(p Problem) bool { return p.Reason == reason })
	if at < 0 {
		return Problem{}, false
	}
	return o.Problems[at], true
}

// Add adds a problem; only the first one of each reason is kept.
func (o *Object) Add(found Problem) {
	at, exists := slices.BinarySearchFunc(o.Problems, found.Reason,
		func(p Problem, reason string) int { return cmp.Compare(p.Reason, reason) })
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

// redactedCause is why a kind is not read in a redacted State: the cause may name what was not read.
const redactedCause = "it was not read completely"

// Redacted returns the State with hashes in place of the names of users' namespaces and of their objects, and of
// facts that contain names; problems have neither messages nor nodes, and Unread has no causes. A later State that
// is redacted with the same hash has the same keys and facts, so the two can be compared; names of users cannot be
// read from it. Objects of the cluster, such as its nodes, keep their names.
func (s State) Redacted(hash func(name string) string) State {
	redacted := s
	redacted.Objects = make(map[Key]Object, len(s.Objects))
	for key, object := range s.Objects {
		redacted.Objects[key.Redacted(hash)] = object.redacted(key, hash)
	}
	redacted.Leaving = make(map[string]bool, len(s.Leaving))
	for namespace := range s.Leaving {
		redacted.Leaving[Key{Kind: Namespace, Name: namespace}.Redacted(hash).Name] = true
	}
	redacted.Deleting = make(map[Key]bool, len(s.Deleting))
	for key := range s.Deleting {
		redacted.Deleting[key.Redacted(hash)] = true
	}
	redacted.Named = make(map[Key]string, len(s.Named))
	for key, operator := range s.Named {
		redacted.Named[key.Redacted(hash)] = operator
	}
	redacted.Unread = nil
	for kind := range s.Unread {
		if redacted.Unread == nil {
			redacted.Unread = map[Kind]string{}
		}
		redacted.Unread[kind] = redactedCause
	}
	return redacted
}

// Redacted returns the key with its namespace and name replaced, if the namespace belongs to a user.
func (k Key) Redacted(hash func(name string) string) Key {
	if !k.ofUser() {
		if name, labels, found := strings.Cut(k.Name, labelsOfAlert); found && k.Kind == Alert { // which may name what it is about
			k.Name = name + labelsOfAlert + hash(labels)
		}
		return k
	}
	if k.Kind == Namespace {
		return Key{Kind: k.Kind, Name: hash(k.Name)}
	}
	return Key{Kind: k.Kind, Namespace: hash(k.Namespace), Name: hash(k.Namespace + "/" + k.Name)}
}

// labelsOfAlert begins the labels in the name of an alert.
const labelsOfAlert = "{"

func (k Key) ofUser() bool {
	if k.Kind == Namespace {
		return !Key{Namespace: k.Name}.Platform()
	}
	return k.Namespace != "" && !k.Platform()
}

// redacted replaces the facts that are made of names, and digests without a key of what can be guessed.
func (o Object) redacted(key Key, hash func(name string) string) Object {
	if key.ofUser() {
		if o.Detail != "" && RowOf(key.Kind).Named {
			o.Detail = hash(key.Namespace + "/" + o.Detail)
		}
		if _, err := strconv.ParseUint(o.Revision, 10, 64); err != nil && o.Revision != "" {
			o.Revision = hash(key.Namespace + "/" + o.Revision)
		}
	}
	// objects of the cluster, with the name of a Service
	if namespace, name, found := strings.Cut(o.Detail, "/"); found && RowOf(key.Kind).Served {
		service := Key{Kind: Service, Namespace: namespace, Name: name}.Redacted(hash)
		o.Detail = service.Namespace + "/" + service.Name
	}
	o.Owner, o.Refs = o.Owner.Redacted(hash), slices.Clone(o.Refs)
	for at := range o.Refs {
		o.Refs[at] = o.Refs[at].Redacted(hash)
	}
	o.Problems = slices.Clone(o.Problems)
	for at := range o.Problems {
		o.Problems[at].Message, o.Problems[at].Node = "", ""
	}
	return o
}
