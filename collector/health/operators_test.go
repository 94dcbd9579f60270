package health_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const operatorsPath = "/apis/config.openshift.io/v1/clusteroperators"

// operator has conditions like "Available=True Reason message".
func operator(name string, conditions ...string) *configv1.ClusterOperator {
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, condition := range conditions {
		kind, rest, _ := strings.Cut(condition, "=")
		status, rest, _ := strings.Cut(rest, " ")
		reason, message, _ := strings.Cut(rest, " ")
		operator.Status.Conditions = append(operator.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: configv1.ClusterStatusConditionType(kind), Status: configv1.ConditionStatus(status),
			Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
		})
	}
	return operator
}

func TestClusterOperators(t *testing.T) {
	fine := operator("dns", "Available=True AsExpected", "Degraded=False AsExpected", "Progressing=True", "Upgradeable=False NotYet")
	selfManaged := checktest.Infrastructure(configv1.HighlyAvailableTopologyMode)
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		message string // a part of it
		want    results
	}{
		"Fine": {
			reason:  "Upgradeable is a gate, and Progressing is not unhealthy",
			objects: []runtime.Object{fine, operator("etcd", "Available=True", "Degraded=False")},
			message: "all 2 ClusterOperators",
			want:    results{"ClusterOperatorHealth": result(preflight.Pass, "AsExpected")},
		},
		"Degraded": {
			reason:  "the reason and the message are the operator's",
			objects: []runtime.Object{fine, operator("etcd", "Available=True", "Degraded=True EtcdMembers_Bad 1 of 3 members is bad")},
			message: `ClusterOperator "etcd" is Degraded=True: 1 of 3 members is bad`,
			want:    results{"ClusterOperatorDegraded-etcd": result(preflight.Fail, "EtcdMembers_Bad")},
		},
		"Unavailable": {
			reason:  "the worse condition names the finding, and the message has both",
			objects: []runtime.Object{operator("etcd", "Available=False NoQuorum no quorum", "Degraded=True Bad 2 members are bad")},
			message: `is Available=False: no quorum. It is Degraded=True: 2 members are bad`,
			want:    results{"ClusterOperatorUnavailable-etcd": result(preflight.Fail, "NoQuorum")},
		},
		"Each": {
			reason:  "each operator has its own finding",
			objects: []runtime.Object{operator("a", "Available=False", "Degraded=False"), operator("b", "Available=True", "Degraded=True")},
			message: "no message",
			want: results{
				"ClusterOperatorUnavailable-a": result(preflight.Fail, "Unavailable"), "ClusterOperatorDegraded-b": result(preflight.Fail, "Degraded"),
			},
		},
		"Own": {
			reason:  "the preflight's own operator is no part of the cluster's health",
			objects: []runtime.Object{fine, operator("update-preflight")},
			message: "all 1 ClusterOperators",
			want:    results{"ClusterOperatorHealth": result(preflight.Pass, "AsExpected")},
		},
		"NoConditions": {
			reason:  "an operator without conditions, which MUO treats as healthy",
			objects: []runtime.Object{fine, operator("etcd")},
			want:    results{"ClusterOperatorUnavailable-etcd": result(preflight.Unknown, "NoConditions")},
		},
		"AvailableUnknown": {
			reason:  "an inconclusive condition is not a pass",
			objects: []runtime.Object{operator("etcd", "Available=Unknown Lost no answer", "Degraded=False")},
			message: "Available=Unknown: no answer",
			want:    results{"ClusterOperatorUnavailable-etcd": result(preflight.Unknown, "Lost")},
		},
		"DegradedUnknown": {
			reason:  "an inconclusive condition is not a pass",
			objects: []runtime.Object{operator("etcd", "Available=True", "Degraded=Unknown")},
			want:    results{"ClusterOperatorDegraded-etcd": result(preflight.Unknown, "NotReported")},
		},
		"DegradedForCertain": {
			reason:  "a failure counts more than an inconclusive condition",
			objects: []runtime.Object{operator("etcd", "Degraded=True Bad")},
			message: "without the condition Available",
			want:    results{"ClusterOperatorDegraded-etcd": result(preflight.Fail, "Bad")},
		},
		"AvailableMissing": {
			reason:  "an absent condition is inconclusive",
			objects: []runtime.Object{operator("etcd", "Degraded=False")},
			want:    results{"ClusterOperatorUnavailable-etcd": result(preflight.Unknown, "NotReported")},
		},
		"DegradedMissing": {
			reason:  "an absent condition is inconclusive",
			objects: []runtime.Object{operator("etcd", "Available=True")},
			want:    results{"ClusterOperatorDegraded-etcd": result(preflight.Unknown, "NotReported")},
		},
		"HyperShift": {
			reason:  "a hosted cluster has operators too",
			objects: []runtime.Object{checktest.Infrastructure(configv1.ExternalTopologyMode), operator("dns", "Available=True", "Degraded=True Bad")},
			want:    results{"ClusterOperatorDegraded-dns": result(preflight.Fail, "Bad")},
		},
		"None": {
			reason:  "every OpenShift cluster has operators",
			objects: []runtime.Object{selfManaged},
			want:    results{"ClusterOperatorHealth": result(preflight.Unknown, "APIMissing")},
		},
		"PlainKubernetes": {
			reason: "plain Kubernetes has no operators",
			want:   results{"ClusterOperatorHealth": result(preflight.Skipped, "PlainKubernetes")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			findings := checktest.Run(t, health.ClusterOperators(), server.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, findings[0].Message, tc.message)
			}
		})
	}
}

