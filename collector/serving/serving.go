// Package serving answers: does the API server of this cluster serve every API, and can it complete deletions?
//
// Garbage collection, the deletion of namespaces and the migration of stored objects hang at an API that is not
// served. Few of these conditions stop the cluster-version operator itself, so most findings warn.
package serving

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// Checks returns all checks of served APIs. Add a new one here.
func Checks() []check.Check {
	return []check.Check{APIServices(), Namespaces(), Conversions()}
}

var reasonAsExpected = finding.NewReason("AsExpected", finding.Explanation{
	Meaning: "The API server serves and deletes objects as it should.",
	Cause:   "The check found none of the problems that it looks for.",
})

var (
	nameAPIServices = finding.NewName("APIServices",
		"Checks for APIServices that are not available: each has a finding APIService-<name>. It concerns every update, and warns.")

	nameAPIService = finding.NewName("APIService",
		"An APIService that is not available, found by the check APIServices: APIService-<name>.")

	reasonAPIServiceUnavailable = finding.NewReason("APIServiceUnavailable", finding.Explanation{
		Meaning: "A version of an API group is not served.",
		Cause: "The condition Available of its APIService is not True: its server is no longer installed, has no ready pod, or is " +
			"unreachable. Meanwhile no namespace can be deleted (NamespaceDeletionDiscoveryFailure), and the discovery of all APIs is " +
			"incomplete.",
		Remedy: "Repair the server. If it was removed, delete its APIService, and first the operator that recreates it.",
	})
)

// maxCause bounds the words of a condition, in bytes.
const maxCause = 512

// ofTheRelease is true for the namespace of servers whose ClusterOperator reports that they
// are not available: one cause is one finding.
func ofTheRelease(namespace string) bool {
	return namespace == "openshift-apiserver" || namespace == "openshift-oauth-apiserver"
}

// APIServices is the check APIServices.
func APIServices() check.Check {
	return check.Check{
		Name: nameAPIServices, Kind: finding.SourceHealth,
		Reads: []access.Request{check.List("apiregistration.k8s.io", "apiservices")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			all, err := s.Cluster.APIServices(ctx)
			if err != nil {
				return check.Unread("APIServices", err), ctx.Err()
			}
			var drafts []finding.Finding
			for i := range all {
				if f, ok := judgeAPIService(&all[i]); ok {
					drafts = append(drafts, f)
				}
			}
			if len(drafts) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected, "all %d APIServices are available", len(all))}, nil
			}
			return finding.Bounded(finding.Drafts(drafts...)), nil
		},
	}
}

