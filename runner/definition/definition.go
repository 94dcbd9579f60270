// Package definition answers: would this cluster accept the CustomResourceDefinitions of the target, and its stored
// objects their schemas?
//
// It compares each CustomResourceDefinition of the verified payload with the cluster's, using the validation
// code of the API server itself: first the definition, as the cluster-version operator would write it, then each of its
// stored objects, as the API server would validate the next write of the object. Validation ratchets: an invalid field
// that a write does not change is tolerated. Two writes of each object are simulated, of a label and, where the object
// has a status, of the status.
//
// # Bounds
//
// A check reads at most 50 000 objects of at most 512 MiB in total, in pages of at most 500 objects and about 2 MiB,
// for at most three minutes. A definition whose objects exceed these bounds is inconclusive. The manifests are bounded
// by package payload; rules have the cost limits of the API server.
//
// # Permissions
//
// Which resources are listed follows from the payload ([ListNeeds]), so the check does not declare them: one
// inconclusive finding lists all resources that may not be listed. OpenShift's role cluster-reader is sufficient.
//
// # Limitations
//
// Rules follow the Kubernetes version of this module; ratcheting follows Kubernetes 1.30 and later. An object is
// validated in the version in which it is read. Not predicted: writes of other fields than a label and the status, the
// first status of an object, the subresource scale, admission webhooks and policies, names that another definition
// uses, and rejected definitions that the cluster does not have yet.
package definition

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
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
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
)

// Name is the name of the check.
var Name = finding.NewName("CustomResourceDefinitions",
	"Compares the definitions of a release with those in the cluster that client reaches. An administrator may "+
		"accept its findings by name: a migration may be due before the update.")

// Reports is true for the name of a finding of the check: its own, if the cluster accepts all definitions, or one of a
// condition.
func Reports(name string) bool { return name == Name || strings.HasPrefix(name, "CRD") }

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
	s.found = append(s.found, finding.Warn(reasonObjectsRemoved, "the target deletes %s and its %s", describe(present),
		words.Count(count, "object")).
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

// unreadable combines the inconclusive definitions. If one lacks a permission, the remedy is to grant it.
func unreadable(all []unread) finding.Finding {
	clauses := make([]string, 0, len(all))
	objects := make([]finding.Object, 0, mostNamed)
	denied := false
	for _, each := range all {
		clauses = append(clauses, fmt.Sprintf("%s: %s", words.Line(each.name, maxCause), words.Line(each.err.Error(), maxCause)))
		denied = denied || apierrors.IsForbidden(each.err)
		if len(objects) < mostNamed {
			objects = append(objects, finding.Object{
				APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition",
				Name: each.name,
			})
		}
	}
	f := finding.Unknown(reasonDefinitionsUnread, "%s of the target, or their objects, could not be checked: %s",
		words.Count(len(all), "CustomResourceDefinition"), words.Clauses(clauses, mostNamed)).Named(nameUnread).About(objects...)
	if denied {
		return f.Remedy("Run the preflight as a user who may list these resources, for example with the role " +
			"cluster-reader, which an administrator binds: `oc adm policy add-cluster-role-to-user cluster-reader " +
			"USER`.")
	}
	return f.Remedy("Fix the problem in the message, then run the preflight again.").Do(finding.Retry(""))
}

// The names of the findings, by condition. Reports knows their prefix.
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

const (
	maxObjects = 50_000
	maxBytes   = 512 << 20
	maxPage    = 500
)

type survey struct {
	client  dynamic.Interface
	now     time.Time
	budget  *budget
	found   []finding.Finding
	unread  []unread
	objects int
}

// unread is a definition for which the check was inconclusive.
type unread struct {
	name string
	err  error
}

// errBudget is returned for objects beyond the limits.
var errBudget = errors.New("not read: the objects of the preflight exceed 50 000 objects or 512 MiB")

// budget counts what may still be read.
type budget struct{ objects, bytes int }

func newBudget() *budget { return &budget{objects: maxObjects, bytes: maxBytes} }

// take accounts for a page, and returns errBudget beyond the limits.
func (b *budget) take(objects, bytes int) error {
	b.objects -= objects
	b.bytes -= bytes
	if b.objects < 0 || b.bytes < 0 {
		return errBudget
	}
	return nil
}

const (
	// pageBytes is the wanted size of a page, and firstPage its number of objects while
	// the size of an object is unknown: objects have up to 1.5 MiB.
	pageBytes = 2 << 20
	firstPage = 20
)

// stored validates the objects of a definition, if the target may treat them otherwise.
func (s *survey) stored(ctx context.Context, c change) error {
	version := servedVersion(c.present, func(name string) bool { return hasVersion(c.target, name) })
	under, gone := version, c.gone()
	if version == "" {
		version, under = servedVersion(c.present, func(string) bool { return true }), storageVersion(c.target)
	}
	if version == "" {
		return nil // no object can be read or written
	}
	t, err := c.tally(version, under)
	if err != nil || t.rules == nil && len(gone) == 0 {
		return err
	}
	t.gone = gone
	resource := schema.GroupVersionResource{Group: c.present.Spec.Group, Version: version, Resource: c.present.Spec.Names.Plural}
	err = s.each(ctx, resource, func(page []unstructured.Unstructured) error { return t.addPage(ctx, page) })
	s.objects += t.count
	s.found = append(s.found, t.findings(c)...)
	return err
}

// each reads all objects of a resource in pages of a bounded size.
func (s *survey) each(ctx context.Context, resource schema.GroupVersionResource, do func(page []unstructured.Unstructured) error) error {
	options := metav1.ListOptions{Limit: firstPage}
	for {
		page, err := s.client.Resource(resource).List(ctx, options)
		if err != nil {
			return err
		}
		bytes := 0
		for i := range page.Items {
			bytes += sizeOf(page.Items[i].Object)
		}
		if err := s.budget.take(len(page.Items), bytes); err != nil {
			return err
		}
		if err := do(page.Items); err != nil {
			return err
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return nil
		}
		options.Limit = pageOf(len(page.Items), bytes)
	}
}

// pageOf returns the number of objects for the next page, based on the sizes in the last page.
func pageOf(objects, bytes int) int64 {
	if objects == 0 {
		return firstPage
	}
	return int64(min(maxPage, max(1, pageBytes/max(1, bytes/objects))))
}

// sizeOf estimates the size of a value as JSON, in bytes.
func sizeOf(value any) int {
	switch value := value.(type) {
	case string:
		return len(value) + 2
	case map[string]any:
		size := 2
		for key, inner := range value {
			size += len(key) + 4 + sizeOf(inner)
		}
		return size
	case []any:
		size := 2
		for _, inner := range value {
			size += 1 + sizeOf(inner)
		}
		return size
	}
	return 8
}

func sliceResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
}

