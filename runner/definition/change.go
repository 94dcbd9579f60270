package definition

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// injectAnnotation has the service-ca operator manage the caBundle of a conversion
// webhook, which the cluster-version operator then keeps (lib/resourcemerge/apiext.go).
const injectAnnotation = "service.beta.openshift.io/inject-cabundle"

// webhookOf is how the conversion webhook of a definition is reached; nil without one.
func webhookOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	conversion := crd.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil {
		return nil
	}
	return conversion.Webhook.ClientConfig
}

// bundleOf is the caBundle of the conversion webhook; nil without one.
func bundleOf(crd *apiextensionsv1.CustomResourceDefinition) []byte {
	if webhook := webhookOf(crd); webhook != nil {
		return webhook.CABundle
	}
	return nil
}

type change struct {
	// present is the definition of the cluster, target the one that would replace it.
	present, target *apiextensionsv1.CustomResourceDefinition
	// from and to are the same in the form that is validated.
	from, to *apiextensions.CustomResourceDefinition
}

// newChange makes the object that the operator would write: the present one with the
// spec of the manifest, and with the status that the API server sets.
func newChange(present, manifest *apiextensionsv1.CustomResourceDefinition) (change, error) {
	target := present.DeepCopy()
	bundle := bundleOf(present)
	target.Spec = *manifest.Spec.DeepCopy()
	if webhook := webhookOf(target); webhook != nil && manifest.Annotations[injectAnnotation] == "true" {
		webhook.CABundle = bundle
	}
	for key, value := range manifest.Annotations {
		if target.Annotations == nil {
			target.Annotations = map[string]string{}
		}
		target.Annotations[key] = value
	}
	present = present.DeepCopy()
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{present, target} {
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	}
	if storage := storageVersion(target); storage != "" && !slices.Contains(target.Status.StoredVersions, storage) {
		target.Status.StoredVersions = append(target.Status.StoredVersions, storage)
	}
	c := change{
		present: present, target: target, from: &apiextensions.CustomResourceDefinition{},
		to: &apiextensions.CustomResourceDefinition{},
	}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(present.DeepCopy(), c.from,
		nil); err != nil {
		return change{}, err
	}
	return c, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(target.DeepCopy(), c.to, nil)
}

// none is true when the spec does not change.
func (c change) none() bool { return equality.Semantic.DeepEqual(c.from.Spec, c.to.Spec) }

// violations are the rules of the API server that the update of the definition
// violates: one finding for each condition.
func (c change) violations(ctx context.Context) []finding.Finding {
	groups := map[finding.Reason]field.ErrorList{}
	// This call links k8s.io/apiserver with gRPC (138 packages, 1.8 of 63 MB). Own code would be the schemas and CEL
	// costs of the API server; a dry run needs the permission to write definitions, calls webhooks, and needs a server.
	for _, err := range validation.ValidateCustomResourceDefinitionUpdate(ctx, c.to, c.from) {
		reason := reasonOf(err)
		groups[reason] = append(groups[reason], err)
	}
	var found []finding.Finding
	if len(groups[reasonStoredVersionMissing]) > 0 {
		found = append(found, c.storedVersions())
	}
	const authors = "Do not update to this release, and report it to its publisher: the cluster cannot store the definition."
	if errs := groups[reasonIdentityChanged]; len(errs) > 0 {
		found = append(found, c.refused(reasonIdentityChanged, errs).
			Remedy("Save the objects, delete the CustomResourceDefinition before the update (oc delete crd %s), and "+
				"create the objects again after it.%s",
				c.target.Name, c.deletion()).
			Do(finding.Read("oc get %s -A -o yaml", c.target.Name)))
	}
	for _, reason := range []finding.Reason{reasonPreserveUnknownFields, reasonDefinitionInvalid} {
		if errs := groups[reason]; len(errs) > 0 {
			found = append(found, c.refused(reason, errs).Remedy(authors))
		}
	}
	if errs := groups[reasonRuleCostEstimate]; len(errs) > 0 {
		found = append(found, finding.Warn(reasonRuleCostEstimate,
			"%s of the target has rules whose estimated cost exceeds the limit of some Kubernetes versions: %s", describe(c.target),
			texts(errs)).
			Named(nameUpdate).About(object(c.target)).
			Remedy("Check that the cluster accepts the definition, with its manifest in the release: `oc replace --dry-run=server -f FILE`."))
	}
	return found
}

func reasonOf(err *field.Error) finding.Reason {
	switch {
	case strings.HasPrefix(err.Field, "status.storedVersions"):
		return reasonStoredVersionMissing
	case slices.Contains([]string{"spec.scope", "spec.group", "spec.names.kind", "spec.names.plural"}, err.Field):
		return reasonIdentityChanged
	case err.Field == "spec.preserveUnknownFields":
		return reasonPreserveUnknownFields
	case strings.Contains(err.Detail, "estimated rule cost"):
		return reasonRuleCostEstimate // estimates differ between versions of Kubernetes
	}
	return reasonDefinitionInvalid
}

