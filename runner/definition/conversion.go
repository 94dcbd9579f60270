package definition

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

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
		s.found = append(s.found, report(reasonConversionCAExpired, "all certificates in the caBundle of the conversion webhook of %s have expired", describe(c.target)).
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
