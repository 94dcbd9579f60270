package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/imagepolicy"
	"github.com/openshift/update-preflight/runner/registry"
)

const ReasonImagePoliciesUnavailable finding.Reason = "ImagePoliciesUnavailable"

const (
	releasePolicy = "ReleaseImagePolicy"
	imagesPolicy  = "ComponentImagePolicy"
)

// policyNeeds is what holding images against the image policies takes. Where the
// nodes may not be read, all architectures of an image are looked at.
func policyNeeds() access.Needs {
	return access.Needs{
		Required: []access.Request{{Verb: "list", Group: "config.openshift.io", Resource: "clusterimagepolicies"}},
		Optional: []access.Request{{Verb: "list", Resource: "nodes"}},
	}
}

// checkReleasePolicy holds the release image against the cluster's image
// policies, before it is read: nodes will do so before they run it. It tells
// nothing where no policy is about it.
func (s *session) checkReleasePolicy(ctx context.Context) {
	policies, err := imagepolicy.FromCluster(ctx, s.config.Cluster.OpenShift.ConfigV1())
	if err != nil {
		s.tell(releasePolicy, finding.SourceSignature, finding.Unknown(ReasonImagePoliciesUnavailable, "it is not known which images the nodes admit: %v", err).
			Named(releasePolicy).
			Remedy("Run the preflight as a user who may list ClusterImagePolicies."))
		return
	}
	s.policies = policies
	if s.proof == nil || !policies.Covers(s.proof.PullSpec()) {
		return
	}
	s.step("holding %s against the image policies of the cluster", s.proof.PullSpec())
	image := imagepolicy.Image{PullSpec: s.proof.PullSpec(), Architectures: s.architectures(ctx)}
	f := policies.Check(ctx, image, puller{access: s.registries})
	f.Name = releasePolicy
	s.tell(releasePolicy, finding.SourceSignature, f)
}

// architectures are those of the nodes; none, where they cannot be read, means
// all that an image has.
func (s *session) architectures(ctx context.Context) []string {
	nodes, err := s.snapshot.Nodes(ctx)
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
type puller struct {
	access *registry.Access
}

// Pull implements imagepolicy.Puller.
func (p puller) Pull(ctx context.Context, pullSpec string, ask func(context.Context, imagepolicy.Place) error) error {
	_, err := p.access.Try(ctx, pullSpec, func(ctx context.Context, visit registry.Visit) error {
		return ask(ctx, imagepolicy.Place{
			Repository: visit.Reference.Context(), Mirror: visit.Mirror, Auth: visit.Auth, Transport: visit.Transport,
		})
	})
	return err
}

// componentPolicies holds the images of a release against the image policies.
type componentPolicies struct {
	session *session
	covered map[string]string // component to pull spec
}

// componentPolicies are the images of the release that a policy is about.
func (s *session) componentPolicies() (componentPolicies, bool) {
	c := componentPolicies{session: s, covered: map[string]string{}}
	if s.payload == nil {
		return c, false
	}
	for component, pullSpec := range s.payload.Images {
		if s.policies.Covers(pullSpec) {
			c.covered[component] = pullSpec
		}
	}
	return c, len(c.covered) > 0
}

// Collect implements collector.Source: one finding for each reason that there
// is, since a mirror without signatures lacks all of them.
func (c componentPolicies) Collect(ctx context.Context) ([]finding.Finding, error) {
	const parallel = 8
	defer c.session.registries.Close()
	architectures := c.session.architectures(ctx)
	components := slices.Sorted(maps.Keys(c.covered))
	answers := make([]finding.Finding, len(components))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, component := range components {
		group.Go(func() error {
			answers[i] = c.session.policies.Check(ctx, imagepolicy.Image{PullSpec: c.covered[component], Architectures: architectures}, puller{access: c.session.registries})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return groupByReason(components, answers), nil
}

// groupByReason makes one finding of all that say the same.
func groupByReason(components []string, answers []finding.Finding) []finding.Finding {
	const most = 5
	var findings []finding.Finding
	for _, kind := range answers {
		if slices.ContainsFunc(findings, func(f finding.Finding) bool { return same(f, kind) }) {
			continue
		}
		var named []string
		for i, answer := range answers {
			if same(answer, kind) {
				named = append(named, components[i])
			}
		}
		count := len(named)
		if count > most {
			named = append(named[:most], fmt.Sprintf("and %d more", count-most))
		}
		kind.Name = imagesPolicy
		kind.Message = fmt.Sprintf("images of the release: %d (%s); the first one: %s", count, strings.Join(named, ", "), kind.Message)
		findings = append(findings, kind)
	}
	return findings
}

func same(a, b finding.Finding) bool { return a.Outcome == b.Outcome && a.Reason == b.Reason }
