package deadlock

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	webhookTimeoutsName = finding.NewName("WebhookTimeouts", "The total time of all webhooks for one request.")

	reasonWebhookUnavailable = finding.NewReason("WebhookUnavailable", finding.Explanation{
		Meaning: "A webhook that cannot respond receives requests of the update, so the API server rejects them.",
		Cause:   "The Service of the webhook does not exist, lacks the port, or has no ready endpoint, and failurePolicy is Fail.",
		Remedy: "Restore the pods of the Service, exclude the namespaces of the cluster with namespaceSelector, or set " +
			"failurePolicy: Ignore: `oc edit validatingwebhookconfiguration NAME`.",
	})
	reasonWebhookSelectsItself = finding.NewReason("WebhookSelectsItself", finding.Explanation{
		Meaning: "A webhook receives the requests that create its own pods: when no pod of it is ready, none can be created.",
		Cause: "namespaceSelector and objectSelector do not exclude the pods of the webhook, and failurePolicy is Fail. The finding " +
			"fails if the pods are on one node, and their controller creates a new pod only after the old one has terminated.",
		Remedy: "Exclude the namespace of the webhook and the openshift-* namespaces with namespaceSelector, or set " +
			"failurePolicy: Ignore: `oc edit validatingwebhookconfiguration NAME`.",
	})
	reasonWebhookOnOneNode = finding.NewReason("WebhookOnOneNode", finding.Explanation{
		Meaning: "All replicas of a webhook are on one node: while the node is drained, the API server rejects the requests of the " +
			"update that the webhook receives.",
		Cause: "The webhook has one replica, or no anti-affinity, and failurePolicy is Fail.",
		Remedy: "Run two replicas with anti-affinity and a PodDisruptionBudget, exclude the openshift-* namespaces with " +
			"namespaceSelector, or set failurePolicy: Ignore: `oc -n NAMESPACE get pods -o wide`.",
	})
	reasonWebhookCAExpired = finding.NewReason("WebhookCAExpired", finding.Explanation{
		Meaning: "Every certificate in the caBundle of a webhook that receives requests of an update has expired, so the API server " +
			"rejects these requests.",
		Cause:  "The certificate was not renewed, or the renewed one was not written to the webhook configuration.",
		Remedy: "Renew the certificate, and write it to caBundle: `oc edit validatingwebhookconfiguration NAME`.",
	})
	reasonWebhookCAExpires = finding.NewReason("WebhookCAExpires", finding.Explanation{
		Meaning: "Every certificate in the caBundle of a webhook that receives requests of an update expires within 24 hours, during " +
			"which the update may be in progress.",
		Cause:  "The certificate was not renewed yet.",
		Remedy: "Renew the certificate, and write it to caBundle: `oc edit validatingwebhookconfiguration NAME`.",
	})
	reasonWebhookURL = finding.NewReason("WebhookURL", finding.Explanation{
		Meaning: "A webhook that receives requests of an update addresses a Service of the cluster by URL.",
		Cause:   "clientConfig.url contains the DNS name of a Service, which the API server resolves with the name server of its node.",
		Remedy:  "Name the Service in clientConfig.service: `oc edit validatingwebhookconfiguration NAME`.",
	})
	reasonWebhookTimeouts = finding.NewReason("WebhookTimeouts", finding.Explanation{
		Meaning: "The webhooks for one new pod may together take longer than the API server allows for the request.",
		Cause: "Mutating webhooks are called one after the other, then the validating ones in parallel; the sum of timeoutSeconds " +
			"exceeds 34 seconds.",
		Remedy: "Reduce timeoutSeconds of the webhooks, or exclude the namespaces of the cluster with " +
			"namespaceSelector.",
		Command: "oc get mutatingwebhookconfigurations -o yaml",
	})
)

const (
	updateTakes = 24 * time.Hour
	// requestTimeout is the longest time of a request (k8s.io/apiserver
	// pkg/endpoints/handlers, requestTimeoutUpperBound).
	requestTimeout = 34
	// webhookTimeout is the default of timeoutSeconds.
	webhookTimeout = 10
	// maxTimed bounds the new pods whose webhooks are counted.
	maxTimed = 1000
)

// risk is a condition in which a webhook does not respond.
type risk struct {
	outcome preflight.Outcome
	reason  finding.Reason
	// cause is a clause on the webhook, remedy an imperative sentence.
	cause, remedy string
	// effect is the consequence for the request; empty if it is rejected.
	effect  string
	actions []finding.Action
}

type webhookJudge struct {
	requests *updateRequests
	backends *backend.Backends
	budgets  []policyv1.PodDisruptionBudget
	now      time.Time
	// listed returns an error if objects that were not found may exist; unread is the last such error.
	listed func(ctx context.Context, namespace string, resources ...schema.GroupVersionResource) error
	unread error
}

