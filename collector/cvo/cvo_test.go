package cvo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cvo"
)

// digest returns the pull spec of a release.
func digest(version string) string { return "quay.io/release@sha256:" + version }

// at is a cluster that completed an update to a version, after updates to others,
// newest first.
func at(version string, before ...string) *configv1.ClusterVersion {
	cluster := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 2},
		Spec:       configv1.ClusterVersionSpec{Channel: "stable"},
		Status: configv1.ClusterVersionStatus{
			ObservedGeneration: 2,
			Desired:            configv1.Release{Version: version, Image: digest(version)},
		},
	}
	for _, past := range append([]string{version}, before...) {
		cluster.Status.History = append(cluster.Status.History, configv1.UpdateHistory{
			State: configv1.CompletedUpdate, Version: past, Image: digest(past),
		})
	}
	return with(cluster, configv1.OperatorProgressing, configv1.ConditionFalse, "", "")
}

// toward is a cluster that is being updated to a version.
func toward(version string, before ...string) *configv1.ClusterVersion {
	cluster := at(version, before...)
	cluster.Status.History[0].State = configv1.PartialUpdate
	cluster.Status.Conditions = nil
	return with(cluster, configv1.OperatorProgressing, configv1.ConditionTrue, "", "Working towards "+version)
}

func with(cluster *configv1.ClusterVersion, kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason,
	message string,
) *configv1.ClusterVersion {
	cluster.Status.Conditions = append(cluster.Status.Conditions, configv1.ClusterOperatorStatusCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
	})
	return cluster
}

// notUpgradeable is a cluster with Upgradeable=False.
func notUpgradeable(cluster *configv1.ClusterVersion) *configv1.ClusterVersion {
	return with(cluster, configv1.OperatorUpgradeable, configv1.ConditionFalse, "AdminAckRequired", "Do it first.")
}

func available(cluster *configv1.ClusterVersion, versions ...string) *configv1.ClusterVersion {
	for _, version := range versions {
		cluster.Status.AvailableUpdates = append(cluster.Status.AvailableUpdates, configv1.Release{Version: version, Image: digest(version)})
	}
	return cluster
}

func unmanaged(cluster *configv1.ClusterVersion) *configv1.ClusterVersion {
	cluster.Spec.Overrides = []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: "a", Name: "b", Unmanaged: true}}
	return cluster
}

// risky adds a conditional update to a version, with risks and the status of their
// conditions Applies.
func risky(cluster *configv1.ClusterVersion, version string, risks map[string]metav1.ConditionStatus) *configv1.ClusterVersion {
	update := configv1.ConditionalUpdate{
		Release: configv1.Release{Version: version, Image: digest(version)},
		Conditions: []metav1.Condition{{
			Type: "Recommended", Status: metav1.ConditionFalse, Reason: "RHELKernelHighLoadIOWait", Message: "The kernel waits for I/O.",
		}},
	}
	for name := range risks {
		update.Risks = append(update.Risks, configv1.ConditionalUpdateRisk{Name: name})
	}
	cluster.Status.ConditionalUpdates = append(cluster.Status.ConditionalUpdates, update)
	return cluster
}

// gated is risky with the feature gate ClusterUpdateAcceptRisks.
func gated(cluster *configv1.ClusterVersion, version string, risks map[string]metav1.ConditionStatus) *configv1.ClusterVersion {
	cluster = risky(cluster, version, risks)
	last := &cluster.Status.ConditionalUpdates[len(cluster.Status.ConditionalUpdates)-1]
	for name, status := range risks {
		last.RiskNames = append(last.RiskNames, name)
		cluster.Status.ConditionalUpdateRisks = append(cluster.Status.ConditionalUpdateRisks, configv1.ConditionalUpdateRisk{
			Name: name, Conditions: []metav1.Condition{{Type: "Applies", Status: status}},
		})
	}
	return cluster
}

