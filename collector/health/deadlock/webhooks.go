// Package deadlock answers: which webhook or policy would reject the requests of the update itself?
//
// Such a request is rejected if a webhook must respond and cannot, because the update moves its pods, or if a
// ValidatingAdmissionPolicy has no parameter. The checks are [Webhooks] and [Policies].
package deadlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxNamed bounds the namespaces in one message.
const maxNamed = 5

var nameWebhooks = finding.NewName("Webhooks",
	"Checks for webhooks with the failure policy Fail that receive a request of every update and may not respond to it: the update "+
		"creates, binds, evicts and deletes pods of the cluster itself and updates their status, cordons nodes and updates their "+
		"status, renews leases, and updates CustomResourceDefinitions and ClusterOperators. A webhook with the failure policy Ignore "+
		"only causes a warning, and only if it may delay the heartbeats of nodes. Each configuration and reason has a finding "+
		"<kind><reason>-<configuration>. A webhook whose conditions or selectors depend on more than the metadata of an object only "+
		"causes a warning. On a cluster with a single node, which is not drained, replicas on one node are expected.")

// Webhooks is the check Webhooks.
func Webhooks() check.Check {
	return check.Check{
		Name: nameWebhooks, Kind: finding.SourceHealth,
		Reads: slices.Concat(readsRequests(), []access.Request{
			check.List(admissionregistrationv1.GroupName, "validatingwebhookconfigurations"),
			check.List(admissionregistrationv1.GroupName, "mutatingwebhookconfigurations"),
			check.List("", "services"), check.List(discoveryv1.GroupName, "endpointslices"),
			check.List(policyv1.GroupName, "poddisruptionbudgets"),
		}),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			webhooks, err := webhooksOf(ctx, s.Cluster)
			if err != nil {
				return nil, err
			}
			requests, err := requestsOf(ctx, s.Cluster)
			if err != nil {
				return nil, err
			}
			backends, err := backendsOf(ctx, s.Cluster)
			if err != nil {
				return nil, err
			}
			budgets, err := s.Cluster.PodDisruptionBudgets(ctx)
			if err != nil {
				return nil, fmt.Errorf("could not list the PodDisruptionBudgets: %w", err)
			}
			judge := &webhookJudge{requests: requests, backends: backends, budgets: budgets, now: s.Now, listed: s.Cluster.Listed}
			found := judge.evaluate(ctx, webhooks)
			return found, errors.Join(judge.unread, ctx.Err())
		},
	}
}

func backendsOf(ctx context.Context, cluster *snapshot.Cluster) (*backend.Backends, error) {
	services, err := cluster.Services(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the Services: %w", err)
	}
	endpoints, err := cluster.EndpointSlices(ctx)
	if err != nil {
		return nil, fmt.Errorf("could not list the EndpointSlices: %w", err)
	}
	return backend.NewBackends(services, endpoints), nil
}

// evaluate returns the findings of all webhooks; one for each configuration and reason.
func (j *webhookJudge) evaluate(ctx context.Context, webhooks []webhook) []finding.Finding {
	var drafts []finding.Draft
	reported := map[string]bool{}
	for i := range webhooks {
		w := &webhooks[i]
		found := j.delays(ctx, w)
		if w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Fail {
			found = j.drafts(ctx, w)
		}
		for _, draft := range found {
			key := string(draft.outcome) + w.findingName(draft.reason)
			if !reported[key] {
				reported[key] = true
				drafts = append(drafts, draft.draft())
			}
		}
	}
	if timeouts, ok := j.timeouts(ctx, webhooks); ok {
		drafts = append(drafts, finding.Drafts(timeouts)...)
	}
	if len(drafts) == 0 {
		drafts = finding.Drafts(finding.Pass(gap.ExtentOf(ctx), check.ReasonAsExpected, "none of %s is expected to block a request of the update",
			words.Count(len(webhooks), "webhook")))
	}
	return finding.Bounded(drafts)
}

type webhookDraft struct {
	risk

	webhook *webhook
	request admission.Request
	certain bool
	// namespaces are the openshift-* namespaces whose requests the webhook receives.
	namespaces []string
}

// drafts are the risks of one webhook for the requests of an update.
func (j *webhookJudge) drafts(ctx context.Context, w *webhook) []webhookDraft {
	risks := j.risks(ctx, w)
	if len(risks) == 0 {
		return nil
	}
	request, match := j.requests.matcher.First(ctx, w.hook, j.requests.groups)
	namespaces := slices.DeleteFunc(j.requests.matcher.Namespaces(ctx, w.hook, j.requests.groups), func(namespace string) bool {
		return !strings.HasPrefix(namespace, "openshift-")
	})
	var drafts []webhookDraft
	for _, risk := range risks {
		draft := webhookDraft{risk: risk, webhook: w, request: request, certain: match == admission.Matched, namespaces: namespaces}
		if match == admission.Excluded && risk.reason != reasonWebhookSelectsItself {
			continue
		}
		if match == admission.Uncertain && risk.reason != reasonWebhookSelectsItself {
			draft.outcome = preflight.Warn
		}
		drafts = append(drafts, draft)
	}
	return drafts
}

func (d webhookDraft) draft() finding.Draft {
	return finding.Draft{Outcome: d.outcome, Describe: d.describe}
}

