// Package admission answers: to which webhooks and policies does the API server submit the requests that an update
// makes?
//
// It is pure: [Requests] builds the requests from objects that were read before, and [Matcher] matches them with
// the API server's own library. Only the metadata of objects is known, and the users are OpenShift's controllers.
// A match that depends on more, such as a condition on the spec of a pod, is [Uncertain].
package admission

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Request is one request that an update makes of the API server.
type Request struct {
	// Action describes the request as an infinitive without "to", such as: create pod "a" in namespace "b".
	Action string

	attributes apiadmission.Attributes
	// complete is true if the object has the whole metadata of the request.
	complete bool
	// userUnknown is true if the user may differ from the user in the attributes.
	userUnknown bool
}

// Group is requests that differ only in their objects and users.
type Group []Request

type operation struct {
	verb        apiadmission.Operation
	resource    schema.GroupVersionResource
	subresource string
	// kind is the kind of the request's object, which can differ from the kind of the resource.
	kind   schema.GroupVersionKind
	action string
}

// request makes one request for an object; object is the metadata that the API server receives.
func (o operation) request(object metav1.PartialObjectMetadata, by user.Info) Request {
	object.TypeMeta = metav1.TypeMeta{APIVersion: o.kind.GroupVersion().String(), Kind: o.kind.Kind}
	var current, old runtime.Object
	if o.verb != apiadmission.Delete {
		current = &object
	}
	if o.verb != apiadmission.Create {
		old = &object
	}
	action := fmt.Sprintf("%s %q", o.action, object.Name)
	if object.Namespace != "" {
		action += fmt.Sprintf(" in namespace %q", object.Namespace)
	}
	return Request{Action: action, complete: true, attributes: apiadmission.NewAttributesRecord(
		current, old, o.kind, object.Namespace, object.Name, o.resource, o.subresource, o.verb, nil, false, by)}
}

func pods() schema.GroupVersionResource  { return corev1.SchemeGroupVersion.WithResource("pods") }
func nodes() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("nodes") }
func pod() schema.GroupVersionKind       { return corev1.SchemeGroupVersion.WithKind("Pod") }
func node() schema.GroupVersionKind      { return corev1.SchemeGroupVersion.WithKind("Node") }

// CreatePods are the requests that create pods like these again, by their controllers.
func CreatePods(like []metav1.PartialObjectMetadata, nodeName string) Group {
	create := operation{verb: apiadmission.Create, resource: pods(), kind: pod(), action: "create a pod like"}
	group := make(Group, 0, len(like))
	for i := range like {
		by, ok := creatorOf(&like[i], nodeName)
		request := create.request(like[i], by)
		request.userUnknown = !ok
		group = append(group, request)
	}
	return group
}

// creatorOf is the user that creates a pod: its controller in the controller manager, or
// the kubelet for a mirror of a static pod; false for any other.
func creatorOf(created *metav1.PartialObjectMetadata, nodeName string) (user.Info, bool) {
	unknown := account(created.Namespace, "default")
	owner := metav1.GetControllerOfNoCopy(created)
	if owner == nil {
		return unknown, false
	}
	controllers := map[schema.GroupVersionKind]string{
		appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):            "replicaset-controller",
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"):           "statefulset-controller",
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"):             "daemon-set-controller",
		batchv1.SchemeGroupVersion.WithKind("Job"):                  "job-controller",
		corev1.SchemeGroupVersion.WithKind("ReplicationController"): "replication-controller",
	}
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	if kind == node() {
		return kubelet(nodeName), true
	}
	if name, ok := controllers[kind]; ok {
		return account("kube-system", name), true
	}
	return unknown, false
}

// BindPods are the requests of the scheduler for these pods.
func BindPods(bound []metav1.PartialObjectMetadata) Group {
	bind := operation{
		verb: apiadmission.Create, resource: pods(), subresource: "binding", kind: corev1.SchemeGroupVersion.WithKind("Binding"),
		action: "bind pod",
	}
	scheduler := &user.DefaultInfo{Name: user.KubeScheduler, Groups: []string{user.AllAuthenticated}}
	return unlabeled(bind, bound, scheduler)
}

// EvictPods are the requests of a drain for these pods.
func EvictPods(evicted []metav1.PartialObjectMetadata) Group {
	evict := operation{
		verb: apiadmission.Create, resource: pods(), subresource: "eviction", kind: policyv1.SchemeGroupVersion.WithKind("Eviction"),
		action: "evict pod",
	}
	return unlabeled(evict, evicted, account(machineConfigNamespace, "machine-config-controller"))
}

