// Package image answers: can this cluster's nodes pull every image of the target?
//
// [Check] requests the manifest of each image from the places that a node would pull it from, in the order of a node
// and only with the cluster's own credentials, and verifies its digest; of an index it also requests the images for the
// architectures of the nodes. Layers are not read: their sizes are added up, and with [Blobs] their existence is
// checked. Missing images are one finding for each cause and place.
//
// If a mirror serves an image with different content, or lacks an image of its own index, the image is not requested
// from another place, because nodes would not do so either (containers/image docker, newImageSource).
//
// # Limitations
//
// Unless nodes pull, registries are requested only from here: this machine may reach registries that nodes do not
// reach, and vice versa. The size includes images that nodes already have.
package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
	"github.com/openshift/update-preflight/runner/registry/repository"
)

// parallelism bounds the images that are checked concurrently.
const parallelism = 16

// Collect checks the images. If the deadline of ctx passes, it returns the findings so far; if ctx is canceled, an
// error.
func (c Check) Collect(ctx context.Context) ([]finding.Finding, error) {
	if c.Mode == Off {
		return c.complete(finding.Unknown(reasonNotSelected,
			"images are excluded by the selection; not checked").
			Named(Name).
			Do(finding.Retry(finding.OptionImages), finding.Accept(Name))), nil
	}
	access := c.Access(ctx)
	defer access.Close()
	results := c.checkAll(ctx, access)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, fmt.Errorf("not all images of the release were checked: %w", ctx.Err())
	}
	findings := c.findings(results)
	if c.Mode.Pulls() {
		pulled, err := c.Nodes.Pull(ctx, c.ToPull, c.bytesToPull(results))
		return c.complete(append(findings, pulled...)...), err
	}
	return c.complete(findings...), nil
}

// bytesToPull is the compressed size of ToPull, without unknown manifests.
func (c Check) bytesToPull(results []result) int64 {
	wanted := slices.DeleteFunc(slices.Clone(results), func(each result) bool {
		return !slices.ContainsFunc(each.components, func(component string) bool { return c.ToPull[component] != "" })
	})
	size, _ := sizeOf(wanted)
	return size
}

func (c Check) complete(findings ...finding.Finding) []finding.Finding {
	for i := range findings {
		if outcome := findings[i].Outcome; outcome == preflight.Fail || outcome == preflight.Unknown {
			findings[i].Blocks, findings[i].BlockedTargets = true, []string{c.Release.Version}
		}
	}
	return findings
}

func (c Check) checkAll(ctx context.Context, access *registry.Access) []result {
	components := map[string][]string{}
	for _, component := range slices.Sorted(maps.Keys(c.Images)) {
		components[c.Images[component]] = append(components[c.Images[component]], component)
	}
	pullSpecs := slices.Sorted(maps.Keys(components))
	visitor := newVisitor(c.Mode, c.Architectures)
	results := make([]result, len(pullSpecs))
	var group errgroup.Group
	group.SetLimit(parallelism)
	var mutex sync.Mutex
	done := 0
	for i, pullSpec := range pullSpecs {
		group.Go(func() error {
			results[i] = visitor.check(ctx, access, pullSpec)
			results[i].components = components[pullSpec]
			mutex.Lock()
			defer mutex.Unlock()
			done += len(components[pullSpec])
			c.Progress(done, len(c.Images))
			return nil
		})
	}
	_ = group.Wait() // the results have the errors
	return results
}

var (
	reasonImagesPresent = finding.NewReason("ImagesPresent", finding.Explanation{
		Meaning: "All images are available from the repositories that nodes pull from.",
		Cause:   "The images are available.",
	})
	reasonNotSelected = finding.NewReason("NotSelected", finding.Explanation{
		Meaning: "The selection of the run excludes the check.",
		Cause:   "Images are excluded for this run.",
		Remedy:  "Check the images, or accept the finding.",
	})
	reasonImagesMissing = finding.NewReason("ImagesMissing", finding.Explanation{
		Meaning: "Images are not available from any repository.",
		Cause:   "The release was not mirrored, or only partly.",
		Remedy:  "Mirror the release again: oc adm release mirror.",
	})
	reasonBlobsMissing = finding.NewReason("BlobsMissing", finding.Explanation{
		Meaning: "A manifest refers to blobs that the registry does not have.",
		Cause:   "The image was mirrored only partly.",
		Remedy:  "Mirror the release again: oc adm release mirror.",
	})
	reasonDigestMismatch = finding.NewReason("DigestMismatch", finding.Explanation{
		Meaning: "A registry serves content that does not match the digest.",
		Cause:   "The registry is defective or compromised.",
		Remedy:  "Mirror the release again, or report it to the operators of the registry.",
	})
	reasonInvalidManifest = finding.NewReason("InvalidManifest", finding.Explanation{
		Meaning: "Nodes do not accept a manifest.",
		Cause:   "The image is malformed.",
		Remedy:  "Do not update to this release.",
	})
	reasonManifestTooLarge = finding.NewReason("ManifestTooLarge", finding.Explanation{
		Meaning: "A manifest is larger than nodes accept.",
		Cause:   "The image is malformed.",
		Remedy:  "Do not update to this release.",
	})
	reasonArchitectureMissing = finding.NewReason("ArchitectureMissing", finding.Explanation{
		Meaning: "An image is missing for an architecture of the nodes.",
		Cause:   "The release was not mirrored for all architectures.",
		Remedy:  "Mirror all architectures: oc adm release mirror --keep-manifest-list.",
	})
	reasonMoreImages = finding.NewReason("MoreImages", finding.Explanation{
		Meaning: "Several causes are combined in one finding.",
		Cause:   "Images are unavailable for too many different causes.",
		Remedy:  "Fix the other findings first.",
	})
)

