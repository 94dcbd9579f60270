package controller

import (
	"maps"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// name is the name of the one ClusterVersion.
const name = "version"

// The annotations of a node by which the machine-config operator requests a drain and
// reports that it was done.
const (
	desiredDrain = "machineconfiguration.openshift.io/desiredDrain"
	lastDrain    = "machineconfiguration.openshift.io/lastAppliedDrain"
)

// The namespaces of the ConfigMaps with the admin gates and their acknowledgements.
const (
	acksNamespace  = "openshift-config"
	gatesNamespace = published.Namespace
)

// The names of those ConfigMaps.
const (
	acksName  = "admin-acks"
	gatesName = "admin-gates"
)

func metadataOf(group, kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	version := schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	object.SetGroupVersionKind(version)
	return object
}

func records() *metav1.PartialObjectMetadata { return metadataOf("", "ConfigMap") }
func definitions() *metav1.PartialObjectMetadata {
	return metadataOf("apiextensions.k8s.io", "CustomResourceDefinition")
}

// Cache is what the manager's cache is to hold: the ClusterVersion, what matters of nodes and
// ClusterOperators, and the metadata of other objects.
func Cache() (cache.Options, error) {
	recorded, err := labels.NewRequirement(record.Label, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	return cache.Options{
		DefaultTransform: trim,
		ByObject: map[client.Object]cache.ByObject{
			&configv1.ClusterVersion{}: {Field: fields.OneTermEqualSelector("metadata.name", name)},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
				record.Namespace: {LabelSelector: labels.NewSelector().Add(*recorded)},
				acksNamespace:    {FieldSelector: fields.OneTermEqualSelector("metadata.name", acksName)},
				gatesNamespace:   {}, // a selector cannot have the names of two
			}},
		},
	}, nil
}

// trim drops metadata that is not used, which is most of a CustomResourceDefinition's.
func trim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
		kept := accessor.GetAnnotations()
		maps.DeleteFunc(kept, func(key, _ string) bool { return key != desiredDrain && key != lastDrain })
		accessor.SetAnnotations(kept)
	}
	switch object := object.(type) {
	case *corev1.Node:
		trimNode(object)
	case *configv1.ClusterOperator:
		trimOperator(object)
	}
	return object, nil
}

// trimNode keeps what built-in checks judge of a node, without the times at which it
// reports.
func trimNode(node *corev1.Node) {
	status := corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: node.Status.NodeInfo.KubeletVersion}}
	for _, condition := range node.Status.Conditions {
		status.Conditions = append(status.Conditions, corev1.NodeCondition{Type: condition.Type, Status: condition.Status})
	}
	node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints}
	node.Status = status
}

// trimOperator keeps what built-in checks judge of a ClusterOperator.
func trimOperator(operator *configv1.ClusterOperator) {
	status := configv1.ClusterOperatorStatus{Versions: operator.Status.Versions}
	for _, condition := range operator.Status.Conditions {
		status.Conditions = append(status.Conditions, configv1.ClusterOperatorStatusCondition{Type: condition.Type, Status: condition.Status, Reason: condition.Reason})
	}
	operator.Spec, operator.Status = configv1.ClusterOperatorSpec{}, status
}

// draining is true while the machine-config operator drains the node.
func draining(node corev1.Node) bool {
	desired := node.Annotations[desiredDrain]
	return strings.HasPrefix(desired, "drain-") && desired != node.Annotations[lastDrain]
}

// listTimeout bounds the first list of UpdatePreflights, which fails while
// the API server does not serve them.
const listTimeout = 10 * time.Second
