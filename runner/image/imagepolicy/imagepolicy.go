// Package imagepolicy answers: would the nodes of this cluster accept this image?
//
// A ClusterImagePolicy (config.openshift.io/v1) defines which images must have a sigstore signature, and with which
// key. The nodes verify every image that they pull; a rejected image interrupts an update, since the pods of an
// operator do not start (SignatureValidationFailed). This package makes the same decision before the update
// (machine-config-operator pkg/controller/container-runtime-config, containers/image signature and docker).
//
// # Rules
//
//   - Only the most specific scope that matches an image applies, with
//     all policies that have it. The image matches by its own name, regardless of
//     the mirror that it is pulled from.
//   - Root of trust PublicKey without a Rekor key. Any other root is Unknown, and
//     the finding has its name.
//   - Signatures are read from the repository or mirror that the nodes pull the
//     image from: the tag sha256-<hex>.sig. One valid signature is sufficient.
//     Referrers and bundles are not read, because the nodes do not read them.
//   - All ways to compare the signed identity: MatchRepoDigestOrExact,
//     MatchRepository, ExactRepository and RemapIdentity.
//   - For a multi-architecture image, nodes verify the manifest of
//     their architecture. The index itself is checked too: an invalid signature is a
//     warning; a missing one is not reported, since the indexes of OpenShift's
//     releases have none.
//
// The policies of a release ([Policies.Before]) are checked too: nodes have them before they pull the last images of
// the update, so an image must satisfy both the present policies and the policies after the update.
//
// Policies of one namespace (ImagePolicy) and policies of v1alpha1 are not read.
//
// # Bounds
//
// A manifest (4 MiB, and 1000 layers or images), a signature (64 KiB), signatures of a manifest (64), architectures
// (16), and the bounds of package repository.
package imagepolicy

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/types"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	configv1 "github.com/openshift/api/config/v1"
	configv1client "github.com/openshift/client-go/config/clientset/versioned/typed/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

// Check checks one image against all policies that cover it, including policies after the update. The finding has no
// name yet. An inconclusive check never passes.
func (p Policies) Check(ctx context.Context, image Image, puller Puller) finding.Finding {
	if !p.Changes(image.PullSpec) {
		return p.check(ctx, image, puller)
	}
	found := []finding.Finding{p.later.check(ctx, image, puller)}
	if found[0].Outcome != preflight.Pass {
		found[0].Message = "with the policies of the release: " + found[0].Message
	}
	if _, covering := p.covering(image.PullSpec); len(covering) > 0 {
		found = append(found, p.check(ctx, image, puller))
	}
	return worst(found)
}

func (p Policies) check(ctx context.Context, image Image, puller Puller) finding.Finding {
	reference, err := name.NewDigest(image.PullSpec)
	if err != nil || reference.String() != image.PullSpec {
		return unknown(reasonInvalidPullSpec, "%q is not a pull spec by digest", words.External(image.PullSpec))
	}
	scope, covering := p.covering(image.PullSpec)
	if len(covering) == 0 {
		return finding.Skipped(gap.Proven("the list of the ClusterImagePolicies"), reasonNoImagePolicy, "no ClusterImagePolicy covers %s",
			image.PullSpec).
			From(finding.SourceSignature)
	}
	requirements, failures := p.requirements(covering)
	if len(requirements) == 0 {
		return worst(failures)
	}
	check := &check{image: image, reference: reference, scope: scope, requirements: requirements}
	err = puller.Pull(ctx, image.PullSpec, check.at)
	if err == nil && len(check.findings) == 0 {
		err = errors.New("there is no repository to pull it from")
	}
	if err != nil {
		check.findings = append(check.findings, unknown(reasonImageUnavailable,
			"%s cannot be read, so its signatures are unknown: %s", image.PullSpec, words.External(err.Error())))
	}
	return worst(append(failures, check.findings...))
}

// Policies are the image policies of a cluster.
type Policies struct {
	policies []configv1.ClusterImagePolicy
	// unsure is why it is unknown whether the cluster has a policy, by its name.
	unsure map[string]string
	// later are those after an update; nil where they are the same, or unknown.
	later *Policies
}

// Brought is a policy that a release adds, changes or removes.
type Brought struct {
	configv1.ClusterImagePolicy

	Removed bool
	// Cause is why it is unknown whether, or how, the release contains it; empty if it is known.
	Cause string
}

// createOnly makes the cluster-version operator leave an object that exists as it is.
const createOnly = "release.openshift.io/create-only"

