package clusterversion

import (
	"context"
	"fmt"
	"strings"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/update"
)

// The name of the finding about the span of an update, and its reasons.
var (
	NameGiantHop = finding.NewName("ClusterVersionGiantHop",
		"CVO's precondition ClusterVersionGiantHop: an update spans at most one minor version, and of the major "+
			"versions only 5.0 can be reached, from 4.y. The finding has CVO's own reason. It concerns every update. "+
			"The rule is that of the Kubernetes API server, so it is applied where the CVO of the cluster does not "+
			"have the precondition yet.")

	reasonOneHop = finding.NewReason("OneHop", finding.Explanation{
		Meaning: "Reported when the update does not skip a minor version.",
		Cause:   "The target is in the same or the next minor version.",
	})
	reasonNotNewer = finding.NewReason("NotNewer", finding.Explanation{
		Meaning: "Reported for an update of a path whose target is not newer than the release before it.",
		Cause:   "The updates are not in order.",
		Remedy:  "Name the releases in ascending order.",
	})
)

// GiantHop is the check ClusterVersionGiantHop.
func GiantHop() check.Check {
	return check.Check{
		Name: NameGiantHop, Kind: finding.SourceGate, NotHosted: "HostedClusterVersion compares the versions",
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(current(judgeGiantHop)),
	}
}

func judgeGiantHop(s situation) []finding.Finding {
	found := cvo.GiantHop(s.version, s.target())
	if found == nil {
		return []finding.Finding{finding.Pass(s.read, reasonOneHop, "from %s to %s is one hop", s.update.From, s.update.To)}
	}
	violation := *found
	notes := []string{"What blocks the later hops is reported only before each of them: admin acks, Upgradeable, removed APIs, kubelet versions and operator versions have to be checked hop by hop."}
	if violation.Weight == cvo.Uncertain {
		violation.Weight = cvo.Blocking
		notes = append(notes, "Some releases of the CVO of this minor version do not check this yet.")
	}
	return []finding.Finding{violated(violation, notes...).
		Remedy("%s A forced update over several minor versions is neither tested nor supported.", hopsTo(s)).
		Do(finding.Targets())}
}

// hopsTo is the way to the target, one minor version at a time.
func hopsTo(s situation) string {
	const most = 10
	from, to := s.update.From, s.update.To
	if to.Major != from.Major || to.Minor-from.Minor > most {
		return "Update through the minor versions between, and run the preflight before each hop."
	}
	var minors []string
	for minor := from.Minor + 1; minor <= to.Minor; minor++ {
		minors = append(minors, fmt.Sprintf("%d.%d", to.Major, minor))
	}
	return fmt.Sprintf("Update to %s, and run the preflight before each hop.", strings.Join(minors, ", then "))
}

// LaterGiantHop is [GiantHop] by the rules of the CVO of the release before the update, and
// rejects an update to a release that is not newer.
func LaterGiantHop() check.Check {
	later := GiantHop()
	later.Reads = nil
	later.Run = func(_ context.Context, s check.Subject) ([]finding.Finding, error) {
		return []finding.Finding{judgeLaterHop(s.Update)}, nil
	}
	return later
}

func judgeLaterHop(u update.Update) finding.Finding {
	if !u.To.GT(u.From) {
		return finding.Fail(reasonNotNewer, "the path leads from %s to %s, which is not newer", u.From, u.To)
	}
	before := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Version: u.From.String()}}}
	found := cvo.GiantHop(before, u.To.String())
	if found == nil {
		return finding.Pass(gap.Proven("the versions of the two releases"), reasonOneHop, "from %s to %s is one hop", u.From, u.To)
	}
	found.Weight = cvo.Blocking
	return violated(*found).Remedy("%s", hopsTo(situation{update: u}))
}
