package gate

import (
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonNothingAsked          finding.Reason = "NothingAsked"
	ReasonAvailableUpdate       finding.Reason = "AvailableUpdate"
	ReasonAmbiguousVersion      finding.Reason = "AmbiguousVersion"
	ReasonConditionalUpdateOnly finding.Reason = "ConditionalUpdateOnly"
	ReasonHistoryOnly           finding.Reason = "HistoryOnly"
	ReasonUnknownUpdate         finding.Reason = "UnknownUpdate"
)

// RequestValid is CVO's validation of the request (lib/validation), as far as it
// can be known before there is one: a ClusterVersion that is invalid already,
// which `oc adm upgrade` refuses to work on, and how the target has to be asked
// for. By version alone CVO takes only what is exactly one of
// status.availableUpdates; a conditional update needs its image.
func RequestValid() check.Check {
	return check.Check{
		Name: "ClusterVersionRequest", Kind: finding.SourceGate,
		Reads: clusterVersionReads(),
		Run:   onClusterVersion(fresh(judgeRequest)),
	}
}

func judgeRequest(s situation) []finding.Finding {
	findings := []finding.Finding{s.asked()}
	if invalid := s.condition("Invalid"); invalid.Status != "" && invalid.Status != configv1.ConditionFalse {
		findings = append(findings, s.invalid(invalid))
	}
	return findings
}

// invalid is the finding of a ClusterVersion that CVO does not take as it is.
// CVO would take a new request all the same; oc does not make one.
func (s situation) invalid(condition configv1.ClusterOperatorStatusCondition) finding.Finding {
	f := finding.Fail(finding.Reason(either(condition.Reason, "InvalidClusterVersion")), "%s", either(condition.Message, "ClusterVersion is invalid, and does not say why")).
		Remedy("Put right what the message names: oc edit clusterversion version. Neither accepting risks nor --force gets past it in oc adm upgrade, only --allow-upgrade-with-warnings does.")
	if strings.Contains(condition.Message, "spec.desiredUpdate") {
		f.Remediation = "Take back the update that cannot be had: oc adm upgrade --clear. Neither accepting risks nor --force gets past it in oc adm upgrade, only --allow-upgrade-with-warnings does."
	}
	if condition.Status == configv1.ConditionUnknown {
		f.Outcome = preflight.Unknown
	}
	return f
}

// asked says how the target has to be asked for.
func (s situation) asked() finding.Finding {
	target, status := s.target(), s.version.Status
	images := imagesOf(status.AvailableUpdates, target)
	if s.move.Kind() == update.Same && len(images) == 0 {
		return finding.Pass(ReasonNothingAsked, "%s is what status.desired of ClusterVersion has already", target)
	}
	switch len(images) {
	case 0:
		return s.notAvailable()
	case 1:
		return finding.Pass(ReasonAvailableUpdate,
			"%s is an available update, which CVO takes by its version alone: oc adm upgrade --to %s", target, target)
	}
	return finding.Warn(ReasonAmbiguousVersion,
		"%d available updates are %s, so CVO refuses it by its version alone: %s", len(images), target, few(images)).
		Remedy("Name the image that you mean: %s", byImage(images[0]))
}

// notAvailable is the finding of a target that CVO does not take by its version
// alone.
func (s situation) notAvailable() finding.Finding {
	target, status := s.target(), s.version.Status
	for _, conditional := range status.ConditionalUpdates {
		if conditional.Release.Version == target {
			return finding.Warn(ReasonConditionalUpdateOnly,
				"%s is a conditional update and no available one: oc adm upgrade --to %s refuses it, and so does CVO when it is asked for by its version alone", target, target).
				Remedy("Once its risks are acceptable, have the image named too: oc adm upgrade --allow-not-recommended --to %s, which is the same as: %s", target, byImage(conditional.Release.Image))
		}
	}
	for _, past := range status.History {
		if past.Version == target {
			return finding.Warn(ReasonHistoryOnly,
				"%s is known only from status.history of ClusterVersion: by its version alone CVO takes the request and silently stays at %s", target, s.move.From).
				Remedy("Name the image: %s", byImage(past.Image))
		}
	}
	return finding.Warn(ReasonUnknownUpdate,
		"%s is neither an available nor a conditional update from %s in channel %q, so nobody has said that it is recommended or supported, nor which risks it has", target, s.move.From, s.version.Spec.Channel).
		Remedy("See what the cluster knows: oc preflight targets. CVO takes it only with its image: %s", byImage("REPOSITORY@sha256:DIGEST"))
}

func imagesOf(releases []configv1.Release, version string) []string {
	var images []string
	for _, release := range releases {
		if release.Version == version && release.Image != "" {
			images = append(images, release.Image)
		}
	}
	return images
}

func byImage(image string) string {
	return "oc adm upgrade --allow-explicit-upgrade --to-image " + image
}