func (d webhookDraft) describe() finding.Finding {
	message := fmt.Sprintf("%s %s", d.webhook.subject(), d.cause)
	switch {
	case d.effect != "":
		message += d.effect
	case d.certain:
		message += fmt.Sprintf(", and with failurePolicy Fail the API server then rejects requests of the update, such as: %s",
			d.request.Action)
	default:
		message += fmt.Sprintf(", and with failurePolicy Fail the API server then rejects the requests that the webhook receives, "+
			"which may include a request of the update (its selectors or "+
			"match conditions depend on more than metadata): %s", d.request.Action)
	}
	remedy := d.remedy
	if len(d.namespaces) > 0 {
		message += fmt.Sprintf("; it receives requests of the update in %s: %s", words.Count(len(d.namespaces), "openshift-* namespace"),
			words.List(d.namespaces, maxNamed))
		if d.placed() {
			remedy += " Exclude the openshift-* namespaces with namespaceSelector (kubernetes.io/metadata.name NotIn their names), or set " +
				"failurePolicy: Ignore."
		}
	}
	resource := "validatingwebhookconfiguration"
	if d.webhook.kind == mutating {
		resource = "mutatingwebhookconfiguration"
	}
	return finding.New(d.outcome, d.reason, "%s", message).
		Named(d.webhook.findingName(d.reason)).
		Remedy("%s", remedy).
		Do(append(slices.Clone(d.actions), finding.Read("oc get %s %s -o yaml", resource, d.webhook.configuration))...).
		About(d.webhook.object())
}

// placed reports whether the risk is the placement of the pods: the remedy of the others
// has the namespaces of the cluster, or makes the webhook respond.
func (d webhookDraft) placed() bool {
	return d.reason == reasonWebhookSelectsItself || d.reason == reasonWebhookOnOneNode
}

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
	validators, validatingErr := snapshot.List[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, cluster,
		version.WithResource("validatingwebhookconfigurations"))
	mutators, mutatingErr := snapshot.List[admissionregistrationv1.MutatingWebhookConfiguration](ctx, cluster,
		version.WithResource("mutatingwebhookconfigurations"))
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
			all = append(all, webhook{
				ValidatingWebhook: admission.Mutating(&mutators[i].Webhooks[j]), kind: mutating,
				configuration: mutators[i].Name,
			})
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

func (w webhook) object() finding.Object {
	return finding.Object{
		APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: w.kind + "WebhookConfiguration",
		Name: w.configuration,
	}
}

func (w webhook) subject() string {
	return fmt.Sprintf("webhook %q of %s", w.Name, check.Describe(w.object()))
}

func (w *webhook) findingName(reason finding.Reason) string {
	return finding.NameOf(w.kind+reason.String(), w.configuration)
}

var reasonWebhookDelays = finding.NewReason("WebhookDelaysHeartbeats", finding.Explanation{
	Meaning: "A webhook with the failure policy Ignore and all its replicas on one node receives the heartbeats of nodes, and the API " +
		"server may wait for it longer than a kubelet waits for the API server: while the node is drained, other nodes may become " +
		"NotReady.",
	Cause: "The rules of the webhook include leases or the status of nodes, for example by a wildcard, timeoutSeconds is 10 or more, " +
		"and the webhook has one replica, or no anti-affinity.",
	Remedy: "Exclude leases and the status of nodes from the rules of the webhook, set timeoutSeconds below 10, or run two replicas " +
		"with anti-affinity and a PodDisruptionBudget: `oc edit validatingwebhookconfiguration NAME`.",
})

// heartbeatTimeout is after how many seconds a kubelet ends the request of a heartbeat: the default of
// nodeStatusUpdateFrequency (kubernetes cmd/kubelet/app/server.go, heartbeatClientConfig).
const heartbeatTimeout = 10

// delays evaluates a webhook that the API server ignores if it does not respond in time. Requests wait for it,
// although none is rejected.
func (j *webhookJudge) delays(ctx context.Context, w *webhook) []webhookDraft {
	reference, ok := backend.ReferenceOf(w.ClientConfig)
	if !ok || w.FailurePolicy == nil || *w.FailurePolicy != admissionregistrationv1.Ignore || w.timeout() < heartbeatTimeout {
		return nil
	}
	request, match := j.requests.matcher.First(ctx, w.hook, j.requests.heartbeats)
	served := j.backends.Of(reference)
	if match == admission.Excluded || served.State != backend.Serving || !j.alone(ctx, reference, served) {
		return nil
	}
	return []webhookDraft{{webhook: w, request: request, certain: match == admission.Matched, risk: risk{
		outcome: preflight.Warn, reason: reasonWebhookDelays,
		cause: fmt.Sprintf("has all its replicas on node %q, whose drain removes them, and timeoutSeconds %d", served.Nodes[0], w.timeout()),
		effect: fmt.Sprintf(": meanwhile each request that it receives may take that long, such as the heartbeats of nodes, which a "+
			"kubelet cancels after %d s: %s",
			heartbeatTimeout, request.Action),
		remedy: "Exclude leases and the status of nodes from the rules of the webhook, set timeoutSeconds below 10, or run two " +
			"replicas with anti-affinity and a PodDisruptionBudget.",
		actions: []finding.Action{finding.Read("oc -n %s get pods -o wide", reference.Namespace)},
	}}}
}

// timeout is how many seconds the API server waits for the webhook.
func (w *webhook) timeout() int32 {
	if w.TimeoutSeconds == nil {
		return webhookTimeout
	}
	return *w.TimeoutSeconds
}
