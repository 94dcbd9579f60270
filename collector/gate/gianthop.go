package gate

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const ReasonOneHop finding.Reason = "OneHop"

// GiantHop is CVO's precondition against more than one minor version at a time.
// Of the major versions only 5.0 can be reached, from 4.y. A CVO that does not
// have the precondition yet does not make such an update a good one: the rule is
// that of the Kubernetes API server.
func GiantHop() check.Check {
	return check.Check{
		Name: "ClusterVersionGiantHop", Kind: finding.SourceGate,
		Reads: clusterVersionReads(),
		Run:   onClusterVersion(fresh(judgeGiantHop)),
	}
}

func judgeGiantHop(s situation) []finding.Finding {
	if objection := cvo.GiantHop(s.version, s.target()); objection != nil {
		f := refused(objection, s.hops())
		f.Message += " What stands in the way of the later hops shows only when they are next: admin acks, Upgradeable, removed APIs, kubelet versions and operator versions have to be looked at hop by hop."
		if objection.Weight == cvo.Uncertain {
			f.Outcome = preflight.Fail
			f.Message += " Some releases of the CVO of this minor version do not check that by themselves yet."
		}
		return []finding.Finding{f}
	}
	return []finding.Finding{finding.Pass(ReasonOneHop, "from %s to %s is one hop", s.move.From, s.move.To)}
}

// hops says how to get to the target one minor version at a time.
func (s situation) hops() string {
	const most = 10
	from, to := s.move.From, s.move.To
	text := "Go by way of the minor versions between, and run the preflight before each hop: oc preflight targets. "
	if to.Major == from.Major && to.Minor-from.Minor <= most {
		var minors []string
		for minor := from.Minor + 1; minor <= to.Minor; minor++ {
			minors = append(minors, fmt.Sprintf("%d.%d", to.Major, minor))
		}
		text = fmt.Sprintf("Update to %s, one after the other, and run the preflight before each: oc preflight targets. ", strings.Join(minors, ", then "))
	}
	return text + "Only --force gets past it, and such an update is neither tested nor supported."
}
