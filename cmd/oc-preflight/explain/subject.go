package explain

import "strings"

// subject is the title of the entries of these packages, and of the packages below them.
type subject struct {
	title    string
	packages []string
}

// afterUpdate is the subject of the problems that a cluster has after an update, and did not have before.
const afterUpdate = "After an update"

// subjects are all of them, in the order in which they are listed.
func subjects() []subject {
	return []subject{
		{"Version, channel and update service", []string{"collector/gate/clusterversion", "collector/cvo", "collector/scene", "collector/targets", "collector/update", "collector/updateplan", "collector/risk"}},
		{"Admin acknowledgements", []string{"collector/gate/adminack"}},
		{"Removed APIs", []string{"collector/gate/removedapi"}},
		{"Drains", []string{"collector/health/draining", "collector/health/deadlock", "collector/drain"}},
		{"Operators and gates", []string{"collector/gate", "collector/health/subscription"}},
		{"Nodes and machines", []string{"collector/machine"}},
		{"Monitoring", []string{"collector/monitoring"}},
		{"Hosted clusters", []string{"collector/hosted"}},
		{"API server and webhooks", []string{"collector/serving"}},
		{"Health of the cluster", []string{"collector/health"}},
		{afterUpdate, []string{"collector/baseline", "collector/afterupdate"}},
		{"Accepted risks", []string{"collector/acceptance"}},
		{"Signed verdicts", []string{"collector/verdict"}},
		{"Signature of the release", []string{"signature", "runner/proof", "runner/image/imagepolicy"}},
		{"Images and registries", []string{"runner/image", "runner/registry"}},
		{"Content of the release", []string{"runner/payload", "runner/contents", "runner/definition", "runner/selection", "runner/site"}},
		{"Permissions of checks", []string{"runner/audit", "runner/launch"}},
		{"Jobs of the checks", []string{"runner/jobs", "runner/execution"}},
		{"Conformance of checks", []string{"runner/conformance"}},
		{"The controller", []string{"runner/trigger"}},
		{"Records of runs", []string{"runner", "cmd/oc-preflight/runs"}},
		{"Fleets", []string{"runner/fleet"}},
		{"All checks", []string{"collector"}},
	}
}

// subjectOf is the title of the subject with the longest path to a package; empty for none.
func subjectOf(of string) string {
	title, longest := "", 0
	for _, each := range subjects() {
		for _, path := range each.packages {
			if (of == path || strings.HasPrefix(of, path+"/")) && len(path) > longest {
				title, longest = each.title, len(path)
			}
		}
	}
	return title
}
