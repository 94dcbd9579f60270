package jobplan_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// The manifests are read like those of a release.
func TestViolationsHaveFileAndLine(t *testing.T) {
	release, err := payload.ReadManifests(map[string][]byte{
		"0000_50_a_job.yaml": []byte(`---
apiVersion: batch/v1
kind: Job
metadata:
  name: job
  namespace: ns
  annotations: {openshift.io/preflight-check: "true"}
spec:
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: account
      containers:
      - name: check
        image: quay.io/openshift/cli:latest
        securityContext:
          privileged: true
`),
		"0000_50_a_rbac.yaml": []byte(`apiVersion: v1
kind: ServiceAccount
metadata: {name: account, namespace: ns, annotations: {openshift.io/preflight-check: "true"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: role, namespace: ns, annotations: {openshift.io/preflight-check: "true"}}
rules:
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: binding, namespace: ns, annotations: {openshift.io/preflight-check: "true"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: role}
subjects: [{kind: ServiceAccount, name: account, namespace: ns}]
`),
	})
	if err != nil || len(release.Problems) > 0 {
		t.Fatalf("%v, %+v", err, release.Problems)
	}
	plan := releasetest.Draft(jobplan.Run{
		ID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", From: "4.20.9",
		Target: update.Release{Version: "4.21.3"},
	}, release)
	if len(plan.Refused) != 1 {
		t.Fatalf("refused %+v, want the Job", plan.Refused)
	}
	for _, want := range []string{
		"0000_50_a_job.yaml",
		"spec.template.spec.containers[0].image (line 15): ",
		"spec.template.spec.containers[0].securityContext.privileged (line 17): ",
		`Role "role" in namespace "ns" (0000_50_a_rbac.yaml): rules[0].verbs (line 11): `,
	} {
		if message := plan.Refused[0].Message; !strings.Contains(message, want) {
			t.Errorf("%q lacks %q", message, want)
		}
	}
}
