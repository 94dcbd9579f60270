package imagepolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/repository"
)

const ReasonImagePolicySatisfied finding.Reason = "ImagePolicySatisfied"

// check is one image on its way.
type check struct {
	image        Image
	reference    name.Digest
	scope        string
	requirements []requirement
	findings     []finding.Finding
}

// at looks at one place. An error says that the image is not to be had there;
// what is wrong with its signatures is a finding, since nodes look nowhere else
// for them.
func (c *check) at(ctx context.Context, place Place) error {
	visit, err := newVisit(ctx, place)
	if err != nil {
		return err
	}
	digest := c.reference.DigestStr()
	top, err := visit.manifest(ctx, digest)
	if errors.Is(err, repository.ErrMismatch) {
		c.findings = append(c.findings, c.fail("DigestMismatch", "%s serves something else as the image %s", place.Repository, digest))
		return nil
	}
	if err != nil {
		return err
	}
	digests := []string{digest}
	if top.IsIndex() {
		if digests, err = instances(top, c.image.Architectures); err != nil {
			c.findings = append(c.findings, unknown("NoInstance", "%s cannot be held against a policy: %s", c.image.PullSpec, quotable(err.Error())))
			return nil
		}
		c.findings = append(c.findings, c.list(ctx, visit)...)
	}
	for _, digest := range digests {
		c.findings = append(c.findings, c.instance(ctx, visit, digest))
	}
	return nil
}

// list looks at the signatures of a list itself, which nodes do not.
func (c *check) list(ctx context.Context, visit *visit) []finding.Finding {
	f := c.instance(ctx, visit, c.reference.DigestStr())
	if f.Outcome == preflight.Pass || f.Reason == reasonMissing {
		return nil
	}
	f.Outcome, f.Blocks = preflight.Warn, false
	f.Message = "nodes will not look at the signature of the list, but: " + f.Message
	return []finding.Finding{f}
}

// instance holds one manifest against all requirements.
func (c *check) instance(ctx context.Context, visit *visit, digest string) finding.Finding {
	signatures, more, err := visit.signatures(ctx, digest)
	switch {
	case errors.Is(err, errMalformed):
		return c.fail("MalformedAttachment", "the tag %s of %s is not what it should be: %s", signatureTag(digest), visit.place.Repository, quotable(err.Error()))
	case repository.IsMissing(err):
		return c.missing(visit.place, digest)
	case err != nil:
		return unknown("SigstoreUnavailable", "the signatures of %s cannot be read, tag %s: %s", quotable(c.image.PullSpec), signatureTag(digest), quotable(err.Error()))
	}
	var findings []finding.Finding
	for _, r := range c.requirements {
		refused := c.best(r, signatures, digest)
		switch {
		case refused == nil:
			findings = append(findings, c.pass(r))
		case more:
			findings = append(findings, unknown("TooManySignatures", "%s has more than %d signatures, and none of those is good for ClusterImagePolicy %q", digest, maxSignatures, r.policy))
		default:
			f := c.fail(refused.reason, "no signature of %s is good for ClusterImagePolicy %q; the nearest: %s", digest, r.policy, refused.message)
			f.Outcome = refused.outcome
			findings = append(findings, f)
		}
	}
	return worst(findings)
}

// best is nil when one of the signatures is good, else why the one that comes
// nearest to it is not.
func (c *check) best(r requirement, signatures []attached, digest string) *refusal {
	var nearest *refusal
	for _, s := range signatures {
		refused := r.judge(s, c.reference, digest)
		if refused == nil {
			return nil
		}
		if nearest == nil || distance(refused.reason) < distance(nearest.reason) {
			nearest = refused
		}
	}
	return nearest
}

// distance orders refusals by how late they come.
func distance(reason string) int {
	return slices.Index([]string{
		"InvalidImagePolicy", "WrongSigstoreIdentity", "WrongSigstoreDigest", "InvalidSigstoreClaim", "InvalidSigstoreSignature",
	}, reason)
}

// reasonMissing is the reason where an image has no signature at all.
const reasonMissing = "NoSigstoreSignature"

// missing is the finding of an image that was copied without its signature, or
// that never had one.
func (c *check) missing(place Place, digest string) finding.Finding {
	f := c.fail(reasonMissing, "%s has no signature: there is no tag %s", place.Repository.Digest(digest), signatureTag(digest))
	if place.Mirror {
		f.Message = fmt.Sprintf("the mirror %s has the image %s, and not its signature: there is no tag %s. The nodes pull from there, and will refuse it",
			place.Repository, digest, signatureTag(digest))
		f.Remediation = fmt.Sprintf("Copy the signature to the mirror: mirror the release again with oc-mirror, which copies signatures unless told otherwise, or cosign copy --only=sig %s@%s %s",
			repositoryOf(c.reference), digest, place.Repository)
	}
	return f
}

func (c *check) pass(r requirement) finding.Finding {
	return finding.Pass(ReasonImagePolicySatisfied,
		"%s is signed as ClusterImagePolicy %q wants it (scope %s)", c.image.PullSpec, r.policy, c.scope).
		From(finding.SourceSignature)
}

func (c *check) fail(reason, format string, args ...any) finding.Finding {
	var policies []string
	for _, r := range c.requirements {
		policies = append(policies, r.policy)
	}
	return finding.Fail(finding.Reason(reason), "%s", fmt.Sprintf(format, args...)).
		From(finding.SourceSignature).
		Remedy("Do not use this copy of the image: get it and its signature again from its provider, or, if another one may sign it, change ClusterImagePolicy %s", strings.Join(policies, ", "))
}

func unknown(reason, format string, args ...any) finding.Finding {
	return finding.Unknown(finding.Reason(reason), "%s", fmt.Sprintf(format, args...)).
		From(finding.SourceSignature).
		Remedy("%s", remedies()[reason])
}

// remedies are for what could not be decided.
func remedies() map[string]string {
	return map[string]string{
		"InvalidPullSpec":        "Name the image as REPOSITORY@sha256:DIGEST.",
		"UnsupportedRootOfTrust": "Verify the image by hand before the update: cosign verify, with the root of trust of the policy.",
		"InvalidImagePolicy":     "Correct the policy: oc edit clusterimagepolicies",
		"SigstoreUnavailable":    "Make sure that the registry can be reached from here, and that you may pull from it; then run the preflight again.",
		"ImageUnavailable":       "Make sure that the registry, or its mirror, has the image and can be reached from here; then run the preflight again.",
		"NoInstance":             "Mirror the image for all architectures of the cluster.",
		"TooManySignatures":      "Remove from the repository the signatures that are not the provider's.",
	}
}

// worst is the finding that decides.
func worst(findings []finding.Finding) finding.Finding {
	return slices.MinFunc(findings, func(a, b finding.Finding) int { return rank(a.Outcome) - rank(b.Outcome) })
}

func rank(outcome preflight.Outcome) int {
	return slices.Index([]preflight.Outcome{preflight.Fail, preflight.Unknown, preflight.Warn, preflight.Pass}, outcome)
}

// maxQuoted bounds, in bytes, what is quoted from outside.
const maxQuoted = 512

// quotable makes text from outside fit for a message.
func quotable(text string) string { return words.Line(text, maxQuoted) }
