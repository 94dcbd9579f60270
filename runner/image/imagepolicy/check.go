package imagepolicy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

// Image is an image to check against the policies.
type Image struct {
	// PullSpec is repository@sha256:<hex>, as a manifest of the release has it.
	PullSpec string
	// Architectures are the architectures of the nodes that would pull it, as in their status
	// (amd64); none means all architectures of the image.
	Architectures []string
}

type check struct {
	image        Image
	reference    name.Digest
	scope        string
	requirements []requirement
	findings     []finding.Finding
}

// at checks the image at one place. An error means that the place lacks the image;
// violations of its signatures are findings, since nodes search no other place
// for them.
func (c *check) at(ctx context.Context, place Place) error {
	visit, err := newVisit(ctx, place)
	if err != nil {
		return err
	}
	digest := c.reference.DigestStr()
	top, err := visit.manifest(ctx, digest)
	if errors.Is(err, repository.ErrMismatch) {
		c.findings = append(c.findings, c.fail(reasonDigestMismatch, "%s serves other content as the image %s", place.Repository, digest))
		return nil
	}
	if err != nil {
		return err
	}
	digests := []string{digest}
	if top.IsIndex() {
		if digests, err = instances(top, c.image.Architectures); err != nil {
			c.findings = append(c.findings, unknown(reasonNoInstance, "%s cannot be checked against a policy: %s", c.image.PullSpec, words.External(err.Error())))
			return nil
		}
		c.findings = append(c.findings, c.list(ctx, visit)...)
	}
	for _, digest := range digests {
		c.findings = append(c.findings, c.instance(ctx, visit, digest))
	}
	return nil
}

// list checks the signatures of an index itself, which nodes do not.
func (c *check) list(ctx context.Context, visit *visit) []finding.Finding {
	f := c.instance(ctx, visit, c.reference.DigestStr())
	if f.Outcome == preflight.Pass || f.Reason == reasonNoSigstoreSignature.String() {
		return nil
	}
	f = f.Judged(preflight.Warn)
	f.Message = "the signature of the index, which nodes do not verify: " + f.Message
	return []finding.Finding{f}
}

func (c *check) instance(ctx context.Context, visit *visit, digest string) finding.Finding {
	signatures, more, err := visit.signatures(ctx, digest)
	switch {
	case errors.Is(err, errMalformed):
		return c.fail(reasonMalformedAttachment, "the tag %s of %s is not a signature: %s", signatureTag(digest), visit.place.Repository, words.External(err.Error()))
	case repository.IsMissing(err):
		return c.missing(visit.place, digest)
	case err != nil:
		return unknown(reasonSigstoreUnavailable, "the signatures of %s cannot be read, tag %s: %s", words.External(c.image.PullSpec), signatureTag(digest), words.External(err.Error()))
	}
	var findings []finding.Finding
	for _, r := range c.requirements {
		violated := c.best(r, signatures, digest)
		switch {
		case violated == nil:
			findings = append(findings, c.pass(r))
		case more:
			findings = append(findings, unknown(reasonTooManySignatures, "%s has more than %d signatures; none of those read satisfies ClusterImagePolicy %q", digest, maxSignatures, r.policy))
		default:
			f := c.fail(violated.reason, "no signature of %s satisfies ClusterImagePolicy %q; the closest: %s", digest, r.policy, violated.message)
			f = f.Judged(violated.outcome)
			findings = append(findings, f)
		}
	}
	return worst(findings)
}

// best is nil when a signature satisfies the requirement, else the violation of the closest signature.
func (c *check) best(r requirement, signatures []attached, digest string) *violation {
	var nearest *violation
	for _, s := range signatures {
		violated := r.check(s, c.reference, digest)
		if violated == nil {
			return nil
		}
		if nearest == nil || distance(violated.reason) < distance(nearest.reason) {
			nearest = violated
		}
	}
	return nearest
}

// distance orders violations by how late they are detected.
func distance(reason finding.Reason) int {
	return slices.Index([]finding.Reason{
		reasonInvalidImagePolicy, reasonWrongSigstoreIdentity, reasonWrongSigstoreDigest, reasonInvalidSigstoreClaim, reasonInvalidSigstoreSignature,
	}, reason)
}

// missing is the finding of an image that was copied without its signature, or that never had one.
func (c *check) missing(place Place, digest string) finding.Finding {
	f := c.fail(reasonNoSigstoreSignature, "%s has no signature: there is no tag %s", place.Repository.Digest(digest), signatureTag(digest))
	if place.Mirror {
		f.Message = fmt.Sprintf("the mirror %s has the image %s without its signature: there is no tag %s. Nodes that pull from the mirror will reject the image",
			place.Repository, digest, signatureTag(digest))
		f = f.Remedy("Copy the signature to the mirror, or mirror the release again with oc-mirror, which copies signatures by default.").
			Do(finding.OnThisMachine("cosign copy --only=sig %s@%s %s", repositoryOf(c.reference), digest, place.Repository))
	}
	return f
}

func (c *check) pass(r requirement) finding.Finding {
	return finding.Pass(gap.Proven("the signatures of the image"), reasonImagePolicySatisfied,
		"%s satisfies ClusterImagePolicy %q (scope %s)", c.image.PullSpec, r.policy, c.scope).
		From(finding.SourceSignature)
}

func (c *check) fail(reason finding.Reason, format string, args ...any) finding.Finding {
	var policies []string
	for _, r := range c.requirements {
		policies = append(policies, r.policy)
	}
	return finding.Fail(reason, "%s", fmt.Sprintf(format, args...)).
		From(finding.SourceSignature).
		Remedy("Do not use this copy of the image: get it and its signature again from its provider, or, if another key may sign it, change ClusterImagePolicy %s.", strings.Join(policies, ", "))
}
