package launch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/payload"
)

// maxShownValue bounds the value of a field in a message, in bytes.
const maxShownValue = 100

// difference returns the first field in which an existing object differs from the
// planned one, with the value that it has; empty if there is none. Fields that the
// API server sets by itself are not differences. A ServiceAccount may have more image
// pull secrets, which controllers add.
func difference(planned, found payload.Object) (string, error) {
	want, err := content(planned)
	if err != nil {
		return "", err
	}
	have, err := content(found)
	if err != nil {
		return "", err
	}
	if _, isAccount := found.(*corev1.ServiceAccount); isAccount {
		have["imagePullSecrets"] = common(want["imagePullSecrets"], have["imagePullSecrets"])
	}
	return compare("", want, have), nil
}

// content is what a plan determines of an object, as in a manifest. Omitted are what
// the API server and controllers set, and the deadline: that of a run that was taken
// over is later.
func content(object payload.Object) (map[string]any, error) {
	if job, ok := object.(*batchv1.Job); ok {
		object = plannedFields(job)
	}
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("could not compare %s: %w", referenceTo(object), err)
	}
	for _, key := range []string{"apiVersion", "kind", "status", "secrets"} {
		delete(all, key)
	}
	meta := map[string]any{}
	for _, key := range object.GetFinalizers() {
		meta["finalizers"] = key
	}
	for _, owner := range object.GetOwnerReferences() {
		meta["ownerReferences"] = owner.Kind + " " + owner.Name
	}
	meta["labels"] = values(object.GetLabels())
	meta["annotations"] = values(allowed(object.GetAnnotations(), []string{AnnotationCheck}))
	all["metadata"] = meta
	return all, nil
}

func values(texts map[string]string) map[string]any {
	all := make(map[string]any, len(texts))
	for key, text := range texts {
		all[key] = text
	}
	return all
}

// plannedFields returns a copy of a Job without the fields that the API server and
// the Job controller set, and without its deadline.
func plannedFields(job *batchv1.Job) *batchv1.Job {
	kept := job.DeepCopy()
	kept.Spec.Selector, kept.Spec.ActiveDeadlineSeconds = nil, nil
	template := &kept.Spec.Template
	for _, key := range []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"} {
		delete(template.Labels, key)
	}
	if template.Spec.DeprecatedServiceAccount == template.Spec.ServiceAccountName {
		template.Spec.DeprecatedServiceAccount = ""
	}
	clearDeadline(template.Spec)
	return kept
}

// clearDeadline removes the value of the variable from the containers.
func clearDeadline(spec corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, container := range containers {
			for i := range container.Env {
				if container.Env[i].Name == variableDeadline {
					container.Env[i].Value = ""
				}
			}
		}
	}
}

// common returns the elements of have that are also in want, in the order of want.
func common(want, have any) any {
	wanted, _ := want.([]any)
	existing, _ := have.([]any)
	var kept []any
	for _, element := range wanted {
		if slices.ContainsFunc(existing, func(other any) bool { return compare("", element, other) == "" }) {
			kept = append(kept, element)
		}
	}
	return kept
}

// compare returns the path and the value of the first difference. An omitted field
// equals an empty one and the default of the API server.
func compare(path string, want, have any) string {
	if isEmpty(want) {
		field := path[strings.LastIndex(path, ".")+1:]
		if isEmpty(have) || slices.Contains(defaultsOf(field), have) {
			return ""
		}
		return differs(path, have)
	}
	switch want := want.(type) {
	case map[string]any:
		if have, ok := have.(map[string]any); ok {
			return compareFields(path, want, have)
		}
	case []any:
		if have, ok := have.([]any); ok && len(have) == len(want) {
			return compareElements(path, want, have)
		}
	default:
		if want == have {
			return ""
		}
	}
	return differs(path, have)
}

func compareFields(path string, want, have map[string]any) string {
	keys := maps.Clone(want)
	maps.Copy(keys, have)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if found := compare(strings.TrimPrefix(path+"."+key, "."), want[key], have[key]); found != "" {
			return found
		}
	}
	return ""
}

func compareElements(path string, want, have []any) string {
	for i := range want {
		if found := compare(fmt.Sprintf("%s[%d]", path, i), want[i], have[i]); found != "" {
			return found
		}
	}
	return ""
}

