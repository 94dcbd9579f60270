package recreation

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { //nolint:gochecknoglobals // checks that do not change
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

// secure is what refuses a pod for its namespace's level of Pod Security, or for its ServiceAccount, and
// that as a clause about the pod; both are empty where nothing does.
func (w *Workloads) secure(pod *corev1.Pod) (by, why string) {
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	if of := w.accounts[pod.Namespace]; len(of) > 0 && !of[account] {
		return "the API server", fmt.Sprintf("has ServiceAccount %q, which does not exist", account)
	}
	namespace := w.namespaces[pod.Namespace]
	if pod.Spec.SecurityContext == nil {
		return "", "" // the API server sets it, so that it was not read
	}
	if namespace == nil || namespace.Labels[api.EnforceLevelLabel] == "" {
		return "", ""
	}
	privileged := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	// An invalid label is the level "restricted", as for the API server.
	levels, _ := api.PolicyToEvaluate(namespace.Labels, api.Policy{Enforce: privileged, Audit: privileged, Warn: privileged})
	checks, err := evaluator()
	if err != nil {
		return "the library of Pod Security", "cannot be evaluated: " + err.Error()
	}
	result := policy.AggregateCheckResults(checks.EvaluatePod(levels.Enforce, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return "", ""
	}
	return fmt.Sprintf("Pod Security %q of namespace %q", levels.Enforce.Level, pod.Namespace), "has " + result.ForbiddenReason()
}
