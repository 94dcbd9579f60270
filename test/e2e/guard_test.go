package e2e_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// The write of a check is denied, although RBAC allows it for every ServiceAccount of its
// namespace, and the finding names the request.
func TestChecksCannotWrite(t *testing.T) {
	publish(t, map[string]animal{"writer": {Ending: "write"}})
	testCluster.Kubectl(t, "create", "role", "writers", "-n", zooNamespace, "--verb=create", "--resource=configmaps")
	testCluster.Kubectl(t, "create", "rolebinding", "writers", "-n", zooNamespace, "--role=writers",
		"--group=system:serviceaccounts:"+zooNamespace)
	cleanUp(t, "delete", "rolebinding,role", "writers", "-n", zooNamespace)
	allowed := testCluster.Kubectl(t, "auth", "can-i", "create", "configmaps", "-n", zooNamespace,
		"--as", "system:serviceaccount:"+zooNamespace+":default", "--as-group", "system:serviceaccounts:"+zooNamespace)
	if !strings.Contains(allowed, "yes") {
		t.Fatalf("the account has no write access, so the test proves nothing: %s", allowed)
	}

	result := runPreflight(t, 4, "--to", to)
	if guard := byName(result)["ReadOnlyGuard"]; guard.Outcome != preflight.Pass {
		t.Errorf("the guard: %+v, want Pass", guard)
	}
	audit := byName(result)["ReadOnlyAccess-"+zooNamespace]
	if audit.Outcome != preflight.Warn || audit.Reason != "MayWrite" ||
		!strings.Contains(audit.Message, "the read-only guard of the run denies it") {
		t.Errorf("the group: %+v, want a warning with its write access and the guard that denies it", audit)
	}
	f := byName(result)["Zoo.Animal"]
	if f.Outcome != preflight.Unknown || !strings.Contains(f.Message,
		"only reads, but this one tried to create configmaps "+zooNamespace+"/droppings") {
		t.Errorf("%s: %q; want Unknown with the denied request", f.Outcome, f.Message)
	}
	_, err := testCluster.Client(t).CoreV1().ConfigMaps(zooNamespace).Get(t.Context(), "droppings", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get the ConfigMap: %v, want NotFound", err)
	}
	testCluster.ExpectNothingLeft(t)
}
