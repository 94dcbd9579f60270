package hosted

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
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
func (c *ControlPlane) Order(path []Release) (steps []Step, unknown []string, err error) {
	var versions []semver.Version
	images := map[string]string{}
	for _, each := range path {
		parsed, err := semver.Parse(each.Version)
		if err != nil {
			return nil, nil, fmt.Errorf("version %q: %w", each.Version, err)
		}
		versions, images[parsed.String()] = append(versions, parsed), each.Image
	}
	var pools []hypershift.Running
	for i := range c.pools {
		oldest, ok := oldestOf(&c.pools[i])
		if !ok {
			unknown = append(unknown, c.pools[i].Name)
			continue
		}
		pools = append(pools, hypershift.Running{Pool: c.pools[i].Name, Version: oldest})
	}
	for _, each := range hypershift.Order(versions, pools) {
		object := finding.Object{APIVersion: hypershift.GroupVersion().String(), Kind: "HostedCluster", Namespace: c.Cluster.Namespace, Name: c.Cluster.Name}
		if each.Pool != "" {
			object.Kind, object.Name = "NodePool", each.Pool
		}
		steps = append(steps, Step{Object: object, From: each.From.String(), To: each.To.String(), Command: request(object, images[each.To.String()])})
	}
	return steps, unknown, c.poolsError
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

// request is the command that requests a release.
func request(object finding.Object, image string) string {
	if !regexp.MustCompile(`^[A-Za-z0-9.:@/_-]+$`).MatchString(image) { // a command is copied into a shell
		return ""
	}
	kind := map[string]string{"HostedCluster": "hostedcluster", "NodePool": "nodepool"}[object.Kind]
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"release": hypershift.Release{Image: image}}})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("oc -n %s patch %s %s --type=merge -p '%s'", object.Namespace, kind, object.Name, patch)
}

// Ahead are the checks that can be evaluated for each update of a path: whether HyperShift accepts its
// version, and for the first update, its request.
func (c *ControlPlane) Ahead(first bool) []check.Check {
	if first {
		return []check.Check{requestCheck(c), versionCheck(c)}
	}
	return []check.Check{versionCheck(c)}
}

// Skips states that HyperShift would accept the request for the last release of a path at once; empty
// where the path has one update, or HyperShift would not.
func (c *ControlPlane) Skips(path []Release) string {
	if len(path) < 3 {
		return ""
	}
	from, to := path[0].Version, path[len(path)-1].Version
	older, err := semver.Parse(from)
	newer, failed := semver.Parse(to)
	if err != nil || failed != nil || hypershift.Skipped(older, newer) == 0 || hypershift.Refuses(c.Cluster, older, newer, c.supported) != "" {
		return ""
	}
	return fmt.Sprintf("HyperShift accepts the request for %s at once, and the update graph has no update from %s to it: request each release in turn", words.External(to), words.External(from))
}