func TestClusterOperatorsUnread(t *testing.T) {
	server.Create(t, checktest.Infrastructure(configv1.HighlyAvailableTopologyMode))
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   checktest.Result
	}{
		"Forbidden": {"without permission the check is inconclusive", server.Unprivileged(), result(preflight.Unknown, "Forbidden")},
		"Missing": {
			"every OpenShift cluster has the API",
			server.Responding(map[string]checktest.Response{operatorsPath: checktest.NotServed}), result(preflight.Unknown, "APIMissing"),
		},
		"MissingAndForbidden": {
			"without permission to read the topology the check is inconclusive",
			server.Unprivileged().Responding(map[string]checktest.Response{operatorsPath: checktest.NotServed}), result(preflight.Unknown, "Forbidden"),
		},
		"Malformed": {
			"an object that cannot be decoded is inconclusive",
			server.Responding(map[string]checktest.Response{operatorsPath: checktest.Body(`{"items": 7}`)}), result(preflight.Unknown, "Error"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := checktest.Results(checktest.Run(t, health.ClusterOperators(), tc.server.Snapshot(t), patch(t)))
			if diff := cmp.Diff(results{"ClusterOperatorHealth": tc.want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClusterOperatorsWithMany(t *testing.T) {
	long := strings.Repeat("words\n", 10_000)
	var operators []*configv1.ClusterOperator
	for i := range 1000 {
		operators = append(operators, operator(fmt.Sprintf("u%03d", i), "Available=Unknown"))
	}
	operators = append(operators, operator("z", "Available=True", "Degraded=True Bad "+long))
	many := server.Responding(map[string]checktest.Response{
		operatorsPath: checktest.Pages(t, "config.openshift.io/v1", "ClusterOperatorList", operators),
	})
	findings := checktest.Run(t, health.ClusterOperators(), many.Snapshot(t), patch(t))
	if len(findings) != 51 || findings[0].Name != "ClusterOperatorDegraded-z" {
		t.Fatalf("got %d findings, the first %s; want the worst first, and at most 51", len(findings), findings[0].Name)
	}
	if message := findings[0].Message; len(message) > 2000 || strings.Contains(message, "\n") {
		t.Errorf("a message of %d bytes is not cut to one line", len(message))
	}
	rest := findings[50]
	if rest.Name != "ClusterOperatorHealth" || rest.Outcome != preflight.Unknown || !strings.Contains(rest.Message, "951 Unknown") {
		t.Errorf("the others are not counted: %s %s %q", rest.Name, rest.Outcome, rest.Message)
	}
}
