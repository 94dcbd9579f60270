package clusterversion_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func TestRequest(t *testing.T) {
	const name = "ClusterVersionRequest"
	release := func(version, image string) configv1.Release { return configv1.Release{Version: version, Image: image} }
	conditional := checktest.At("4.18.3")
	conditional.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
		Release: release("4.18.16", checktest.PullSpec("4.18.16")),
		Risks: []configv1.ConditionalUpdateRisk{{
			Name: "RHELKernelHighLoadIOWait", Message: "It waits.", URL: "https://example.com",
			MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
		}},
	}}
	invalid := func(cluster *configv1.ClusterVersion, status configv1.ConditionStatus, message string) *configv1.ClusterVersion {
		return checktest.With(cluster, "Invalid", status, "InvalidClusterVersion", message)
	}
	runRows(t, clusterversion.RequestValid, map[string]row{
		"Available": {
			reason:  "CVO accepts it by its version alone",
			cluster: available(checktest.At("4.18.3"), release("4.18.9", checktest.PullSpec("4.18.9"))), to: "4.18.9",
			want: one(name, preflight.Pass, "AvailableUpdate"), message: []string{"by its version alone"},
		},
		"Twice": {
			reason: "two images with one version", cluster: available(checktest.At("4.18.3"), release("4.18.9", checktest.PullSpec("a")),
				release("4.18.9", checktest.PullSpec("b"))), to: "4.18.9",
			want: one(name, preflight.Warn, "AmbiguousVersion"), message: []string{checktest.PullSpec("a"), checktest.PullSpec("b")},
			remedy: []string{"run the preflight for it by its pull spec", "{.status.availableUpdates}"},
		},
		"Conditional": {
			reason: "CVO refuses it by its version alone; the remedy is about its risks", cluster: conditional, to: "4.18.16",
			want:   one(name, preflight.Warn, "ConditionalUpdateOnly"),
			remedy: []string{"accept by name the risks that the cluster can take", "Run oc adm upgrade --include-not-recommended"},
		},
		"History": {
			reason: "the request passes the validation, but has no image", cluster: checktest.At("4.18.9", "4.18.3"), to: "4.18.3",
			want: one(name, preflight.Warn, "HistoryOnly"), message: []string{"silently stays at 4.18.9"},
			remedy: []string{"no longer lists this one"},
		},
		"Unlisted": {
			reason: "the cluster does not know the target", cluster: checktest.At("4.18.3"), to: "4.18.9",
			want: one(name, preflight.Warn, "UnknownUpdate"), message: []string{`channel "stable"`},
		},
		"Same": {
			reason: "nothing is requested", cluster: checktest.At("4.18.3"), to: "4.18.3", want: one(name, preflight.Warn, "NothingAsked"),
			message: []string{"runs 4.18.3 already"},
		},
	})
	failed := func(reason string, status configv1.ConditionStatus, version string) *configv1.ClusterVersion {
		cluster := available(checktest.At("4.18.3"), release("4.18.9", checktest.PullSpec("4.18.9")))
		return checktest.With(cluster, "ReleaseAccepted", status, reason,
			`the cause version="`+version+`" image="`+checktest.PullSpec(version)+`"`)
	}
	runRows(t, clusterversion.RequestValid, map[string]row{
		"Failed": {
			reason: "CVO retries with the same result", cluster: failed("RetrievePayload", configv1.ConditionFalse, "4.18.9"), to: "4.18.9",
			want: one(name, preflight.Warn, "RequestFailed"), message: []string{
				"request for 4.18.9 (RetrievePayload)",
				`the cause version="4.18.9"`,
			}, remedy: []string{"Run oc adm upgrade --clear"},
		},
		"FailedImage": {
			reason: "a request by image has no version in the message", to: "4.18.9",
			cluster: checktest.With(available(checktest.At("4.18.3"), release("4.18.9", checktest.PullSpec("4.18.9"))), "ReleaseAccepted",
				configv1.ConditionFalse, "RetrievePayload",
				`Retrieving payload failed version="" image="`+checktest.PullSpec("4.18.9")+`" failure=timed out`),
			want: one(name, preflight.Warn, "RequestFailed"), message: []string{"request for 4.18.9", "failure=timed out"},
		},
		"FailedWithoutReason": {
			reason: "no message is made of an empty reason", to: "4.18.9", cluster: failed("", configv1.ConditionFalse, "4.18.9"),
			want: one(name, preflight.Unknown, "RequestFailed"), message: []string{"and each retry fails"},
		},
		"FailedVersion": {
			reason: "so does a payload of another version", cluster: failed("VerifyPayloadVersion", configv1.ConditionFalse, "4.18.9"), to: "4.18.9",
			want: one(name, preflight.Unknown, "RequestFailed"),
		},
		"FailedPreconditions": {
			reason:  "each precondition has a check, and the preflight may be one of them",
			cluster: failed("PreconditionChecks", configv1.ConditionFalse, "4.18.9"), to: "4.18.9",
			want: one(name, preflight.Warn, "RequestFailed"), message: []string{"(PreconditionChecks)", `the cause version="4.18.9"`},
		},
		"FailedOther": {reason: "the request for another release is replaced", cluster: failed("RetrievePayload", configv1.ConditionFalse,
			"4.18.90"), to: "4.18.9", want: one(name, preflight.Pass, "AvailableUpdate")},
		"Accepted": {
			reason: "CVO has accepted the request", cluster: failed("PayloadLoaded", configv1.ConditionTrue, "4.18.9"), to: "4.18.9",
			want: one(name, preflight.Pass, "AvailableUpdate"),
		},
		"NotReported": {reason: "a condition that is Unknown is no failure", cluster: failed("RetrievePayload", configv1.ConditionUnknown,
			"4.18.9"), to: "4.18.9", want: one(name, preflight.Pass, "AvailableUpdate")},
	})
	runRows(t, clusterversion.RequestValid, map[string]row{
		"Capabilities": {
			reason: "the message is CVO's", to: "4.18.3",
			cluster: checktest.With(checktest.At("4.18.3"), "ImplicitlyEnabledCapabilities", configv1.ConditionTrue, "CapabilitiesImplicitlyEnabled",
				"The following capabilities could not be disabled: Console"),
			want: map[string]checktest.Result{
				name:                            {Outcome: preflight.Warn, Reason: "NothingAsked"},
				"ImplicitlyEnabledCapabilities": {Outcome: preflight.Warn, Reason: "CapabilitiesImplicitlyEnabled"},
			},
			message: []string{"True (CapabilitiesImplicitlyEnabled): The following capabilities could not be disabled: Console"},
			remedy:  []string{"additionalEnabledCapabilities"},
		},
		"AsConfigured": {
			reason: "the capabilities match the spec", to: "4.18.3", want: one(name, preflight.Warn, "NothingAsked"),
			cluster: checktest.With(checktest.At("4.18.3"), "ImplicitlyEnabledCapabilities", configv1.ConditionFalse, "AsExpected",
				"Capabilities match configured spec"),
		},
	})
	unavailable := "The cluster version is invalid: spec.desiredUpdate.version: Invalid value: \"4.18.16\": when image is empty the " +
		"update must be an available update"
	runRows(t, clusterversion.RequestValid, map[string]row{
		"Invalid": {
			reason: "the message is CVO's", cluster: invalid(checktest.At("4.18.3"), configv1.ConditionTrue, unavailable), to: "4.18.9",
			want: one(name, preflight.Fail, "InvalidClusterVersion"), message: []string{unavailable},
			remedy: []string{"oc adm upgrade --clear", "--allow-upgrade-with-warnings"},
		},
		"InvalidUpstream": {
			reason: "another field is invalid", cluster: invalid(checktest.At("4.18.3"), configv1.ConditionTrue,
				"The cluster version is invalid: spec.upstream"), to: "4.18.9",
			want: one(name, preflight.Fail, "InvalidClusterVersion"), remedy: []string{"oc edit clusterversion version"},
		},
		"InvalidUnknown": {reason: "CVO does not report whether it is valid", cluster: invalid(checktest.At("4.18.3"), configv1.ConditionUnknown,
			""), to: "4.18.9", want: one(name, preflight.Unknown, "InvalidClusterVersion")},
		"Valid": {
			reason: "the condition is False", cluster: invalid(checktest.At("4.18.3"), configv1.ConditionFalse, ""), to: "4.18.3",
			want: one(name, preflight.Warn, "NothingAsked"),
		},
	})
}

