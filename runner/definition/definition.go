// Package definition answers: would this cluster accept the
// CustomResourceDefinitions of the target, and its stored objects their schemas?
//
// It compares each CustomResourceDefinition of the verified payload with the one of
// the cluster, by the validation code of the API server itself: first the definition,
// as the cluster-version operator would write it, then every stored object of it, as
// the API server would validate the next write of the object. Validation ratchets: an
// invalid field that a write does not change is tolerated. Two writes of each object
// are simulated, of a label and, where the object has a status, of the status.
//
// # Bounds
//
// A check reads at most 50 000 objects of at most 512 MiB in total, in pages of at
// most 500 objects and about 2 MiB, for at most three minutes. A definition whose
// objects would exceed that is inconclusive. The manifests are bounded by package
// payload; rules have the cost limits of the API server.
//
// # Permissions
//
// Which resources are listed follows from the payload ([ListNeeds]), so the check does not
// declare them: all that may not be listed are in one inconclusive finding. The role
// cluster-reader of OpenShift suffices.
//
// # Limitations
//
// Rules are those of the Kubernetes version of this module; ratcheting is that of
// Kubernetes 1.30 and later. An object is validated in the version in which it is read.
// Not predicted: writes of other fields than a label and the status, the first status of
// an object, the subresource scale, admission webhooks and policies, names that another
// definition uses, and rejected definitions that the cluster does not have yet.
package definition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/payload"
)

// Name is the name of the check.
var Name = finding.NewName("CustomResourceDefinitions",
	"Compares the definitions of a release with the cluster that client reaches. An administrator may accept "+
		"its findings by name: a migration may be due before the update.")

// maxTime bounds the time of the check.
const maxTime = 3 * time.Minute

func definitionResource() schema.GroupVersionResource {
	return apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
}

// reads are the requests of the check, apart from the resources that the payload defines.
func reads() []access.Request {
	return []access.Request{
		{Verb: "get", Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"},
		check.List("discovery.k8s.io", "endpointslices"),
	}
}

// Needs are the permissions of the check for every payload. None is required.
func Needs() access.Needs { return access.Needs{Optional: reads()} }

// ListNeeds are the permissions to list the objects of the definitions of a release. None is required.
func ListNeeds(definitions []payload.Definition) access.Needs {
	var needs access.Needs
	for _, definition := range definitions {
		resource, group, isQualified := strings.Cut(definition.Name, ".") // a rule of the API server
		if isQualified && len(validation.IsDNS1123Subdomain(definition.Name)) == 0 {
			needs.Optional = append(needs.Optional, check.List(group, resource))
		}
	}
	return needs
}

// Check is the check CustomResourceDefinitions.
func Check(client dynamic.Interface, definitions []payload.Definition) check.Check {
	return check.Check{
		Name: Name, Kind: finding.SourceRisk, Reads: reads(),
		Run: func(ctx context.Context, subject check.Subject) ([]finding.Finding, error) {
			ctx, cancel := context.WithTimeout(ctx, maxTime)
			defer cancel()
			s := &survey{client: client, now: subject.Now, budget: newBudget()}
			for _, definition := range definitions {
				if err := s.examine(ctx, definition); err != nil {
					s.unread = append(s.unread, unread{name: definition.Name, err: err})
				}
			}
			return s.findings(len(definitions)), nil
		},
	}
}

// examine compares one definition with the cluster. An error means that this was
// inconclusive; what was found before it is kept.
func (s *survey) examine(ctx context.Context, definition payload.Definition) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("not read within %s: %w", maxTime, err)
	}
	target, err := definition.Decode()
	if err != nil {
		return err
	}
	present, err := s.present(ctx, target.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if definition.Deleted {
		return s.removal(ctx, present)
	}
	c, err := newChange(present, target)
	if err != nil || c.none() {
		return err
	}
	s.found = append(s.found, c.violations(ctx)...)
	return errors.Join(s.conversion(ctx, c), s.stored(ctx, c))
}

func (s *survey) present(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	read, err := s.client.Resource(definitionResource()).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	present := &apiextensionsv1.CustomResourceDefinition{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, present)
	return present, err
}

func (s *survey) removal(ctx context.Context, present *apiextensionsv1.CustomResourceDefinition) error {
	version := servedVersion(present, func(string) bool { return true })
	if version == "" {
		return nil // no object can be read or written
	}
	resource := schema.GroupVersionResource{Group: present.Spec.Group, Version: version, Resource: present.Spec.Names.Plural}
	list, err := s.client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) == 0 {
		return err
	}
	count := int64(len(list.Items))
	if more := list.GetRemainingItemCount(); more != nil {
		count += *more
	}
	s.found = append(s.found, finding.Warn(reasonObjectsRemoved, "the target deletes %s and its %s", describe(present), words.Count(count, "object")).
		Named(nameRemoval).About(object(present)).
		Remedy("Save the objects that are still needed, or replace them.").
		Do(finding.Read("oc get %s -A -o yaml", present.Name)).
		Observed(map[string]string{"objects": fmt.Sprint(count)}))
	return nil
}

func (s *survey) findings(definitions int) []finding.Finding {
	found := s.found
	if len(s.unread) > 0 {
		found = append(found, unreadable(s.unread))
	}
	if len(found) == 0 {
		return []finding.Finding{finding.Pass(gap.Proven("the definitions of the target and of the cluster"), reasonDefinitionsAccepted,
			"the cluster accepts %s of the target; valid under changed schemas: %s",
			words.Count(definitions, "CustomResourceDefinition"), words.Count(s.objects, "object"))}
	}
	return finding.Bounded(finding.Drafts(found...))
}

// unreadable combines the definitions that were inconclusive. The remedy is that of a
// missing permission if any of them lacks one.
func unreadable(all []unread) finding.Finding {
	clauses := make([]string, 0, len(all))
	objects := make([]finding.Object, 0, mostNamed)
	denied := false
	for _, each := range all {
		clauses = append(clauses, fmt.Sprintf("%s: %s", words.Line(each.name, maxCause), words.Line(each.err.Error(), maxCause)))
		denied = denied || apierrors.IsForbidden(each.err)
		if len(objects) < mostNamed {
			objects = append(objects, finding.Object{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: each.name})
		}
	}
	f := finding.Unknown(reasonDefinitionsUnread, "%s of the target, or their objects, could not be checked: %s",
		words.Count(len(all), "CustomResourceDefinition"), words.Clauses(clauses, mostNamed)).Named(nameUnread).About(objects...)
	if denied {
		return f.Remedy("Run the preflight as a user who can list these resources, such as one with the role cluster-reader, which an administrator binds: `oc adm policy add-cluster-role-to-user cluster-reader USER`.")
	}
	return f.Remedy("Fix what the message names, then run the preflight again.").Do(finding.Retry(""))
}

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