func judgeAPIService(service *snapshot.APIService) (finding.Finding, bool) {
	backend := service.Spec.Service
	available := meta.FindStatusCondition(service.Status.Conditions, "Available")
	if backend == nil || ofTheRelease(backend.Namespace) || available != nil && available.Status == metav1.ConditionTrue {
		return finding.Finding{}, false
	}
	cause := "it has no condition Available"
	if available != nil {
		cause = "Available=" + words.Condition(available.Status, words.Line(available.Reason, maxCause), words.Line(available.Message, maxCause))
	}
	return finding.Warn(reasonAPIServiceUnavailable,
		"APIService %s, which the Service %s/%s serves, is not available, so no namespace can be deleted: %s", service.Name, backend.Namespace,
		backend.Name, cause).
		Named(nameAPIService+"-"+service.Name).
		Remedy("Repair the server. If it was removed, delete the APIService%s: oc delete apiservice %s.", unlessOwned(service), service.Name).
		Do(finding.Read("oc -n %s get service,pods", backend.Namespace), finding.Read("oc get apiservice %s -o yaml", service.Name)).
		About(finding.Object{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService", Name: service.Name}), true
}

// unlessOwned names the ClusterServiceVersion to delete before an APIService that OLM has installed: OLM recreates
// the APIService while the ClusterServiceVersion exists (operator-lifecycle-manager pkg/lib/ownerutil labels it).
func unlessOwned(service *snapshot.APIService) string {
	owner, namespace := service.Labels["olm.owner"], service.Labels["olm.owner.namespace"]
	if owner == "" || namespace == "" {
		return ""
	}
	return fmt.Sprintf(", after ClusterServiceVersion %s/%s, for which OLM recreates it", namespace, owner)
}

var (
	nameConversions = finding.NewName("Conversions",
		"Checks for conversion webhooks that cannot be called, although objects may need conversion: each has a finding "+
			"Conversion-<definition>. It concerns every update, and warns, because CVO reads no such objects. Definitions of the "+
			"release, which CVO does apply, are evaluated with the target's definitions (package runner/definition).")

	nameConversion = finding.NewName("Conversion",
		"A CustomResourceDefinition whose objects cannot be converted, found by the check Conversions: Conversion-<name>.")

	reasonConversionUnavailable = finding.NewReason("ConversionUnavailable", finding.Explanation{
		Meaning: "The objects of a CustomResourceDefinition cannot be converted between its versions.",
		Cause: "The Service of its conversion webhook does not exist, or has no ready endpoint. Every read of an object that is stored " +
			"in another version fails, and so do garbage collection and the migration of stored objects (kubernetes#110720).",
		Remedy: "Restore the Service. If its operator was removed for good, first set spec.conversion.strategy of the " +
			"CustomResourceDefinition to None: until then its deletion hangs, and so does the deletion of a namespace with such an " +
			"object (kubernetes#71925). Then delete it with its objects, if they are not needed.",
		Command: `oc patch crd NAME --type merge -p {"spec":{"conversion":{"strategy":"None","webhook":null}}}`,
	})
)

// Conversions is the check Conversions.
func Conversions() check.Check {
	return check.Check{
		Name: nameConversions, Kind: finding.SourceHealth,
		Reads: []access.Request{
			check.List(apiextensionsv1.GroupName, "customresourcedefinitions"), check.List("", "services"),
			check.List(discoveryv1.GroupName, "endpointslices"),
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
func judgeConversions(ctx context.Context, conversions []*snapshot.Definition, backends *backend.Backends,
	listed func(context.Context, string, ...schema.GroupVersionResource) error,
) ([]finding.Finding, error) {
	var found []finding.Finding
	var unread error
	for _, each := range conversions {
		down := outageOf(each, backends)
		if down.why == "" || check.OfRelease(each) || !mayConvert(each) {
			continue
		}
		if err := listed(ctx, down.service.Namespace, corev1.SchemeGroupVersion.WithResource("services"),
			discoveryv1.SchemeGroupVersion.WithResource("endpointslices")); err != nil {
			unread = err
			continue
		}
		found = append(found, conversionFinding(each, down))
	}
	if len(found) == 0 && unread == nil {
		return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected, "all %d conversion webhooks have an endpoint",
			len(conversions))}, nil
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
		"objects of %s cannot be converted between its versions %s: %s; if an object is stored in a version other than the requested "+
			"one, every read of the kind %s fails",
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
	return fmt.Sprintf("Restore Service %s/%s, for example by reinstalling its operator. Only if the operator was removed for good, "+
		"set the strategy None: then the objects can be read, but writing an object that is stored in another version loses the fields "+
		"that only that version has. If the objects are not needed either, remove the finalizers that the second command lists, which "+
		"the operator used to remove, and delete the definition with its objects: oc delete crd %s.",
		o.service.Namespace, o.service.Name, definition)
}

func (o outage) actions(definition string) []finding.Action {
	if o.state != backend.Missing {
		return []finding.Action{
			finding.Read("oc -n %s get service,endpointslices,pods", o.service.Namespace),
			finding.Read("oc get crd %s -o jsonpath={.spec.conversion}", definition),
		}
	}
	return []finding.Action{finding.Change(withoutConversion, definition), finding.Read(listFinalizers, definition)}
}

// maxVersions bounds the versions in a message.
const maxVersions = 10

var (
	nameNamespaces = finding.NewName("Namespaces",
		"Checks for namespaces that are being deleted: each has a finding NamespaceTerminating-<name>. A namespace that CVO applies "+
			"blocks every update; another one causes a warning after two minutes.")

	nameNamespaceTerminating = finding.NewName("NamespaceTerminating",
		"A namespace that is being deleted, found by the check Namespaces: NamespaceTerminating-<name>.")

	reasonNamespaceTerminating = finding.NewReason("NamespaceTerminating", finding.Explanation{
		Meaning: "A namespace is being deleted.",
		Cause: "An API that is not served, or a finalizer of an object in it, blocks the deletion. In a namespace of the release the " +
			"API server rejects every new object, so CVO cannot apply the release.",
		Remedy: "Remove the causes that its conditions report: `oc get namespace NAME -o yaml`.",
	})
)

// deletionTime is how long the deletion of a namespace may take.
const deletionTime = 2 * time.Minute

// Namespaces is the check Namespaces.
func Namespaces() check.Check {
	return check.Check{
		Name: nameNamespaces, Kind: finding.SourceHealth,
		Reads: []access.Request{check.List("", "namespaces")},
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			all, err := s.Cluster.TerminatingNamespaces(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not list the namespaces: %w", err)
			}
			var found []finding.Finding
			for i := range all {
				if f, ok := judgeNamespace(&all[i], s.Now); ok {
					found = append(found, f)
				}
			}
			if len(found) == 0 {
				return []finding.Finding{finding.Pass(gap.ExtentOf(ctx), reasonAsExpected, "no deletion of a namespace hangs")}, nil
			}
			return finding.Bounded(finding.Drafts(found...)), nil
		},
	}
}

func judgeNamespace(namespace *corev1.Namespace, now time.Time) (finding.Finding, bool) {
	since := now.Sub(namespace.DeletionTimestamp.Time)
	var f finding.Finding
	switch {
	case check.OfRelease(namespace):
		f = finding.Fail(reasonNamespaceTerminating,
			"namespace %s of the release is being deleted since %s, so CVO cannot create objects in it: %s",
			namespace.Name, words.Time(namespace.DeletionTimestamp.Time), stopped(namespace))
	case since >= deletionTime:
		f = finding.Warn(reasonNamespaceTerminating, "namespace %s is being deleted since %s: %s",
			namespace.Name, words.Time(namespace.DeletionTimestamp.Time), stopped(namespace))
	default:
		return finding.Finding{}, false
	}
	return f.Named(nameNamespaceTerminating+"-"+namespace.Name).
		Remedy("%s", obstaclesOf(namespace)).
		Do(finding.Read("oc get namespace %s -o yaml", namespace.Name)).Do(inspect(namespace)...).
		About(finding.Object{APIVersion: "v1", Kind: "Namespace", Name: namespace.Name}), true
}

// stopped returns what blocks the deletion, in the words of the namespace controller (Kubernetes
// pkg/controller/namespace/deletion/status_condition_utils.go).
func stopped(namespace *corev1.Namespace) string {
	var causes []string
	for _, condition := range namespace.Status.Conditions {
		if condition.Status == corev1.ConditionTrue {
			causes = append(causes, string(condition.Type)+": "+words.Line(condition.Message, maxCause))
		}
	}
	if len(causes) == 0 {
		return "its conditions name no cause"
	}
	return strings.Join(causes, "; ")
}

// obstacle stops the deletion of a namespace; remedy and command end that.
type obstacle struct {
	remedy  string
	inspect finding.Action
}

// obstacles are the obstacles in the conditions of the namespace controller. Deleting again has no effect: the
// current deletion continues by itself when the obstacle is gone.
func obstacles(namespace string) map[corev1.NamespaceConditionType]obstacle {
	left := finding.Read("oc api-resources --verbs=list --namespaced -o name | xargs -n 1 oc -n %s get --ignore-not-found --show-kind -o "+
		"custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers", namespace)
	remaining := obstacle{
		"Let the operator of the remaining objects remove their finalizers; if the operator is gone, remove the finalizers yourself.",
		left,
	}
	return map[corev1.NamespaceConditionType]obstacle{
		corev1.NamespaceDeletionDiscoveryFailure: {"Repair the servers of the APIServices that are not available, or delete the " +
			"APIServices of removed servers.", finding.Read("oc get apiservices")},
		corev1.NamespaceDeletionGVParsingFailure: {"Correct the API group whose version cannot be parsed.", finding.Read("oc api-versions")},
		corev1.NamespaceDeletionContentFailure: {
			"Restore the objects in the message. If a conversion webhook was removed, set spec.conversion.strategy of the " +
				"CustomResourceDefinition to None.",
			finding.Read(
				"oc get crd -o " +
					"custom-columns=NAME:.metadata.name,CONVERSION:.spec.conversion.strategy,SERVICE:.spec.conversion.webhook.clientConfig.service.namespace"),
		},
		corev1.NamespaceContentRemaining:    remaining,
		corev1.NamespaceFinalizersRemaining: remaining,
	}
}

// present are the obstacles of a namespace, each once, in the order of its conditions.
func present(namespace *corev1.Namespace) []obstacle {
	var found []obstacle
	for _, condition := range namespace.Status.Conditions {
		each, known := obstacles(namespace.Name)[condition.Type]
		if known && condition.Status == corev1.ConditionTrue &&
			!slices.ContainsFunc(found, func(other obstacle) bool { return other.remedy == each.remedy }) {
			found = append(found, each)
		}
	}
	return found
}

func obstaclesOf(namespace *corev1.Namespace) string {
	var remedies []string
	for _, each := range present(namespace) {
		remedies = append(remedies, each.remedy)
	}
	if len(remedies) == 0 {
		remedies = []string{"Remove what blocks the deletion."}
	}
	return strings.Join(append(remedies, "The deletion then completes by itself: check that "+
		"the namespace is gone or was recreated."), " ")
}

func inspect(namespace *corev1.Namespace) []finding.Action {
	var actions []finding.Action
	for _, each := range present(namespace) {
		actions = append(actions, each.inspect)
	}
	return actions
}