// recommended has a conditional update to 4.18.16 with these conditions.
func recommended(conditions ...metav1.Condition) *configv1.ClusterVersion {
	cluster := risky(at("4.18.3"), "4.18.16", nil)
	cluster.Status.ConditionalUpdates[0].Conditions = conditions
	return cluster
}

// result has the fields of a Prediction that the tables compare.
type result struct {
	Accepts string
	Reason  string
}

func resultOf(prediction cvo.Prediction) result {
	accepts := "unknown"
	if prediction.Accepts != nil {
		accepts = map[bool]string{true: "yes", false: "no"}[*prediction.Accepts]
	}
	return result{Accepts: accepts, Reason: prediction.Reason}
}

// row is a request and the expected Prediction.
type row struct {
	reason  string
	request cvo.Request
	want    result
	message string // a part of it
}

var (
	loaded       = result{"yes", "PayloadLoaded"}
	invalid      = result{"no", "InvalidClusterVersion"}
	precondition = result{"no", "PreconditionChecks"}
	undetermined = result{"unknown", cvo.NotEvaluated}
)

func check(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			prediction := cvo.Evaluate(tc.request)
			if diff := cmp.Diff(tc.want, resultOf(prediction)); diff != "" {
				t.Errorf("%s: -want +got:\n%s\nmessage: %s", tc.reason, diff, prediction.Message)
			}
			if prediction.Message == "" || !strings.Contains(prediction.Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, prediction.Message, tc.message)
			}
		})
	}
}

// byImage is a request by version and image, signed.
func byImage(cluster *configv1.ClusterVersion, version string) cvo.Request {
	return cvo.Request{ClusterVersion: cluster, Version: version, Image: digest(version), Signed: new(true)}
}

// byVersion is a request by version alone, signed.
func byVersion(cluster *configv1.ClusterVersion, version string) cvo.Request {
	return cvo.Request{ClusterVersion: cluster, Version: version, Signed: new(true)}
}

func forced(request cvo.Request) cvo.Request {
	request.Force = true
	return request
}

func signed(request cvo.Request, signed *bool) cvo.Request {
	request.Signed = signed
	return request
}

func accepting(request cvo.Request, names ...string) cvo.Request {
	request.AcceptRisks = names
	return request
}

