package hub

import (
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

const objectGroup, objectKind = v1alpha1.Group, v1alpha1.Kind

// values are the scalar values that a ManifestWork brings from the status of an UpdatePreflight.
type values struct {
	phase, decision, version, image, causes, message, validUntil, reportTime, attestation string
	updated, updatedSince, updatedReason, updatedMessage                                  string
	after, afterSince, afterReason, afterMessage, statement                               string
}

// Path is a feedback rule of a ManifestWork: the name of a value, and its JSON path.
type Path struct{ Name, Path string }

// Feedback are the feedback rules that the ManifestWork of an UpdatePreflight needs.
func Feedback() []Path {
	var paths []Path
	for _, each := range new(values).rules() {
		paths = append(paths, each.Path)
	}
	return paths
}

type rule struct {
	Path

	to *string
}

func (v *values) rules() []rule {
	condition := func(kind, field string) string { return `.status.conditions[?(@.type=="` + kind + `")].` + field }
	return []rule{
		{Path{"phase", ".status.phase"}, &v.phase},
		{Path{"decision", ".status.decision"}, &v.decision},
		{Path{"version", ".status.target.version"}, &v.version},
		{Path{"image", ".status.target.image"}, &v.image},
		{Path{"causes", ".status.causes"}, &v.causes},
		{Path{"message", condition(v1alpha1.ConditionReady, "message")}, &v.message},
		{Path{"validUntil", ".status.validUntil"}, &v.validUntil},
		{Path{"reportTime", ".status.reportTime"}, &v.reportTime},
		{Path{"attestation", ".status.attestation"}, &v.attestation},
		{Path{"updated", condition(v1alpha1.ConditionUpdated, "status")}, &v.updated},
		{Path{"updatedSince", condition(v1alpha1.ConditionUpdated, "lastTransitionTime")}, &v.updatedSince},
		{Path{"updatedReason", condition(v1alpha1.ConditionUpdated, "reason")}, &v.updatedReason},
		{Path{"updatedMessage", condition(v1alpha1.ConditionUpdated, "message")}, &v.updatedMessage},
		{Path{"afterUpdate", condition(v1alpha1.ConditionAfterUpdate, "status")}, &v.after},
		{Path{"afterUpdateSince", condition(v1alpha1.ConditionAfterUpdate, "lastTransitionTime")}, &v.afterSince},
		{Path{"afterUpdateReason", condition(v1alpha1.ConditionAfterUpdate, "reason")}, &v.afterReason},
		{Path{"afterUpdateMessage", condition(v1alpha1.ConditionAfterUpdate, "message")}, &v.afterMessage},
		{Path{"afterUpdateStatement", ".status.afterUpdate.statement"}, &v.statement},
	}
}

// set takes the values of the feedback; others than strings and those with unknown names are ignored.
func (v *values) set(feedback []workv1.FeedbackValue) {
	known := map[string]*string{}
	for _, each := range v.rules() {
		known[each.Name] = each.to
	}
	for _, value := range feedback {
		if to := known[value.Name]; to != nil && value.Value.String != nil {
			*to = *value.Value.String
		}
	}
}
