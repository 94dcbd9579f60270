package execution

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/proof"
)

var (
	nameComponentsPolicy = finding.NewName("ComponentImagePolicy",
		"The findings about the image policies that cover component images of the release.")

	nameSitePolicy = finding.NewName("SiteImagePolicy",
		"The findings about the image policies that cover images of the checks of the site.")
)

// componentPolicies is the check of the component images that an image policy
// covers; none where no image is covered.
func (e Execution) componentPolicies() []collector.Source {
	covered, policies := map[string]string{}, e.Contents.Proof.Policies
	if e.Scene.Settings.Estate.HasMachineConfig() { // which gives the policies to the nodes
		policies = e.Contents.Policies()
	}
	for component, pullSpec := range e.Contents.Images() {
		if policies.Covers(pullSpec) {
			covered[component] = pullSpec
		}
	}
	if len(covered) == 0 {
		return nil
	}
	return []collector.Source{{
		Name: nameComponentsPolicy, Kind: finding.SourceSignature,
		Collect: func(ctx context.Context) ([]finding.Finding, error) {
			defer e.Pulling.Release.Close()
			images := imagesToHold{pullSpecs: covered, architectures: e.Scene.Architectures(ctx), puller: proof.Puller(e.Pulling.Release)}
			return groupByReason(images.names(), images.hold(ctx, policies)), nil
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
		group := finding.Reported(gap.Proven("the findings of the images"), result.Outcome, finding.ReportedReason(result.Reason),
			"images of the release: %d (%s); the first one: %s", len(named), words.List(named, most), result.Message).
			Named(nameComponentsPolicy).Remedy("%s",
			result.Remediation).Do(result.Actions...).Documented(result.URL).About(result.Objects...).Observed(result.Evidence)
		groups = append(groups, group)
	}
	return groups
}

// sitePolicies is the check of the images of the site's checks that an image policy
// covers; none where no image is covered. The nodes do not run an image that it rejects, so
// the check of the site is inconclusive. Image policies reach nodes by the machine-config-operator.
func (e Execution) sitePolicies() []collector.Source {
	if !e.Scene.Settings.Estate.HasMachineConfig() {
		return nil
	}
	covered := map[string]string{}
	for _, check := range e.Jobs.Checks() {
		if !check.Site {
			continue
		}
		for _, image := range jobplan.ImagesOf(check.Job) {
			if e.Contents.Proof.Policies.Covers(image) {
				covered[image] = image
			}
		}
	}
	if len(covered) == 0 {
		return nil
	}
	return []collector.Source{{
		Name: nameSitePolicy, Kind: finding.SourceJob,
		Collect: func(ctx context.Context) ([]finding.Finding, error) {
			defer e.Pulling.Release.Close()
			images := imagesToHold{pullSpecs: covered, architectures: e.Scene.Architectures(ctx), puller: proof.Puller(e.Pulling.Release)}
			results := images.hold(ctx, e.Contents.Proof.Policies)
			for i, f := range results {
				if f.Outcome == preflight.Fail {
					f = f.Judged(preflight.Unknown)
				}
				results[i] = f.Named(nameSitePolicy)
			}
			return results, nil
		},
	}}
}

// imagesToHold are component images, by component.
type imagesToHold struct {
	pullSpecs     map[string]string
	architectures []string
	puller        imagepolicy.Puller
}

// names are the components in order.
func (i imagesToHold) names() []string { return slices.Sorted(maps.Keys(i.pullSpecs)) }

// hold returns one finding for each of the names.
func (i imagesToHold) hold(ctx context.Context, policies imagepolicy.Policies) []finding.Finding {
	const parallel = 8
	names := i.names()
	results := make([]finding.Finding, len(names))
	var group errgroup.Group
	group.SetLimit(parallel)
	for n, component := range names {
		group.Go(func() error {
			image := imagepolicy.Image{PullSpec: i.pullSpecs[component], Architectures: i.architectures}
			results[n] = policies.Check(ctx, image, i.puller)
			return nil
		})
	}
	_ = group.Wait() // no function has an error
	return results
}
