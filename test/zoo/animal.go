// Package zoo answers: how does a test get a signed release whose checks end in a
// given way? An [Animal] is one such check; a [Zoo] builds releases of animals, makes
// a cluster offer them, and builds the program under test.
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
	// Source is the name of the image in manifests, without a tag.
	Source = "quay.io/openshift/origin-zoo"
	// MissingImage is an image that no registry has. A release lists it only if a check
	// uses it.
	MissingImage = "quay.io/openshift/origin-ghost:latest"
)

// Animal is one preflight Job of a release.
type Animal struct {
	// Ending is the argument of the zoo program (test/e2e/zoo), which selects how the
	// check ends.
	Ending string
	// Plain omits the annotation that declares a framed result.
	Plain bool
	// Simulated has the pod run on the node of StartNode, which simulates some endings.
	Simulated bool
	// Namespace and Image override those of the zoo; optional.
	Namespace, Image string
	// Change modifies the Job; optional.
	Change func(*batchv1.Job)
	// Beside contains further documents of the manifest; CAGE is replaced by the
	// namespace of the Job.
	Beside string
}

// Job returns the Job of the animal as the author of an operator would write it.
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
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: a.namespace(), Annotations: annotations},
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
	if a.Simulated {
		onSimulatedNode(job)
	}
	if a.Change != nil {
		a.Change(job)
	}
	return job
}

// keeper has the manifests of a ServiceAccount with a role to read ConfigMaps.
const keeper = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: keeper, namespace: CAGE, annotations: {openshift.io/preflight-check: "true"}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: keeper, namespace: CAGE, annotations: {openshift.io/preflight-check: "true"}},
 rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: keeper, namespace: CAGE, annotations: {openshift.io/preflight-check: "true"}},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: keeper},
 subjects: [{kind: ServiceAccount, name: keeper, namespace: CAGE}]}
`

// Pair returns two checks, "first" and "second", which are like an animal, but the second one
// passes at once. They run as a ServiceAccount with a role, which are part of the release.
func Pair(like Animal) map[string]Animal {
	like.Change = func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "keeper" }
	second := like
	second.Ending, second.Beside = "pass", keeper
	return map[string]Animal{"first": like, "second": second}
}

// namespace returns the namespace of the Job.
func (a Animal) namespace() string {
	if a.Namespace == "" {
		return Namespace
	}
	return a.Namespace
}
