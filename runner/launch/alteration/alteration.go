// Package alteration answers: how does an object differ from its plan?
//
// [Of] compares a created object, and [OfPod] a pod of a check. Changes that the API server, admission and the
// scheduler may make without an effect on the check are not alterations. [Difference] compares an object that already
// existed.
package alteration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// ReasonAlteredByAdmission is the only reason for which an object is not as it was sent.
var ReasonAlteredByAdmission = finding.NewReason("AlteredByAdmission", finding.Explanation{
	Meaning: "The check does not run, or its result does not count, because a mutating webhook or policy of the " +
		"cluster changes its Job, pod, ServiceAccount or roles. Known harmless changes are allowed: where and when " +
		"the pod runs, CPU and memory, stricter confinement, and sidecar containers.",
	Cause: "The webhook or policy applies to the namespace of the check.",
	Remedy: "Exempt objects with the label preflight.openshift.io/run from it: `oc get " +
		"mutatingwebhookconfigurations,mutatingadmissionpolicies`.",
})

// Of returns the first field of a created object that admission changed, with the
// value that it has; empty if there is none. Of a Job, changes that are harmless (see
// acceptPod) are no alteration.
func Of(planned, created payload.Object) (string, error) {
	if lost := lostLabel("metadata", planned.GetLabels(), created.GetLabels()); lost != "" {
		return lost, nil
	}
	want, isJob := planned.(*batchv1.Job)
	have, ok := created.(*batchv1.Job)
	if isJob && ok {
		return alteredJob(want, have)
	}
	bare, ok := created.DeepCopyObject().(payload.Object)
	if !ok {
		return "", fmt.Errorf("unexpected %T", created)
	}
	bare.SetLabels(planned.GetLabels())
	bare.SetAnnotations(planned.GetAnnotations())
	return Difference(planned, bare)
}

// OfExisting is Of for an object that an earlier process of the run has created, which had another deadline.
func OfExisting(planned, found payload.Object) (string, error) {
	want, isJob := planned.(*batchv1.Job)
	if have, ok := found.(*batchv1.Job); isJob && ok {
		return Of(Until(Deadline(have.Spec.Template.Spec), want), found)
	}
	return Of(planned, found)
}

// OfPod returns the first field of a pod of the Job that admission changed, with its present value; empty if there is
// none. Harmless changes (see acceptPod) are not alterations. Only NodeAnnotations are compared among the annotations,
// only planned labels among the labels, and only the part of the name by which the read-only guard identifies the pod.
func OfPod(job *batchv1.Job, pod *corev1.Pod) (string, error) {
	if !strings.HasPrefix(cmp.Or(pod.Name, pod.GenerateName), job.Name+"-") {
		return differs("metadata.name", cmp.Or(pod.Name, pod.GenerateName)), nil
	}
	if lost := lostLabel("metadata", job.Spec.Template.Labels, pod.Labels); lost != "" {
		return lost, nil
	}
	return alteredPod("", job.Spec.Template, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}, Spec: pod.Spec,
	})
}

func lostLabel(path string, want, have map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if want[key] != have[key] {
			return differs(path+".labels."+key, have[key])
		}
	}
	return ""
}

func alteredJob(want, have *batchv1.Job) (string, error) {
	if name := have.Annotations[label.AnnotationCheck]; name != want.Annotations[label.AnnotationCheck] {
		return differs("metadata.annotations."+label.AnnotationCheck, name), nil
	}
	want, have = plannedFields(want), plannedFields(have)
	if lost := lostLabel("spec.template.metadata", want.Spec.Template.Labels, have.Spec.Template.Labels); lost != "" {
		return lost, nil
	}
	altered, err := alteredPod("spec.template.", want.Spec.Template, have.Spec.Template)
	if err != nil || altered != "" {
		return altered, err
	}
	have.Spec.Template = want.Spec.Template
	acceptJob(&want.Spec, &have.Spec)
	return compareFieldsOf("spec", &want.Spec, &have.Spec)
}

// alteredPod compares all fields of a pod, after those whose change is harmless were
// replaced by the planned ones: a field of a later Kubernetes version is compared, too.
func alteredPod(path string, want, have corev1.PodTemplateSpec) (string, error) {
	for _, key := range slices.Sorted(maps.Keys(NodeAnnotations(have.Annotations))) {
		if value := have.Annotations[key]; value != want.Annotations[key] {
			return differs(path+"metadata.annotations."+key, value), nil
		}
	}
	path += "spec"
	planned, created := want.Spec.DeepCopy(), have.Spec.DeepCopy()
	if found := invasion(path, *planned, *created); found != "" {
		return found, nil
	}
	acceptPod(planned, created)
	for _, compared := range []func() (string, error){
		func() (string, error) {
			return compareContainers(path+".initContainers", planned.InitContainers, created.InitContainers)
		},
		func() (string, error) {
			return compareContainers(path+".containers", planned.Containers, created.Containers)
		},
		func() (string, error) { return compareVolumes(path+".volumes", planned.Volumes, created.Volumes) },
		func() (string, error) {
			created.InitContainers, created.Containers, created.Volumes = planned.InitContainers, planned.Containers, planned.Volumes
			return compareFieldsOf(path, planned, created)
		},
	} {
		if found, err := compared(); err != nil || found != "" {
			return found, err
		}
	}
	return "", nil
}

