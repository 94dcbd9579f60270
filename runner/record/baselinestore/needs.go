package baselinestore

import (
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// Needs are the permissions for Put and PutJudgement, including ReadNeeds. Those of package recordstore for a run have
// them all.
func Needs() access.Needs {
	request := mapsRequest()
	return access.Needs{Required: access.Verbs(request, "get", "list", "create", "update"), Optional: ReadNeeds().Optional}
}

// ReadNeeds are the permissions for Get, Before, Judgement and Judgements. Without the optional one, nothing that is
// stored counts.
func ReadNeeds() access.Needs {
	return access.Needs{Required: access.Verbs(mapsRequest(), "get", "list"), Optional: recordstore.ReadNeeds().Optional}
}

func mapsRequest() access.Request {
	return access.Request{Resource: "configmaps", Namespace: record.Namespace}
}