// complete reports whether all objects of the resources in the namespace are known.
func (j *webhookJudge) complete(ctx context.Context, namespace string, resources ...schema.GroupVersionResource) bool {
	if err := j.listed(ctx, namespace, resources...); err != nil {
		j.unread = err
		return false
	}
	return true
}

// servicesAndEndpoints are the resources that decide whether a Service responds.
func servicesAndEndpoints() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("services"), endpointSlices()}
}

func endpointSlices() schema.GroupVersionResource {
	return discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
}

// risks are the conditions of one webhook, whichever requests it receives.
func (j *webhookJudge) risks(ctx context.Context, w *webhook) []risk {
	var risks []risk
	if r, ok := j.certificate(w); ok {
		risks = append(risks, r)
	}
	if reference, ok := backend.ReferenceIn(w.ClientConfig); ok {
		return append(risks, risk{
			outcome: preflight.Warn, reason: reasonWebhookURL,
			cause: fmt.Sprintf("addresses Service %s by URL, which the API server may "+
				"not resolve while cluster DNS is updated", reference),
			remedy: "Name the Service in clientConfig.service instead of clientConfig.url.",
		})
	}
	reference, ok := backend.ReferenceOf(w.ClientConfig)
	if !ok {
		return risks
	}
	served := j.backends.Of(reference)
	if r, ok := unavailable(reference, served); ok {
		if !j.complete(ctx, reference.Namespace, servicesAndEndpoints()...) {
			return risks
		}
		return append(risks, r)
	}
	if served.State == backend.Serving {
		risks = append(risks, j.placement(ctx, w, reference, served)...)
	}
	return risks
}

// certificate evaluates the caBundle of a webhook. Of several certificates, the API server uses any that is valid.
// An empty bundle is not evaluated.
func (j *webhookJudge) certificate(w *webhook) (risk, bool) {
	last, ok := lastExpiry(w.ClientConfig.CABundle)
	r := risk{remedy: "Renew the certificate of the webhook, and write it to clientConfig.caBundle."}
	switch {
	case !ok || last.After(j.now.Add(updateTakes)):
		return risk{}, false
	case last.After(j.now):
		r.outcome, r.reason = preflight.Warn, reasonWebhookCAExpires
		r.cause = fmt.Sprintf("has a caBundle that expires at %s, within the %s in which an update may be in progress", words.Time(last),
			updateTakes)
	default:
		r.outcome, r.reason = preflight.Fail, reasonWebhookCAExpired
		r.cause = fmt.Sprintf("has a caBundle that expired at %s", words.Time(last))
	}
	return r, true
}

// lastExpiry is when the last certificate of a bundle expires; false without one.
func lastExpiry(bundle []byte) (time.Time, bool) {
	var last time.Time
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return last, !last.IsZero()
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
}

func unavailable(reference backend.Reference, served backend.Backend) (risk, bool) {
	causes := map[backend.State]string{
		backend.Missing: fmt.Sprintf("needs Service %s, which does not exist", reference),
		backend.NoPort:  fmt.Sprintf("needs port %d of Service %s, which the Service does not have", reference.Port, reference),
		backend.Empty:   fmt.Sprintf("needs Service %s, which has no ready endpoint", reference),
	}
	cause, ok := causes[served.State]
	return risk{
		outcome: preflight.Fail, reason: reasonWebhookUnavailable, cause: cause,
		remedy: "Restore the pods of the Service, exclude the namespaces of the cluster with namespaceSelector, or set failurePolicy: Ignore.",
		actions: []finding.Action{
			finding.Read("oc -n %s get endpointslices -l kubernetes.io/service-name=%s", reference.Namespace, reference.Name),
			finding.Read("oc -n %s get pods -o wide", reference.Namespace),
		},
	}, ok
}

// placement evaluates a backend by the nodes of its pods, and by whether it receives the requests that create
// them.
func (j *webhookJudge) placement(ctx context.Context, w *webhook, reference backend.Reference, served backend.Backend) []risk {
	pods := j.podsOf(reference, served)
	own, self := j.requests.matcher.First(ctx, w.hook, j.creations(pods))
	alone := j.alone(ctx, reference, served)
	actions := []finding.Action{finding.Read("oc -n %s get pods -o wide", reference.Namespace)}
	var risks []risk
	if self == admission.Matched && (alone || len(served.Nodes) != 1) {
		r := risk{
			outcome: preflight.Warn, reason: reasonWebhookSelectsItself, actions: actions,
			cause:  fmt.Sprintf("receives the requests that create its own pods (%s)", own.Action),
			effect: ", so when none of them is ready, none can be created",
			remedy: fmt.Sprintf("Exclude the namespace of the webhook, %s, with namespaceSelector.", reference.Namespace),
		}
		if alone && slices.ContainsFunc(pods, replacedAfterEnd) {
			r.outcome = preflight.Fail
			r.effect = fmt.Sprintf(", and all of them are on node %q: once that node "+
				"is drained, none can be created again", served.Nodes[0])
		}
		risks = append(risks, r)
	}
	if alone {
		risks = append(risks, risk{
			outcome: preflight.Warn, reason: reasonWebhookOnOneNode, actions: actions,
			cause:  fmt.Sprintf("has all its replicas on node %q, whose drain removes them", served.Nodes[0]),
			remedy: "Run two replicas with anti-affinity and a PodDisruptionBudget that allows one of them to be evicted.",
		})
	}
	return risks
}