func TestValidation(t *testing.T) {
	const risk = "RHELKernelHighLoadIOWait"
	applies := map[string]metav1.ConditionStatus{risk: metav1.ConditionTrue}
	two := map[string]metav1.ConditionStatus{risk: metav1.ConditionTrue, "Other": metav1.ConditionFalse}
	undecided := map[string]metav1.ConditionStatus{risk: metav1.ConditionUnknown}
	stale := available(at("4.18.3"), "4.18.9")
	stale.Generation = 3
	inCluster := gated(at("5.0.1"), "5.0.9", applies)
	inCluster.Spec.DesiredUpdate = &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: risk}}}
	check(t, map[string]row{
		"Nothing": {
			reason: "lib/validation: a request has a version or an image", request: cvo.Request{ClusterVersion: at("4.18.3")},
			want: invalid, message: "must specify architecture, version, or image",
		},
		"NotSemVer": {
			reason: "lib/validation: 4.2 is not a semantic version", request: forced(byImage(at("4.18.3"), "4.2")),
			want: invalid, message: "must be a semantic version",
		},
		"Available": {
			reason: "one available update with an image", request: byVersion(available(at("4.18.3"), "4.18.9"), "4.18.9"),
			want: loaded, message: digest("4.18.9"),
		},
		"Twice": {
			reason: "two available updates of one version", request: byVersion(available(at("4.18.3"), "4.18.9", "4.18.9"), "4.18.9"),
			want: invalid, message: "multiple possible payloads",
		},
		"Unlisted": {
			reason: "by version alone the target has to be an available update", request: byVersion(available(at("4.18.3"), "4.18.9"), "4.18.10"),
			want:    invalid,
			message: `The cluster version is invalid: spec.desiredUpdate.version: Invalid value: "4.18.10": when image is empty the update must be an available update`,
		},
		"UnlistedForced": {
			reason: "force does not bypass the validation", request: forced(byVersion(at("4.18.3"), "4.18.10")), want: invalid,
		},
		"Conditional": {
			reason:  "a request by version does not select a conditional update, which is the only block for an unaccepted risk",
			request: byVersion(risky(at("4.18.3"), "4.18.16", applies), "4.18.16"),
			want:    invalid, message: "by version and image only",
		},
		"ConditionalByImage": {
			reason: "with the image an unaccepted risk is a warning", request: byImage(risky(at("4.18.3"), "4.18.16", applies), "4.18.16"),
			want: loaded, message: "Update from 4.18.3 to 4.18.16 is not recommended:\n\nThe kernel waits for I/O.",
		},
		"AcceptedWithoutGate": {
			reason:  "without the feature gate the API server drops accepted risks",
			request: accepting(byVersion(risky(at("4.18.3"), "4.18.16", applies), "4.18.16"), risk),
			want:    invalid, message: "ClusterUpdateAcceptRisks",
		},
		"AcceptedWithGate": {
			reason:  "with the feature gate the target becomes an available update",
			request: accepting(byVersion(gated(at("5.0.1"), "5.0.9", two), "5.0.9"), risk), want: loaded,
		},
		"AcceptedInCluster": {
			reason: "acceptances in spec.desiredUpdate count too", request: byVersion(inCluster, "5.0.9"), want: loaded,
		},
		"AcceptedOther": {
			reason: "a risk that applies is not accepted", request: accepting(byVersion(gated(at("5.0.1"), "5.0.9", two), "5.0.9"), "Other"),
			want: invalid, message: "every risk that applies",
		},
		"AcceptedUnknown": {
			reason:  "acceptance does not cover a risk that could not be evaluated",
			request: accepting(byVersion(gated(at("5.0.1"), "5.0.9", undecided), "5.0.9"), risk), want: invalid,
		},
		"History": {
			reason: "a version in the history passes, but has no image (pkg/cvo/cvo.go)", request: byVersion(at("4.18.9", "4.18.3"), "4.18.3"),
			want: result{"no", "NoTarget"}, message: "silently stays at 4.18.9",
		},
		"Current": {
			reason: "the version that the cluster runs", request: byVersion(at("4.18.9"), "4.18.9"), want: loaded, message: "nothing changes",
		},
		"CurrentImage": {
			reason: "the image that the cluster runs is not verified again", request: signed(byImage(at("4.18.9"), "4.18.9"), new(false)),
			want: loaded, message: "nothing is verified",
		},
		"Stale": {
			reason: "a status of an earlier generation is out of date", request: byVersion(stale, "4.18.9"),
			want: undetermined, message: "generation 2",
		},
		"NoClusterVersion": {
			reason: "without a ClusterVersion the acceptance is unknown", request: cvo.Request{Version: "4.18.9"},
			want: undetermined,
		},
	})
}

