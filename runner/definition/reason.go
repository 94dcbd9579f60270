package definition

import "github.com/openshift/update-preflight/collector/finding"

// ReasonDefinitionsAccepted is reported when the cluster accepts all
// CustomResourceDefinitions of the target, and its objects are valid under them.
//
// Cause: no rule of the API server is violated.
//
// Remedy: none is needed.
const ReasonDefinitionsAccepted finding.Reason = "DefinitionsAccepted"

// ReasonDefinitionsUnread is reported when a CustomResourceDefinition or its objects
// could not be checked.
//
// Cause: the user may not list the objects, there are too many of them, a filter of the
// manifest is inconclusive, or a conversion webhook does not work; the message has the
// cause for each.
//
// Remedy: run the preflight as a user who can list the objects: oc adm policy
// add-cluster-role-to-user cluster-reader USER.
const ReasonDefinitionsUnread finding.Reason = "DefinitionsUnread"

// ReasonStoredVersionMissing is reported when the target lacks a version in which the
// cluster may still store objects.
//
// Cause: status.storedVersions of the CustomResourceDefinition has a version that
// spec.versions of the target lacks, so the API server rejects the target.
//
// Remedy: rewrite all objects, then remove the version from the status: oc get RESOURCE
// -A -o json | oc replace -f - and oc patch crd NAME --subresource=status --type=merge.
const ReasonStoredVersionMissing finding.Reason = "StoredVersionMissing"

// ReasonIdentityChanged is reported when the target changes the scope, the group, the
// kind or the plural of a CustomResourceDefinition.
//
// Cause: the API server allows no change of these fields.
//
// Remedy: save the objects, delete the CustomResourceDefinition before the update, and
// create the objects again after it.
const ReasonIdentityChanged finding.Reason = "DefinitionIdentityChanged"

// ReasonPreserveUnknownFields is reported when the target sets
// spec.preserveUnknownFields.
//
// Cause: the API server allows it in no CustomResourceDefinition of version v1.
//
// Remedy: do not update to this release, and report it to its publisher.
const ReasonPreserveUnknownFields finding.Reason = "PreserveUnknownFields"

// ReasonDefinitionInvalid is reported when a CustomResourceDefinition of the target
// violates another rule of the API server.
//
// Cause: the manifest is malformed.
//
// Remedy: do not update to this release, and report it to its publisher.
const ReasonDefinitionInvalid finding.Reason = "DefinitionInvalid"

// ReasonRuleCostEstimate is reported when the estimated cost of a validation rule is
// above the limit of the API server.
//
// Cause: estimates differ between versions of Kubernetes; that of the cluster may be
// below the limit.
//
// Remedy: check that the cluster accepts the definition: oc replace --dry-run=server -f
// FILE.
const ReasonRuleCostEstimate finding.Reason = "RuleCostEstimate"

// ReasonServedVersionRemoved is reported when the target no longer serves a version in
// which clients have written objects.
//
// Cause: managedFields of objects name clients of that version. A client may have moved
// since its last write.
//
// Remedy: move the clients to a version that the target serves.
const ReasonServedVersionRemoved finding.Reason = "ServedVersionRemoved"

// ReasonConversionUnavailable is reported when the Service of a conversion webhook has
// no ready endpoint.
//
// Cause: no pod of the Service is ready, or the target brings the Service.
//
// Remedy: start the pods of the Service: oc -n NAMESPACE get service,endpointslices,pods.
const ReasonConversionUnavailable finding.Reason = "ConversionUnavailable"

// ReasonConversionCAExpired is reported when all certificates in the caBundle of a
// conversion webhook have expired.
//
// Cause: the certificate was not renewed.
//
// Remedy: renew the certificate of the webhook.
const ReasonConversionCAExpired finding.Reason = "ConversionCAExpired"

// ReasonObjectsRefused is reported when the API server rejects the next write of
// objects under the schema of the target.
//
// Cause: the objects violate a rule that is not ratcheted, since it covers a field that
// every write changes.
//
// Remedy: change the fields so that they are valid under both schemas.
const ReasonObjectsRefused finding.Reason = "ObjectsRefused"

// ReasonObjectsInvalid is reported when objects are invalid under the schema of the
// target, and writes that do not change the invalid fields are accepted.
//
// Cause: the schema of the target is stricter.
//
// Remedy: change the fields so that they are valid under both schemas.
const ReasonObjectsInvalid finding.Reason = "ObjectsInvalid"

// ReasonObjectsRemoved is reported when the target deletes a CustomResourceDefinition
// that has objects.
//
// Cause: the manifest has the annotation release.openshift.io/delete, and the API server
// deletes the objects with their definition.
//
// Remedy: save the objects that are still needed: oc get RESOURCE -A -o yaml.
const ReasonObjectsRemoved finding.Reason = "ObjectsRemoved"
