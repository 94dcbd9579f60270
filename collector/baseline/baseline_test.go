package baseline_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/baseline"
)

// An object has one problem of each reason, the first, by its reason.
func TestProblems(t *testing.T) {
	var object baseline.Object
	for _, each := range []baseline.Problem{
		{Reason: "Unavailable", Message: "first"},
		{Reason: "CrashLoopBackOff"},
		{Reason: "Unavailable", Message: "second"},
		{Reason: "Restarting"},
	} {
		object.Add(each)
	}
	var reasons []string
	for _, each := range object.Problems {
		reasons = append(reasons, each.Reason)
	}
	if diff := cmp.Diff([]string{"CrashLoopBackOff", "Restarting", "Unavailable"}, reasons); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if found, ok := object.Problem("Unavailable"); !ok || found.Message != "first" {
		t.Errorf("the problem is %+v, %t", found, ok)
	}
	if found, ok := object.Problem("NotReady"); ok {
		t.Errorf("the object has the problem %+v", found)
	}
}

func TestKeys(t *testing.T) {
	sorted := []baseline.Key{
		{Kind: baseline.Deployment, Namespace: "a", Name: "z"},
		{Kind: baseline.Deployment, Namespace: "b", Name: "a"},
		{Kind: baseline.Node, Name: "a"},
		{Kind: baseline.Node, Name: "b"},
	}
	s := baseline.State{Objects: map[baseline.Key]baseline.Object{}}
	for _, key := range sorted {
		s.Objects[key] = baseline.Object{}
	}
	if got := s.Keys(); !slices.Equal(got, sorted) {
		t.Errorf("the keys are %v, want %v", got, sorted)
	}
	if got := sorted[0].String() + ", " + sorted[2].String(); got != "Deployment a/z, Node a" {
		t.Errorf("the keys for people are %s", got)
	}
}

func TestPlatform(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		key    baseline.Key
		want   bool
	}{
		"Operator": {reason: "an operator of the release", key: baseline.Key{Kind: baseline.ClusterOperator, Name: "etcd"}, want: true},
		"Pool": {
			reason: "its configuration is the release's", key: baseline.Key{Kind: baseline.MachineConfigPool, Name: "infra"},
			want: true,
		},
		"Namespace": {
			reason: "a namespace of the release",
			key:    baseline.Key{Kind: baseline.Deployment, Namespace: "openshift-ingress", Name: "router"}, want: true,
		},
		"OpenShift": {
			reason: "the namespace of samples", key: baseline.Key{Kind: baseline.Deployment, Namespace: "openshift", Name: "a"},
			want: true,
		},
		"Kubernetes": {
			reason: "a namespace of Kubernetes",
			key:    baseline.Key{Kind: baseline.Service, Namespace: "kube-system", Name: "kubelet"}, want: true,
		},
		"User": {reason: "a namespace of a user", key: baseline.Key{Kind: baseline.Deployment, Namespace: "shop", Name: "cart"}},
		"Like": {
			reason: "a name that only begins alike",
			key:    baseline.Key{Kind: baseline.Deployment, Namespace: "openshiftshop", Name: "cart"},
		},
		"Default":      {reason: "users work in it", key: baseline.Key{Kind: baseline.Deployment, Namespace: "default", Name: "cart"}},
		"Node":         {reason: "an administrator adds and removes nodes", key: baseline.Key{Kind: baseline.Node, Name: "worker-1"}},
		"StorageClass": {reason: "an administrator makes these", key: baseline.Key{Kind: baseline.StorageClass, Name: "gold"}},
		"AlertOfAll":   {reason: "an alert without a namespace may be a user's", key: baseline.Key{Kind: baseline.Alert, Name: "A/critical"}},
		"AlertOfOthers": {
			reason: "an alert about the release",
			key:    baseline.Key{Kind: baseline.Alert, Namespace: "openshift-etcd", Name: "A/critical"}, want: true,
		},
	} {
		if got := tc.key.Platform(); got != tc.want {
			t.Errorf("%s: %s is of the platform: %t, want %t: %s", name, tc.key, got, tc.want, tc.reason)
		}
	}
}
