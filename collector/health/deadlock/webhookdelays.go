package deadlock

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/openshift/update-preflight/collector/admission"
	"github.com/openshift/update-preflight/collector/admission/backend"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var reasonWebhookDelays = finding.NewReason("WebhookDelaysHeartbeats", finding.Explanation{
	Meaning: "Reported when a webhook with the failure policy Ignore, all replicas of which are on one node, receives the heartbeats of " +
		"nodes, and the API server may wait for it longer than a kubelet waits for the API server: while the node is drained, " +
		"other nodes may become not ready.",
	Cause: "The rules of the webhook have leases or the status of nodes, such as by a wildcard, timeoutSeconds is 10 or more, and " +
		"the webhook has one replica, or no anti-affinity.",
	Remedy: "Exclude leases and the status of nodes from what the webhook receives, set timeoutSeconds below 10, or run two replicas " +
		"with anti-affinity and a PodDisruptionBudget: `oc edit validatingwebhookconfiguration NAME`.",
})

// heartbeatTimeout is after how many seconds a kubelet ends the request of a heartbeat: the default of
// nodeStatusUpdateFrequency (kubernetes cmd/kubelet/app/server.go, heartbeatClientConfig).
const heartbeatTimeout = 10

// delays judges a webhook that the API server ignores where it does not respond in time. Requests wait for
// it, although none is rejected.
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
		effect: fmt.Sprintf(": each request that it receives may take so long then, such as the heartbeats of nodes, which a kubelet ends after %d s: %s",
			heartbeatTimeout, request.Action),
		remedy:  "Exclude leases and the status of nodes from what the webhook receives, set timeoutSeconds below 10, or run two replicas with anti-affinity and a PodDisruptionBudget.",
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
