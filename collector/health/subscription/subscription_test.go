package subscription_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/health/subscription"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
)

// state is an API server: the objects of each resource. A resource that is missing is not served, and one with nil is
// forbidden.
type state map[string][]any

func (s state) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	resource := strings.TrimPrefix(r.URL.Path, "/apis/operators.coreos.com/v1alpha1/")
	objects, served := s[resource]
	var body any = map[string]any{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "List", "items": objects}
	switch {
	case !served:
		w.WriteHeader(http.StatusNotFound)
		body = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
	case objects == nil:
		w.WriteHeader(http.StatusForbidden)
		body = map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden,
			"message": "forbidden",
		}
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func of(kind, name string, status map[string]any) any {
	return map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": kind,
		"metadata": map[string]any{"namespace": "operators", "name": name}, "status": status,
	}
}

// operator is the Subscription of an operator that is updated to v2, with a condition.
func operator(installed, condition, reason string) any {
	return of("Subscription", "etcd", map[string]any{
		"installedCSV": installed, "currentCSV": "etcd.v2", "state": "UpgradePending", "installPlanRef": map[string]any{"name": "install-x"},
		"conditions": []any{map[string]any{"type": condition, "status": "True", "reason": reason, "message": "m"}},
	})
}

// manual is a Subscription in a state whose plans an administrator approves.
func manual(state string) any {
	made, _ := of("Subscription", "etcd", map[string]any{
		"installedCSV": "etcd.v1", "currentCSV": "etcd.v2", "state": state, "installPlanRef": map[string]any{"name": "install-x"},
	}).(map[string]any)
	made["spec"] = map[string]any{"installPlanApproval": "Manual"}
	return made
}

func catalog(state string) any {
	return of("CatalogSource", "mirror", map[string]any{"connectionState": map[string]any{"lastObservedState": state}})
}

func version(phase string) any {
	return of("ClusterServiceVersion", "etcd.v2", map[string]any{"phase": phase, "reason": "r", "message": "m"})
}

func copied() any {
	made, _ := version("Failed").(map[string]any)
	made["metadata"] = map[string]any{
		"namespace": "operators", "name": "etcd.v2",
		"annotations": map[string]any{"olm.operatorNamespace": "elsewhere"},
	}
	return made
}

