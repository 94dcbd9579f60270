// Package image answers: can this cluster's nodes get every image of the target?
//
// [Check] asks for the manifest of each image at the places that a node would
// pull it from, in a node's order and with the cluster's own credentials alone,
// and holds it against its digest; of an index it also asks for the images of
// the nodes' architectures. Layers are not read: their sizes are added up, and
// with [Blobs] it is asked whether they are there. What is missing is one finding
// for each cause and place, however many images that are.
//
// An image that a mirror serves with another content is not looked for
// elsewhere, and neither is the part of an index that the mirror of the index
// does not have: nodes would not do so either (containers/image docker,
// newImageSource).
//
// # Limitations
//
// Unless nodes pull, registries are asked from here alone: whoever runs the check
// may reach what nodes do not, and the other way round. What the nodes have already
// is not taken off the size.
package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/registry"
)

const ReasonNotSelected finding.Reason = "NotSelected"

// Name is the name of the check, by which its findings are accepted, but for
// those about a registry that serves something else than was promised.
const Name = "Images"

// parallelism bounds how many images are asked for at one time.
const parallelism = 16

// Mode says how closely to look.
type Mode string

// The modes.
const (
	// Manifests asks for the manifest of each image.
	Manifests Mode = "check"
	// Blobs also asks whether the layers and configurations are there.
	Blobs Mode = "check-blobs"
	// Pull also has the nodes pull the images of the release's checks, PullAll
	// all images of the release.
	Pull    Mode = "pull"
	PullAll Mode = "pull-all"
	// Off does not look. That is not a pass: the finding is Unknown.
	Off Mode = "off"
)

// Modes are all modes.
func Modes() []Mode { return []Mode{Manifests, Blobs, Pull, PullAll, Off} }

// Pulls says whether nodes are to pull, which takes Jobs.
func (m Mode) Pulls() bool { return m == Pull || m == PullAll }

// Nodes have the nodes of the cluster pull images, which take so many bytes
// compressed. It is pull.Nodes.
type Nodes interface {
	Pull(ctx context.Context, images map[string]string, bytes int64) ([]finding.Finding, error)
}

// Check is the check of the images of one release.
type Check struct {
	Release update.Release
	// Images maps the name of a component to its pull spec by digest.
	Images map[string]string
	// Mode is one of Modes.
	Mode Mode
	// Architectures are those of the nodes, as Go calls them; none means all
	// that an image has.
	Architectures []string
	// Access finds out how nodes pull images. It is closed in the end.
	Access func(context.Context) *registry.Access
	// Nodes pull ToPull, which is some of Images, where the mode wants it.
	Nodes  Nodes
	ToPull map[string]string
	// Progress is told how many images were asked for, one call at a time.
	Progress func(done, total int)
}

// Source makes a source of the check.
func (c Check) Source() collector.Source {
	return collector.Source{Name: Name, Kind: finding.SourceImage, Collect: c.Collect}
}

// Collect checks the images. When the deadline of ctx passes, it returns what is
// known by then.
func (c Check) Collect(ctx context.Context) ([]finding.Finding, error) {
	if c.Mode == Off {
		return c.complete(finding.Unknown(ReasonNotSelected,
			"images are excluded by the selection; not checked").
			Named(Name).
			Remedy("Check the images, or accept the finding.").
			Do(finding.Retry(finding.OptionImages), finding.Accept(Name))), nil
	}
	access := c.Access(ctx)
	defer access.Close()
	results := c.lookAtAll(ctx, access)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, fmt.Errorf("not all images of the release were asked for: %w", ctx.Err())
	}
	findings := c.judge(results)
	if c.Mode.Pulls() {
		pulled, err := c.Nodes.Pull(ctx, c.ToPull, c.bytesToPull(results))
		return c.complete(append(findings, pulled...)...), err
	}
	return c.complete(findings...), nil
}

// bytesToPull is what ToPull takes, as far as its manifests are known.
func (c Check) bytesToPull(results []result) int64 {
	wanted := slices.DeleteFunc(slices.Clone(results), func(each result) bool {
		return !slices.ContainsFunc(each.components, func(component string) bool { return c.ToPull[component] != "" })
	})
	size, _ := weigh(wanted)
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

// lookAtAll asks for each pull spec once, whoever names it.
func (c Check) lookAtAll(ctx context.Context, access *registry.Access) []result {
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
			results[i] = visitor.look(ctx, access, pullSpec)
			results[i].components = components[pullSpec]
			mutex.Lock()
			defer mutex.Unlock()
			done += len(components[pullSpec])
			c.Progress(done, len(c.Images))
			return nil
		})
	}
	_ = group.Wait() // what went wrong is in the results
	return results
}