func TestPayload(t *testing.T) {
	byTag := byImage(at("4.18.3"), "4.18.9")
	byTag.Image = "quay.io/release:4.18.9"
	other := byImage(at("4.18.3"), "4.18.9")
	other.PayloadVersion = "4.18.8"
	imageOnly := byImage(at("4.18.3"), "4.18.9")
	imageOnly.Version = ""
	read := imageOnly
	read.PayloadVersion = "4.17.1"
	check(t, map[string]row{
		"Unsigned": {
			reason: "ReleaseAccepted=False, RetrievePayload", request: signed(byImage(at("4.18.3"), "4.18.9"), new(false)),
			want: result{"no", "RetrievePayload"}, message: "The update cannot be verified",
		},
		"UnsignedForced": {
			reason: "force bypasses the verification", request: forced(signed(byImage(at("4.18.3"), "4.18.9"), new(false))),
			want: loaded,
		},
		"UnknownSignature": {
			reason: "the signature was not verified", request: signed(byImage(at("4.18.3"), "4.18.9"), nil), want: undetermined,
			message: "signature",
		},
		"UnknownSignatureBlocked": {
			reason:  "a precondition refuses it with any signature",
			request: signed(byImage(notUpgradeable(at("4.18.3")), "4.19.0"), nil), want: precondition,
		},
		"Tag": {reason: "a tag has no digest to verify", request: byTag, want: result{"no", "RetrievePayload"}, message: "digest"},
		"OtherVersion": {
			reason: "the image is another release", request: other,
			want: result{"no", "VerifyPayloadVersion"}, message: "release image version 4.18.8 does not match the expected upstream version 4.18.9",
		},
		"OtherVersionForced": {
			reason: "force does not bypass the check of the version", request: forced(other),
			want: result{"no", "VerifyPayloadVersion"},
		},
		"ImageOnly": {
			reason: "the version is in the payload, which was not read", request: imageOnly, want: undetermined,
			message: "version",
		},
		"ImageRead": {
			reason: "the preconditions are judged by the version in the payload", request: read, want: precondition,
			message: "LowDesiredVersion",
		},
	})
}

func TestPreconditions(t *testing.T) {
	everything := unmanaged(notUpgradeable(at("4.19.3")))
	check(t, map[string]row{
		"Patch": {reason: "no precondition is violated", request: byImage(available(at("4.18.3"), "4.18.9"), "4.18.9"), want: loaded},
		"UpgradeableFalse": {
			reason: "the condition's own reason and message", request: byImage(notUpgradeable(at("4.18.3")), "4.19.0"), want: precondition,
			message: `Precondition "ClusterVersionUpgradeable" failed because of "AdminAckRequired": Do it first.`,
		},
		"UpgradeableFalsePatch": {
			reason: "patch updates are not blocked", request: byImage(notUpgradeable(at("4.18.3")), "4.18.9"),
			want: loaded,
		},
		"UpgradeableUnknown": {
			reason:  "Unknown passes",
			request: byImage(with(at("4.18.3"), configv1.OperatorUpgradeable, configv1.ConditionUnknown, "EvaluationFailed", ""), "4.19.0"),
			want:    loaded,
		},
		"Accepted": {
			reason:  "accepted risks do not bypass Upgradeable=False",
			request: accepting(byImage(notUpgradeable(at("5.0.3")), "5.1.0"), "AdminAck-x"), want: precondition,
		},
		"Several": {
			reason: "all violations are reported, warnings too", request: byImage(everything, "4.21.0"), want: precondition,
			message: "Multiple precondition checks failed:\n* Precondition \"ClusterVersionGiantHop\"",
		},
		"Forced": {
			reason: "force turns a violation that blocks into a warning", request: forced(byImage(everything, "4.21.0")), want: loaded,
			message: "Forced through blocking failures: Multiple precondition checks failed",
		},
		"ForcedWithoutViolation": {
			reason: "force without a violation", request: forced(byImage(available(at("4.18.3"), "4.18.9"), "4.18.9")),
			want: loaded,
		},
		"NoChannel": {
			reason: "without a channel the recommendation is unknown, which is a warning", want: loaded, message: "Configured channel is unset",
			request: func() cvo.Request {
				cluster := at("4.18.3")
				cluster.Spec.Channel = ""
				return byImage(cluster, "4.18.9")
			}(),
		},
		"NotEvaluatedRisk": {
			reason: "a risk that CVO could not evaluate is a warning", want: loaded, message: "is Recommended=Unknown: EvaluationFailed: throttled",
			request: byImage(recommended(metav1.Condition{
				Type: "Recommended", Status: metav1.ConditionUnknown, Reason: "EvaluationFailed",
				Message: "throttled",
			}), "4.18.16"),
		},
		"NoRecommendation": {
			reason: "a conditional update without the condition is a warning", want: loaded, message: "but no Recommended condition",
			request: byImage(recommended(), "4.18.16"),
		},
		"Recommended": {
			reason: "a conditional update whose risks do not apply", want: loaded,
			request: byImage(recommended(metav1.Condition{Type: "Recommended", Status: metav1.ConditionTrue}), "4.18.16"),
		},
		"NoReason": {
			reason: "no message is made of an empty reason", want: loaded,
			message: `failed because of "UnknownUpdate": RetrievedUpdates=True, so the update`,
			request: byImage(with(at("4.18.3"), configv1.RetrievedUpdates, configv1.ConditionTrue, "", ""), "4.18.9"),
		},
		"NoReasonOfAPrecondition": {
			reason: "nor of one of a precondition", want: precondition, message: `Precondition "ClusterVersionUpgradeable" failed: no message`,
			request: byImage(with(at("4.18.3"), configv1.OperatorUpgradeable, configv1.ConditionFalse, "", ""), "4.19.1"),
		},
		"NoReasonOfAFailure": {
			reason: "nor of one of a failure", want: undetermined, message: "CVO currently fails with this request, and each retry fails",
			request: byImage(with(at("4.18.3"), "ReleaseAccepted", configv1.ConditionFalse, "", `version="4.18.9" image=""`), "4.18.9"),
		},
		"NotRetrieved": {
			reason: "a list of updates that is out of date is a warning", want: loaded,
			message: "RetrievedUpdates=False (RemoteFailed), so the recommended status",
			request: byImage(with(at("4.18.3"), configv1.RetrievedUpdates, configv1.ConditionFalse, "RemoteFailed", ""), "4.18.9"),
		},
		"NotListed": {
			reason: "a target that the update service does not list is a warning", want: loaded,
			message: "probably neither recommended nor supported",
			request: byImage(with(at("4.18.3"), configv1.RetrievedUpdates, configv1.ConditionTrue, "", ""), "4.18.9"),
		},
		"OldCVO": {
			reason: "releases from 4.14 on are known", request: byImage(at("4.13.3"), "4.13.9"), want: undetermined,
			message: "4.13.3",
		},
		"NotSemVer":   {reason: "the release of CVO is unknown", request: byImage(at("custom"), "4.19.0"), want: undetermined, message: "custom"},
		"ForcedOnOld": {reason: "force bypasses unknown preconditions", request: forced(byImage(at("4.13.3"), "4.13.9")), want: loaded},
	})
}

