package image

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
	"github.com/openshift/update-preflight/runner/registry/ocimanifest"
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
