package cvo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cvo"
)

// digest makes the pull spec of a release.
func digest(version string) string { return "quay.io/release@sha256:" + version }

// at is a cluster that completed an update to a version, from others before it,
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

// toward is a cluster that is on its way to a version.
func toward(version string, before ...string) *configv1.ClusterVersion {
	cluster := at(version, before...)
	cluster.Status.History[0].State = configv1.PartialUpdate
	cluster.Status.Conditions = nil
	return with(cluster, configv1.OperatorProgressing, configv1.ConditionTrue, "", "Working towards "+version)
}

func with(cluster *configv1.ClusterVersion, kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) *configv1.ClusterVersion {
	cluster.Status.Conditions = append(cluster.Status.Conditions, configv1.ClusterOperatorStatusCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
	})
	return cluster
}

// shut is a cluster with Upgradeable=False.
func shut(cluster *configv1.ClusterVersion) *configv1.ClusterVersion {
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

// risky has a conditional update to a version with risks, by what applies.
func risky(cluster *configv1.ClusterVersion, version string, risks map[string]metav1.ConditionStatus) *configv1.ClusterVersion {
	update := configv1.ConditionalUpdate{
		Release: configv1.Release{Version: version, Image: digest(version)},
		Conditions: []metav1.Condition{{
			Type: "Recommended", Status: metav1.ConditionFalse, Reason: "RHELKernelHighLoadIOWait", Message: "The kernel waits.",
		}},
	}
	for name := range risks {
		update.Risks = append(update.Risks, configv1.ConditionalUpdateRisk{Name: name})
	}
	cluster.Status.ConditionalUpdates = append(cluster.Status.ConditionalUpdates, update)
	return cluster
}

// gated is what the feature gate ClusterUpdateAcceptRisks adds to risky.
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

// said is what tables compare of an answer.
type said struct {
	Accepts string
	Reason  string
}

func (s said) of(answer cvo.Answer) said {
	accepts := "unknown"
	if answer.Accepts != nil {
		accepts = map[bool]string{true: "yes", false: "no"}[*answer.Accepts]
	}
	return said{Accepts: accepts, Reason: answer.Reason}
}

// judged is one row: a request, and what becomes of it.
type judged struct {
	reason  string
	request cvo.Request
	want    said
	says    string
}

var (
	loaded       = said{"yes", "PayloadLoaded"}
	invalid      = said{"no", "InvalidClusterVersion"}
	precondition = said{"no", "PreconditionChecks"}
	nobodyKnows  = said{"unknown", cvo.NotEvaluated}
)

func check(t *testing.T, rows map[string]judged) {
	t.Helper()
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			answer := cvo.Judge(tc.request)
			if diff := cmp.Diff(tc.want, tc.want.of(answer)); diff != "" {
				t.Errorf("%s: -want +got:\n%s\nit says: %s", tc.reason, diff, answer.Message)
			}
			if answer.Message == "" || !strings.Contains(answer.Message, tc.says) {
				t.Errorf("%s: the message %q does not say %q", tc.reason, answer.Message, tc.says)
			}
		})
	}
}

