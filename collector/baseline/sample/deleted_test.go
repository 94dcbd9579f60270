package sample_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/baseline"
)

// What is being deleted is not to be good: a finalizer may keep it for hours.
func TestBeingDeleted(t *testing.T) {
	for kind, content := range map[string]string{
		"apps/v1 Deployment":                                  "spec: {replicas: 3}, status: {}",
		"apps/v1 StatefulSet":                                 "spec: {replicas: 3}, status: {}",
		"apps/v1 DaemonSet":                                   "spec: {}, status: {desiredNumberScheduled: 3}",
		"v1 ReplicationController":                            "spec: {replicas: 3}",
		"v1 Service":                                          "spec: {selector: {app: web}, ports: [{port: 443}]}",
		"v1 PersistentVolumeClaim":                            "status: {phase: Lost}",
		"route.openshift.io/v1 Route":                         "status: {ingress: []}",
		"operator.openshift.io/v1 IngressController":          "status: {conditions: [" + condition("Available", "False", "") + "]}",
		"k8s.ovn.org/v1 EgressFirewall":                       "status: {status: bad}",
		"operators.coreos.com/v1alpha1 ClusterServiceVersion": "status: {phase: Failed}",
		"operators.coreos.com/v1alpha1 Subscription":          "status: {state: UpgradeFailed}",
	} {
		t.Run(kind, func(t *testing.T) {
			version, kind, _ := strings.Cut(kind, " ")
			made := func(deleted string) []string {
				return problems(take(t, start(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: web, namespace: shop%s}, %s}", version, kind, deleted, content)), alerting(t, "[]")))
			}
			if got := made(", finalizers: [example.com/keep], deletionTimestamp: '2026-11-25T10:00:00Z'"); len(got) > 0 {
				t.Errorf("a %s that is being deleted has problems: %q", kind, got)
			}
			if len(made("")) == 0 {
				t.Errorf("a %s that is not being deleted has no problem", kind)
			}
		})
	}
}

// A Service whose pods nothing makes again is known by that.
func TestEphemeral(t *testing.T) {
	const service = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{port: 443}]}}\n---\n"
	selected := func(name, owner, phase string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: shop, labels: {app: web}, %s}, spec: {containers: [{name: c}]}, status: {phase: %s}}\n---\n", name, owner, phase)
	}
	owner := func(api, kind string) string {
		return fmt.Sprintf("ownerReferences: [{apiVersion: %s, kind: %s, name: x, uid: '1'}]", api, kind)
	}
	for name, tc := range map[string]struct {
		reason string
		pods   string
		want   string
	}{
		"Bare":     {reason: "a drain deletes it for good", pods: selected("a", "", "Running"), want: baseline.Ephemeral},
		"Job":      {reason: "the Job ends", pods: selected("a", owner("batch/v1", "Job"), "Running"), want: baseline.Ephemeral},
		"Both":     {reason: "nothing makes either again", pods: selected("a", owner("batch/v1", "Job"), "Running") + selected("b", "", "Running"), want: baseline.Ephemeral},
		"Mixed":    {reason: "one is made again", pods: selected("a", "", "Running") + selected("b", owner("apps/v1", "ReplicaSet"), "Running")},
		"Static":   {reason: "the kubelet makes it again", pods: selected("a", owner("v1", "Node"), "Running")},
		"Catalog":  {reason: "its owner makes it again, without being its controller", pods: selected("a", owner("operators.coreos.com/v1alpha1", "CatalogSource"), "Running")},
		"OtherJob": {reason: "a Job of another API may make it again", pods: selected("a", owner("batch.example.com/v1", "Job"), "Running")},
		"Ended":    {reason: "it is not served", pods: selected("a", "", "Succeeded")},
		"None":     {reason: "it selects none"},
	} {
		t.Run(name, func(t *testing.T) {
			state := take(t, start(t, service+tc.pods), alerting(t, "[]"))
			if got := state.Objects[baseline.Key{Kind: baseline.Service, Namespace: "shop", Name: "web"}].Detail; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// A request of a kubelet names its node, but the first one.
func TestRequestedNode(t *testing.T) {
	for name, tc := range map[string]struct{ reason, user, signer, want string }{
		"Serving": {reason: "the node has a user", user: "system:node:w1", signer: "kubernetes.io/kubelet-serving", want: "w1"},
		"Renewal": {reason: "the node has a user", user: "system:node:w1", signer: "kubernetes.io/kube-apiserver-client-kubelet", want: "w1"},
		"First":   {reason: "all nodes share the user", user: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper", signer: "kubernetes.io/kube-apiserver-client-kubelet", want: baseline.AnyNode},
		"Other":   {reason: "another signer does not sign for nodes", user: "jane", signer: "example.com/signer"},
	} {
		t.Run(name, func(t *testing.T) {
			state := take(t, start(t, fmt.Sprintf("{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: csr-x}, spec: {username: %q, signerName: %s}, status: {}}", tc.user, tc.signer)), alerting(t, "[]"))
			if got := state.Objects[baseline.Key{Kind: baseline.CertificateSigningRequest, Name: "csr-x"}].Detail; got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
