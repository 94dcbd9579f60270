// Package builtin answers: which checks does the preflight itself have?
//
// [Checks] lists all checks that need nothing from a release. Each folder of checks has its own list; add a new
// folder here.
package builtin

import (
	"slices"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/machine"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/serving"
)

// Checks are the built-in checks of an update from the release that the cluster runs.
func Checks(judgement scene.Judgement) []check.Check {
	return slices.Concat(gate.Checks(judgement.Fixed), risk.Checks(judgement.Monitoring, ignored(judgement)),
		health.Checks(judgement.Dependencies),
		machine.Checks(), serving.Checks())
}

// ManagementChecks returns the checks of the management cluster of a hosted cluster; none for another cluster.
func ManagementChecks(estate hosted.Estate, judgement scene.Judgement) []check.Check {
	return estate.Checks(func(c *hosted.ControlPlane) check.Check { return risk.ControlPlaneAlerts(c, ignored(judgement)) })
}

func ignored(judgement scene.Judgement) risk.Options {
	return risk.Options{IgnoredAlerts: judgement.IgnoredAlerts, IgnoredNamespaces: judgement.IgnoredNamespaces}
}

// Needs are the permissions that the checks declare. None is required: a check without its permission is Unknown.
func Needs() access.Needs {
	return check.Reads(Checks(scene.Judgement{}), []check.Check{adminack.Ahead(nil)})
}