func TestRetrievedUpdates(t *testing.T) {
	const name = "CannotRetrieveUpdates"
	runRows(t, clusterversion.RetrievedUpdates, map[string]row{
		"Retrieved": {
			reason: "the updates are current", cluster: checktest.At("4.18.3"), to: "4.18.9",
			want: one(name, preflight.Pass, "Retrieved"), message: []string{`"stable"`},
		},
		"Failed": {
			reason: "the risks may be out of date",
			cluster: checktest.With(checktest.At("4.18.3"), configv1.RetrievedUpdates, configv1.ConditionFalse, "RemoteFailed",
				"Unable to retrieve available updates: no route to host"), to: "4.18.9",
			want: one(name, preflight.Unknown, "RemoteFailed"), message: []string{"no route to host"},
			remedy: []string{"Run oc adm upgrade\n", "Accept CannotRetrieveUpdates"},
		},
		"Absent": {
			reason: "CVO has not reported yet", cluster: without(checktest.At("4.18.3"), configv1.RetrievedUpdates), to: "4.18.9",
			want: one(name, preflight.Unknown, "NotRetrieved"), message: []string{"absent"},
		},
	})
}

func TestFailing(t *testing.T) {
	const name = "Failing"
	fails := func(cluster *configv1.ClusterVersion) *configv1.ClusterVersion {
		return checktest.With(cluster, "Failing", configv1.ConditionTrue, "ClusterOperatorNotAvailable", "Cluster operator dns is not available")
	}
	runRows(t, clusterversion.Failing, map[string]row{
		"False": {reason: "CVO does not fail", cluster: checktest.At("4.18.3"), to: "4.18.9", want: one(name, preflight.Pass, "AsExpected")},
		"True": {
			reason: "oc adm upgrade refuses such a cluster", cluster: fails(checktest.At("4.18.3")), to: "4.18.9",
			want:    one(name, preflight.Fail, "ClusterOperatorNotAvailable"),
			message: []string{"Cluster operator dns is not available"}, remedy: []string{"Accept Failing"},
		},
		"Stuck": {
			reason: "a retarget is most likely the fix", cluster: fails(checktest.Toward("4.18.3", "4.19.2")), to: "4.19.5",
			want: one(name, preflight.Warn, "ClusterOperatorNotAvailable"),
		},
		"StuckNext": {
			reason: "the next minor version is not", cluster: fails(checktest.Toward("4.18.3", "4.19.2")), to: "4.20.1",
			want: one(name, preflight.Fail, "ClusterOperatorNotAvailable"),
		},
		"Absent": {
			reason: "CVO has not reported yet", cluster: without(checktest.At("4.18.3"), "Failing"), to: "4.18.9",
			want: one(name, preflight.Unknown, "NotReported"), message: []string{"absent"},
		},
		"Unknown": {reason: "CVO reports Unknown", cluster: checktest.With(checktest.At("4.18.3"), "Failing", configv1.ConditionUnknown, "",
			""), to: "4.18.9", want: one(name, preflight.Unknown, "NotReported")},
	})
}