func (c change) refused(reason finding.Reason, errs field.ErrorList) finding.Finding {
	return finding.Fail(reason, "the API server rejects %s of the target: %s", describe(c.target), texts(errs)).
		Named(nameUpdate).About(object(c.target)).
		Do(finding.Read("oc get crd %s -o yaml", c.target.Name))
}

// deletion describes what blocks the deletion of a definition: it reads all objects, which an unavailable conversion
// webhook prevents (kubernetes#71925).
func (c change) deletion() string {
	if webhookOf(c.present) == nil {
		return ""
	}
	return fmt.Sprintf(" If its conversion webhook does not respond, the objects can be neither read nor deleted: "+
		"first run oc patch crd %s --type merge -p "+
		"'{\"spec\":{\"conversion\":{\"strategy\":\"None\",\"webhook\":null}}}'.", c.present.Name)
}

// storedVersions reports stored versions that the target lacks, with the commands of
// the migration. A migration rewrites objects in the present storage version.
func (c change) storedVersions() finding.Finding {
	var kept, missing []string
	for _, version := range c.present.Status.StoredVersions {
		if hasVersion(c.target, version) {
			kept = append(kept, version)
		} else {
			missing = append(missing, version)
		}
	}
	storage := storageVersion(c.present)
	f := finding.Fail(reasonStoredVersionMissing,
		"the API server rejects %s of the target: status.storedVersions contains %s, which is missing in "+
			"spec.versions of the target (%s)",
		describe(c.target), words.List(missing, mostNamed), words.List(versionNames(c.target), mostNamed)).
		Named(nameStoredVersions).About(object(c.target)).
		Observed(map[string]string{"storedVersions": strings.Join(c.present.Status.StoredVersions, ","), "missing": strings.Join(missing, ",")})
	if !hasVersion(c.target, storage) {
		return f.Remedy("Update through a release whose CustomResourceDefinition stores a version that this target has: the cluster "+
			"still stores %s.", storage).
			Do(finding.Read("oc get crd %s -o jsonpath={.spec.versions[*].name}", c.target.Name))
	}
	if !slices.Contains(kept, storage) {
		kept = append(kept, storage)
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"storedVersions": kept}})
	if err != nil {
		patch = nil // strings always encode
	}
	return f.Remedy("Rewrite all objects, which stores them as %s, then remove the other versions from the status.", storage).
		Do(finding.Change("oc get %s -A -o json | oc replace -f -", c.target.Name),
			finding.Change("oc patch crd %s --subresource=status --type=merge -p %s", c.target.Name, patch))
}

func texts(errs field.ErrorList) string {
	clauses := make([]string, 0, len(errs))
	for _, err := range errs {
		clauses = append(clauses, words.Line(err.Error(), maxCause))
	}
	return words.Clauses(clauses, mostNamed)
}

// storageVersion is the version in which a definition stores objects; empty when the definition has none.
func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// servedVersion is the version to read objects in: the storage version if it is
// served and wanted, else the first one that is.
func servedVersion(crd *apiextensionsv1.CustomResourceDefinition, wanted func(string) bool) string {
	first := ""
	for _, version := range crd.Spec.Versions {
		switch {
		case !version.Served || !wanted(version.Name):
		case version.Storage:
			return version.Name
		case first == "":
			first = version.Name
		}
	}
	return first
}

// gone are the versions that the cluster serves and the target does not.
func (c change) gone() []string {
	var gone []string
	for _, version := range c.present.Spec.Versions {
		if version.Served && !servesVersion(c.target, version.Name) {
			gone = append(gone, version.Name)
		}
	}
	return gone
}

func versionNames(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var names []string
	for _, version := range crd.Spec.Versions {
		names = append(names, version.Name)
	}
	return names
}

func hasVersion(crd *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.Contains(versionNames(crd), name)
}

func servesVersion(crd *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Served && v.Name == name
	})
}

// schemaChanged is true when objects of a version may be validated otherwise under the target.
func (c change) schemaChanged(version string) (bool, error) {
	before, err := apiextensions.GetSchemaForVersion(c.from, version)
	if err != nil {
		return false, fmt.Errorf("the current schema of version %s cannot be read: %w", version, err)
	}
	after, err := apiextensions.GetSchemaForVersion(c.to, version)
	if err != nil {
		return false, fmt.Errorf("the schema of version %s of the target cannot be read: %w", version, err)
	}
	return !equality.Semantic.DeepEqual(before, after), nil
}

