package hosted

import (
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// Route is the order in which a control plane and its NodePools are updated along a path.
type Route struct {
	Steps []Step
	// Missing states what of the order is unknown, and Notices what HyperShift would accept although the path has it not.
	Missing, Notices []string
}

// Step is the update of one object, in the order of the updates.
type Step struct {
	Object   finding.Object
	From, To string
	// Action requests it in the management cluster.
	Action finding.Action
}

// Route is that along a path that starts with the present release; empty where there is no hosted cluster. The error
// is about a version.
func (e Estate) Route(path []update.Release) (Route, error) {
	c := e.controlPlane
	if c == nil {
		return Route{}, nil
	}
	var versions []semver.Version
	images := map[string]string{}
	for _, each := range path {
		parsed, err := semver.Parse(each.Version)
		if err != nil {
			return Route{}, fmt.Errorf("version %q: %w", each.Version, err)
		}
		versions, images[parsed.String()] = append(versions, parsed), each.Image
	}
	var made Route
	if c.poolsError != nil {
		made.Missing = append(made.Missing, fmt.Sprintf("the updates of the NodePools: %v", c.poolsError))
	}
	pools, unknown := runningPools(c.pools)
	if len(unknown) > 0 {
		made.Missing = append(made.Missing, "the updates of NodePools that do not report their version: "+words.List(unknown, most))
	}
	for _, each := range hypershift.Order(versions, pools) {
		object := finding.Object{APIVersion: hypershift.GroupVersion().String(), Kind: "HostedCluster", Namespace: c.Cluster.Namespace, Name: c.Cluster.Name}
		if each.Pool != "" {
			object.Kind, object.Name = "NodePool", each.Pool
		}
		made.Steps = append(made.Steps, Step{Object: object, From: each.From.String(), To: each.To.String(), Action: request(object, images[each.To.String()])})
	}
	if skipped := skips(c, versions); skipped != "" {
		made.Notices = append(made.Notices, skipped)
	}
	return made, nil
}

// runningPools are the versions of the oldest nodes of pools, and the pools whose version is unknown.
func runningPools(all []hypershift.NodePool) (pools []hypershift.Running, unknown []string) {
	for i := range all {
		oldest, ok := oldestOf(&all[i])
		if !ok {
			unknown = append(unknown, all[i].Name)
			continue
		}
		pools = append(pools, hypershift.Running{Pool: all[i].Name, Version: oldest})
	}
	return pools, unknown
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

// skips states that HyperShift would accept the request for the last release of a path at once; empty
// where the path has one update, or HyperShift would not.
func skips(c *ControlPlane, path []semver.Version) string {
	if len(path) < 3 {
		return ""
	}
	from, to := path[0], path[len(path)-1]
	if hypershift.Skipped(from, to) == 0 || refuses(c, from, to) != "" {
		return ""
	}
	return fmt.Sprintf("HyperShift accepts the request for %s from %s at once, which leaves out minor versions: request each release in turn", to, from)
}
