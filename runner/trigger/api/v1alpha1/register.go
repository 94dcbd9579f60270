package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names of the API.
const (
	Group    = "preflight.openshift.io"
	Version  = "v1alpha1"
	Resource = "updatepreflights"
	Kind     = "UpdatePreflight"
)

// GroupVersion is the group and the version of the API.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme adds the types of the API to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &UpdatePreflight{}, &UpdatePreflightList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
