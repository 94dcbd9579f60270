package recordstore

import (
	"slices"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/record"
)

// Needs are the permissions to begin, hold and end a run, including ReadNeeds and
// CancelNeeds, where the key of the records exists.
func Needs() access.Needs {
	read := access.Needs{Required: slices.Concat(ReadNeeds().Required, ReadNeeds().Optional)}
	return read.And(CancelNeeds()).And(access.Needs{Required: append(
		access.Verbs(mapsRequest(), "create", "update", "delete"),
		access.Verbs(leasesRequest(), "delete")...,
	)})
}

// KeyNeeds are the permissions to create the key of the records. Without them, and
// without a key, a run writes a record that is not authentic.
//
// A user with these permissions and Needs can read a token of any ServiceAccount in
// Namespace: by a Secret of type service-account-token with the name of the key.
func KeyNeeds() access.Needs {
	return access.Needs{Optional: []access.Request{{Verb: "create", Resource: "secrets", Namespace: record.Namespace}}}
}

// ReadNeeds are the permissions for Get, List, Latest and Follow. Without the optional
// ones, no record is authentic.
func ReadNeeds() access.Needs {
	return access.Needs{
		Required: append(
			access.Verbs(mapsRequest(), "get", "list", "watch"),
			access.Verbs(leasesRequest(), "get", "list", "watch")...,
		),
		Optional: []access.Request{{Verb: "get", Resource: "secrets", Namespace: record.Namespace, Name: KeySecret}},
	}
}

// CancelNeeds are the permissions for Cancel.
func CancelNeeds() access.Needs {
	return access.Needs{Required: append(
		access.Verbs(mapsRequest(), "get", "list"),
		access.Verbs(leasesRequest(), "get", "create", "update")...,
	)}
}

// WatchNeeds are the permissions for Watch, which a single reading does without.
func WatchNeeds() access.Needs {
	request := mapsRequest()
	request.Verb = "watch"
	return access.Needs{Optional: []access.Request{request}}
}

func mapsRequest() access.Request {
	return access.Request{Resource: "configmaps", Namespace: record.Namespace}
}

func leasesRequest() access.Request {
	return access.Request{Group: "coordination.k8s.io", Resource: "leases", Namespace: record.Namespace}
}
