// Package zoo answers: how does a test ask about a release whose checks end as
// the test wants them to? An [Animal] is such a check; a [Zoo] puts animals into
// a signed release, has the cluster offer it, and builds the program that is to
// judge it.
package zoo

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// From is the version of the cluster.
	From = "5.1.3"
	// To is the version of a published release.
	To = "5.2.0"
	// Namespace is where the checks run.
	Namespace = "openshift-zoo"
	// Source is what manifests call their image.
	Source = "quay.io/openshift/origin-zoo"
	// Ghost is in a release only if a check runs it: no registry has it.
	Ghost = "quay.io/openshift/origin-ghost:latest"
)

// Animal is one preflight Job of a release.
type Animal struct {
	// Ending is the argument of the zoo program (test/e2e/zoo): how the check
	// ends.
	Ending string
	// Plain Jobs do not promise a framed result.
	Plain bool
	// Namespace and Image are those of the zoo unless given.
	Namespace, Image string
	// Change is made to the Job; optional.
	Change func(*batchv1.Job)
	// Beside are more documents of its manifest, where CAGE stands for its
	// namespace.
	Beside string
}

// Job is the manifest of an animal, as an operator's author would write it.
func (a Animal) Job(name string) *batchv1.Job {
	annotations := map[string]string{"openshift.io/preflight-check": "true"}
	if !a.Plain {
		annotations["preflight.openshift.io/result"] = "framed"
	}
	image := a.Image
	if image == "" {
		image = Source + ":latest"
	}
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: a.cage(), Annotations: annotations},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "preflight", Image: image, Command: []string{"/bin/preflight", a.Ending},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}},
				}},
			}},
		},
	}
	if a.Change != nil {
		a.Change(job)
	}
	return job
}

// cage is the namespace of an animal.
func (a Animal) cage() string {
	if a.Namespace == "" {
		return Namespace
	}
	return a.Namespace
}
