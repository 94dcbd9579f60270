package payload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Annotation marks a Job as a preflight, and other objects as its supporting
// objects, when its value is "true" (openshift/enhancements#363).
const Annotation = "openshift.io/preflight-check"

// deleteAnnotation makes the cluster-version operator delete the object
// (lib/resourcedelete/helper.go).
const deleteAnnotation = "release.openshift.io/delete"

// Object is a typed Kubernetes object.
type Object interface {
	runtime.Object
	metav1.Object
}
