package definition

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
)

// The names of the findings, by condition.
const (
	nameStoredVersions = "CRDStoredVersions"
	nameUpdate         = "CRDUpdate"
	nameServedVersions = "CRDServedVersions"
	nameConversion     = "CRDConversion"
	nameSchema         = "CRDSchema"
	nameRemoval        = "CRDRemoval"
	nameUnread         = "CRDUnread"
)

// maxCause bounds the text of one cause in a message, and mostNamed what a message names.
const (
	maxCause  = 300
	mostNamed = 10
)

func describe(crd *apiextensionsv1.CustomResourceDefinition) string {
	return check.Describe(object(crd))
}

func object(crd *apiextensionsv1.CustomResourceDefinition) finding.Object {
	return finding.Object{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: crd.Name}
}

func objectName(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