// conversion checks that the conversion webhook of the target can be reached. It fails
// only for a Service that the cluster uses for conversion now: the target may bring
// another one.
func (s *survey) conversion(ctx context.Context, c change) error {
	webhook := webhookOf(c.target)
	if webhook == nil {
		return nil
	}
	outcome := preflight.Warn
	if sameService(webhook, webhookOf(c.present)) {
		outcome = preflight.Fail
	}
	report := func(reason finding.Reason, format string, args ...any) finding.Finding {
		return finding.New(outcome, reason, format, args...).Named(nameConversion).About(object(c.target))
	}
	if expired(webhook.CABundle, s.now) {
		s.found = append(s.found, report(reasonConversionCAExpired,
			"all certificates in the caBundle of the conversion webhook of %s have expired", describe(c.target)).
			Do(finding.Read("oc get crd %s -o jsonpath={.spec.conversion.webhook}", c.target.Name)))
	}
	if webhook.Service == nil {
		return nil
	}
	ready, err := s.ready(ctx, webhook.Service)
	if err != nil || ready {
		return err
	}
	s.found = append(s.found, report(reasonConversionUnavailable, "the Service %s/%s of the conversion webhook of %s has no ready endpoint",
		webhook.Service.Namespace, webhook.Service.Name, describe(c.target)).
		Remedy("Start the pods of the Service.").Do(finding.Read("oc -n %s get service,endpointslices,pods", webhook.Service.Namespace)))
	return nil
}

func sameService(a, b *apiextensionsv1.WebhookClientConfig) bool {
	return b != nil && a.Service != nil && b.Service != nil && a.Service.Namespace == b.Service.Namespace && a.Service.Name == b.Service.Name
}

func (s *survey) ready(ctx context.Context, service *apiextensionsv1.ServiceReference) (bool, error) {
	if len(validation.IsDNS1035Label(service.Name)) > 0 || len(validation.IsDNS1123Label(service.Namespace)) > 0 {
		return false, nil // no Service has this name
	}
	list, err := s.client.Resource(sliceResource()).Namespace(service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name, Limit: maxPage,
	})
	if err != nil {
		return false, fmt.Errorf("the endpoints of the conversion webhook: %w", err)
	}
	for i := range list.Items {
		if anyReady(&list.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

// anyReady reports whether an EndpointSlice has a ready endpoint; an unknown condition is ready, as in the API.
func anyReady(object *unstructured.Unstructured) bool {
	var slice discoveryv1.EndpointSlice
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &slice); err != nil {
		return false
	}
	for _, endpoint := range slice.Endpoints {
		if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
			return true
		}
	}
	return false
}

// expired is true when the bundle has certificates and all of them have expired.
func expired(bundle []byte, now time.Time) bool {
	found := false
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if now.Before(certificate.NotAfter) {
			return false
		}
		found = true
	}
	return found
}