// compareContainers compares the planned containers, which must be in the same order:
// init containers depend on those before them.
func compareContainers(path string, want, have []corev1.Container) (string, error) {
	next := 0
	for i := range want {
		path := fmt.Sprintf("%s[%q]", path, want[i].Name)
		at := slices.IndexFunc(have, func(other corev1.Container) bool { return other.Name == want[i].Name })
		switch {
		case at < 0:
			return path + " is not set", nil
		case at < next:
			return path + " is before a container that it follows", nil
		}
		next = at + 1
		if found, err := compareFieldsOf(path, &want[i], &have[at]); err != nil || found != "" {
			return found, err
		}
	}
	return "", nil
}

func compareVolumes(path string, want, have []corev1.Volume) (string, error) {
	for i := range want {
		path := fmt.Sprintf("%s[%q]", path, want[i].Name)
		at := slices.IndexFunc(have, func(other corev1.Volume) bool { return other.Name == want[i].Name })
		if at < 0 {
			return path + " is not set", nil
		}
		if found, err := compareFieldsOf(path, &want[i], &have[at]); err != nil || found != "" {
			return found, err
		}
	}
	return "", nil
}

// compareFieldsOf compares all fields of two structs, as in a manifest.
func compareFieldsOf(path string, want, have any) (string, error) {
	planned, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return "", fmt.Errorf("could not compare %s: %w", path, err)
	}
	created, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return "", fmt.Errorf("could not compare %s: %w", path, err)
	}
	return compare(path, planned, created), nil
}

// maxShownValue bounds the value of a field in a message, in bytes.
const maxShownValue = 100

// Difference returns the first field in which an existing object differs from the planned one, with its present value;
// empty if there is none. Fields that the API server itself sets are not differences. A ServiceAccount may have more
// image pull secrets, which controllers add.
func Difference(planned, found payload.Object) (string, error) {
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

// content is the part of an object that a plan determines, as in a manifest. It omits fields that the API server and
// controllers set, and the deadline, which is later for a run that was taken over.
func content(object payload.Object) (map[string]any, error) {
	if job, ok := object.(*batchv1.Job); ok {
		job = plannedFields(job)
		setDeadline(job.Spec.Template.Spec, "")
		object = job
	}
	all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("could not compare %s: %w", inventory.ReferenceTo(object), err)
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
	annotations := map[string]any{}
	if check, found := object.GetAnnotations()[label.AnnotationCheck]; found {
		annotations[label.AnnotationCheck] = check
	}
	meta["annotations"] = annotations
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
// the Job controller set, and without its activeDeadlineSeconds.
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
	return kept
}

// Deadline is the deadline of the run in the environment of a check; empty if it is no time.
func Deadline(spec corev1.PodSpec) string {
	for _, container := range slices.Concat(spec.Containers, spec.InitContainers) {
		for _, variable := range container.Env {
			if _, err := time.Parse(time.RFC3339, variable.Value); variable.Name == jobplan.VariableDeadline && err == nil {
				return variable.Value
			}
		}
	}
	return ""
}

// Until returns the planned Job with another deadline in the environment of its containers: the existing Job of a run
// that was taken over has its own deadline. For an empty deadline, it returns the planned Job.
func Until(deadline string, planned *batchv1.Job) *batchv1.Job {
	if deadline == "" {
		return planned
	}
	until := planned.DeepCopy()
	setDeadline(until.Spec.Template.Spec, deadline)
	return until
}

// setDeadline sets the value of the variable in all containers that have it.
func setDeadline(spec corev1.PodSpec, deadline string) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, container := range containers {
			for i := range container.Env {
				if container.Env[i].Name == jobplan.VariableDeadline {
					container.Env[i].Value = deadline
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
		"automountServiceAccountToken":  {true},
		"completionMode":                {string(batchv1.NonIndexedCompletion)},
		"completions":                   {int64(1)},
		"defaultMode":                   {int64(0o644)},
		"divisor":                       {"0"},
		"dnsPolicy":                     {string(corev1.DNSClusterFirst)},
		"enableServiceLinks":            {true},
		"expirationSeconds":             {int64(3600)},
		"failureThreshold":              {int64(3)},
		"hostUsers":                     {true},
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
		"setHostnameAsFQDN":             {false},
		"shareProcessNamespace":         {false},
		"successThreshold":              {int64(1)},
		"suspend":                       {false},
		"terminationGracePeriodSeconds": {int64(corev1.DefaultTerminationGracePeriodSeconds)},
		"terminationMessagePath":        {corev1.TerminationMessagePathDefault},
		"terminationMessagePolicy":      {string(corev1.TerminationMessageReadFile)},
		"timeoutSeconds":                {int64(1)},
	}[field]
}
