package guard

import (
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

// Needs are the permissions of [Set.Apply] with the choice: to apply the switches that are
// on and the ClusterOperator, and to remove the other switches.
func (c Choice) Needs() access.Needs {
	needs, applied, removed := access.Needs{}, []owned.Object{clusterOperator()}, []owned.Object{}
	if c.Alert {
		applied = append(applied, prometheusRule())
	} else {
		removed = append(removed, prometheusRule())
	}
	if c.Admission != "" {
		applied = append(applied, admissionObjects()...)
	} else {
		removed = append(removed, admissionObjects()...)
	}
	for _, each := range applied {
		needs.Required = append(needs.Required, each.Requests("get", "create", "patch")...)
	}
	for _, each := range removed {
		needs.Required = append(needs.Required, each.Requests("get", "delete")...)
	}
	return needs
}

// UninstallNeeds are the permissions of [Uninstall].
func UninstallNeeds() access.Needs {
	var needs access.Needs
	for _, each := range all(nil) {
		for _, object := range each.objects.All {
			needs.Required = append(needs.Required, object.Requests("get", "delete")...)
		}
	}
	return needs
}

// ReadNeeds are the permissions of [Active], each of which is optional. They are for all
// namespaces, so that they can be granted where the controller is not installed.
func ReadNeeds() access.Needs {
	var needs access.Needs
	for _, each := range all(nil) {
		read := each.effective()
		read.Namespace = ""
		needs.Optional = append(needs.Optional, read.Requests("get")...)
	}
	return needs
}