// Before are the policies of a cluster before an update to a release: an image must satisfy them, and those after it.
func (p Policies) Before(release []Brought) Policies {
	if len(release) == 0 {
		return p
	}
	later := Policies{policies: slices.Clone(p.policies), unsure: map[string]string{}}
	for _, each := range release {
		same := func(policy configv1.ClusterImagePolicy) bool { return policy.Name == each.Name }
		if each.Annotations[createOnly] == "true" && each.Cause == "" && slices.ContainsFunc(later.policies, same) {
			continue
		}
		later.policies = slices.DeleteFunc(later.policies, same)
		if each.Cause != "" {
			later.unsure[each.Name] = each.Cause
		}
		if !each.Removed || each.Cause != "" {
			later.policies = append(later.policies, each.ClusterImagePolicy)
		}
	}
	p.later = &later
	return p
}

// FromCluster reads all ClusterImagePolicies, which requires "list" on them. A cluster without this API has none.
func FromCluster(ctx context.Context, client configv1client.ClusterImagePoliciesGetter) (Policies, error) {
	list, err := client.ClusterImagePolicies().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return Policies{}, nil
	}
	if err != nil {
		return Policies{}, fmt.Errorf("list ClusterImagePolicies: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b configv1.ClusterImagePolicy) int { return strings.Compare(a.Name, b.Name) })
	return Policies{policies: list.Items}, nil
}

// Covers reports whether any policy covers the image.
func (p Policies) Covers(pullSpec string) bool {
	_, covering := p.covering(pullSpec)
	return len(covering) > 0 || p.later != nil && p.later.Covers(pullSpec)
}

// Changes reports whether an image must satisfy other policies after the update than before.
func (p Policies) Changes(pullSpec string) bool {
	if p.later == nil {
		return false
	}
	_, before := p.covering(pullSpec)
	_, after := p.later.covering(pullSpec)
	return len(after) > 0 && !slices.EqualFunc(before, after, func(a, b configv1.ClusterImagePolicy) bool {
		return a.Name == b.Name && p.later.unsure[b.Name] == "" && equality.Semantic.DeepEqual(a.Spec, b.Spec)
	})
}

// covering are the policies with the most specific scope that matches an image, and that scope.
func (p Policies) covering(pullSpec string) (string, []configv1.ClusterImagePolicy) {
	for _, scope := range scopes(pullSpec) {
		covering := slices.DeleteFunc(slices.Clone(p.policies), func(policy configv1.ClusterImagePolicy) bool {
			all := p.unsure[policy.Name] != "" && len(policy.Spec.Scopes) == 0 // which are unknown
			return !all && !slices.Contains(policy.Spec.Scopes, configv1.ImageScope(scope))
		})
		if len(covering) > 0 {
			return scope, covering
		}
	}
	return "", nil
}

// scopes are all that match an image, the most specific one first: the image,
// its repository, the namespaces above, the host with its port, and wildcards
// for the domains above the host, without port (containers/image
// docs/containers-policy.json.5.md, section docker).
func scopes(pullSpec string) []string {
	all := []string{pullSpec}
	above, _, _ := strings.Cut(pullSpec, "@")
	for {
		all = append(all, above)
		slash := strings.LastIndexByte(above, '/')
		if slash < 0 {
			break
		}
		above = above[:slash]
	}
	domain, _, _ := strings.Cut(above, ":")
	for {
		_, parent, ok := strings.Cut(domain, ".")
		if !ok {
			return all
		}
		all = append(all, "*."+parent)
		domain = parent
	}
}

// claimType is the type of a claim that sigstore signs.
const claimType = "cosign container image signature"

type claim struct {
	digest, identity string
}

// readClaim reads the JSON of a signature exactly, as the nodes do: all fields,
// no others, none twice; what is optional may have more, or be null
// (containers/image signature/internal/sigstore_payload.go).
func readClaim(payload []byte) (claim, *violation) {
	var c struct {
		Critical *struct {
			Type  *string `json:"type"`
			Image *struct {
				Digest *string `json:"docker-manifest-digest"`
			} `json:"image"`
			Identity *struct {
				Reference *string `json:"docker-reference"`
			} `json:"identity"`
		} `json:"critical"`
		Optional stdjson.RawMessage `json:"optional"`
	}
	strict, err := json.UnmarshalStrict(payload, &c)
	if err == nil {
		err = errors.Join(strict...)
	}
	critical := c.Critical
	switch {
	case err != nil:
		return claim{}, violates(reasonInvalidSigstoreClaim, "the signed content is not a JSON signature claim: %q", words.External(err.Error()))
	case critical == nil, critical.Type == nil, critical.Image == nil, critical.Identity == nil, len(c.Optional) == 0:
		return claim{}, violates(reasonInvalidSigstoreClaim,
			"the signature claim lacks one of critical.type, critical.image, critical.identity and optional")
	case critical.Image.Digest == nil, critical.Identity.Reference == nil:
		return claim{}, violates(reasonInvalidSigstoreClaim, "the signature claim lacks one of docker-manifest-digest and docker-reference")
	case *critical.Type != claimType:
		return claim{}, violates(reasonInvalidSigstoreClaim, "the signature claim has type %q, not %q", words.External(*critical.Type), claimType)
	}
	return claim{digest: *critical.Image.Digest, identity: *critical.Identity.Reference}, readOptional(c.Optional)
}

// readOptional checks the types of the known optional fields.
func readOptional(raw []byte) *violation {
	var optional *struct {
		Creator   *string `json:"creator"`
		Timestamp *int64  `json:"timestamp"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(raw, &optional); err != nil {
		return violates(reasonInvalidSigstoreClaim, "the optional part of the signature claim is invalid: %q", words.External(err.Error()))
	}
	return nil
}

// Place is a repository of an image, and how to reach it. Auth and Transport are required.
type Place struct {
	Repository name.Repository
	// Mirror is false for the repository that the pull spec names.
	Mirror    bool
	Auth      authn.Authenticator
	Transport http.RoundTripper
}

// Puller resolves the repositories from which the nodes pull.
type Puller interface {
	// Pull calls visit for each place that the nodes would pull the image from, in order, until visit returns no error.
	// An error of go-containerregistry means that the image is not available there.
	Pull(ctx context.Context, pullSpec string, visit func(context.Context, Place) error) error
}

const (
	// signatureType and signatureAnnotation make a layer of the attachment a
	// signature (cosign specs/SIGNATURE_SPEC.md).
	signatureType       = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"

	maxPayload    = 64 << 10
	maxSignatures = 64
)

var errMalformed = errors.New("not a sigstore signature")

type attached struct {
	payload   []byte
	signature string
}

func signatureTag(digest string) string {
	return strings.Replace(digest, ":", "-", 1) + ".sig"
}

type visit struct {
	place Place
	at    *repository.Repository
}

func newVisit(ctx context.Context, place Place) (*visit, error) {
	at, err := repository.Open(ctx, place.Repository, place.Auth, place.Transport)
	return &visit{place: place, at: at}, err
}

func (v *visit) manifest(ctx context.Context, digest string) (ocimanifest.Manifest, error) {
	content, err := v.at.Manifest(ctx, digest)
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	return ocimanifest.Parse(content)
}

// signatures returns the signatures of the manifest with a digest, and whether it has
// more than maxSignatures. If it has none, the error is one of go-containerregistry or
// errMalformed.
func (v *visit) signatures(ctx context.Context, digest string) (found []attached, more bool, err error) {
	content, mediaType, err := v.at.Tagged(ctx, signatureTag(digest))
	if errors.Is(err, repository.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", errMalformed, err)
	}
	if err != nil {
		return nil, false, err
	}
	m, err := ocimanifest.Parse(content)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("%w: %w", errMalformed, err)
	case mediaType != types.OCIManifestSchema1 || m.IsIndex():
		return nil, false, fmt.Errorf("%w: its manifest is %q instead of an OCI image", errMalformed, words.External(string(mediaType)))
	}
	for _, layer := range m.Layers {
		if layer.MediaType != signatureType {
			continue
		}
		if len(found) == maxSignatures {
			return found, true, nil
		}
		payload, err := v.payload(ctx, layer)
		if err != nil {
			return nil, false, err
		}
		found = append(found, attached{payload: payload, signature: layer.Annotations[signatureAnnotation]})
	}
	if len(found) == 0 {
		return nil, false, fmt.Errorf("%w: it has no layer of type %s", errMalformed, signatureType)
	}
	return found, false, nil
}

func (v *visit) payload(ctx context.Context, layer ocispec.Descriptor) ([]byte, error) {
	if err := ocimanifest.CheckDescriptor(layer, "a layer", maxPayload); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	content, err := v.at.Blob(ctx, layer.Digest.String(), layer.Size)
	if repository.IsMissing(err) || errors.Is(err, repository.ErrMismatch) {
		err = fmt.Errorf("%w: a layer is not in the repository: %w", errMalformed, err)
	}
	return content, err
}

// maxArchitectures bounds how many images of one list are verified.
const maxArchitectures = 16

// instances are the digests of the images in a list that nodes would pull.
func instances(list ocimanifest.Manifest, architectures []string) ([]string, error) {
	images, err := list.Images(architectures...)
	if err != nil {
		return nil, err
	}
	var digests, found []string
	for _, image := range images {
		digests = append(digests, image.Digest.String())
		found = append(found, image.Platform.Architecture)
	}
	if len(digests) > maxArchitectures {
		return nil, fmt.Errorf("the index has %d images for linux, more than %d: %s", len(digests), maxArchitectures,
			words.External(strings.Join(found, ", ")))
	}
	return digests, nil
}
