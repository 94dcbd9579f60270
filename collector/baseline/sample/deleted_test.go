package sample_test

import (
	"fmt"
	"strings"
	"testing"
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