// ask is a request by version and image, signed.
func ask(cluster *configv1.ClusterVersion, version string) cvo.Request {
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
	unsure := map[string]metav1.ConditionStatus{risk: metav1.ConditionUnknown}
	stale := available(at("4.18.3"), "4.18.9")
	stale.Generation = 3
	inCluster := gated(at("5.0.1"), "5.0.9", applies)
	inCluster.Spec.DesiredUpdate = &configv1.Update{AcceptRisks: []configv1.AcceptRisk{{Name: risk}}}
	check(t, map[string]judged{
		"Nothing": {
			reason: "lib/validation: something has to be asked for", request: cvo.Request{ClusterVersion: at("4.18.3")},
			want: invalid, says: "must specify architecture, version, or image",
		},
		"NotSemVer": {
			reason: "lib/validation: 4.2 is no semantic version", request: forced(ask(at("4.18.3"), "4.2")),
			want: invalid, says: "must be a semantic version",
		},
		"Available": {
			reason: "one available update with an image", request: byVersion(available(at("4.18.3"), "4.18.9"), "4.18.9"),
			want: loaded, says: digest("4.18.9"),
		},
		"Twice": {
			reason: "two available updates of one version", request: byVersion(available(at("4.18.3"), "4.18.9", "4.18.9"), "4.18.9"),
			want: invalid, says: "multiple possible payloads",
		},
		"Unlisted": {
			reason: "by version alone it has to be an available update", request: byVersion(available(at("4.18.3"), "4.18.9"), "4.18.10"),
			want: invalid, says: `The cluster version is invalid: spec.desiredUpdate.version: Invalid value: "4.18.10": when image is empty the update must be an available update`,
		},
		"UnlistedForced": {
			reason: "force does not get past the validation", request: forced(byVersion(at("4.18.3"), "4.18.10")), want: invalid,
		},
		"Conditional": {
			reason: "conditional updates are not looked at: the only block for an unaccepted risk", request: byVersion(risky(at("4.18.3"), "4.18.16", applies), "4.18.16"),
			want: invalid, says: "by version and image only",
		},
		"ConditionalByImage": {
			reason: "with the image an unaccepted risk is a warning", request: ask(risky(at("4.18.3"), "4.18.16", applies), "4.18.16"),
			want: loaded, says: "Update from 4.18.3 to 4.18.16 is not recommended:\n\nThe kernel waits.",
		},
		"AcceptedWithoutGate": {
			reason: "without the feature gate the accepted risks are pruned", request: accepting(byVersion(risky(at("4.18.3"), "4.18.16", applies), "4.18.16"), risk),
			want: invalid, says: "ClusterUpdateAcceptRisks",
		},
		"AcceptedWithGate": {
			reason: "with it the target becomes an available update", request: accepting(byVersion(gated(at("5.0.1"), "5.0.9", two), "5.0.9"), risk), want: loaded,
		},
		"AcceptedInCluster": {
			reason: "acceptances in spec.desiredUpdate count too", request: byVersion(inCluster, "5.0.9"), want: loaded,
		},
		"AcceptedOther": {
			reason: "a risk that applies is left", request: accepting(byVersion(gated(at("5.0.1"), "5.0.9", two), "5.0.9"), "Other"),
			want: invalid, says: "every risk that applies",
		},
		"AcceptedUnknown": {
			reason: "acceptance does not cover what could not be evaluated", request: accepting(byVersion(gated(at("5.0.1"), "5.0.9", unsure), "5.0.9"), risk), want: invalid,
		},
		"History": {
			reason: "a past version passes and leads nowhere (pkg/cvo/cvo.go)", request: byVersion(at("4.18.9", "4.18.3"), "4.18.3"),
			want: said{"no", "NoTarget"}, says: "silently stays at 4.18.9",
		},
		"Current": {
			reason: "the version that the cluster has", request: byVersion(at("4.18.9"), "4.18.9"), want: loaded, says: "nothing changes",
		},
		"CurrentImage": {
			reason: "the image that the cluster runs is not verified again", request: signed(ask(at("4.18.9"), "4.18.9"), new(false)),
			want: loaded, says: "nothing is verified",
		},
		"Stale": {
			reason: "a status of an earlier generation tells of an earlier state", request: byVersion(stale, "4.18.9"),
			want: nobodyKnows, says: "generation 2",
		},
		"NoClusterVersion": {reason: "nothing to judge by", request: cvo.Request{Version: "4.18.9"}, want: nobodyKnows},
	})
}

func TestPayload(t *testing.T) {
	byTag := ask(at("4.18.3"), "4.18.9")
	byTag.Image = "quay.io/release:4.18.9"
	other := ask(at("4.18.3"), "4.18.9")
	other.PayloadVersion = "4.18.8"
	imageOnly := ask(at("4.18.3"), "4.18.9")
	imageOnly.Version = ""
	read := imageOnly
	read.PayloadVersion = "4.17.1"
	check(t, map[string]judged{
		"Unsigned": {
			reason: "ReleaseAccepted=False, RetrievePayload", request: signed(ask(at("4.18.3"), "4.18.9"), new(false)),
			want: said{"no", "RetrievePayload"}, says: "The update cannot be verified",
		},
		"UnsignedForced": {reason: "force gets past it", request: forced(signed(ask(at("4.18.3"), "4.18.9"), new(false))), want: loaded},
		"UnknownSignature": {
			reason: "nobody looked", request: signed(ask(at("4.18.3"), "4.18.9"), nil), want: nobodyKnows, says: "signature",
		},
		"UnknownSignatureBlocked": {
			reason:  "a precondition refuses it whatever the signature is",
			request: signed(ask(shut(at("4.18.3")), "4.19.0"), nil), want: precondition,
		},
		"Tag": {reason: "a tag has no digest to verify", request: byTag, want: said{"no", "RetrievePayload"}, says: "digest"},
		"OtherVersion": {
			reason: "the image says that it is another release", request: other,
			want: said{"no", "VerifyPayloadVersion"}, says: "release image version 4.18.8 does not match the expected upstream version 4.18.9",
		},
		"OtherVersionForced": {reason: "force does not get past that", request: forced(other), want: said{"no", "VerifyPayloadVersion"}},
		"ImageOnly":          {reason: "the version is in the payload, and nobody read it", request: imageOnly, want: nobodyKnows, says: "version"},
		"ImageRead":          {reason: "the preconditions are judged by the version in the payload", request: read, want: precondition, says: "LowDesiredVersion"},
	})
}

