package after

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is how an API server serves the objects of a kind.
type Kind struct {
	// API is the group and the version, Plural the resource.
	API, Plural string
	// Cluster is true for objects without a namespace.
	Cluster bool
	// Status is true for objects with a status. Bare is true for a status without a subresource, as Argo CD has it.
	Status, Bare bool
	// Custom is true for a kind of a CustomResourceDefinition.
	Custom bool
}

// plain is the kind without the group that distinguishes it from another one.
func (r Ref) plain() string {
	kind, _, _ := strings.Cut(r.Kind, ".")
	return kind
}

func (k Kind) resource(kind string) metav1.APIResource {
	of := schema.FromAPIVersionAndKind(k.API, Ref{Kind: kind}.plain())
	return metav1.APIResource{Group: of.Group, Version: of.Version, Kind: of.Kind, Name: k.Plural, Namespaced: !k.Cluster}
}

// plural is the resource of a kind that is served.
func (w *World) plural(of schema.GroupVersionKind) string {
	for kind, served := range w.kinds {
		if served.resource(kind).Kind == of.Kind && served.API == of.GroupVersion().String() {
			return served.Plural
		}
	}
	panic(fmt.Sprintf("%v is not served", of))
}

// Serves reports whether objects of a kind can be made.
func (w *World) Serves(kind string) bool {
	_, served := w.kinds[kind]
	return served
}

// Register has the cluster serve a kind: a custom one with its CustomResourceDefinition, which is returned.
func (w *World) Register(kind string, of Kind) Ref {
	w.kinds[kind] = of
	resource := of.resource(kind)
	definition := Ref{Kind: "CustomResourceDefinition", Name: resource.Name + "." + resource.Group}
	if of.Custom {
		w.Set(definition, definitionOf(resource, of))
	}
	return definition
}

// Unregister deletes the CustomResourceDefinition of a kind, so that it is not served any more.
func (w *World) Unregister(kind string) {
	resource := w.kinds[kind].resource(kind)
	w.Delete(Ref{Kind: "CustomResourceDefinition", Name: resource.Name + "." + resource.Group})
	delete(w.kinds, kind)
}

// definitionOf is the content of the CustomResourceDefinition of a resource.
func definitionOf(resource metav1.APIResource, of Kind) string {
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	properties, scope := map[string]any{
		"apiVersion": map[string]any{"type": "string"}, "kind": map[string]any{"type": "string"},
		"metadata": map[string]any{"type": "object"}, "spec": open,
	}, "Namespaced"
	version := map[string]any{"name": resource.Version, "served": true, "storage": true}
	if of.Cluster {
		scope = "Cluster"
	}
	if of.Status {
		properties["status"] = open
	}
	if of.Status && !of.Bare {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	}
	version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}}
	names := map[string]any{
		"kind": resource.Kind, "listKind": resource.Kind + "List", "plural": resource.Name,
		"singular": strings.ToLower(resource.Kind),
	}
	text, err := json.Marshal(map[string]any{
		"spec": map[string]any{
			"group": resource.Group, "scope": scope, "names": names, "versions": []any{version},
			"conversion": map[string]any{"strategy": "None"},
		},
		"status": map[string]any{"acceptedNames": names, "storedVersions": []any{resource.Version}, "conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"},
			map[string]any{"type": "Established", "status": "True", "reason": "InitialNamesAccepted"},
		}},
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// builtIn are the kinds of Kubernetes and of OpenShift. The definitions of those of OpenShift are objects of [New].
func builtIn() map[string]Kind {
	all := map[string]Kind{}
	for kind, api := range map[string]string{
		"Node": "v1", "Namespace": "v1", "PersistentVolume": "v1", "APIService": "apiregistration.k8s.io/v1",
		"CustomResourceDefinition":       "apiextensions.k8s.io/v1",
		"ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
		"StorageClass": "storage.k8s.io/v1",
		"CSIDriver":    "storage.k8s.io/v1", "CSINode": "storage.k8s.io/v1", "VolumeAttachment": "storage.k8s.io/v1",
		"CertificateSigningRequest": "certificates.k8s.io/v1",
		"ClusterVersion":            "config.openshift.io/v1", "ClusterOperator": "config.openshift.io/v1",
		"Infrastructure":    "config.openshift.io/v1",
		"Network":           "config.openshift.io/v1",
		"MachineConfigPool": "machineconfiguration.openshift.io/v1", "EgressIP": "k8s.ovn.org/v1",
	} {
		all[kind] = Kind{API: api, Plural: guessed(kind), Cluster: true, Status: true}
	}
	for kind, api := range map[string]string{
		"Pod": "v1", "Service": "v1", "PersistentVolumeClaim": "v1", "ReplicationController": "v1", "ResourceQuota": "v1", "Secret": "v1",
		"ConfigMap": "v1", "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1",
		"DaemonSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1", "HorizontalPodAutoscaler": "autoscaling/v2",
		"PodDisruptionBudget": "policy/v1", "Ingress": "networking.k8s.io/v1",
		"EndpointSlice": "discovery.k8s.io/v1", "Route": "route.openshift.io/v1", "ImageStream": "image.openshift.io/v1",
		"IngressController": "operator.openshift.io/v1",
		"MachineSet":        "machine.openshift.io/v1beta1", "Machine": "machine.openshift.io/v1beta1",
		"ClusterServiceVersion": "operators.coreos.com/v1alpha1", "Subscription": "operators.coreos.com/v1alpha1",
		"EgressFirewall": "k8s.ovn.org/v1",
		"HostedCluster":  "hypershift.openshift.io/v1beta1", "NodePool": "hypershift.openshift.io/v1beta1",
	} {
		all[kind] = Kind{API: api, Plural: guessed(kind), Status: true}
	}
	for _, kind := range []string{
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "StorageClass", "CSIDriver", "CSINode",
		"EndpointSlice", "Secret", "ConfigMap",
	} {
		of := all[kind]
		of.Status = false
		all[kind] = of
	}
	for _, kind := range definedByRelease() {
		of := all[kind]
		of.Custom = true
		all[kind] = of
	}
	return all
}

