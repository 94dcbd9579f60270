package image

import (
	"context"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/registry"
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

// Nodes makes the nodes of the cluster pull images. It is implemented by pull.Nodes.
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
