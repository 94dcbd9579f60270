package imagepolicy

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

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
		c.findings = append(c.findings, c.fail(reasonDigestMismatch, "%s serves different content as the image %s", place.Repository, digest))
		return nil
	}
	if err != nil {
		return err
	}
	digests := []string{digest}
	if top.IsIndex() {
		if digests, err = instances(top, c.image.Architectures); err != nil {
			c.findings = append(c.findings, unknown(reasonNoInstance, "%s cannot be checked against a policy: %s", c.image.PullSpec,
				words.External(err.Error())))
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
		return c.fail(reasonMalformedAttachment, "the tag %s of %s is not a signature: %s", signatureTag(digest), visit.place.Repository,
			words.External(err.Error()))
	case repository.IsMissing(err):
		return c.missing(visit.place, digest)
	case err != nil:
		return unknown(reasonSigstoreUnavailable, "the signatures of %s cannot be read, tag %s: %s", words.External(c.image.PullSpec),
			signatureTag(digest), words.External(err.Error()))
	}
	var findings []finding.Finding
	for _, r := range c.requirements {
		violated := c.best(r, signatures, digest)
		switch {
		case violated == nil:
			findings = append(findings, c.pass(r))
		case more:
			findings = append(findings, unknown(reasonTooManySignatures,
				"%s has more than %d signatures; none of the signatures read satisfies ClusterImagePolicy %q", digest, maxSignatures, r.policy))
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
		reasonInvalidImagePolicy, reasonWrongSigstoreIdentity, reasonWrongSigstoreDigest, reasonInvalidSigstoreClaim,
		reasonInvalidSigstoreSignature,
	}, reason)
}