// differs names a field and the value that it has.
func differs(path string, have any) string {
	if isEmpty(have) {
		return path + " is not set"
	}
	return fmt.Sprintf("%s is %q", path, words.Line(fmt.Sprint(have), maxShownValue))
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// defaultsOf are the defaults of the API server for a field (Kubernetes
// pkg/apis/{batch,core,rbac,admissionregistration}/v1, defaults.go). A default of a
// later version that is missing here costs a dry run per existing object.
func defaultsOf(field string) []any {
	return map[string][]any{
		"apiGroup":                      {"rbac.authorization.k8s.io"},
		"apiVersion":                    {"v1"}, // of a fieldRef
		"completionMode":                {string(batchv1.NonIndexedCompletion)},
		"completions":                   {int64(1)},
		"defaultMode":                   {int64(0o644)},
		"divisor":                       {"0"},
		"dnsPolicy":                     {string(corev1.DNSClusterFirst)},
		"expirationSeconds":             {int64(3600)},
		"failureThreshold":              {int64(3)},
		"imagePullPolicy":               {string(corev1.PullIfNotPresent), string(corev1.PullAlways)},
		"manualSelector":                {false},
		"matchPolicy":                   {"Equivalent"},
		"parallelism":                   {int64(1)},
		"path":                          {"/"}, // of an HTTP probe
		"periodSeconds":                 {int64(10)},
		"podReplacementPolicy":          {string(batchv1.TerminatingOrFailed), string(batchv1.Failed)},
		"protocol":                      {string(corev1.ProtocolTCP)},
		"pullPolicy":                    {string(corev1.PullIfNotPresent), string(corev1.PullAlways)},
		"schedulerName":                 {corev1.DefaultSchedulerName},
		"scheme":                        {string(corev1.URISchemeHTTP)},
		"scope":                         {"*"},
		"successThreshold":              {int64(1)},
		"suspend":                       {false},
		"terminationGracePeriodSeconds": {int64(corev1.DefaultTerminationGracePeriodSeconds)},
		"timeoutSeconds":                {int64(1)},
	}[field]
}

// alteration returns the first field of a created object that admission changed, and
// that decides what a check runs, with which identity, and what it may read; empty if
// there is none. Other changes of a Job, such as further containers, are no
// alteration.
func alteration(planned, created payload.Object) (string, error) {
	for _, key := range slices.Sorted(maps.Keys(planned.GetLabels())) {
		if planned.GetLabels()[key] != created.GetLabels()[key] {
			return differs("metadata.labels."+key, created.GetLabels()[key]), nil
		}
	}
	want, isJob := planned.(*batchv1.Job)
	have, ok := created.(*batchv1.Job)
	if isJob && ok {
		return alteredPod("spec.template.spec", want.Spec.Template.Spec, have.Spec.Template.Spec)
	}
	bare, ok := created.DeepCopyObject().(payload.Object)
	if !ok {
		return "", fmt.Errorf("unexpected %T", created)
	}
	bare.SetLabels(planned.GetLabels())
	bare.SetAnnotations(planned.GetAnnotations())
	return difference(planned, bare)
}

// Altered returns the first field of a pod of the check that admission changed, and that
// decides what the check runs and with which identity; empty if there is none.
func (c Check) Altered(pod corev1.PodSpec) (string, error) {
	want, have := c.Job.Spec.Template.Spec.DeepCopy(), pod.DeepCopy()
	for _, spec := range []*corev1.PodSpec{want, have} {
		spec.ServiceAccountName = cmp.Or(spec.ServiceAccountName, defaultAccount) // that of the API server
		clearDeadline(*spec)
	}
	return alteredPod("spec", *want, *have)
}

// alteredPod compares the containers of the plan and their ServiceAccount.
func alteredPod(path string, want, have corev1.PodSpec) (string, error) {
	if want.ServiceAccountName != have.ServiceAccountName {
		return differs(path+".serviceAccountName", have.ServiceAccountName), nil
	}
	init, err := alteredContainers(path+".initContainers", want.InitContainers, have.InitContainers)
	if err != nil || init != "" {
		return init, err
	}
	return alteredContainers(path+".containers", want.Containers, have.Containers)
}

func alteredContainers(path string, want, have []corev1.Container) (string, error) {
	for _, container := range want {
		path := fmt.Sprintf("%s[%q]", path, container.Name)
		i := slices.IndexFunc(have, func(other corev1.Container) bool { return other.Name == container.Name })
		if i < 0 {
			return path + " is not set", nil
		}
		planned, err := program(container)
		if err != nil {
			return "", err
		}
		created, err := program(have[i])
		if err != nil {
			return "", err
		}
		if found := compare(path, planned, created); found != "" {
			return found, nil
		}
	}
	return "", nil
}

// program is what a container runs. An image is its digest: the same digest in
// another repository is the same image.
func program(container corev1.Container) (map[string]any, error) {
	image := container.Image
	if _, digest, found := strings.Cut(image, "@"); found {
		image = digest
	}
	runs := corev1.Container{
		Image: image, Command: container.Command, Args: container.Args, WorkingDir: container.WorkingDir,
		Env: container.Env, EnvFrom: container.EnvFrom,
		TerminationMessagePath: cmp.Or(container.TerminationMessagePath, corev1.TerminationMessagePathDefault),
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&runs)
}