// alone reports whether all replicas of a backend are on one node of several, and no PodDisruptionBudget keeps
// one of them ready while that node is drained.
func (j *webhookJudge) alone(ctx context.Context, reference backend.Reference, served backend.Backend) bool {
	return len(served.Nodes) == 1 && j.requests.nodes > 1 && !slices.ContainsFunc(j.podsOf(reference, served), j.budgeted) &&
		j.complete(ctx, reference.Namespace, endpointSlices(), policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"))
}

// podsOf are the pods of a backend, one of each controller.
func (j *webhookJudge) podsOf(reference backend.Reference, served backend.Backend) []metav1.PartialObjectMetadata {
	var pods []metav1.PartialObjectMetadata
	for i := range j.requests.replicas {
		pod := &j.requests.replicas[i]
		if pod.Namespace == reference.Namespace && served.Selector.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, *pod)
		}
	}
	return pods
}

// creations returns the requests that replace pods that a drain evicts. Pods of a DaemonSet and static pods stay,
// and pods without a controller are not replaced.
func (j *webhookJudge) creations(pods []metav1.PartialObjectMetadata) []admission.Group {
	replaced := slices.DeleteFunc(slices.Clone(pods), func(pod metav1.PartialObjectMetadata) bool {
		owner := metav1.GetControllerOfNoCopy(&pod)
		return owner == nil || owner.Kind == "DaemonSet" || owner.Kind == "Node"
	})
	return []admission.Group{
		admission.CreatePods(replaced, j.requests.node), admission.BindPods(replaced), admission.ReportPods(replaced, j.requests.node),
	}
}

// replacedAfterEnd reports whether the controller of a pod replaces it only after it
// has ended. A ReplicaSet does so when the deletion begins, while the pod may still
// respond.
func replacedAfterEnd(pod metav1.PartialObjectMetadata) bool {
	owner := metav1.GetControllerOfNoCopy(&pod)
	return owner != nil && owner.Kind == "StatefulSet"
}

// budgeted reports whether a PodDisruptionBudget keeps a pod like this ready while others are evicted.
func (j *webhookJudge) budgeted(pod metav1.PartialObjectMetadata) bool {
	for i := range j.budgets {
		budget := &j.budgets[i]
		if budget.Namespace != pod.Namespace || budget.Status.DesiredHealthy < 1 {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}

// timeouts evaluates the longest time of the webhooks for one new pod.
func (j *webhookJudge) timeouts(ctx context.Context, webhooks []webhook) (finding.Finding, bool) {
	creations := j.requests.groups[0]
	concerned := slices.DeleteFunc(slices.Clone(webhooks), func(w webhook) bool { return !j.requests.matcher.Concerns(w.hook, creations) })
	var worst int32
	var request admission.Request
	for _, creation := range creations[:min(len(creations), maxTimed)] {
		if seconds := j.longest(ctx, concerned, creation); seconds > worst {
			worst, request = seconds, creation
		}
		if ctx.Err() != nil {
			break
		}
	}
	if worst <= requestTimeout {
		return finding.Finding{}, false
	}
	return finding.Warn(reasonWebhookTimeouts,
		"the webhooks for one request of the update may together take %d s (the sum of timeoutSeconds of the mutating webhooks, plus "+
			"the longest of the validating ones), but the API server cancels a request after %d s: %s",
		worst, requestTimeout, request.Action).
		Named(webhookTimeoutsName).
		Do(finding.Read("oc get mutatingwebhookconfigurations,validatingwebhookconfigurations -o yaml")), true
}

// longest is the longest time that the webhooks of a request take, in seconds.
func (j *webhookJudge) longest(ctx context.Context, webhooks []webhook, request admission.Request) int32 {
	var serial, parallel int32
	for i := range webhooks {
		w := &webhooks[i]
		seconds := w.timeout()
		useful := w.kind == mutating || seconds > parallel
		if !useful || j.requests.matcher.Match(ctx, w.hook, request) != admission.Matched {
			continue
		}
		if w.kind == mutating {
			serial += cmp.Or(seconds, webhookTimeout)
			continue
		}
		parallel = seconds
	}
	return serial + parallel
}
