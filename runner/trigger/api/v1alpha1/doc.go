// Package v1alpha1 answers: how is a preflight requested, and its verdict shown, as an
// object of the cluster?
//
// An [UpdatePreflight] is one update of this cluster. The controller creates one for each
// update that is selected or offered; administrators create others. Its spec is the
// request. Its status is a projection of the recorded runs (package record), which decide:
// an edited status changes nothing, and is overwritten at the next event.
//
//	kubectl wait --for=condition=Ready updatepreflight/NAME
//
// +kubebuilder:object:generate=true
// +groupName=preflight.openshift.io
package v1alpha1