// operator is a ClusterOperator with the condition Upgradeable, unless the status
// is empty.
func operator(name string, status configv1.ConditionStatus, reason, message string) *configv1.ClusterOperator {
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if status != "" {
		operator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{
			Type: configv1.OperatorUpgradeable, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
		}}
	}
	return operator
}

func TestClusterOperators(t *testing.T) {
	const skew, olm = "KubeletMinorVersion_KubeletMinorVersionUnsupportedNextUpgrade", "IncompatibleOperatorsInstalled"
	kubelets := operator("kube-apiserver", configv1.ConditionFalse, skew, "KubeletMinorVersionUpgradeable: Kubelets are too old.")
	for name, tc := range map[string]struct {
		reason    string
		cluster   *configv1.ClusterVersion
		to        string
		operators []*configv1.ClusterOperator
		want      map[string]checktest.Result
		message   []string
	}{
		"Upgradeable": {
			reason: "True, absent and NoData do not block", to: "4.19.0",
			operators: []*configv1.ClusterOperator{
				operator("etcd", configv1.ConditionTrue, "AsExpected", ""), operator("dns", "", "", ""),
				operator("service-ca", configv1.ConditionUnknown, "NoData", ""),
			},
			want: one("ClusterOperatorUpgradeable", preflight.Pass, "Upgradeable"), message: []string{"3 ClusterOperators"},
		},
		"False": {
			reason: "one finding each, with the operator's own reason and message", to: "4.19.0",
			operators: []*configv1.ClusterOperator{
				kubelets,
				operator("operator-lifecycle-manager", configv1.ConditionFalse, olm, "- a/b is too old"),
			},
			want: map[string]checktest.Result{
				"ClusterOperatorUpgradeable-kube-apiserver":             {Outcome: preflight.Fail, Reason: skew},
				"ClusterOperatorUpgradeable-operator-lifecycle-manager": {Outcome: preflight.Fail, Reason: olm},
			},
			message: []string{"KubeletMinorVersionUpgradeable: Kubelets are too old.", "- a/b is too old", "another minor version than 4.18"},
		},
		"Unknown": {
			reason: "by the API, Unknown does not block", to: "4.19.0",
			operators: []*configv1.ClusterOperator{operator("kube-apiserver", configv1.ConditionUnknown, "KubeletMinorVersion_KubeletVersionUnknown",
				"A node has no version.")},
			want:    one("ClusterOperatorUpgradeable-kube-apiserver", preflight.Warn, "KubeletMinorVersion_KubeletVersionUnknown"),
			message: []string{"A node has no version."},
		},
		"Unexplained": {
			reason: "a condition without a reason and a message", to: "4.19.0",
			operators: []*configv1.ClusterOperator{operator("dns", configv1.ConditionFalse, "", "")},
			want:      one("ClusterOperatorUpgradeable-dns", preflight.Fail, "Unexplained"), message: []string{"no message"},
		},
		"Patch": {
			reason: "patch updates are not blocked", to: "4.18.9", operators: []*configv1.ClusterOperator{kubelets},
			want: one("ClusterOperatorUpgradeable", preflight.Skipped, "NotConcerned"),
		},
		"Retarget": {
			reason: "updates within the minor version in progress are not blocked", cluster: checktest.Toward("4.17.3", "4.18.3"), to: "4.18.9",
			operators: []*configv1.ClusterOperator{kubelets},
			want:      one("ClusterOperatorUpgradeable", preflight.Skipped, "NotConcerned"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.cluster == nil {
				tc.cluster = checktest.At("4.18.3")
			}
			server.Create(t, tc.cluster)
			for _, operator := range tc.operators {
				server.Create(t, operator)
			}
			findings := checktest.Run(t, clusterversion.ClusterOperators(), server.Snapshot(t), checktest.Update(t, "4.17.3", tc.to))
			if diff := cmp.Diff(tc.want, checktest.Results(findings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			checktest.Contains(t, tc.reason, checktest.Messages(findings), tc.message)
		})
	}
}

func TestClusterOperatorsForbidden(t *testing.T) {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "read-cluster-version"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"config.openshift.io"}, Resources: []string{"clusterversions"},
			Verbs: []string{"get"},
		}},
	}
	server.Create(t, checktest.At("4.18.3"), role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: checktest.UnprivilegedUser}},
	})
	findings := checktest.Run(t, clusterversion.ClusterOperators(), permitted(t), checktest.Update(t, "4.18.3", "4.19.0"))
	if diff := cmp.Diff(one("ClusterOperatorUpgradeable", preflight.Unknown, "Forbidden"), checktest.Results(findings)); diff != "" {
		t.Errorf("with permission to read the ClusterVersion only: -want +got:\n%s", diff)
	}
	checktest.Contains(t, "message", findings[0].Message, []string{"could not list the ClusterOperators"})
}

// permitted is the view of the unprivileged user, once the API server grants the
// permission to read the ClusterVersion.
func permitted(t *testing.T) checktest.View {
	t.Helper()
	for t.Context().Err() == nil {
		view := server.Unprivileged().Snapshot(t)
		if _, err := view.ClusterVersion(t.Context()); err == nil {
			return view
		}
	}
	t.Fatal("the permission was not granted in time")
	return checktest.View{}
}
