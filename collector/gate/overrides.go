package gate

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	ReasonNothingUnmanaged           finding.Reason = "NothingUnmanaged"
	ReasonClusterVersionOverridesSet finding.Reason = "ClusterVersionOverridesSet"
)

// Overrides is the gate that is shut while spec.overrides of ClusterVersion
// makes something unmanaged: an update would leave that behind. It keeps from
// leaving the minor version; up to 4.21 CVO refuses patch updates too. It reads
// the spec, so a status that lags behind does not matter.
func Overrides() check.Check {
	return check.Check{
		Name: "ClusterVersionOverrides", Kind: finding.SourceGate,
		Reads: clusterVersionReads(),
		Run:   onClusterVersion(judgeOverrides),
	}
}

func judgeOverrides(s situation) []finding.Finding {
	var names []string
	objects := clusterVersionObject()
	for _, override := range s.version.Spec.Overrides {
		if !override.Unmanaged {
			continue
		}
		object := preflight.Object{APIVersion: either(override.Group, "v1"), Kind: override.Kind, Namespace: override.Namespace, Name: override.Name}
		objects = append(objects, object)
		names = append(names, object.Kind+" "+strings.TrimPrefix(object.Namespace+"/"+object.Name, "/"))
	}
	if len(names) == 0 {
		return []finding.Finding{finding.Pass(ReasonNothingUnmanaged, "spec.overrides of ClusterVersion leaves everything managed")}
	}
	f := finding.Fail(ReasonClusterVersionOverridesSet,
		"spec.overrides of ClusterVersion makes %s unmanaged (%s), and what is not managed is not updated", count(len(names), "object"), few(names)).
		Remedy("Have them managed again; CVO then overwrites what was changed by hand: oc patch clusterversion version --type json --patch '[{\"op\":\"remove\",\"path\":\"/spec/overrides\"}]'. Accepting risks does not get past it, only --force does.").
		About(objects...)
	switch {
	case s.move.LeavesMinor():
		f.Message += fmt.Sprintf("; that blocks updates that leave %s", s.minor())
	case s.move.Kind() == update.Patch && cvo.OverridesBlockPatches(s.move.From.String()):
		f.Message += fmt.Sprintf("; up to 4.21 CVO refuses updates within %s for that too", s.minor())
	default:
		f.Outcome = preflight.Warn
		f.Message += fmt.Sprintf("; that does not block updates within %s, such as %s", s.minor(), s.target())
	}
	return []finding.Finding{f}
}

// few lists the first names, and how many there are besides.
func few(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// count says how many of a thing there are.
func count(number int, thing string) string {
	if number == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", number, thing)
}
