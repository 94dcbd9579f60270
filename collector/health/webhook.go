package health

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// webhook is one webhook of a configuration.
type webhook struct {
	admissionregistrationv1.ValidatingWebhook

	// kind is Validating or Mutating.
	kind          string
	configuration string
	hook          *admission.Hook
}

const (
	validating = "Validating"
	mutating   = "Mutating"
)

// webhooksOf are all webhooks, sorted by kind and configuration.
func webhooksOf(ctx context.Context, cluster *snapshot.Cluster) ([]webhook, error) {
	version := admissionregistrationv1.SchemeGroupVersion
	validators, validatingErr := snapshot.List[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, cluster, version.WithResource("validatingwebhookconfigurations"))
	mutators, mutatingErr := snapshot.List[admissionregistrationv1.MutatingWebhookConfiguration](ctx, cluster, version.WithResource("mutatingwebhookconfigurations"))
	if err := errors.Join(validatingErr, mutatingErr); err != nil {
		return nil, fmt.Errorf("could not list the webhook configurations: %w", err)
	}
	var all []webhook
	for i := range validators {
		for j := range validators[i].Webhooks {
			all = append(all, webhook{ValidatingWebhook: validators[i].Webhooks[j], kind: validating, configuration: validators[i].Name})
		}
	}
	for i := range mutators {
		for j := range mutators[i].Webhooks {
			all = append(all, webhook{ValidatingWebhook: admission.Mutating(&mutators[i].Webhooks[j]), kind: mutating, configuration: mutators[i].Name})
		}
	}
	for i := range all {
		hook, err := admission.Webhook(all[i].ValidatingWebhook)
		if err != nil {
			return nil, fmt.Errorf("a selector of %s is invalid: %w", all[i].subject(), err)
		}
		all[i].hook = hook
	}
	return all, nil
}

// object is the configuration of the webhook.
func (w webhook) object() finding.Object {
	return finding.Object{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: w.kind + "WebhookConfiguration", Name: w.configuration}
}

// subject names the webhook in a message.
func (w webhook) subject() string {
	return fmt.Sprintf("webhook %q of %s", w.Name, check.Describe(w.object()))
}

func (w *webhook) findingName(reason finding.Reason) string {
	return finding.NameOf(w.kind+string(reason), w.configuration)
}