func TestPreconditions(t *testing.T) {
	everything := unmanaged(shut(at("4.19.3")))
	check(t, map[string]judged{
		"Patch": {reason: "nothing against it", request: ask(available(at("4.18.3"), "4.18.9"), "4.18.9"), want: loaded},
		"UpgradeableFalse": {
			reason: "the condition's own reason and message", request: ask(shut(at("4.18.3")), "4.19.0"), want: precondition,
			says: `Precondition "ClusterVersionUpgradeable" failed because of "AdminAckRequired": Do it first.`,
		},
		"UpgradeableFalsePatch": {reason: "patch updates are not blocked", request: ask(shut(at("4.18.3")), "4.18.9"), want: loaded},
		"UpgradeableUnknown": {
			reason:  "Unknown passes",
			request: ask(with(at("4.18.3"), configv1.OperatorUpgradeable, configv1.ConditionUnknown, "EvaluationFailed", ""), "4.19.0"), want: loaded,
		},
		"Accepted": {
			reason: "accepting risks does not get past Upgradeable=False", request: accepting(ask(shut(at("5.0.3")), "5.1.0"), "AdminAck-x"), want: precondition,
		},
		"Several": {
			reason: "all are run, and all are told, warnings too", request: ask(everything, "4.21.0"), want: precondition,
			says: "Multiple precondition checks failed:\n* Precondition \"ClusterVersionGiantHop\"",
		},
		"Forced": {
			reason: "force turns what blocks into a warning", request: forced(ask(everything, "4.21.0")), want: loaded,
			says: "Forced through blocking failures: Multiple precondition checks failed",
		},
		"ForcedQuietly": {reason: "force with nothing in the way", request: forced(ask(available(at("4.18.3"), "4.18.9"), "4.18.9")), want: loaded},
		"NoChannel": {
			reason: "whether it is recommended is unknown, which is a warning", want: loaded, says: "Configured channel is unset",
			request: func() cvo.Request {
				cluster := at("4.18.3")
				cluster.Spec.Channel = ""
				return ask(cluster, "4.18.9")
			}(),
		},
		"NotEvaluatedRisk": {
			reason: "a risk that CVO could not evaluate is a warning too", want: loaded, says: "is Recommended=Unknown: EvaluationFailed: throttled",
			request: ask(recommended(metav1.Condition{Type: "Recommended", Status: metav1.ConditionUnknown, Reason: "EvaluationFailed", Message: "throttled"}), "4.18.16"),
		},
		"NoRecommendation": {
			reason: "and one that CVO says nothing of", want: loaded, says: "but no Recommended condition", request: ask(recommended(), "4.18.16"),
		},
		"Recommended": {
			reason: "a conditional update without risks here", want: loaded,
			request: ask(recommended(metav1.Condition{Type: "Recommended", Status: metav1.ConditionTrue}), "4.18.16"),
		},
		"NotRetrieved": {
			reason: "so is a list that is not current", want: loaded, says: "RetrievedUpdates=False (RemoteFailed), so the recommended status",
			request: ask(with(at("4.18.3"), configv1.RetrievedUpdates, configv1.ConditionFalse, "RemoteFailed", ""), "4.18.9"),
		},
		"NotListed": {
			reason: "and a target that the update service does not have", want: loaded, says: "probably neither recommended nor supported",
			request: ask(with(at("4.18.3"), configv1.RetrievedUpdates, configv1.ConditionTrue, "", ""), "4.18.9"),
		},
		"OldCVO":      {reason: "CVO is known here from 4.14 on", request: ask(at("4.13.3"), "4.13.9"), want: nobodyKnows, says: "4.13.3"},
		"NotSemVer":   {reason: "which CVO runs cannot be told", request: ask(at("custom"), "4.19.0"), want: nobodyKnows, says: "custom"},
		"ForcedOnOld": {reason: "force goes past what it may have against it", request: forced(ask(at("4.13.3"), "4.13.9")), want: loaded},
	})
}
