package runner

import (
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/imagepolicy"
	"github.com/openshift/update-preflight/runner/registry"
)

const (
	// nameReleasePolicy names the findings about the image policies that cover the
	// release image.
	nameReleasePolicy = "ReleaseImagePolicy"
	// nameComponentsPolicy names the findings about the image policies that cover
	// component images of the release.
	nameComponentsPolicy = "ComponentImagePolicy"
)

// reasonImagePoliciesUnavailable is reported when the image policies of the
// cluster could not be read.
//
// Cause: the permission to list ClusterImagePolicies is missing.
//
// Remedy: bind the roles that "auth run" prints.
const reasonImagePoliciesUnavailable finding.Reason = "ImagePoliciesUnavailable"

// policyNeeds are the permissions to hold images against the image policies.
// Where the nodes may not be read, all architectures of an image are inspected.
func policyNeeds() access.Needs {
	return access.Needs{
		Required: []access.Request{{Verb: "list", Group: "config.openshift.io", Resource: "clusterimagepolicies"}},
		Optional: []access.Request{{Verb: "list", Resource: "nodes"}},
	}
}

// holdAgainstPolicies holds the release image against the image policies of the
// cluster before it is read: nodes do so before they run it. It adds no result
// where no policy covers the image.
func (v verified) holdAgainstPolicies(ctx context.Context) verified {
	policies, err := imagepolicy.FromCluster(ctx, v.cluster.OpenShift.ConfigV1())
	if err != nil {
		v.sources = append(v.sources, collector.Known(nameReleasePolicy, finding.SourceSignature,
			finding.Unknown(reasonImagePoliciesUnavailable, "unknown which images the nodes admit: %v", err).Named(nameReleasePolicy).
				Remedy("Run the preflight as a user with permission to list ClusterImagePolicies.").Do(finding.Roles())))
		return v
	}
	v.policies = policies
	trusted, ok := v.proof.(trusted)
	if !ok || !policies.Covers(trusted.release.PullSpec()) {
		return v
	}
	v.progress.step("checking %s against the image policies of the cluster", trusted.release.PullSpec())
	image := imagepolicy.Image{PullSpec: trusted.release.PullSpec(), Architectures: v.architectures(ctx)}
	result := policies.Check(ctx, image, puller{access: v.registries}).Named(nameReleasePolicy)
	v.sources = append(v.sources, collector.Known(nameReleasePolicy, finding.SourceSignature, result))
	return v
}

// architectures are those of the nodes; none, where they cannot be read, means
// all that an image has.
func (v view) architectures(ctx context.Context) []string {
	nodes, err := v.snapshot.Nodes(ctx)
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for i := range nodes {
		found[nodes[i].Status.NodeInfo.Architecture] = true
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// puller pulls as the nodes do.
type puller struct{ access *registry.Access }

// Pull implements imagepolicy.Puller.
func (p puller) Pull(ctx context.Context, pullSpec string, ask func(context.Context, imagepolicy.Place) error) error {
	_, err := p.access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		return ask(ctx, imagepolicy.Place{
			Repository: visit.Reference.Context(), Mirror: visit.Mirror, Auth: visit.Auth, Transport: visit.Transport,
		})
	})
	return err
}

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

// imagesToHold are component images, by component.
type imagesToHold struct {
	pullSpecs     map[string]string
	architectures []string
	puller        puller
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
