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

// Requester is the role that creates an UpdatePreflight.
type Requester string

// LabelRequester is the label with the Requester. An object without it, or with another value, belongs to an
// administrator.
const LabelRequester = Group + "/requester"

// The requesters by which the controller labels its own objects, which it deletes when
// their release is neither selected nor offered.
const (
	BySelection Requester = "selected"
	Ahead       Requester = "ahead"
)

// Owned reports whether the controller creates and deletes the object.
func (p *UpdatePreflight) Owned() bool {
	requester := Requester(p.Labels[LabelRequester])
	return requester == BySelection || requester == Ahead
}
