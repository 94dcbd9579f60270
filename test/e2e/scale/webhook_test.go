package scale_test

import (
	"cmp"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

// Variables of the container of a check that control its simulated pod. The webhook
// converts them to annotations for the simulated node, since preflight does not copy
// unknown annotations to the pods of checks.
const (
	// variableCheck is the name of the check whose result the pod reports; empty for a
	// check without the SDK.
	variableCheck = "SIMULATION_CHECK"
	// variableDuration is the duration of the pod, for cluster.AnnotationTakes.
	variableDuration = "SIMULATION_DURATION"
)

// simulateResults gives the pods of simulated nodes the termination message that the SDK
// would write: a result with the ID of the run and a checksum. It requires a webhook,
// since both are known only when the pod is created.
func (e *environment) simulateResults() {
	e.tb.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(admit))
	e.tb.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	_, err := e.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(e.tb.Context(),
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "simulation"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name:         "simulation.preflight.test",
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: certificate},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}},
				SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		e.tb.Fatal(err)
	}
}

// admit responds to an AdmissionReview of a pod.
func admit(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var pod corev1.Pod
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if variable(pod, variableDuration) != "" {
		patch, err := simulate(pod)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}
	review.Request, review.Response = nil, response
	_ = json.NewEncoder(w).Encode(review) // the API server repeats the request if the connection broke
}

// variable returns the value of an environment variable of the first container.
func variable(pod corev1.Pod, name string) string {
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}

// simulate returns a JSON patch with the annotations for the duration and the result of
// the simulated pod.
func simulate(pod corev1.Pod) ([]byte, error) {
	annotations := map[string]string{cluster.AnnotationTakes: variable(pod, variableDuration)}
	maps.Copy(annotations, pod.Annotations)
	if check := variable(pod, variableCheck); check != "" {
		message, err := message(check, cmp.Or(variable(pod, "PREFLIGHT_RUN_ID"), "00000000-0000-0000-0000-000000000000"))
		if err != nil {
			return nil, err
		}
		annotations[cluster.AnnotationMessage] = message
	}
	return json.Marshal([]map[string]any{{"op": "add", "path": "/metadata/annotations", "value": annotations}})
}

// message returns the termination message of a check that passes in a run.
func message(check, run string) (string, error) {
	frame, err := preflight.Result{
		State: preflight.StateFinal, RunID: run,
		Findings: []preflight.Finding{{
			Name: check, Outcome: preflight.Pass, Reason: "Healthy",
			Message: fmt.Sprintf("all 3 replicas of %s are ready, and each has been for more than an hour", check),
		}},
	}.Frame(0)
	return string(frame), err
}
