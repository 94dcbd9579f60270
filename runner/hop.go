package runner

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/graph"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// reasonEdgeUnknown is reported for a later update of a path that the update graph does
// not have, so that its risks are unknown.
//
// Cause: the update was removed from the graph, the graph could not be read, or it is of
// other channels.
//
// Remedy: run or attach with the channels or graphs that have the update, or plan the path
// again: `oc preflight plan`.
const reasonEdgeUnknown finding.Reason = "UpdateNotInGraph"

// hop is a later update of a path.
type hop struct {
	// releases are those of the path before the target, that of the cluster first; at
	// least two.
	releases []update.Release
	target   update.Release
	// gates are the admin gates of the last release before the target; nil if unknown.
	gates map[string]string
	// risks are those of the update; known is false if the graph does not have it, for
	// that cause.
	risks []graph.Risk
	known bool
	cause string
}

// before is the release that the update starts from.
func (h *hop) before() update.Release { return h.releases[len(h.releases)-1] }

// versions are those before the target.
func (h *hop) versions() []string {
	versions := make([]string, 0, len(h.releases))
	for _, each := range h.releases {
		versions = append(versions, each.Version)
	}
	return versions
}

// path is the versions of the path up to the target; nil for an update from the present
// release.
func (h *hop) path(target string) []string {
	if h == nil {
		return nil
	}
	return append(h.versions(), target)
}

// annotate adds to each failure of a later update, and to what its checks could not
// determine, from which release it was judged: the update before may change that.
func (h *hop) annotate(present string, findings []finding.Finding) {
	if h == nil {
		return
	}
	for i, f := range findings {
		if dependsOnPresent(f) {
			findings[i].Message = noted(f.Message, fmt.Sprintf("Judged from %s, which the cluster runs; the update to %s may change this.", present, h.before().Version))
		}
	}
}

// dependsOnPresent reports whether a failure, or that a Job was inconclusive, is due to the
// present cluster, and not to the releases or acknowledgements, which are the same before
// the update.
func dependsOnPresent(f finding.Finding) bool {
	inReleases := strings.HasPrefix(f.Name, adminack.Name) || f.Name == clusterversion.NameGiantHop
	isJob := f.Source == finding.SourceJob
	if isJob && f.Job != nil && f.Inconclusive() {
		return true
	}
	return fails(f) && (isJob || f.Source == finding.SourceGate && !inReleases)
}

// whyLater is why a check cannot be evaluated in advance.
func (h *hop) whyLater(c check.Check) string {
	switch {
	case c.Kind == finding.SourceHealth:
		return "the state of the cluster before the update counts"
	case c.Name == risk.NameAlerts:
		return "alerts that fire before the update count"
	}
	return fmt.Sprintf("it reads what ClusterVersion and the operators report at %s", h.before().Version)
}

func (h *hop) edgeUnknown(name string) finding.Finding {
	return finding.Unknown(reasonEdgeUnknown, "the risks of the update from %s to %s are unknown: %s", h.before().Version, h.target.Version, h.cause).
		Remedy("Name the channels or graphs that have this update, or plan the path again. To continue with this update, read its known issues, and accept the risk.").
		Do(finding.Retry(finding.OptionGraph), finding.Accept(name))
}

// fails reports whether a finding is a failure.
func fails(f finding.Finding) bool { return f.Outcome == preflight.Fail }
