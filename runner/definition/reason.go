package definition

import "github.com/openshift/update-preflight/collector/finding"

var (
	reasonDefinitionsAccepted = finding.NewReason("DefinitionsAccepted", finding.Explanation{
		Meaning: "Reported when the cluster accepts all CustomResourceDefinitions of the target, and its objects are valid under them.",
		Cause:   "No rule of the API server is violated.",
	})
	reasonDefinitionsUnread = finding.NewReason("DefinitionsUnread", finding.Explanation{
		Meaning: "Reported when a CustomResourceDefinition or its objects could not be checked.",
		Cause: "The user may not list the objects, there are too many of them, a filter of the manifest is inconclusive, " +
			"or a conversion webhook does not work; the message has the cause for each.",
		Remedy: "Run the preflight as a user who can list the objects: oc adm policy add-cluster-role-to-user " +
			"cluster-reader USER.",
	})
	reasonStoredVersionMissing = finding.NewReason("StoredVersionMissing", finding.Explanation{
		Meaning: "Reported when the target lacks a version in which the cluster may still store objects.",
		Cause: "Status.storedVersions of the CustomResourceDefinition has a version that spec.versions of the target " +
			"lacks, so the API server rejects the target.",
		Remedy: "Rewrite all objects, then remove the version from the status: oc get RESOURCE -A -o json | oc replace -f " +
			"- and oc patch crd NAME --subresource=status --type=merge.",
	})
	reasonIdentityChanged = finding.NewReason("DefinitionIdentityChanged", finding.Explanation{
		Meaning: "Reported when the target changes the scope, the group, the kind or the plural of a " +
			"CustomResourceDefinition.",
		Cause:  "The API server allows no change of these fields.",
		Remedy: "Save the objects, delete the CustomResourceDefinition before the update, and create the objects again after it.",
	})
	reasonPreserveUnknownFields = finding.NewReason("PreserveUnknownFields", finding.Explanation{
		Meaning: "Reported when the target sets spec.preserveUnknownFields.",
		Cause:   "The API server allows it in no CustomResourceDefinition of version v1.",
		Remedy:  "Do not update to this release, and report it to its publisher.",
	})
	reasonDefinitionInvalid = finding.NewReason("DefinitionInvalid", finding.Explanation{
		Meaning: "Reported when a CustomResourceDefinition of the target violates another rule of the API server.",
		Cause:   "The manifest is malformed.",
		Remedy:  "Do not update to this release, and report it to its publisher.",
	})
	reasonRuleCostEstimate = finding.NewReason("RuleCostEstimate", finding.Explanation{
		Meaning: "Reported when the estimated cost of a validation rule is above the limit of the API server.",
		Cause:   "Estimates differ between versions of Kubernetes; that of the cluster may be below the limit.",
		Remedy:  "Check that the cluster accepts the definition: oc replace --dry-run=server -f FILE.",
	})
	reasonServedVersionRemoved = finding.NewReason("ServedVersionRemoved", finding.Explanation{
		Meaning: "Reported when the target no longer serves a version in which clients have written objects.",
		Cause:   "ManagedFields of objects name clients of that version. A client may have moved since its last write.",
		Remedy:  "Move the clients to a version that the target serves.",
	})
	reasonConversionUnavailable = finding.NewReason("ConversionUnavailable", finding.Explanation{
		Meaning: "Reported when the Service of a conversion webhook has no ready endpoint.",
		Cause:   "No pod of the Service is ready, or the target brings the Service.",
		Remedy:  "Start the pods of the Service: oc -n NAMESPACE get service,endpointslices,pods.",
	})
	reasonConversionCAExpired = finding.NewReason("ConversionCAExpired", finding.Explanation{
		Meaning: "Reported when all certificates in the caBundle of a conversion webhook have expired.",
		Cause:   "The certificate was not renewed.",
		Remedy:  "Renew the certificate of the webhook.",
	})
	reasonObjectsRefused = finding.NewReason("ObjectsRefused", finding.Explanation{
		Meaning: "Reported when the API server rejects the next write of objects under the schema of the target.",
		Cause:   "The objects violate a rule that is not ratcheted, since it covers a field that every write changes.",
		Remedy:  "Change the fields so that they are valid under both schemas.",
	})
	reasonObjectsInvalid = finding.NewReason("ObjectsInvalid", finding.Explanation{
		Meaning: "Reported when objects are invalid under the schema of the target, and writes that do not change the " +
			"invalid fields are accepted.",
		Cause:  "The schema of the target is stricter.",
		Remedy: "Change the fields so that they are valid under both schemas.",
	})
	reasonObjectsRemoved = finding.NewReason("ObjectsRemoved", finding.Explanation{
		Meaning: "Reported when the target deletes a CustomResourceDefinition that has objects.",
		Cause: "The manifest has the annotation release.openshift.io/delete, and the API server deletes the objects with " +
			"their definition.",
		Remedy: "Save the objects that are still needed: oc get RESOURCE -A -o yaml.",
	})
)
