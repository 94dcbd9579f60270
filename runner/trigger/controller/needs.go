package controller

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/hold"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/published"
)

// Needs are the permissions of the controller.
func Needs() access.Needs {
	watched := access.Needs{}
	for _, object := range []access.Request{
		{Group: configv1.GroupName, Resource: "clusterversions"},
		{Resource: "configmaps", Namespace: record.Namespace},
		{Resource: "nodes"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	} {
		watched.Required = append(watched.Required, access.Verbs(object, "list", "watch")...)
	}
	return watched.And(inputNeeds()).And(objectNeeds()).And(upgradeConfigNeeds()).And(published.Needs()).And(runner.RunNeeds(image.PullAll)).And(hold.CancelNeeds())
}

// objectNeeds are the permissions for UpdatePreflights, and for their events, which are
// in the namespace of events about objects without a namespace.
func objectNeeds() access.Needs {
	object := access.Request{Group: v1alpha1.Group, Resource: v1alpha1.Resource}
	status := access.Request{Group: v1alpha1.Group, Resource: v1alpha1.Resource, Subresource: "status"}
	recorded := access.Request{Group: "events.k8s.io", Resource: "events", Namespace: metav1.NamespaceDefault}
	return access.Needs{Required: slices.Concat(
		access.Verbs(object, "list", "watch", "create", "patch", "delete"), access.Verbs(status, "patch"), access.Verbs(recorded, "create", "patch"),
	)}
}
