package runner

import (
	"context"
	"slices"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// nameComponentsPolicy names the findings about the image policies that cover
// component images of the release.
const nameComponentsPolicy = "ComponentImagePolicy"

// componentPolicies is the check of the component images that an image policy
// covers; none where no image is covered.
func (m manifests) componentPolicies() []collector.Source {
	covered := map[string]string{}
	for component, pullSpec := range m.contents.images() {
		if m.policies.Covers(pullSpec) {
			covered[component] = pullSpec
		}
	}
	if len(covered) == 0 {
		return nil
	}
	return []collector.Source{{
		Name: nameComponentsPolicy, Kind: finding.SourceSignature,
		Collect: func(ctx context.Context) ([]finding.Finding, error) {
			defer m.registries.Close()
			images := imagesToHold{pullSpecs: covered, architectures: m.architectures(ctx), puller: puller{access: m.registries}}
			return groupByReason(images.names(), images.hold(ctx, m.policies)), nil
		},
	}}
}

// groupByReason makes one finding of all with the same outcome and reason, since a mirror
// without signatures lacks all of them.
func groupByReason(components []string, results []finding.Finding) []finding.Finding {
	const most = 5
	var groups []finding.Finding
	for _, result := range results {
		same := func(f finding.Finding) bool { return f.Outcome == result.Outcome && f.Reason == result.Reason }
		if slices.ContainsFunc(groups, same) {
			continue
		}
		var named []string
		for i := range results {
			if same(results[i]) {
				named = append(named, components[i])
			}
		}
		group := finding.New(result.Outcome, finding.Reason(result.Reason), "images of the release: %d (%s); the first one: %s", len(named), words.List(named, most), result.Message).
			Named(nameComponentsPolicy).Remedy("%s", result.Remediation).Do(result.Actions...).Documented(result.URL).About(result.Objects...).Observed(result.Evidence)
		groups = append(groups, group)
	}
	return groups
}
