package e2e_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// A check that tries to write is denied, although every ServiceAccount of its namespace
// may, and its finding has the request.
func TestChecksCannotWrite(t *testing.T) {
	publish(t, map[string]animal{"writer": {Ending: "write"}})
	house.Kubectl(t, "create", "role", "writers", "-n", zooNamespace, "--verb=create", "--resource=configmaps")
	house.Kubectl(t, "create", "rolebinding", "writers", "-n", zooNamespace, "--role=writers", "--group=system:serviceaccounts:"+zooNamespace)
	cleanUp(t, "delete", "rolebinding,role", "writers", "-n", zooNamespace)
	allowed := house.Kubectl(t, "auth", "can-i", "create", "configmaps", "-n", zooNamespace,
		"--as", "system:serviceaccount:"+zooNamespace+":default", "--as-group", "system:serviceaccounts:"+zooNamespace)
	if !strings.Contains(allowed, "yes") {
		t.Fatalf("the account may not write anyway: %s", allowed)
	}

	decided := reported(t, 4, "--to", to)
	if guard := byName(decided)["ReadOnlyGuard"]; guard.Outcome != preflight.Pass {
		t.Errorf("the guard is %+v, want it in place", guard)
	}
	audit := byName(decided)["ReadOnlyAccess-"+zooNamespace]
	if audit.Outcome != preflight.Warn || audit.Reason != "MayWrite" || !strings.Contains(audit.Message, "the read-only guard of the run denies it") {
		t.Errorf("the group is %+v, want a warning of what it may, and who denies it", audit)
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
