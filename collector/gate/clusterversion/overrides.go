package clusterversion

import (
	"cmp"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

var (
	nameClusterVersionOverrides = finding.NewName("ClusterVersionOverrides",
		"The gate that is closed while spec.overrides of ClusterVersion makes objects unmanaged (CVO "+
			"pkg/risk/overrides): an update does not include them. It blocks updates to another minor or major "+
			"version, and up to 4.21 also patch updates; otherwise it warns. It reads only the spec, so it does not "+
			"depend on a current status.")

	reasonClusterVersionOverridesSet = finding.NewReason("ClusterVersionOverridesSet", finding.Explanation{
		Meaning: "Reported when spec.overrides of ClusterVersion makes objects unmanaged, so that an update does not include them.",
		Cause:   "An administrator set the overrides.",
		Remedy: "Remove the overrides; CVO then reverts changes of these objects: `oc patch clusterversion version --type " +
			"json --patch '[{\"op\":\"remove\",\"path\":\"/spec/overrides\"}]'`.",
	})
	reasonNothingUnmanaged = finding.NewReason("NothingUnmanaged", finding.Explanation{
		Meaning: "Reported when CVO manages all objects of the release.",
		Cause:   "spec.overrides of ClusterVersion makes nothing unmanaged.",
	})
)

// maxOverrides bounds the objects that a message names.
const maxOverrides = 10

// Overrides is the check ClusterVersionOverrides.
func Overrides() check.Check {
	return check.Check{
		Name: nameClusterVersionOverrides, Kind: finding.SourceGate,
		Reads: check.ReadsClusterVersion(),
		Run:   onClusterVersion(judgeOverrides),
	}
}

func judgeOverrides(s situation) []finding.Finding {
	var names []string
	objects := []finding.Object{check.ClusterVersionObject()}
	for _, override := range s.version.Spec.Overrides {
		if !override.Unmanaged {
			continue
		}
		object := finding.Object{APIVersion: cmp.Or(override.Group, "v1"), Kind: override.Kind, Namespace: override.Namespace, Name: override.Name}
		names, objects = append(names, check.Describe(object)), append(objects, object)
	}
	if len(names) == 0 {
		return []finding.Finding{finding.Pass(s.read, reasonNothingUnmanaged, "spec.overrides of ClusterVersion makes nothing unmanaged")}
	}
	outcome, effect := s.overridesBlock()
	return []finding.Finding{finding.New(outcome, reasonClusterVersionOverridesSet,
		"spec.overrides of ClusterVersion makes %s unmanaged (%s), so an update does not include them; this %s", words.Count(len(names), "object"), words.List(names, maxOverrides), effect).
		Remedy("Remove the overrides. CVO then reverts changes of these objects.").
		Do(finding.Change(`oc patch clusterversion version --type json --patch [{"op":"remove","path":"/spec/overrides"}]`)).
		About(objects...)}
}

// overridesBlock is the effect of overrides on the update.
func (s situation) overridesBlock() (preflight.Outcome, string) {
	switch {
	case s.update.LeavesMinor():
		return preflight.Fail, "blocks updates that leave " + s.minor()
	case s.update.Kind() == update.Patch && cvo.OverridesBlockPatches(s.update.From.String()):
		return preflight.Fail, "also blocks updates within " + s.minor() + ", since CVO refuses them up to 4.21"
	}
	return preflight.Warn, "does not block updates within " + s.minor() + ", such as " + s.target()
}