// Name names the findings about the images of the release.
var Name = finding.NewName("Images", "The findings about the availability of the release's images to the nodes.")

// Mode is how thoroughly images are checked.
type Mode string

// The modes.
const (
	// Manifests requests the manifest of each image.
	Manifests Mode = "check"
	// Blobs also checks that the layers and configurations exist.
	Blobs Mode = "check-blobs"
	// Pull also makes the nodes pull the images of the release's checks.
	Pull Mode = "pull"
	// PullAll also makes the nodes pull all images of the release.
	PullAll Mode = "pull-all"
	// Off checks nothing; the finding is Unknown.
	Off Mode = "off"
)

// Modes are all modes.
func Modes() []Mode { return []Mode{Manifests, Blobs, Pull, PullAll, Off} }

// Covers reports whether the mode checks everything that the other one does. A mode of a later version covers only itself.
func (m Mode) Covers(other Mode) bool {
	switch m {
	case PullAll:
		return slices.Contains(Modes(), other)
	case Manifests, Blobs, Pull:
		return other == m || other == Manifests || other == Off
	case Off:
	}
	return other == m
}

// Pulls reports whether nodes pull images, which needs Jobs.
func (m Mode) Pulls() bool { return m == Pull || m == PullAll }

// Nodes makes the nodes of the cluster pull images. pull.Nodes implements it.
type Nodes interface {
	// Pull pulls images, which are pull specs by name of component; bytes is their compressed size.
	Pull(ctx context.Context, images map[string]string, bytes int64) ([]finding.Finding, error)
}

// Check is the check of the images of one release.
type Check struct {
	Release update.Release
	// Images maps the name of a component to its pull spec by digest.
	Images map[string]string
	Mode   Mode
	// Architectures are the GOARCH values of the nodes; none means all architectures of an image.
	Architectures []string
	// Access returns the access of nodes to registries. Collect closes it.
	Access func(context.Context) *registry.Access
	// Nodes pulls ToPull, a subset of Images. Both are read only if Mode.Pulls.
	Nodes  Nodes
	ToPull map[string]string
	// Progress is called with the number of checked images, never concurrently.
	Progress func(done, total int)
}

// violation is a final response: no other place is tried.
type violation struct {
	reason  finding.Reason
	text    string
	outcome preflight.Outcome
}

func (r *violation) Error() string { return r.text }

func reject(reason finding.Reason, format string, args ...any) *violation {
	return &violation{reason: reason, outcome: preflight.Fail, text: fmt.Sprintf(format, args...)}
}

// unusable makes the violation of a manifest that no node accepts. Only an image that
// is missing for an architecture has another remedy.
func unusable(err error) error {
	rejected, ok := errors.AsType[*ocimanifest.Violation](err)
	if !ok {
		return err
	}
	reason := reasonInvalidManifest
	if rejected.Reason == ocimanifest.ReasonArchitectureMissing || rejected.Reason == ocimanifest.ReasonNoLinuxImage {
		reason = reasonArchitectureMissing
	}
	return reject(reason, "%s", rejected.Message)
}

type result struct {
	components []string
	// places are the places that were tried, in order. Without failure, the last one has the image.
	places  []registry.Place
	failure error
	// layers are the layers by architecture; the architecture of an image that is not in an index is "".
	layers map[string][]ocispec.Descriptor
}

type visitor struct {
	mode          Mode
	architectures []string

	mutex  sync.Mutex
	opened map[string]func() (repoClient, error)
	// dead are the errors of unreachable registries by host, so that each is dialed once.
	dead map[string]error
	// blobs are the results for blobs by place and digest, since images share layers.
	blobs map[string]func() error
}

func newVisitor(mode Mode, architectures []string) *visitor {
	return &visitor{
		mode: mode, architectures: architectures,
		opened: map[string]func() (repoClient, error){}, dead: map[string]error{}, blobs: map[string]func() error{},
	}
}