func TestCheck(t *testing.T) {
	const ofOperator, pass = "Subscription-operators.etcd Warn ", "Subscriptions Pass OperatorsUpdated"
	with := func(resource string, object any) state {
		s := state{"subscriptions": {}, "catalogsources": {}, "clusterserviceversions": {}}
		s[resource] = []any{object}
		return s
	}
	for name, tc := range map[string]struct {
		reason string
		of     state
		want   string
		// command is a part of one.
		command string
	}{
		"Approval": {
			reason: "nothing else of the namespace is updated meanwhile", of: with("subscriptions",
				operator("etcd.v1", "InstallPlanPending", "RequiresApproval")), want: ofOperator + "InstallPlanRequiresApproval",
			command: `oc -n operators patch installplans.operators.coreos.com install-x --type merge -p '{"spec":{"approved":true}}'`,
		},
		"Manual": {
			reason: "OLM reports no condition of a plan before it is approved", of: with("subscriptions", manual("UpgradePending")),
			want:    ofOperator + "InstallPlanRequiresApproval",
			command: "oc -n operators patch installplans.operators.coreos.com install-x",
		},
		"Approved": {
			reason: "the plan was approved, and is being carried out", of: with("subscriptions", manual("UpgradeAvailable")),
			want: ofOperator + "OperatorUpdating",
		},
		"Resolution": {
			reason: "the dependencies cannot be resolved", of: with("subscriptions", operator("etcd.v2", "ResolutionFailed",
				"ConstraintsNotSatisfiable")), want: ofOperator + "OperatorNotUpdated",
			command: "oc -n operators describe subscriptions.operators.coreos.com etcd",
		},
		"Unpacking": {
			reason: "the bundle cannot be unpacked", of: with("subscriptions", operator("etcd.v1", "BundleUnpackFailed", "x")),
			want: ofOperator + "OperatorNotUpdated",
		},
		"Plan": {
			reason: "the installation has failed", of: with("subscriptions", operator("etcd.v1", "InstallPlanFailed", "x")),
			want: ofOperator + "OperatorNotUpdated",
		},
		"Installing": {
			reason: "the new version does not exist yet",
			of:     with("subscriptions", operator("etcd.v1", "InstallPlanPending", "Installing")), want: ofOperator + "OperatorUpdating",
		},
		"Deprecated": {reason: "it works", of: with("subscriptions", operator("etcd.v2", "Deprecated", "x")), want: pass},
		"Catalog": {
			reason: "its pod does not respond", of: with("catalogsources", catalog("TRANSIENT_FAILURE")),
			want: "CatalogSource-operators.mirror Warn CatalogNotReady", command: "oc -n operators get catalogsources.operators.coreos.com,pods",
		},
		"Idle":  {reason: "a connection is made when it is used", of: with("catalogsources", catalog("IDLE")), want: pass},
		"Ready": {reason: "it can be read", of: with("catalogsources", catalog("READY")), want: pass},
		"Pending": {
			reason: "a requirement is not met", of: with("clusterserviceversions", version("Pending")),
			want:    "ClusterServiceVersion-operators.etcd.v2 Warn OperatorUpdating",
			command: "oc -n operators describe clusterserviceversions.operators.coreos.com etcd.v2",
		},
		"Replacing": {
			reason: "another version takes over", of: with("clusterserviceversions", version("Replacing")),
			want: "ClusterServiceVersion-operators.etcd.v2 Warn OperatorUpdating",
		},
		"NoReason": {
			reason: "no message is made of an empty reason", of: with("subscriptions", operator("etcd.v1", "InstallPlanFailed", "")),
			want: ofOperator + "OperatorNotUpdated",
		},
		"NoPhase": {reason: "nor of an empty phase", of: with("clusterserviceversions",
			of("ClusterServiceVersion", "etcd.v2", map[string]any{})), want: "ClusterServiceVersion-operators.etcd.v2 Warn OperatorUpdating"},
		"Succeeded": {reason: "the operator runs", of: with("clusterserviceversions", version("Succeeded")), want: pass},
		"Copy":      {reason: "a copy is judged in its original namespace", of: with("clusterserviceversions", copied()), want: pass},
		"NotServed": {reason: "OLM is optional", of: state{}, want: "Subscriptions Skipped NoOLM"},
		"Forbidden": {
			reason: "what warns at most does not block for a missing permission", of: state{"subscriptions": nil},
			want: "Subscriptions Warn Unread",
		},
		"NoOperators": {
			reason: "a part that was not read is no pass",
			of:     state{"subscriptions": {}, "catalogsources": {}, "clusterserviceversions": nil}, want: "Subscriptions Warn Unread",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.of)
			t.Cleanup(server.Close)
			api, err := cluster.Connect(&rest.Config{Host: server.URL}, "test")
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := update.Parse("4.18.3", "4.19.0")
			if err != nil {
				t.Fatal(err)
			}
			subject := check.Subject{Cluster: snapshot.Of(api), Update: parsed}
			var got []string
			commands := ""
			for _, f := range collector.Collect(t.Context(), collector.Bind(subject, []check.Check{subscription.Check()}),
				func(collector.Source, []finding.Finding) {}).Findings {
				got = append(got, fmt.Sprintf("%s %s %s", f.Name, f.Outcome, f.Reason))
				if strings.Contains(f.Message, "()") || strings.HasSuffix(f.Message, ": ") {
					t.Errorf("%s: %q", tc.reason, f.Message)
				}
				for _, action := range f.Actions {
					commands += action.Command + "\n"
				}
			}
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" || !strings.Contains(commands, tc.command) {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, commands)
			}
		})
	}
}
