// Package alteration answers: in what does an object differ from the one that was planned?
//
// [Of] compares an object that was created, and [OfPod] a pod of a check: what the API
// server, admission and the scheduler may change without an effect on the check is no
// alteration. [Difference] compares an object that existed before.
package alteration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/payload"
)

// ReasonAlteredByAdmission is the only reason for which an object is not as it was sent.
var ReasonAlteredByAdmission = finding.NewReason("AlteredByAdmission", finding.Explanation{
	Meaning: "Reported for a check that does not run, or whose result does not count, because a mutating webhook or " +
		"policy of the cluster changes its Job, its pod, its ServiceAccount or its roles, in more than what is " +
		"known to be harmless: where and when the pod runs, amounts of CPU and memory, stricter confinement, and " +
		"containers beside the check.",
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

// OfPod returns the first field of a pod of the Job that admission changed, with the
// value that it has; empty if there is none. Changes that are harmless (see acceptPod) are
// no alteration. Of the annotations only NodeAnnotations are compared, of the labels the planned ones, and of the name the part by
// which the read-only guard identifies the pod.
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
