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

// operator says so of each condition: "Available=True Reason message".
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
	selfManaged := infrastructure(configv1.HighlyAvailableTopologyMode)
	for name, tc := range map[string]struct {
		reason  string
		objects []runtime.Object
		says    string
		want    results
	}{
		"Fine": {
			reason:  "what the operator says of updates is a gate, and progress is not ill health",
			objects: []runtime.Object{fine, operator("etcd", "Available=True", "Degraded=False")},
			says:    "2 of them",
			want:    results{"ClusterOperatorHealth": said(preflight.Pass, "AsExpected")},
		},
		"Degraded": {
			reason:  "the operator's own words",
			objects: []runtime.Object{fine, operator("etcd", "Available=True", "Degraded=True EtcdMembers_Bad 1 of 3 members is bad")},
			says:    `ClusterOperator "etcd" is Degraded=True: 1 of 3 members is bad`,
			want:    results{"ClusterOperatorDegraded-etcd": said(preflight.Fail, "EtcdMembers_Bad")},
		},
		"Unavailable": {
			reason:  "the worst names the finding, and the rest is not lost",
			objects: []runtime.Object{operator("etcd", "Available=False NoQuorum no quorum", "Degraded=True Bad 2 members are bad")},
			says:    `is Available=False: no quorum. It is Degraded=True: 2 members are bad`,
			want:    results{"ClusterOperatorUnavailable-etcd": said(preflight.Fail, "NoQuorum")},
		},
		"Each": {
			reason:  "each is accepted by itself",
			objects: []runtime.Object{operator("a", "Available=False", "Degraded=False"), operator("b", "Available=True", "Degraded=True")},
			says:    "it does not say why",
			want: results{
				"ClusterOperatorUnavailable-a": said(preflight.Fail, "Unavailable"), "ClusterOperatorDegraded-b": said(preflight.Fail, "Degraded"),
			},
		},
		"NoConditions": {
			reason:  "MUO takes silence for health",
			objects: []runtime.Object{fine, operator("etcd")},
			want:    results{"ClusterOperatorUnavailable-etcd": said(preflight.Unknown, "NoConditions")},
		},
		"AvailableUnknown": {
			reason:  "could not tell is not a pass",
			objects: []runtime.Object{operator("etcd", "Available=Unknown Lost no answer", "Degraded=False")},
			says:    "Available=Unknown: no answer",
			want:    results{"ClusterOperatorUnavailable-etcd": said(preflight.Unknown, "Lost")},
		},
		"DegradedUnknown": {
			reason:  "could not tell is not a pass",
			objects: []runtime.Object{operator("etcd", "Available=True", "Degraded=Unknown")},
			want:    results{"ClusterOperatorDegraded-etcd": said(preflight.Unknown, "NotReported")},
		},
		"DegradedForCertain": {
			reason:  "what is known to be wrong counts more than what is not known",
			objects: []runtime.Object{operator("etcd", "Degraded=True Bad")},
			says:    "without the condition Available",
			want:    results{"ClusterOperatorDegraded-etcd": said(preflight.Fail, "Bad")},
		},
		"AvailableMissing": {
			reason:  "a condition that is missing is not known",
			objects: []runtime.Object{operator("etcd", "Degraded=False")},
			want:    results{"ClusterOperatorUnavailable-etcd": said(preflight.Unknown, "NotReported")},
		},
		"DegradedMissing": {
			reason:  "a condition that is missing is not known",
			objects: []runtime.Object{operator("etcd", "Available=True")},
			want:    results{"ClusterOperatorDegraded-etcd": said(preflight.Unknown, "NotReported")},
		},
		"HyperShift": {
			reason:  "a hosted cluster has operators too",
			objects: []runtime.Object{infrastructure(configv1.ExternalTopologyMode), operator("dns", "Available=True", "Degraded=True Bad")},
			want:    results{"ClusterOperatorDegraded-dns": said(preflight.Fail, "Bad")},
		},
		"None": {
			reason:  "there is no OpenShift without operators",
			objects: []runtime.Object{selfManaged},
			want:    results{"ClusterOperatorHealth": said(preflight.Unknown, "APIMissing")},
		},
		"PlainKubernetes": {
			reason: "there is no operator to look at",
			want:   results{"ClusterOperatorHealth": said(preflight.Skipped, "PlainKubernetes")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, tc.objects...)
			findings := checktest.Run(t, health.ClusterOperators(), server.Snapshot(t), patch(t))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.Contains(findings[0].Message, tc.says) {
				t.Errorf("%s: %q does not say %q", tc.reason, findings[0].Message, tc.says)
			}
		})
	}
}

func TestClusterOperatorsUnreadable(t *testing.T) {
	server.Create(t, infrastructure(configv1.HighlyAvailableTopologyMode))
	for name, tc := range map[string]struct {
		reason string
		server checktest.Server
		want   checktest.Result
	}{
		"Forbidden": {"who may not look cannot tell", server.Unprivileged(), said(preflight.Unknown, "Forbidden")},
		"Missing": {
			"OpenShift without the API cannot be judged",
			server.Responding(map[string]checktest.Response{operatorsPath: checktest.NotServed}), said(preflight.Unknown, "APIMissing"),
		},
		"MissingAndForbidden": {
			"whether that is OpenShift cannot be told either",
			server.Unprivileged().Responding(map[string]checktest.Response{operatorsPath: checktest.NotServed}), said(preflight.Unknown, "Forbidden"),
		},
		"Malformed": {
			"what cannot be read cannot be judged",
			server.Responding(map[string]checktest.Response{operatorsPath: checktest.Body(`{"items": 7}`)}), said(preflight.Unknown, "Error"),
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

func TestClusterOperatorsInMasses(t *testing.T) {
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
		t.Fatalf("got %d findings, the first of %s; want the worst first, and no more than 51", len(findings), findings[0].Name)
	}
	if message := findings[0].Message; len(message) > 2000 || strings.Contains(message, "\n") {
		t.Errorf("a message of %d bytes is not cut to one line", len(message))
	}
	rest := findings[50]
	if rest.Name != "ClusterOperatorHealth" || rest.Outcome != preflight.Unknown || !strings.Contains(rest.Message, "951 Unknown") {
		t.Errorf("the others are not counted: %s %s %q", rest.Name, rest.Outcome, rest.Message)
	}
}