// guessed is the resource of a kind without an irregular plural.
func guessed(kind string) string {
	switch name := strings.ToLower(kind); {
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	case strings.HasSuffix(name, "s"):
		return name + "es"
	default:
		return name + "s"
	}
}

// definedByRelease are the kinds whose definitions are manifests of the release, without those of which the recordings of
// the tests have no object.
func definedByRelease() []string {
	return []string{
		"ClusterVersion", "ClusterOperator", "MachineConfigPool", "IngressController", "MachineSet", "Machine",
		"ClusterServiceVersion", "Subscription", "EgressIP", "EgressFirewall",
	}
}

// Manager is the manager of fields of what the cluster-version operator writes.
const Manager = "cluster-version-operator"

// Released marks an object as one that the cluster-version operator writes: it owns it through ClusterVersion, and manages
// its fields.
func (w *World) Released(ref Ref) {
	version := Ref{Kind: "ClusterVersion", Name: "version"}
	w.Put(ref, "metadata.ownerReferences", []any{map[string]any{
		"apiVersion": w.kinds[version.Kind].API, "kind": version.Kind, "name": version.Name, "uid": string(w.Object(version).GetUID()),
		"controller": true, "blockOwnerDeletion": true,
	}})
	if ref.Kind == "CustomResourceDefinition" {
		w.Annotate(ref, map[string]string{"include.release.openshift.io/self-managed-high-availability": "true"})
	}
	w.Managed(ref, Manager, "Update", 30*24*time.Hour)
}

// Managed records that a manager wrote the fields of an object last then.
func (w *World) Managed(ref Ref, manager, operation string, ago time.Duration) {
	object := w.Object(ref)
	at := metav1.NewTime(w.noon.Add(-ago))
	managers := slices.DeleteFunc(object.GetManagedFields(), func(each metav1.ManagedFieldsEntry) bool { return each.Manager == manager })
	object.SetManagedFields(append(managers, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: object.GetAPIVersion(), Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
	}))
}

// related are the namespaces and objects of each ClusterOperator, as it names them: "group/resource/name".
func related() map[string][]string {
	return map[string][]string{
		"authentication": {"/namespaces/openshift-authentication", "/namespaces/openshift-authentication-operator"},
		"dns":            {"/namespaces/openshift-dns-operator", "/namespaces/openshift-dns"},
		"etcd":           {"/namespaces/openshift-etcd-operator", "/namespaces/openshift-etcd"},
		"ingress": {
			"/namespaces/openshift-ingress-operator", "operator.openshift.io/ingresscontrollers/",
			"/namespaces/openshift-ingress", "/namespaces/openshift-ingress-canary",
		},
		"kube-apiserver": {"/namespaces/openshift-kube-apiserver-operator", "/namespaces/openshift-kube-apiserver"},
		"machine-api":    {"/namespaces/openshift-machine-api", "machine.openshift.io/machines/", "machine.openshift.io/machinesets/"},
		"machine-config": {
			"/namespaces/openshift-machine-config-operator", "machineconfiguration.openshift.io/machineconfigpools/",
			"/nodes/",
		},
		"monitoring": {"/namespaces/openshift-monitoring"},
		"network":    {"/namespaces/openshift-ovn-kubernetes", "/namespaces/openshift-multus", "/namespaces/openshift-network-operator"},
		"openshift-apiserver": {
			"/namespaces/openshift-apiserver-operator", "/namespaces/openshift-apiserver",
			"apiregistration.k8s.io/apiservices/v1.apps.openshift.io",
		},
		"storage": {
			"/namespaces/openshift-cluster-storage-operator", "/namespaces/openshift-cluster-csi-drivers",
			"operator.openshift.io/clustercsidrivers/ebs.csi.aws.com",
		},
	}
}

// released adds what proves which objects are of the release.
func (w *World) released() {
	for _, kind := range definedByRelease() {
		definition := w.Register(kind, w.kinds[kind])
		w.Released(definition)
	}
	for operator, names := range related() {
		ref := Ref{Kind: "ClusterOperator", Name: operator}
		var objects []any
		for _, each := range names {
			parts := strings.SplitN(each, "/", 3)
			objects = append(objects, map[string]any{"group": parts[0], "resource": parts[1], "name": parts[2]})
			if home := (Ref{Kind: "Namespace", Name: parts[2]}); parts[1] == "namespaces" {
				w.Set(home, `{"metadata":{"labels":{"openshift.io/cluster-monitoring":"true"}},"status":{"phase":"Active"}}`)
				w.Released(home)
			}
		}
		w.Put(ref, "status.relatedObjects", objects)
		w.Released(ref)
	}
	w.Released(Ref{Kind: "Deployment", Namespace: "openshift-apiserver-operator", Name: "openshift-apiserver-operator"})
	w.Managed(Ref{Kind: "StorageClass", Name: "gp3-csi"}, "aws-ebs-csi-driver-operator", "Update", 30*24*time.Hour)
	w.Managed(Ref{Kind: "StorageClass", Name: "nfs"}, "kubectl-create", "Update", 30*24*time.Hour)
	for _, ref := range slices.Concat(w.All("Deployment"), w.All("StatefulSet"), w.All("DaemonSet"), w.All("Route")) {
		if !strings.HasPrefix(ref.Namespace, "openshift-") {
			w.Managed(ref, "kubectl-client-side-apply", "Update", 30*24*time.Hour)
		}
	}
}