// TestReleasesDiffer has one row for each difference between releases of CVO.
func TestReleasesDiffer(t *testing.T) {
	check(t, map[string]row{
		"RollbackIn4.13": {
			reason: "before 4.14 the CVO allows no rollback", request: byImage(at("4.13.9", "4.13.3"), "4.13.3"), want: undetermined,
			message: `the CVO of release "4.13.9"`,
		},
		"RollbackIn4.14.7": {
			reason: "4.14 allows it since January 2024", request: byImage(at("4.14.7", "4.14.3"), "4.14.3"),
			want: undetermined, message: "some releases",
		},
		"RollbackIn4.14.12": {reason: "4.14 allows it since January 2024", request: byImage(at("4.14.12", "4.14.3"), "4.14.3"), want: loaded},
		"RollbackIn4.14Past": {
			reason: "only to the previous release", request: byImage(at("4.14.12", "4.14.5", "4.14.3"), "4.14.3"),
			want: precondition, message: "only supported rollback",
		},
		"RollbackIn4.15": {
			reason: "4.15 allows it since its first release", request: byImage(at("4.15.9", "4.15.3"), "4.15.3"),
			want: loaded,
		},
		"RollbackIn4.16": {
			reason: "allowed, reverted and restored in 4.16", request: byImage(at("4.16.9", "4.16.3"), "4.16.3"),
			want: undetermined, message: "some releases",
		},
		"RollbackIn4.16.10": {reason: "restored in August 2024", request: byImage(at("4.16.10", "4.16.3"), "4.16.3"), want: loaded},
		"RollbackIn4.17": {
			reason: "to the previous release within the minor version", request: byImage(at("4.17.9", "4.17.3"), "4.17.3"),
			want: loaded,
		},
		"GiantHopIn4.17": {reason: "no such precondition before pull request 1112", request: byImage(at("4.17.9"), "4.19.3"), want: loaded},
		"GiantHopIn4.18": {reason: "backported to some releases", request: byImage(at("4.18.9"), "4.20.3"), want: undetermined},
		"GiantHopIn4.19": {
			reason: "two minor versions are refused", request: byImage(at("4.19.9"), "4.21.3"), want: precondition,
			message: "(4.21 > 4.(19+1))",
		},
		"MajorIn4.21": {
			reason: "no update of the major version before pull request 1275", request: byImage(at("4.21.9"), "5.0.0"),
			want: precondition, message: "MajorVersionUpdate",
		},
		"MajorIn4.22": {reason: "4.22 can be updated to 5.0", request: byImage(at("4.22.9"), "5.0.0"), want: loaded},
		"MajorIn4.22To5.1": {
			reason: "4.22 cannot be updated to 5.1", request: byImage(at("4.22.9"), "5.1.0"), want: precondition,
			message: "or to 5.0 are supported",
		},
		"RetargetIn4.16": {
			reason:  "measured from the last completed release before pull request 1094",
			request: byImage(notUpgradeable(toward("4.16.2", "4.15.3")), "4.16.3"), want: precondition,
		},
		"RetargetIn4.17": {
			reason: "backported to some releases", request: byImage(notUpgradeable(toward("4.17.2", "4.16.3")), "4.17.3"),
			want: undetermined, message: "last completed",
		},
		"RetargetIn4.17.5": {
			reason:  "in 4.17 since the end of October 2024",
			request: byImage(notUpgradeable(toward("4.17.5", "4.16.3")), "4.17.6"), want: loaded, message: "Retarget to 4.17.6",
		},
		"RetargetOverrides": {
			reason:  "by both measures a retarget with overrides is refused",
			request: byImage(unmanaged(notUpgradeable(toward("4.17.2", "4.16.3"))), "4.17.3"), want: precondition,
		},
		"NextMinorIn4.17": {
			reason:  "by both measures the next minor version is blocked",
			request: byImage(notUpgradeable(toward("4.17.2", "4.16.3")), "4.18.3"), want: precondition,
		},
		"RetargetIn4.18": {
			reason:  "a retarget within the minor version in progress is a warning",
			request: byImage(notUpgradeable(toward("4.18.2", "4.17.3")), "4.18.3"), want: loaded,
			message: "Retarget to 4.18.3 while a minor version update from 4.17.3 to 4.18.2 is in progress",
		},
		"RetargetIn5.0": {
			reason:  "a retarget within the major version in progress is a warning",
			request: byImage(notUpgradeable(toward("5.0.2", "4.22.3")), "5.0.3"), want: loaded, message: "MajorVersionClusterUpdateInProgress",
		},
		"PatchOverPatch": {
			reason:  "a retarget of a patch update has no warning",
			request: byImage(notUpgradeable(available(toward("4.18.6", "4.18.3"), "4.18.7")), "4.18.7"), want: loaded,
		},
		"OverridesIn4.21": {
			reason:  "patch updates are refused before pull request 1314",
			request: byImage(unmanaged(notUpgradeable(at("4.21.3"))), "4.21.9"), want: precondition, message: "ClusterVersionOverridesSet",
		},
		"OverridesIn4.22": {
			reason: "overrides are a warning", request: byImage(unmanaged(notUpgradeable(at("4.22.3"))), "4.22.9"),
			want: loaded, message: "Retarget from 4.22.3 to 4.22.9 is not blocked by ClusterVersionOverridesSet",
		},
		"NextInProgress4.18": {
			reason:  "4.6 to 4.7 to 4.8 of the enhancement for EUS",
			request: byImage(notUpgradeable(toward("4.19.2", "4.18.3")), "4.20.1"), want: precondition,
		},
	})
}

