package scale_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

// annotationSpeaks names the check that speaks through the pod.
const annotationSpeaks = "simulation-speaks"

// speakForPods gives the pods of simulated nodes what the SDK would leave as
// their termination message: a result of this very run, with its checksum. That
// takes a program, which the API server asks as it creates the pod.
func (p *place) speakForPods() {
	p.tb.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(answerReview))
	p.tb.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	_, err := p.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(p.tb.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "voice"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:         "voice.preflight.test",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: certificate},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		p.tb.Fatal(err)
	}
}

func answerReview(w http.ResponseWriter, r *http.Request) {
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
	if check := pod.Annotations[annotationSpeaks]; check != "" {
		patch, err := sayInTheEnd(check, pod)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		response.Patch, response.PatchType = patch, new(admissionv1.PatchTypeJSONPatch)
	}
	review.Request, review.Response = nil, response
	_ = json.NewEncoder(w).Encode(review) // an API server that has gone tries again
}

// sayInTheEnd adds the annotation that has the simulated node leave a result.
func sayInTheEnd(check string, pod corev1.Pod) ([]byte, error) {
	run := "00000000-0000-0000-0000-000000000000" // of a pod that no preflight started
	for _, variable := range pod.Spec.Containers[0].Env {
		if variable.Name == "PREFLIGHT_RUN_ID" {
			run = variable.Value
		}
	}
	frame, err := preflight.Result{State: preflight.StateFinal, RunID: run, Findings: []preflight.Finding{{Name: check, Outcome: preflight.Pass, Reason: "Healthy", Message: fmt.Sprintf("all 3 replicas of %s are ready, and each has been for more than an hour", check)}}}.Frame(0)
	if err != nil {
		return nil, err
	}
	annotations := pod.Annotations
	annotations[cluster.AnnotationMessage] = string(frame)
	return json.Marshal([]map[string]any{{"op": "add", "path": "/metadata/annotations", "value": annotations}})
}
