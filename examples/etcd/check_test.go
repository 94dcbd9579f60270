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

// etcd is what the operator says about it, in YAML's flow style.
func etcd(conditions string) string {
	return fmt.Sprintf("---\n{apiVersion: operator.openshift.io/v1, kind: Etcd, metadata: {name: cluster}, spec: {managementState: Managed}, status: {conditions: [%s]}}\n", conditions)
}

func condition(name, status, message string) string {
	return fmt.Sprintf(`{type: %s, status: %q, message: %q, lastTransitionTime: "2026-01-01T00:00:00Z"}`, name, status, message)
}

// member is a pod of etcd with that quota in bytes: the mirror of a static pod,
// as on a real cluster.
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

func unknown(says ...string) checktest.Want {
	return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Says: says}
}

// question is one case of either check.
type question struct {
	reason string
	state  string
	ask    func(*testing.T, ...string) checktest.Answer
	want   checktest.Want
}

func run(t *testing.T, stage *checktest.Stage, check string, questions map[string]question) {
	t.Helper()
	for name, q := range questions {
		t.Run(name, func(t *testing.T) {
			stage.Apply(t, q.state)
			ask := stage.Ask
			if q.ask != nil {
				ask = q.ask
			}
			ask(t).Expect(t, q.reason, check, q.want)
		})
	}
}

func TestEtcdMembers(t *testing.T) {
	stage := checktest.New(t, local, "openshift-etcd-operator", "etcd-preflight")
	run(t, stage, "EtcdMembers", map[string]question{
		"Healthy": {
			reason: "the operator says so, and what else it says does not matter here",
			state: etcd(condition("NodeInstallerProgressing", "True", "2 nodes are at revision 7") + ", " +
				condition("EtcdMembersDegraded", "False", "No unhealthy members found")),
			want: checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"Degraded": {
			reason: "two of three hold the quorum, until the update reboots one of them",
			state:  etcd(condition("EtcdMembersDegraded", "True", "2 of 3 members are available, master-1 is unhealthy")),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "MembersDegraded",
				Says:     []string{"etcd has no member to spare: 2 of 3 members are available, master-1 is unhealthy"},
				Remedies: []string{"oc wait etcd.operator.openshift.io/cluster --for=condition=EtcdMembersDegraded=false"},
			},
		},
		"OperatorUnsure": {
			reason: "an operator that cannot reach etcd does not know, and so does nobody",
			state:  etcd(condition("EtcdMembersDegraded", "Unknown", "")),
			want:   unknown("the operator does not say whether there are EtcdMembersDegraded"),
		},
		"NotSaid": {
			reason: "silence is not a pass",
			state:  etcd(condition("NodeControllerDegraded", "False", "")),
			want:   unknown("the operator does not say whether there are EtcdMembersDegraded"),
		},
		"NoEtcd": {
			reason: "nor is a cluster without the object",
			want:   unknown(`cannot tell how etcd is: etcds.operator.openshift.io "cluster" not found`),
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
			want:   unknown(`etcds.operator.openshift.io "cluster" is forbidden`),
		},
	})
}

// TestEtcdSpace judges the database of the local cluster, which has some
// megabytes, by different quotas.
func TestEtcdSpace(t *testing.T) {
	stage := checktest.New(t, local, "openshift-etcd-operator", "etcd-preflight")
	const gib8, mib1 = "8589934592", "1048576"
	run(t, stage, "EtcdSpace", map[string]question{
		"Enough": {
			reason: "megabytes are nothing in 8 GiB, which is what the operator gives",
			state:  member("master-0", gib8) + member("master-1", gib8),
			want:   checktest.Want{Outcome: preflight.Pass, Reason: "Passed"},
		},
		"Full": {
			reason: "beyond the quota etcd takes no more writes, and the update would stop there",
			state:  member("master-0", mib1),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "LowSpace",
				Says:     []string{"the database of etcd has reached ", "% of its quota of 1048576 bytes"},
				Remedies: []string{"oc get --raw /metrics | grep ^apiserver_resource_objects", "--endpoints=https://localhost:2379 defrag"},
			},
		},
		"NoPods": {
			reason: "where etcd is not in this cluster, as with a hosted control plane, nobody can tell from here",
			want:   unknown("cannot tell how full etcd is: no pod of etcd says its ETCD_QUOTA_BACKEND_BYTES"),
		},
		"OtherPods": {
			reason: "an installer's pod in the same namespace is none of etcd",
			state:  pod("installer-7-master-0", "installer", "{name: ETCD_QUOTA_BACKEND_BYTES, value: "+`"1"`+"}"),
			want:   unknown("no pod of etcd says"),
		},
		"NoNumber": {
			reason: "a quota that is none is not a pass",
			state:  member("master-0", "8Gi"),
			want:   unknown(`parsing "8Gi"`),
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
			want:   unknown("pods is forbidden"),
		},
	})
}

func TestJob(t *testing.T) {
	checktest.New(t, local, "openshift-etcd-operator", "etcd-preflight").ExpectJob(t)
}
