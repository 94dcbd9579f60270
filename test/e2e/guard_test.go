package e2e_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// A check that tries to write is denied, though its ServiceAccount may, and its
// finding says what it tried.
func TestChecksCannotWrite(t *testing.T) {
	publish(t, map[string]animal{"writer": {Ending: "write", Change: func(job *batchv1.Job) {
		job.Spec.Template.Spec.ServiceAccountName = "writer"
	}}})
	house.Kubectl(t, "create", "serviceaccount", "writer", "-n", zooNamespace)
	house.Kubectl(t, "create", "rolebinding", "writer", "-n", zooNamespace, "--clusterrole=edit", "--serviceaccount="+zooNamespace+":writer")
	allowed := house.Kubectl(t, "auth", "can-i", "create", "configmaps", "-n", zooNamespace, "--as", "system:serviceaccount:"+zooNamespace+":writer")
	if !strings.Contains(allowed, "yes") {
		t.Fatalf("the account may not write anyway: %s", allowed)
	}

	decided := reported(t, 4, "--to", to)
	if guard := byName(decided)["ReadOnlyGuard"]; guard.Outcome != preflight.Pass {
		t.Errorf("the guard is %+v, want it in place", guard)
	}
	audit := byName(decided)["ReadOnlyAccess-"+zooNamespace+".writer"]
	if audit.Outcome != preflight.Warn || !strings.Contains(audit.Message, "the read-only guard of the run denies it") {
		t.Errorf("the account is %+v, want a warning of what it may, and who denies it", audit)
	}
	f := byName(decided)["Zoo.Animal"]
	if f.Outcome != preflight.Unknown || !strings.Contains(f.Message, "only reads, but this one tried to create configmaps "+zooNamespace+"/droppings") {
		t.Errorf("%s: %q; want Unknown, and what it tried", f.Outcome, f.Message)
	}
	_, err := house.Client(t).CoreV1().ConfigMaps(zooNamespace).Get(t.Context(), "droppings", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap: %v, want that it was never there", err)
	}
	house.ExpectNothingLeft(t)
}
