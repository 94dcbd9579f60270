package guard

import "github.com/openshift/update-preflight/collector/access"

// Needs are the permissions of [Set.Apply] with the choice: to apply the switches that are
// on and the ClusterOperator, and to remove the other switches.
func (c Choice) Needs() access.Needs {
	needs, applied, removed := access.Needs{}, []object{clusterOperator()}, []object{}
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
		needs.Required = append(needs.Required, each.requests("get", "create", "patch")...)
	}
	for _, each := range removed {
		needs.Required = append(needs.Required, each.requests("get", "delete")...)
	}
	return needs
}

// UninstallNeeds are the permissions of [Uninstall].
func UninstallNeeds() access.Needs {
	var needs access.Needs
	for _, each := range all(nil) {
		for _, object := range each.objects {
			needs.Required = append(needs.Required, object.requests("get", "delete")...)
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
		read.namespace = ""
		needs.Optional = append(needs.Optional, read.requests("get")...)
	}
	return needs
}

// requests are those with these verbs for the object and, to patch, for its status.
func (o object) requests(verbs ...string) []access.Request {
	like := access.Request{Group: o.Group, Resource: o.Resource, Namespace: o.namespace, Name: o.name}
	requests := access.Verbs(like, verbs...)
	for _, request := range requests {
		if request.Verb == "patch" && o.hasStatus {
			request.Subresource = "status"
			requests = append(requests, request)
		}
	}
	return requests
}
