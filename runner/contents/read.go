package contents

import (
	"context"
	"errors"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/imagefiles"
	"github.com/openshift/update-preflight/runner/proof"
	"github.com/openshift/update-preflight/runner/registry"
)

var (
	namePayload = finding.NewName("ReleasePayload", "The findings about the content of the release image.")

	reasonVersionMismatch = finding.NewReason("VersionMismatch", finding.Explanation{
		Meaning: "Reported when the release image has another version than ClusterVersion lists it with.",
		Cause:   "The update graph or the mirror is wrong.",
		Remedy:  "Do not use this image. Refresh the available updates.",
		Command: "oc adm upgrade",
	})
	reasonRead = finding.NewReason("Read", finding.Explanation{
		Meaning: "Reported when the manifests of the release were read.",
		Cause:   "The release is verified and complete.",
	})
)

// Reader reads releases as one cluster gets them.
type Reader struct {
	// Verifier has verified the release, and has the scene.
	Verifier proof.Verifier
	// Cache keeps what was read of releases; nil for none.
	Cache imagefiles.Cache
	// Partial makes a release that could not be read a finding.
	Partial bool
	// Manifests reads those of all kinds, for a rehearsal.
	Manifests bool
}

// Read reads the manifests of a release, which is known by version where that is not empty.
// A release that must not be used is a finding; one that could not be read is an error, unless
// Partial is set.
func (r Reader) Read(ctx context.Context, proven proof.Proof, version string) (Contents, error) {
	if proven.Release == nil {
		return Contents{Proof: proven, Sources: proven.Sources, Unread: proven.PullSpec == ""}, nil
	}
	scene, registries := r.Verifier.Scene, r.Verifier.Registries
	scene.Step("reading the manifests of %s", proven.PullSpec)
	defer registries.Close()
	release, err := payload.Extract(ctx, *proven.Release, payload.Options{Access: registries, Cache: r.Cache, Cluster: filters(ctx, scene), Manifests: r.Manifests})
	if refused, ok := errors.AsType[*imagefiles.Error](err); ok && refused.Outcome == preflight.Fail {
		return unusable(proven, refused, registries), nil
	}
	if err != nil && r.Partial && ctx.Err() == nil {
		return unread(proven, err, registries), nil
	}
	if err != nil {
		return Contents{}, err
	}
	if failure := proven.Release.CheckVersion(release.Version); failure != nil {
		if proven, err = r.Verifier.Misnamed(proven, failure); err != nil || proven.Release == nil {
			return Contents{Proof: proven, Sources: proven.Sources}, err
		}
	}
	findings := append(registries.Warnings(), release.Problems...)
	findings = append(findings, compareVersion(release, version))
	read := Contents{Proof: proven, release: release}
	if policies := read.Policies(); proven.Release != nil && scene.Settings.Estate.HasMachineConfig() && policies.Changes(proven.Release.PullSpec()) {
		proven = r.Verifier.HoldAgainst(ctx, proven, policies)
	}
	read.Sources = withFindings(proven, findings)
	return read, nil
}

// unusable are the contents of a release that is refused.
func unusable(proven proof.Proof, refused *imagefiles.Error, registries *registry.Access) Contents {
	findings := append(registries.Warnings(), finding.Fail(refused.Reason, "%s", refused.Error()).
		Named(namePayload).Remedy("%s", refused.Remediation).Do(refused.Actions...))
	return Contents{Proof: proven, Sources: withFindings(proven, findings)}
}

// unread are the contents of a release that could not be read: what depends on them is unknown.
func unread(proven proof.Proof, cause error, registries *registry.Access) Contents {
	known, ok := errors.AsType[*imagefiles.Error](cause)
	if !ok {
		known = &imagefiles.Error{Reason: registry.ReasonRegistryUnreachable, Remediation: "Make the registry reachable from here, then run the preflight again."}
	}
	findings := append(registries.Warnings(), finding.Unknown(known.Reason, "the checks, the images and the API of the release were not evaluated: %v", cause).
		Named(namePayload).Remedy("%s", known.Remediation).Do(known.Actions...))
	return Contents{Proof: proven, Unread: true, Sources: withFindings(proven, findings)}
}

func withFindings(proven proof.Proof, findings []finding.Finding) []collector.Source {
	return append(slices.Clip(proven.Sources), collector.Known(namePayload, finding.SourcePayload, findings...))
}

// compareVersion compares the version of the release with the requested one, as
// CVO does before it updates (reason VerifyPayloadVersion).
func compareVersion(release *payload.Release, requested string) finding.Finding {
	if requested != "" && requested != release.Version {
		return finding.Fail(reasonVersionMismatch, "the release image is version %s, and ClusterVersion lists it as %s", release.Version, requested).
			Named(namePayload).Do(finding.Read("oc adm upgrade"))
	}
	return finding.Pass(gap.Proven("the manifests of the release"), reasonRead, "release %s contains %d preflight checks", release.Version, len(release.Jobs)).Named(namePayload)
}