// unlabeled are requests with an object that has the name of a pod, and not its labels.
func unlabeled(o operation, named []metav1.PartialObjectMetadata, by user.Info) Group {
	group := make(Group, 0, len(named))
	for i := range named {
		object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: named[i].Namespace, Name: named[i].Name}}
		group = append(group, o.request(object, by))
	}
	return group
}

// ReportPods are the requests of the kubelet on the status of these pods.
func ReportPods(reported []metav1.PartialObjectMetadata, nodeName string) Group {
	report := operation{verb: apiadmission.Update, resource: pods(), subresource: "status", kind: pod(), action: "update the status of pod"}
	return each(report, reported, kubelet(nodeName))
}

// DeletePods are the requests of the kubelet that end the deletion of these pods.
func DeletePods(deleted []metav1.PartialObjectMetadata, nodeName string) Group {
	remove := operation{verb: apiadmission.Delete, resource: pods(), kind: pod(), action: "delete the evicted pod"}
	return each(remove, deleted, kubelet(nodeName))
}

// CordonNodes are the requests that cordon these nodes.
func CordonNodes(cordoned []metav1.PartialObjectMetadata) Group {
	cordon := operation{verb: apiadmission.Update, resource: nodes(), kind: node(), action: "cordon node"}
	return each(cordon, cordoned, account(machineConfigNamespace, "machine-config-controller"))
}

// ReportNodes are the requests of the kubelets on the status of these nodes.
func ReportNodes(reported []metav1.PartialObjectMetadata) Group {
	report := operation{verb: apiadmission.Update, resource: nodes(), subresource: "status", kind: node(), action: "update the status of node"}
	group := make(Group, 0, len(reported))
	for i := range reported {
		group = append(group, report.request(reported[i], kubelet(reported[i].Name)))
	}
	return group
}

// RenewLeases are the requests by which kubelets renew the leases of these nodes.
func RenewLeases(renewed []metav1.PartialObjectMetadata) Group {
	renew := operation{
		verb: apiadmission.Update, resource: coordinationv1.SchemeGroupVersion.WithResource("leases"),
		kind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), action: "renew lease",
	}
	group := make(Group, 0, len(renewed))
	for i := range renewed {
		lease := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: renewed[i].Name}}
		group = append(group, renew.request(lease, kubelet(renewed[i].Name)))
	}
	return group
}

// UpdateDefinitions returns the requests by which the cluster-version operator updates CustomResourceDefinitions,
// given only their names.
func UpdateDefinitions(names ...string) Group {
	update := operation{
		verb: apiadmission.Update, resource: apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"),
		kind: apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), action: "update CustomResourceDefinition",
	}
	group := make(Group, 0, len(names))
	for _, name := range names {
		request := update.request(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}, versionOperator())
		request.complete = false
		group = append(group, request)
	}
	return group
}

// UpdateOperators are the requests by which the cluster-version operator, and the
// operators themselves for the subresource "status", update ClusterOperators.
func UpdateOperators(subresource string, operators []metav1.PartialObjectMetadata) Group {
	group := schema.GroupVersion{Group: "config.openshift.io", Version: "v1"}
	update := operation{
		verb: apiadmission.Update, resource: group.WithResource("clusteroperators"), subresource: subresource,
		kind: group.WithKind("ClusterOperator"), action: "update ClusterOperator",
	}
	if subresource == "status" {
		update.action = "update the status of ClusterOperator"
	}
	requests := each(update, operators, versionOperator())
	for i := range requests {
		requests[i].userUnknown = subresource == "status"
	}
	return requests
}

func each(o operation, objects []metav1.PartialObjectMetadata, by user.Info) Group {
	group := make(Group, 0, len(objects))
	for i := range objects {
		group = append(group, o.request(objects[i], by))
	}
	return group
}

const machineConfigNamespace = "openshift-machine-config-operator"

func versionOperator() user.Info { return account("openshift-cluster-version", "default") }

func account(namespace, name string) user.Info {
	groups := append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated)
	return &user.DefaultInfo{Name: serviceaccount.MakeUsername(namespace, name), Groups: groups}
}

func kubelet(nodeName string) user.Info {
	return &user.DefaultInfo{Name: "system:node:" + nodeName, Groups: []string{user.NodesGroup, user.AllAuthenticated}}
}
