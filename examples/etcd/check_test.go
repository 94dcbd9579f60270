package main_test

import (
	"fmt"
	"testing"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// etcd returns the object of the operator with conditions in the flow style of YAML.
func etcd(conditions string) string {
	return fmt.Sprintf("---\n{apiVersion: operator.openshift.io/v1, kind: Etcd, metadata: {name: cluster}, spec: {managementState: "+
		"Managed}, status: {conditions: [%s]}}\n", conditions)
}

func condition(name, status, message string) string {
	return fmt.Sprintf(`{type: %s, status: %q, message: %q, lastTransitionTime: "2026-01-01T00:00:00Z"}`, name, status, message)
}

// member returns a pod of etcd with a quota in bytes. It is a mirror pod, as in a real
// cluster.
func member(name, quota string) string {
	return pod(name, "etcd", fmt.Sprintf("{name: ETCD_NAME, value: %s}, {name: ETCD_QUOTA_BACKEND_BYTES, value: %q}", name, quota))
}

func pod(name, app, env string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: openshift-etcd
  labels: {app: %s}
  annotations: {kubernetes.io/config.mirror: "0"}
spec:
  nodeName: master-0
  terminationGracePeriodSeconds: 0
  containers: [{name: etcdctl, image: etcd, env: [%s]}]
`, name, app, env)
}

func unknown(messages ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Messages: messages}
}

// testCase is a test case of either check.
type testCase struct {
	reason string
	state  string
	run    func(*testing.T, ...string) checktest.Report
	want   checktest.Want
}

func runCases(t *testing.T, env *checktest.Environment, check string, cases map[string]testCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			env.Apply(t, tc.state)
			run := env.Run
			if tc.run != nil {
				run = tc.run
			}
			run(t).Expect(t, tc.reason, check, tc.want)
		})
	}
}

func TestEtcdMembers(t *testing.T) {
	env := checktest.New(t, local, "openshift-etcd-operator", "etcd-preflight")
	runCases(t, env, "EtcdMembers", map[string]testCase{
		"Healthy": {
			reason: "all members are healthy; other conditions are ignored",
			state: etcd(condition("NodeInstallerProgressing", "True", "2 nodes are at revision 7") + ", " +
				condition("EtcdMembersDegraded", "False", "No unhealthy members found")),
			want: checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"Degraded": {
			reason: "two of three members have the quorum until the update reboots one of them",
			state:  etcd(condition("EtcdMembersDegraded", "True", "2 of 3 members are available, master-1 is unhealthy")),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "MembersDegraded",
				Messages: []string{"etcd does not tolerate the loss of another member: 2 of 3 members are available, master-1 is unhealthy"},
				Remedies: []string{"oc wait etcd.operator.openshift.io/cluster --for=condition=EtcdMembersDegraded=false"},
			},
		},
		"ConditionUnknown": {
			reason: "the operator cannot reach etcd",
			state:  etcd(condition("EtcdMembersDegraded", "Unknown", "")),
			want:   unknown("the condition EtcdMembersDegraded of etcds.operator.openshift.io/cluster is missing or Unknown"),
		},
		"NoCondition": {
			reason: "a missing condition is not a pass",
			state:  etcd(condition("NodeControllerDegraded", "False", "")),
			want:   unknown("the condition EtcdMembersDegraded of etcds.operator.openshift.io/cluster is missing or Unknown"),
		},
		"NoEtcd": {
			reason: "a missing object is not a pass",
			want:   unknown(`cannot read the status of etcd: etcds.operator.openshift.io "cluster" not found`),
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want:   unknown(`etcds.operator.openshift.io "cluster" is forbidden`),
		},
	})
	t.Run("Output", func(t *testing.T) {
		env.Apply(t, etcd(condition("EtcdMembersDegraded", "True", "2 of 3 members are available, master-1 is unhealthy"))+member("master-0",
			"8589934592"))
		env.ExpectOutput(t)
	})
}

// TestEtcdSpace compares the database of the local cluster, which has some megabytes,
// with different quotas.
func TestEtcdSpace(t *testing.T) {
	env := checktest.New(t, local, "openshift-etcd-operator", "etcd-preflight")
	const gib8, mib1 = "8589934592", "1048576"
	runCases(t, env, "EtcdSpace", map[string]testCase{
		"Enough": {
			reason: "the database is small compared to 8 GiB, the default quota of the operator",
			state:  member("master-0", gib8) + member("master-1", gib8),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"Full": {
			reason: "above its quota etcd rejects writes, and the update would not complete",
			state:  member("master-0", mib1),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "LowSpace",
				Messages: []string{"the database of etcd uses ", "% of its quota of 1048576 bytes"},
				Remedies: []string{"oc get --raw /metrics | grep ^apiserver_resource_objects", "--endpoints=https://localhost:2379 defrag"},
			},
		},
		"NoPods": {
			reason: "without pods of etcd, as with a hosted control plane, the check is inconclusive",
			want:   unknown("cannot read the size of the database: no pod of etcd has the variable ETCD_QUOTA_BACKEND_BYTES"),
		},
		"OtherPods": {
			reason: "pods of the installer in the same namespace are ignored",
			state:  pod("installer-7-master-0", "installer", "{name: ETCD_QUOTA_BACKEND_BYTES, value: "+`"1"`+"}"),
			want:   unknown("no pod of etcd has the variable"),
		},
		"NoNumber": {
			reason: "a malformed quota is not a pass",
			state:  member("master-0", "8Gi"),
			want:   unknown(`parsing "8Gi"`),
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want:   unknown("pods is forbidden"),
		},
	})
}

func TestManifests(t *testing.T) {
	env := checktest.New(t, local, "openshift-etcd-operator", "etcd-preflight")
	env.ExpectJob(t)
	env.ExpectRoles(t)
}
