package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/imagefiles"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// reasonVersionMismatch is reported when the release image has another version
// than ClusterVersion lists it with.
//
// Cause: the update graph or the mirror is wrong.
//
// Remedy: do not use the image; refresh the available updates with "oc adm upgrade".
const reasonVersionMismatch finding.Reason = "VersionMismatch"

// reasonRead is reported when the manifests of the release were read.
//
// Cause: the release is verified and complete.
//
// Remedy: none needed.
const reasonRead finding.Reason = "Read"

const (
	// namePayload names the findings about the content of the release image.
	namePayload = "ReleasePayload"
	// nameIdentity names the finding about a release image that contains another
	// version than its signature names.
	nameIdentity = "ReleaseIdentity"
)

// manifests is the third stage: what the release contains.
type manifests struct {
	verified
	contents contents
	// site are the checks of the site.
	site *payload.Release
	// sources are the results of this stage and those before it.
	sources []collector.Source
}

// drafted returns the checks of the release and of the site. The contents lack the manifests
// of the Jobs.
func (m manifests) drafted() (jobplan.Draft, contents) {
	drafted, withoutJobs := m.contents.draft(m.about.Version)
	if m.site == nil {
		return drafted, withoutJobs
	}
	return drafted.WithSite(jobplan.New(m.about.Version, m.site)), withoutJobs
}

// read reads the manifests of a trusted release. A release that must not be used
// is a finding; one that could not be read is an error.
func read(ctx context.Context, v verified) (manifests, error) {
	trust, ok := v.proof.(trusted)
	if !ok {
		return manifests{verified: v, contents: unread{}, sources: v.sources}, nil
	}
	v.progress.step("reading the manifests of %s", trust.release.PullSpec())
	defer v.registries.Close()
	release, err := payload.Extract(ctx, trust.release, payload.Options{Access: v.registries, Cache: v.options.Cache, Cluster: v.filters(ctx)})
	if refused, ok := errors.AsType[*imagefiles.Error](err); ok && refused.Outcome == preflight.Fail {
		return v.unusable(refused), nil
	}
	if err != nil {
		return manifests{}, err
	}
	if failure := trust.release.CheckVersion(release.Version); failure != nil {
		return v.misnamed(release, failure)
	}
	return v.contain(release, nil), nil
}

// unusable is the stage of a release whose contents are refused.
func (v verified) unusable(refused *imagefiles.Error) manifests {
	findings := append(v.registries.Warnings(), finding.Fail(refused.Reason, "%s", refused.Error()).
		Named(namePayload).Remedy("%s", refused.Remediation).Do(refused.Actions...))
	sources := append(slices.Clip(v.sources), collector.Known(namePayload, finding.SourcePayload, findings...))
	return manifests{verified: v, contents: unread{}, sources: sources}
}

// misnamed is the stage of a release whose signature is for another version.
func (v verified) misnamed(release *payload.Release, failure error) (manifests, error) {
	proof, err := distrust(v.observed, v.target.Image, failure)
	if err != nil {
		return manifests{}, err
	}
	identity := collector.Known(nameIdentity, finding.SourceSignature, unproven(failure).Named(nameIdentity))
	v.proof = proof
	if _, ok := proof.(trusted); ok {
		return v.contain(release, []collector.Source{identity}), nil
	}
	sources := append(slices.Clip(v.sources), identity)
	return manifests{verified: v, contents: unread{}, sources: sources}, nil
}

// contain is the stage of a release that was read, with further results.
func (v verified) contain(release *payload.Release, more []collector.Source) manifests {
	findings := append(v.registries.Warnings(), release.Problems...)
	findings = append(findings, v.compareVersion(release))
	sources := append(slices.Clip(v.sources), more...)
	sources = append(sources, collector.Known(namePayload, finding.SourcePayload, findings...))
	if v.target.Version == "" {
		v.target.Version = release.Version
	}
	return manifests{verified: v, contents: released{payload: release}, sources: sources}
}

// compareVersion compares the version of the release with the requested one, as
// CVO does before it updates (reason VerifyPayloadVersion).
func (v verified) compareVersion(release *payload.Release) finding.Finding {
	if v.target.Version != "" && v.target.Version != release.Version {
		return finding.Fail(reasonVersionMismatch, "the release image is version %s, and ClusterVersion lists it as %s", release.Version, v.target.Version).
			Named(namePayload).
			Remedy("Do not use this image. Refresh the available updates.").Do(finding.Run("oc adm upgrade"))
	}
	return finding.Pass(reasonRead, "release %s contains %d preflight checks", release.Version, len(release.Jobs)).Named(namePayload)
}
