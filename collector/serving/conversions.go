package serving

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameConversions = finding.NewName("Conversions",
		"The check for conversion webhooks that cannot be called, where objects may have to be converted: a "+
			"finding Conversion-<definition> for each. It concerns every update, and warns: nothing that CVO does "+
			"reads such objects. Definitions of the release, which CVO does apply, are judged with those of the "+
			"target (package runner/definition).")

	nameConversion = finding.NewName("Conversion",
		"A finding of the check Conversions about a CustomResourceDefinition whose objects cannot be converted: "+
			"Conversion-<name>.")

	reasonConversionUnavailable = finding.NewReason("ConversionUnavailable", finding.Explanation{
		Meaning: "Reported for a CustomResourceDefinition whose objects cannot be converted between its versions.",
		Cause: "The Service of its conversion webhook does not exist, or has no ready endpoint. Every read of an object " +
			"that is stored in another version fails, and with it the garbage collection and the migration of stored " +
			"objects (kubernetes#110720).",
		Remedy: "Restore the Service. If its operator was removed for good, set spec.conversion.strategy of the " +
			"CustomResourceDefinition to None first: until then its deletion does not end, nor does that of a namespace " +
			"with such an object (kubernetes#71925). Then delete it with its objects, if they are not needed.",
		Command: `oc patch crd NAME --type merge -p {"spec":{"conversion":{"strategy":"None","webhook":null}}}`,
	})
)

// Conversions is the check Conversions.
func Conversions() check.Check {
	return check.Check{
		Name: nameConversions, Kind: finding.SourceHealth,
		Reads: []access.Request{
			check.List(apiextensionsv1.GroupName, "customresourcedefinitions"), check.List("", "services"), check.List(discoveryv1.GroupName, "endpointslices"),
		},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			definitions, err := s.Cluster.Definitions(ctx)
			if err != nil {
				return check.Unread("CustomResourceDefinitions", err), ctx.Err()
			}
			services, err := s.Cluster.Services(ctx)
			if err != nil {
				return check.Unread("Services", err), ctx.Err()
			}
			endpoints, err := s.Cluster.EndpointSlices(ctx)
			if err != nil {
				return check.Unread("EndpointSlices", err), ctx.Err()
			}
			judged, unread := judgeConversions(ctx, convertedByWebhooks(definitions), backend.NewBackends(services, endpoints), s.Cluster.Listed)
			if unread != nil {
				judged = append(judged, check.Unread("Services", unread)...)
			}
			return judged, ctx.Err()
		},
	}
}

func convertedByWebhooks(definitions []snapshot.Definition) []*snapshot.Definition {
	var found []*snapshot.Definition
	for i := range definitions {
		if definitions[i].Webhook() != nil {
			found = append(found, &definitions[i])
		}
	}
	return found
}

// judgeConversions has an error about Services and endpoints that were not found and may exist, by listed.
func judgeConversions(ctx context.Context, conversions []*snapshot.Definition, backends *backend.Backends, listed func(context.Context, string, ...schema.GroupVersionResource) error) ([]finding.Finding, error) {
	var found []finding.Finding
	var unread error
	for _, each := range conversions {
		down := outageOf(each, backends)
		if down.why == "" || check.OfRelease(each) || !mayConvert(each) {
			continue
		}
		if err := listed(ctx, down.service.Namespace, corev1.SchemeGroupVersion.WithResource("services"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices")); err != nil {
			unread = err
			continue
		}
		found = append(found, conversionFinding(each, down))
	}
	if len(found) == 0 && unread == nil {
		return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected, "all %d conversion webhooks have an endpoint", len(conversions))}, nil
	}
	return finding.Bounded(finding.Drafts(found...)), unread
}

// outage is why a webhook cannot be called; the zero value where it can, or where its URL is not one of this cluster.
type outage struct {
	why     string
	service backend.Reference
	state   backend.State
}

func outageOf(each *snapshot.Definition, backends *backend.Backends) outage {
	webhook := each.Webhook()
	config := admissionregistrationv1.WebhookClientConfig{URL: webhook.URL}
	if service := webhook.Service; service != nil {
		config.Service = &admissionregistrationv1.ServiceReference{Namespace: service.Namespace, Name: service.Name, Port: service.Port}
	}
	reference, ok := backend.ReferenceOf(config)
	if !ok {
		if reference, ok = backend.ReferenceIn(config); !ok {
			return outage{}
		}
	}
	found := outage{service: reference, state: backends.Of(reference).State}
	name := reference.Namespace + "/" + reference.Name
	switch found.state {
	case backend.Missing:
		found.why = fmt.Sprintf("its Service %s does not exist", name)
	case backend.NoPort:
		found.why = fmt.Sprintf("its Service %s has no port %d", name, reference.Port)
	case backend.Empty:
		found.why = fmt.Sprintf("its Service %s has no ready endpoint", name)
	case backend.Serving, backend.Elsewhere:
	}
	return found
}

// mayConvert is true where an object may be read in another version than it is stored in.
func mayConvert(each *snapshot.Definition) bool {
	served, stored := each.Served(), each.Status.StoredVersions
	return len(served) > 1 || len(stored) > 1 || !slices.Equal(served, stored)
}

func conversionFinding(each *snapshot.Definition, down outage) finding.Finding {
	name := each.Name
	return finding.Warn(reasonConversionUnavailable,
		"objects of %s cannot be converted between its versions %s: %s; where one is stored in another version than is requested, every read of the kind %s fails",
		name, words.List(each.Served(), maxVersions), down.why, each.Spec.Names.Kind).
		Named(nameConversion+"-"+name).
		Remedy("%s", down.remedy(name)).
		Do(down.actions(name)...).
		About(finding.Object{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: name})
}

// The commands that delete a definition whose conversion webhook is gone. The deletion reads every object
// (apiextensions-apiserver pkg/controller/finalizer), and converts none by the strategy None (kubernetes#71925). An
// object with a finalizer stays until a program removes it.
const (
	withoutConversion = `oc patch crd %s --type merge -p {"spec":{"conversion":{"strategy":"None","webhook":null}}}`
	listFinalizers    = "oc get %s -A -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,FINALIZERS:.metadata.finalizers"
)

// remedy is about what is lost by it, too. OLM sets the strategy None itself where it removes an operator, since 4.12
// (operator-lifecycle-manager#2832).
func (o outage) remedy(definition string) string {
	if o.state != backend.Missing {
		return "Start the pods of the Service. The definition, and a namespace with its objects, cannot be deleted until then."
	}
	return fmt.Sprintf("Restore Service %s/%s, such as by installing its operator again. Only if the operator was removed for good, set the strategy None: "+
		"then the objects can be read, and a write of one that is stored in another version loses the fields that only that version has. If the "+
		"objects are not needed either, remove the finalizers that the second command lists, which the operator removed before, and delete the definition with its objects: oc delete crd %s.",
		o.service.Namespace, o.service.Name, definition)
}

func (o outage) actions(definition string) []finding.Action {
	if o.state != backend.Missing {
		return []finding.Action{finding.Read("oc -n %s get service,endpointslices,pods", o.service.Namespace), finding.Read("oc get crd %s -o jsonpath={.spec.conversion}", definition)}
	}
	return []finding.Action{finding.Change(withoutConversion, definition), finding.Read(listFinalizers, definition)}
}

// maxVersions bounds the versions in a message.
const maxVersions = 10