// check requests one image from its places in order.
func (v *visitor) check(ctx context.Context, access *registry.Access, pullSpec string) result {
	var found result
	_, found.failure = access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		found.places = append(found.places, visit.Place)
		layers, err := v.visit(ctx, visit)
		found.layers = layers
		return err
	})
	return found
}

func (v *visitor) visit(ctx context.Context, visit registry.Visit) (map[string][]ocispec.Descriptor, error) {
	host := visit.Reference.Context().RegistryStr()
	if err := v.isDead(host); err != nil {
		return nil, err
	}
	at, err := v.open(ctx, visit)
	var layers map[string][]ocispec.Descriptor
	if err == nil {
		layers, err = v.image(ctx, at, visit.Reference.Identifier())
	}
	if connection, ok := errors.AsType[*net.OpError](err); ok && ctx.Err() == nil &&
		(connection.Op == "dial" || connection.Op == "proxyconnect") {
		v.mutex.Lock()
		defer v.mutex.Unlock()
		v.dead[host] = err
	}
	return layers, err
}

func (v *visitor) isDead(host string) error {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.dead[host]
}

// open opens a place once for each credential, so that one token serves all images.
func (v *visitor) open(ctx context.Context, visit registry.Visit) (repoClient, error) {
	key := visit.Repository + " " + visit.Credential
	v.mutex.Lock()
	if v.opened[key] == nil {
		v.opened[key] = sync.OnceValues(func() (repoClient, error) {
			opened, err := repository.Open(ctx, visit.Reference.Context(), visit.Auth, visit.Transport)
			return repoClient{name: visit.Repository, repository: opened}, err
		})
	}
	ask := v.opened[key]
	v.mutex.Unlock()
	return ask()
}

func (v *visitor) image(ctx context.Context, at repoClient, digest string) (map[string][]ocispec.Descriptor, error) {
	top, err := at.manifest(ctx, digest)
	if err != nil {
		return nil, err
	}
	if !top.IsIndex() {
		return map[string][]ocispec.Descriptor{"": top.Layers}, v.checkBlobs(ctx, at, top)
	}
	images, err := top.Images(v.architectures...)
	if err != nil {
		return nil, unusable(err)
	}
	layers := map[string][]ocispec.Descriptor{}
	for _, described := range images {
		architecture := words.External(described.Platform.Architecture)
		image, err := at.child(ctx, described)
		if repository.IsMissing(err) {
			return nil, reject(reasonImagesMissing, "it has the index but not its image for linux/%s", architecture)
		}
		if err != nil {
			return nil, err
		}
		layers[architecture] = append(layers[architecture], image.Layers...)
		if err := v.checkBlobs(ctx, at, image); err != nil {
			return nil, err
		}
	}
	return layers, nil
}

func (v *visitor) checkBlobs(ctx context.Context, at repoClient, image ocimanifest.Manifest) error {
	if v.mode != Blobs {
		return nil
	}
	for _, each := range image.Blobs() {
		v.mutex.Lock()
		key := at.name + "@" + each.Digest.String()
		if v.blobs[key] == nil {
			v.blobs[key] = sync.OnceValue(func() error { return at.blob(ctx, each) })
		}
		ask := v.blobs[key]
		v.mutex.Unlock()
		if err := ask(); err != nil {
			return err
		}
	}
	return nil
}

type repoClient struct {
	name       string
	repository *repository.Repository
}

func (c repoClient) manifest(ctx context.Context, digest string) (ocimanifest.Manifest, error) {
	content, err := c.content(ctx, digest)
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	manifest, err := ocimanifest.Parse(content)
	return manifest, unusable(err)
}

func (c repoClient) child(ctx context.Context, described ocispec.Descriptor) (ocimanifest.Manifest, error) {
	content, err := c.content(ctx, described.Digest.String())
	if err != nil {
		return ocimanifest.Manifest{}, err
	}
	manifest, err := ocimanifest.Image(described, content)
	return manifest, unusable(err)
}

func (c repoClient) content(ctx context.Context, digest string) ([]byte, error) {
	content, err := c.repository.Manifest(ctx, digest)
	switch {
	case errors.Is(err, repository.ErrMismatch):
		return nil, reject(reasonDigestMismatch, "it serves different content as the manifest %s", digest)
	case errors.Is(err, repository.ErrTooLarge):
		return nil, reject(reasonManifestTooLarge, "it serves a manifest of more than %d MiB", ocimanifest.MaxSize>>20)
	}
	return content, err
}

func (c repoClient) blob(ctx context.Context, wanted ocispec.Descriptor) error {
	size, err := c.repository.BlobSize(ctx, wanted.Digest.String())
	switch {
	case repository.IsMissing(err):
		return reject(reasonBlobsMissing, "it has the manifest but not its blob %s", wanted.Digest)
	case err != nil:
		return err
	case size >= 0 && size != wanted.Size: // not every server reports a size
		return reject(reasonDigestMismatch, "it serves %d bytes as the blob %s of %d bytes", size, wanted.Digest, wanted.Size)
	}
	return nil
}