func TestRollback(t *testing.T) {
	unreadable := at("4.18.9", "4.18.3")
	unreadable.Status.History[1].Version = "broken"
	reimaged := at("1.0.1", "1.0.1", "1.0.0")
	reimaged.Status.Desired = configv1.Release{Version: "4.18.9", Image: digest("other")}
	reimaged.Status.History[0] = configv1.UpdateHistory{Version: "4.18.9", Image: digest("other")}
	reimaged.Status.History[1] = configv1.UpdateHistory{Version: "4.18.9", Image: digest("4.18.9")}
	for name, tc := range map[string]struct {
		reason  string
		cluster *configv1.ClusterVersion
		target  string
		message string // a part of it
		weight  cvo.Weight
	}{
		"Forward":  {reason: "a later release is no rollback", cluster: at("4.18.3"), target: "4.18.9"},
		"Same":     {reason: "the same release is no rollback", cluster: at("4.18.3"), target: "4.18.3"},
		"Previous": {reason: "the previous release is allowed", cluster: at("4.18.9", "4.18.3"), target: "4.18.3"},
		"Older": {
			reason: "an earlier release than the previous one", cluster: at("4.18.9", "4.18.5", "4.18.3"), target: "4.18.3",
			message: "only supported rollback is to the cluster's previous version 4.18.5", weight: cvo.Blocking,
		},
		"Minor": {
			reason: "the previous release in another minor version", cluster: at("4.18.9", "4.17.3"), target: "4.17.3",
			message: "change major or minor versions are not recommended", weight: cvo.Blocking,
		},
		"NoHistory": {
			reason: "the history has no previous release", cluster: at("4.18.9"), target: "4.18.3",
			message: "no previous Semantic Version", weight: cvo.Blocking,
		},
		"NotSemVer": {
			reason: "the previous release cannot be compared", cluster: unreadable, target: "4.18.3",
			message: "no previous Semantic Version", weight: cvo.Blocking,
		},
		"Image": {
			reason: "the same version with another image is the previous release", cluster: reimaged, target: "4.18.8",
			message: "previous version 4.18.9", weight: cvo.Blocking,
		},
		"Current": {reason: "an update may fix the current version", cluster: at("custom"), target: "4.18.3", message: "", weight: cvo.Warning},
		"Target":  {reason: "a target that is not SemVer", cluster: at("4.18.3"), target: "latest", message: "", weight: cvo.Blocking},
	} {
		t.Run(name, func(t *testing.T) {
			violation := cvo.Rollback(tc.cluster, tc.target)
			if got := weightOf(violation); got != tc.weight {
				t.Errorf("%s: weight %q, want %q", tc.reason, got, tc.weight)
			}
			if violation != nil && !strings.Contains(violation.Message, tc.message) {
				t.Errorf("%s: message %q, want %q in it", tc.reason, violation.Message, tc.message)
			}
		})
	}
}

