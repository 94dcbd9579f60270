package survey

import (
	"context"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/drain/reviewer"
)

// Resources that decide on evictions. Policies are served since Kubernetes 1.30.
func validating() resource {
	return of(admissionregistrationv1.SchemeGroupVersion, "validatingwebhookconfigurations", "ValidatingWebhookConfigurations")
}

func mutating() resource {
	return of(admissionregistrationv1.SchemeGroupVersion, "mutatingwebhookconfigurations", "MutatingWebhookConfigurations")
}

func policies() resource {
	return of(admissionregistrationv1.SchemeGroupVersion, "validatingadmissionpolicies", "ValidatingAdmissionPolicies")
}

func bindings() resource {
	return of(admissionregistrationv1.SchemeGroupVersion, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBindings")
}

func endpoints() resource {
	return of(discoveryv1.SchemeGroupVersion, "endpointslices", "EndpointSlices")
}

func (r *reader) reviewers(ctx context.Context, namespaces []metav1.PartialObjectMetadata) reviewer.Input {
	input := reviewer.Input{
		Namespaces: namespaces,
		Validating: list[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, r, validating()),
		Mutating:   list[admissionregistrationv1.MutatingWebhookConfiguration](ctx, r, mutating()),
		Policies:   list[admissionregistrationv1.ValidatingAdmissionPolicy](ctx, r, policies()),
		Bindings:   list[admissionregistrationv1.ValidatingAdmissionPolicyBinding](ctx, r, bindings()),
	}
	var err error
	if input.Services, err = r.cluster.Services(ctx); err != nil {
		r.gap(services, err)
	}
	if input.Endpoints, err = r.cluster.EndpointSlices(ctx); err != nil {
		r.gap(endpoints().name, err)
	}
	var unread []string
	for _, gap := range r.gaps {
		switch gap.Resource {
		case validating().name, mutating().name, policies().name, bindings().name, endpoints().name, services, allNamespaces:
			unread = append(unread, gap.Resource)
		}
	}
	input.Unread = strings.Join(unread, ", ")
	input.Listed = func(namespace string) bool {
		return r.cluster.Listed(ctx, namespace, corev1.SchemeGroupVersion.WithResource("services"), endpoints().GroupVersionResource) == nil
	}
	return input
}