// missing is the finding of an image that was copied without its signature, or that never had one.
func (c *check) missing(place Place, digest string) finding.Finding {
	f := c.fail(reasonNoSigstoreSignature, "%s has no signature: there is no tag %s", place.Repository.Digest(digest), signatureTag(digest))
	if place.Mirror {
		f.Message = fmt.Sprintf("the mirror %s has the image %s without its signature: there is no tag %s. Nodes that pull from the "+
			"mirror will reject the image",
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
		Remedy("Do not use this copy of the image. Get it and its signature again from its provider, or, if another "+
			"key may sign it, change ClusterImagePolicy %s.", strings.Join(policies, ", "))
}

func unknown(reason finding.Reason, format string, args ...any) finding.Finding {
	fix := remedies()[reason]
	return finding.Unknown(reason, "%s", fmt.Sprintf(format, args...)).
		From(finding.SourceSignature).
		Remedy("%s", fix.text).Do(fix.actions...)
}

// remedy is an imperative sentence with its commands.
type remedy struct {
	text    string
	actions []finding.Action
}

func remedies() map[finding.Reason]remedy {
	return map[finding.Reason]remedy{
		reasonInvalidPullSpec: {text: "Specify the image as REPOSITORY@sha256:DIGEST."},
		reasonUnsupportedRootOfTrust: {
			text: "Verify the image manually before the update, with the root of trust of the policy, such as with `cosign verify IMAGE`.",
		},
		reasonInvalidImagePolicy:  {text: "Correct the policy.", actions: []finding.Action{finding.Change("oc edit clusterimagepolicies")}},
		reasonSigstoreUnavailable: {text: "Make the registry reachable from here with permission to pull, then run the preflight again."},
		reasonImageUnavailable:    {text: "Make the image available from its registry or mirror, then run the preflight again."},
		reasonNoInstance:          {text: "Mirror the image for all architectures of the cluster."},
		reasonTooManySignatures:   {text: "Remove from the repository signatures that are not from the provider."},
	}
}

func worst(findings []finding.Finding) finding.Finding {
	return slices.MinFunc(findings, func(a, b finding.Finding) int { return rank(a.Outcome) - rank(b.Outcome) })
}

func rank(outcome preflight.Outcome) int {
	return slices.Index([]preflight.Outcome{preflight.Fail, preflight.Unknown, preflight.Warn, preflight.Pass}, outcome)
}

// violation is why a signature does not satisfy a requirement.
type violation struct {
	reason  finding.Reason
	message string
	outcome preflight.Outcome
}

func violates(reason finding.Reason, format string, args ...any) *violation {
	return &violation{reason: reason, message: fmt.Sprintf(format, args...), outcome: preflight.Fail}
}

func undecided(format string, args ...any) *violation {
	return &violation{reason: reasonInvalidImagePolicy, message: fmt.Sprintf(format, args...), outcome: preflight.Unknown}
}

var (
	reasonImagePolicySatisfied = finding.NewReason("ImagePolicySatisfied", finding.Explanation{
		Meaning: "The signatures of an image satisfy the policies of the cluster.",
		Cause:   "The image is signed.",
	})
	reasonNoImagePolicy = finding.NewReason("NoImagePolicy", finding.Explanation{
		Meaning: "No ClusterImagePolicy covers the image.",
		Cause:   "The cluster does not require a signature of the image.",
	})
	reasonDigestMismatch = finding.NewReason("DigestMismatch", finding.Explanation{
		Meaning: "A registry serves content that does not match the digest of the image.",
		Cause:   "The registry is defective or compromised.",
		Remedy:  "Mirror the image again: oc adm release mirror.",
	})
	reasonNoInstance = finding.NewReason("NoInstance", finding.Explanation{
		Meaning: "An index has no image for an architecture of the nodes.",
		Cause:   "The image was not mirrored for all architectures.",
		Remedy:  "Mirror the image for all architectures: oc adm release mirror --keep-manifest-list.",
	})
	reasonMalformedAttachment = finding.NewReason("MalformedAttachment", finding.Explanation{
		Meaning: "The signature tag of an image is not a sigstore signature.",
		Cause:   "The tag was overwritten, or pushed by an incompatible tool.",
		Remedy:  "Copy the signature again: cosign copy --only=sig.",
	})
	reasonSigstoreUnavailable = finding.NewReason("SigstoreUnavailable", finding.Explanation{
		Meaning: "The signatures of an image could not be read.",
		Cause:   "The registry cannot be reached, or denies access.",
		Remedy:  "Make the registry reachable, then run the preflight again.",
	})
	reasonTooManySignatures = finding.NewReason("TooManySignatures", finding.Explanation{
		Meaning: "An image has more signatures than the limit.",
		Cause:   "Signatures of other keys were added.",
		Remedy:  "Remove signatures that are not from the provider.",
	})
	reasonNoSigstoreSignature = finding.NewReason("NoSigstoreSignature", finding.Explanation{
		Meaning: "An image has no signature.",
		Cause:   "The image was copied without its signature, or never had one.",
		Remedy:  "Copy the signature to the mirror: cosign copy --only=sig.",
	})
	reasonInvalidPullSpec = finding.NewReason("InvalidPullSpec", finding.Explanation{
		Meaning: "An image is not specified by digest.",
		Cause:   "The pull spec is malformed.",
		Remedy:  "Specify the image as REPOSITORY@sha256:DIGEST.",
	})
	reasonImageUnavailable = finding.NewReason("ImageUnavailable", finding.Explanation{
		Meaning: "An image could not be read.",
		Cause:   "The registry cannot be reached, or does not have the image.",
		Remedy:  "Make the image available, then run the preflight again.",
	})
	reasonUnsupportedRootOfTrust = finding.NewReason("UnsupportedRootOfTrust", finding.Explanation{
		Meaning: "A policy has a root of trust that this check does not support.",
		Cause:   "The policy uses Fulcio, Rekor or PKI.",
		Remedy:  "Verify the image before the update: cosign verify.",
	})
	reasonInvalidImagePolicy = finding.NewReason("InvalidImagePolicy", finding.Explanation{
		Meaning: "A policy cannot be evaluated.",
		Cause:   "Its public key or its identity rule is invalid.",
		Remedy:  "Correct the policy: oc edit clusterimagepolicies.",
	})
	reasonInvalidSigstoreSignature = finding.NewReason("InvalidSigstoreSignature", finding.Explanation{
		Meaning: "The signature was not made with the key of the policy.",
		Cause:   "The image was signed with another key, or was modified.",
		Remedy:  "Get the image and its signature again from its provider.",
	})
	reasonInvalidSigstoreClaim = finding.NewReason("InvalidSigstoreClaim", finding.Explanation{
		Meaning: "The signed content is not a signature claim.",
		Cause:   "The key was used to sign something else.",
		Remedy:  "Get the image and its signature again from its provider.",
	})
	reasonWrongSigstoreDigest = finding.NewReason("WrongSigstoreDigest", finding.Explanation{
		Meaning: "The signature claim is for another digest.",
		Cause:   "The signature belongs to another image.",
		Remedy:  "Get the image and its signature again from its provider.",
	})
	reasonWrongSigstoreIdentity = finding.NewReason("WrongSigstoreIdentity", finding.Explanation{
		Meaning: "The signature claim names a different repository than the policy requires.",
		Cause:   "The image was signed under another name.",
		Remedy:  "Change the signedIdentity of the policy: oc edit clusterimagepolicies.",
	})
)

type requirement struct {
	policy   string
	key      signature.Verifier
	identity *configv1.PolicyIdentity
}

// requirements reads the policies. One that cannot be decided here is a finding.
func (p Policies) requirements(policies []configv1.ClusterImagePolicy) ([]requirement, []finding.Finding) {
	var requirements []requirement
	var failures []finding.Finding
	for _, policy := range policies {
		if cause := p.unsure[policy.Name]; cause != "" {
			failures = append(failures, unknown(reasonInvalidImagePolicy, "it is unknown whether the release "+
				"contains ClusterImagePolicy %q: %s",
				policy.Name, words.External(cause)))
			continue
		}
		key, failure := newKey(policy)
		if failure != nil {
			failures = append(failures, *failure)
			continue
		}
		requirements = append(requirements, requirement{policy: policy.Name, key: key, identity: policy.Spec.Policy.SignedIdentity})
	}
	return requirements, failures
}

// newKey is the one key that a policy trusts. Nodes hash with SHA-256, whatever
// the key (containers/image signature/policy_eval_sigstore.go).
func newKey(policy configv1.ClusterImagePolicy) (signature.Verifier, *finding.Finding) {
	root := policy.Spec.Policy.RootOfTrust
	kind := string(root.PolicyType)
	if root.PublicKey != nil && len(root.PublicKey.RekorKeyData) > 0 {
		kind += " with rekorKeyData"
	}
	if kind != string(configv1.PublicKeyRootOfTrust) || root.PublicKey == nil {
		failure := unknown(reasonUnsupportedRootOfTrust, "ClusterImagePolicy %q has root of trust %s, which this check does not support",
			policy.Name, kind)
		return nil, &failure
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(root.PublicKey.KeyData)
	if err == nil {
		var key signature.Verifier
		if key, err = signature.LoadVerifier(public, crypto.SHA256); err == nil {
			return key, nil
		}
	}
	failure := unknown(reasonInvalidImagePolicy, "the public key of ClusterImagePolicy %q cannot be used: %v", policy.Name, err)
	return nil, &failure
}

func (r requirement) check(s attached, image name.Digest, digest string) *violation {
	signed, err := base64.StdEncoding.DecodeString(s.signature)
	if err != nil {
		return violates(reasonInvalidSigstoreSignature, "the signature is not base64")
	}
	if err := r.key.VerifySignature(bytes.NewReader(signed), bytes.NewReader(s.payload)); err != nil {
		return violates(reasonInvalidSigstoreSignature, "the content was not signed with the key of the policy")
	}
	claim, violated := readClaim(s.payload)
	switch {
	case violated != nil:
		return violated
	case claim.digest != digest:
		return violates(reasonWrongSigstoreDigest, "the signature claim is for digest %q", words.External(claim.digest))
	}
	return r.identify(claim.identity, image)
}

// identify compares the signed identity with the one that the policy requires,
// for an image that is pulled by digest (containers/image
// signature/policy_reference_match.go).
func (r requirement) identify(signed string, image name.Digest) *violation {
	wanted := repositoryOf(image)
	if r.identity != nil {
		switch r.identity.MatchPolicy {
		case configv1.IdentityMatchPolicyMatchRepoDigestOrExact, configv1.IdentityMatchPolicyMatchRepository:
		case configv1.IdentityMatchPolicyExactRepository:
			if r.identity.PolicyMatchExactRepository == nil {
				return undecided("ClusterImagePolicy %q has no exactRepository", r.policy)
			}
			wanted = string(r.identity.PolicyMatchExactRepository.Repository)
		case configv1.IdentityMatchPolicyRemapIdentity:
			if r.identity.PolicyMatchRemapIdentity == nil {
				return undecided("ClusterImagePolicy %q has no remapIdentity", r.policy)
			}
			wanted = remap(wanted, *r.identity.PolicyMatchRemapIdentity)
		default:
			return undecided("ClusterImagePolicy %q has matchPolicy %q, which this check does not support", r.policy,
				words.External(string(r.identity.MatchPolicy)))
		}
	}
	reference, err := name.ParseReference(signed)
	if err != nil {
		return violates(reasonWrongSigstoreIdentity, "the signature claim names %q, which is not an image", words.External(signed))
	}
	repository, err := name.NewRepository(wanted)
	if err != nil || reference.Context().Name() != repository.Name() {
		return violates(reasonWrongSigstoreIdentity, "the signature claim names %q; the policy requires an image of %q", words.External(signed),
			wanted)
	}
	return nil
}

// remap replaces the prefix of a repository, where it has it.
func remap(repository string, rule configv1.PolicyMatchRemapIdentity) string {
	rest, ok := strings.CutPrefix(repository, string(rule.Prefix))
	if !ok || rest != "" && rest[0] != '/' {
		return repository
	}
	return string(rule.SignedPrefix) + rest
}

func repositoryOf(image name.Digest) string {
	return strings.TrimSuffix(image.String(), "@"+image.DigestStr())
}
