// Package route answers: in which order are the control plane and the NodePools of a hosted cluster updated?
//
// [Order] has the updates along a path of releases, each with its command, and [Skips] what HyperShift
// would accept although the path has it not.
package route

import (
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
)

// Release is a release of a path.
type Release struct{ Version, Image string }

// Step is the update of one object, in the order of the updates.
type Step struct {
	Object   finding.Object
	From, To string
	// Command requests it in the management cluster; empty where the image cannot be part of a command.
	Command string
}

// Order are the updates of the control plane and of its NodePools along a path that starts with the
// present release, and the pools whose version is unknown.
func Order(c *hosted.ControlPlane, path []Release) (steps []Step, unknown []string, err error) {
	var versions []semver.Version
	images := map[string]string{}
	for _, each := range path {
		parsed, err := semver.Parse(each.Version)
		if err != nil {
			return nil, nil, fmt.Errorf("version %q: %w", each.Version, err)
		}
		versions, images[parsed.String()] = append(versions, parsed), each.Image
	}
	all, err := c.Pools()
	var pools []hypershift.Running
	for i := range all {
		oldest, ok := oldestOf(&all[i])
		if !ok {
			unknown = append(unknown, all[i].Name)
			continue
		}
		pools = append(pools, hypershift.Running{Pool: all[i].Name, Version: oldest})
	}
	for _, each := range hypershift.Order(versions, pools) {
		object := finding.Object{APIVersion: hypershift.GroupVersion().String(), Kind: "HostedCluster", Namespace: c.Cluster.Namespace, Name: c.Cluster.Name}
		if each.Pool != "" {
			object.Kind, object.Name = "NodePool", each.Pool
		}
		steps = append(steps, Step{Object: object, From: each.From.String(), To: each.To.String(), Command: hosted.Request(object, images[each.To.String()])})
	}
	return steps, unknown, err
}

// oldestOf is the version of the oldest nodes of a pool; false where it is unknown.
func oldestOf(pool *hypershift.NodePool) (semver.Version, bool) {
	var oldest semver.Version
	versions := pool.Versions()
	for i, each := range versions {
		parsed, err := semver.Parse(each)
		if err != nil {
			return semver.Version{}, false
		}
		if i == 0 || parsed.LT(oldest) {
			oldest = parsed
		}
	}
	return oldest, len(versions) > 0
}

// Skips states that HyperShift would accept the request for the last release of a path at once; empty
// where the path has one update, or HyperShift would not.
func Skips(c *hosted.ControlPlane, path []Release) string {
	if len(path) < 3 {
		return ""
	}
	from, to := path[0].Version, path[len(path)-1].Version
	older, err := semver.Parse(from)
	newer, failed := semver.Parse(to)
	if err != nil || failed != nil || hypershift.Skipped(older, newer) == 0 || hosted.Refusal(c, older, newer) != "" {
		return ""
	}
	return fmt.Sprintf("HyperShift accepts the request for %s from %s at once, which leaves out minor versions: request each release in turn", words.External(to), words.External(from))
}
