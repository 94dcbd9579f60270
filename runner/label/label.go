// Package label answers: which labels and names identify the objects of a run?
//
// The packages that create Jobs and record runs share these names without importing
// each other.
package label

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/ownsignal"
)

// Prefix is the prefix of all labels and annotations of this project.
const Prefix = "preflight.openshift.io/"

// The labels of every object that a run creates, and of its pods.
const (
	// Run is the ID of the run.
	Run = ownsignal.RunLabel
	// Release is the first 12 hex digits of the target's digest.
	Release = Prefix + "release"
	// Component is the component that owns the manifest of the object.
	Component = Prefix + "component"
	// ControlPlane is the namespace of the control plane of a hosted cluster, on the objects in its management
	// cluster: the guest has the record and the Lease of their run. Other objects have no such label.
	ControlPlane = Prefix + "control-plane"
)

// AnnotationCheck is the name of the check, on its Job. It cannot be derived from the Job, whose name is shortened.
const AnnotationCheck = Prefix + "check"

const releaseDigits = 12

// Suffix is the suffix of the names of a run's objects: the first ten hex digits of its ID.
func Suffix(runID string) string { return ownsignal.Suffix(runID) }

// ReleaseValue is the value of the label [Release]: the first 12 hex digits of the release's digest ("sha256:…").
func ReleaseValue(digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	return hex[:min(releaseDigits, len(hex))]
}

// Value is text without the characters that the value of a label may not have.
func Value(text string) string {
	kept := strings.Map(func(r rune) rune {
		if r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("-_.", r) {
			return r
		}
		return -1
	}, text)
	return strings.Trim(kept[:min(len(kept), validation.LabelValueMaxLength)], "-_.")
}