var (
	reasonDefinitionsAccepted = finding.NewReason("DefinitionsAccepted", finding.Explanation{
		Meaning: "The cluster accepts all CustomResourceDefinitions of the target, and existing objects are valid under them.",
		Cause:   "No rule of the API server is violated.",
	})
	reasonDefinitionsUnread = finding.NewReason("DefinitionsUnread", finding.Explanation{
		Meaning: "A CustomResourceDefinition or its objects could not be checked.",
		Cause: "The user may not list the objects, there are too many objects, a filter of the manifest is " +
			"inconclusive, or a conversion webhook does not work. The message contains the cause for each.",
		Remedy: "Run the preflight as a user who may list the objects: oc adm policy add-cluster-role-to-user " +
			"cluster-reader USER.",
	})
	reasonStoredVersionMissing = finding.NewReason("StoredVersionMissing", finding.Explanation{
		Meaning: "The target lacks a version in which the cluster may still store objects.",
		Cause: "status.storedVersions of the CustomResourceDefinition contains a version that is missing in " +
			"spec.versions of the target, so the API server rejects the target.",
		Remedy: "Rewrite all objects, then remove the version from the status: oc get RESOURCE -A -o json | oc replace -f " +
			"- and oc patch crd NAME --subresource=status --type=merge.",
	})
	reasonIdentityChanged = finding.NewReason("DefinitionIdentityChanged", finding.Explanation{
		Meaning: "The target changes the scope, group, kind or plural of a CustomResourceDefinition.",
		Cause:   "The API server does not allow changes of these fields.",
		Remedy:  "Save the objects, delete the CustomResourceDefinition before the update, and create the objects again after it.",
	})
	reasonPreserveUnknownFields = finding.NewReason("PreserveUnknownFields", finding.Explanation{
		Meaning: "The target sets spec.preserveUnknownFields.",
		Cause:   "The API server rejects this field in CustomResourceDefinitions of version v1.",
		Remedy:  "Do not update to this release, and report it to its publisher.",
	})
	reasonDefinitionInvalid = finding.NewReason("DefinitionInvalid", finding.Explanation{
		Meaning: "A CustomResourceDefinition of the target violates another rule of the API server.",
		Cause:   "The manifest is malformed.",
		Remedy:  "Do not update to this release, and report it to its publisher.",
	})
	reasonRuleCostEstimate = finding.NewReason("RuleCostEstimate", finding.Explanation{
		Meaning: "The estimated cost of a validation rule exceeds the limit of the API server.",
		Cause:   "Estimates differ between Kubernetes versions; the cluster's estimate may be below the limit.",
		Remedy:  "Check that the cluster accepts the definition: oc replace --dry-run=server -f FILE.",
	})
	reasonServedVersionRemoved = finding.NewReason("ServedVersionRemoved", finding.Explanation{
		Meaning: "The target no longer serves a version that clients have used to write objects.",
		Cause: "metadata.managedFields of objects lists clients of that version. A client may have moved to " +
			"another version since its last write.",
		Remedy: "Move the clients to a version that the target serves.",
	})
	reasonConversionUnavailable = finding.NewReason("ConversionUnavailable", finding.Explanation{
		Meaning: "The Service of a conversion webhook has no ready endpoint.",
		Cause:   "No pod of the Service is ready, or the Service is part of the target.",
		Remedy:  "Start the pods of the Service: oc -n NAMESPACE get service,endpointslices,pods.",
	})
	reasonConversionCAExpired = finding.NewReason("ConversionCAExpired", finding.Explanation{
		Meaning: "All certificates in the caBundle of a conversion webhook have expired.",
		Cause:   "The certificate was not renewed.",
		Remedy:  "Renew the certificate of the webhook.",
	})
	reasonObjectsRefused = finding.NewReason("ObjectsRefused", finding.Explanation{
		Meaning: "The API server rejects the next write of objects under the target's schema.",
		Cause:   "The objects violate a rule that is not ratcheted, because it covers a field that every write changes.",
		Remedy:  "Change the fields so that they are valid under both schemas.",
	})
	reasonObjectsInvalid = finding.NewReason("ObjectsInvalid", finding.Explanation{
		Meaning: "Objects are invalid under the target's schema. Writes that do not change the invalid fields are " +
			"still accepted.",
		Cause:  "The target's schema is stricter.",
		Remedy: "Change the fields so that they are valid under both schemas.",
	})
	reasonObjectsRemoved = finding.NewReason("ObjectsRemoved", finding.Explanation{
		Meaning: "The target deletes a CustomResourceDefinition that has objects.",
		Cause: "The manifest has the annotation release.openshift.io/delete, and the API server deletes the objects " +
			"together with their definition.",
		Remedy: "Save the objects that are still needed: oc get RESOURCE -A -o yaml.",
	})
)
