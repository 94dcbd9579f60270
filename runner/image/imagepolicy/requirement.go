package imagepolicy

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
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
			failures = append(failures, unknown(reasonInvalidImagePolicy, "it is unknown whether the release brings ClusterImagePolicy %q: %s", policy.Name, words.External(cause)))
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
		failure := unknown(reasonUnsupportedRootOfTrust, "ClusterImagePolicy %q has root of trust %s, which this check does not support", policy.Name, kind)
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
		return violates(reasonInvalidSigstoreSignature, "the key of the policy did not sign this content")
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
			return undecided("ClusterImagePolicy %q has matchPolicy %q, which this check does not support", r.policy, words.External(string(r.identity.MatchPolicy)))
		}
	}
	reference, err := name.ParseReference(signed)
	if err != nil {
		return violates(reasonWrongSigstoreIdentity, "the signature claim names %q, which is not an image", words.External(signed))
	}
	repository, err := name.NewRepository(wanted)
	if err != nil || reference.Context().Name() != repository.Name() {
		return violates(reasonWrongSigstoreIdentity, "the signature claim names %q; the policy requires an image of %q", words.External(signed), wanted)
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