func TestGiantHop(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, from, to string
		want             cvo.Weight
	}{
		"Before":    {reason: "CVO does not check it yet", from: "4.16.3", to: "4.18.1", want: cvo.Unchecked},
		"Partly":    {reason: "some releases check it", from: "4.18.3", to: "4.20.1", want: cvo.Uncertain},
		"Since":     {reason: "all releases check it", from: "4.20.3", to: "4.22.1", want: cvo.Blocking},
		"In5":       {reason: "CVO blocks skip-level updates", from: "5.0.3", to: "5.2.1", want: cvo.Blocking},
		"Two":       {reason: "6.0 cannot be reached from 4.y", from: "4.22.3", to: "6.0.0", want: cvo.Blocking},
		"Next":      {reason: "the next minor version is one hop", from: "5.0.3", to: "5.1.1"},
		"Back":      {reason: "an earlier major version is no hop", from: "5.0.3", to: "4.22.1"},
		"AnyTo5.0":  {reason: "5.0 can be reached from 4.22", from: "4.22.3", to: "5.0.9"},
		"Candidate": {reason: "a release candidate belongs to its minor version", from: "4.20.0-rc.1", to: "4.21.0-rc.0"},
	} {
		t.Run(name, func(t *testing.T) {
			violation := cvo.GiantHop(at(tc.from), tc.to)
			if got := weightOf(violation); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// weightOf is the weight of a violation, and empty for none.
func weightOf(violation *cvo.Violation) cvo.Weight {
	if violation == nil {
		return ""
	}
	return violation.Weight
}

func TestCompletedVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		status configv1.ClusterVersionStatus
		want   string
	}{
		"Completed": {reason: "the last completed release", status: toward("4.7.3", "4.6.9", "4.6.1").Status, want: "4.6.9"},
		"Installing": {
			reason: "otherwise the first release in the history",
			status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.7.3"}, {Version: "4.7.1"}}}, want: "4.7.1",
		},
		"Empty": {reason: "an empty history"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cvo.CompletedVersion(tc.status); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// FuzzJudge checks the invariants of every Prediction, with any content of a
// ClusterVersion.
func FuzzJudge(f *testing.F) {
	f.Add("4.18.3", "4.19.0", "4.17.1", "repository@sha256:0", "False", true)
	f.Add("", "latest", "", "", "Unknown", false)
	f.Add("5.0.0-rc.1", "5.2.0", "4.22.1+multi", "tag", "", false)
	f.Fuzz(func(t *testing.T, current, target, before, image, upgradeable string, force bool) {
		cluster := with(toward(current, before), configv1.OperatorUpgradeable, configv1.ConditionStatus(upgradeable), "Reason", "message")
		prediction := cvo.Evaluate(cvo.Request{ClusterVersion: cluster, Version: target, Image: image, Force: force})
		if prediction.Reason == "" || prediction.Message == "" {
			t.Errorf("%+v has no reason or no message", prediction)
		}
		if (prediction.Accepts == nil) != (prediction.Reason == cvo.NotEvaluated) {
			t.Errorf("%+v: Accepts is nil exactly where the reason is NotEvaluated", prediction)
		}
		if prediction.Accepts != nil && *prediction.Accepts && !force && image != digest(current) && target != current {
			t.Errorf("%+v: accepted although the signature is unknown", prediction)
		}
	})
}

func TestMakesUpgradeable(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, release, gate string
		want                  bool
	}{
		"Updating4.18": {reason: "before pull request 1080", release: "4.18.30", gate: "ClusterVersionUpdating"},
		"Updating4.19": {reason: "since pull request 1080", release: "4.19.0", gate: "ClusterVersionUpdating", want: true},
		"Overrides":    {reason: "in every release", release: "4.14.2", gate: "ClusterVersionOverrides", want: true},
		"Ack":          {reason: "in every release with admin gates", release: "4.14.2", gate: "AdminAck-ack-4.14-x", want: true},
		"Operator":     {reason: "in every release", release: "4.14.2", gate: "ClusterOperatorUpgradeable-etcd", want: true},
		"Ours":         {reason: "no gate of CVO", release: "4.19.0", gate: "MachineConfigPools"},
		"NotSemVer":    {reason: "the CVO is unknown", release: "custom", gate: "ClusterVersionOverrides"},
	} {
		if got := cvo.MakesUpgradeable(tc.release, tc.gate); got != tc.want {
			t.Errorf("%s (%s): %t, want %t", name, tc.reason, got, tc.want)
		}
	}
}
