// Package contents answers: what does this release contain, as far as it may be read?
//
// [Reader.Read] reads the manifests of a release whose signature was verified, and those of
// the administrator's own checks.
package contents

import (
	"slices"

	"k8s.io/client-go/dynamic"
	kyaml "sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/image/imagepolicy"
	"github.com/openshift/update-preflight/runner/imagestream"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/proof"
)

// Contents are what a release contains. Those of a release that may not or cannot be read
// are empty.
type Contents struct {
	Proof proof.Proof
	// Sources are the findings about the contents, and those of the proof.
	Sources []collector.Source
	// Unread is true for a release that may be read, and could not be, or whose image is unknown.
	Unread bool
	// release is nil where it is not read.
	release *payload.Release
	// site has the checks of the site; nil for none.
	site *payload.Release
}

// Readable reports whether the release was read.
func (c Contents) Readable() bool { return c.release != nil }

// Version is the version of the release; empty where it is not read.
func (c Contents) Version() string {
	if c.release == nil {
		return ""
	}
	return c.release.Version
}

// Child is the digest of the image for the architecture of the cluster, where the release is an
// index; empty otherwise.
func (c Contents) Child() string {
	if c.release == nil {
		return ""
	}
	return c.release.Child
}

// Images maps the name of a component to its pull spec.
func (c Contents) Images() map[string]string {
	if c.release == nil {
		return nil
	}
	return c.release.Images
}

// Manifests are those of the release for the cluster; nil where they were not read.
func (c Contents) Manifests() []payload.Definition {
	if c.release == nil {
		return nil
	}
	return c.release.Manifests
}

// Policies are the image policies that the images of the release must satisfy: those of the cluster, and those that
// the release brings.
func (c Contents) Policies() imagepolicy.Policies {
	if c.release == nil {
		return c.Proof.Policies
	}
	var brought []imagepolicy.Brought
	for _, each := range c.release.ImagePolicies {
		policy := imagepolicy.Brought{Removed: each.Deleted}
		if err := each.Into(&policy.ClusterImagePolicy); err != nil {
			policy.Cause = err.Error()
			// What it covers is the scopes that could be read, or else all.
			_ = kyaml.Unmarshal(each.Manifest, &policy.ClusterImagePolicy)
		}
		policy.Name = each.Name
		brought = append(brought, policy)
	}
	return c.Proof.Policies.Before(brought)
}

// AdminGates are the gates of the release by key; nil if they are unknown.
func (c Contents) AdminGates() map[string]string {
	if c.release == nil {
		return nil
	}
	exceeded := func(f finding.Finding) bool { return f.Reason == payload.ReasonTooManyAdminGates.String() }
	if c.release.AdminGates == nil && !slices.ContainsFunc(c.release.Problems, exceeded) {
		return map[string]string{}
	}
	return c.release.AdminGates
}

// Draft returns the checks of the release and of the site for a cluster at the version
// from. Some of them may be for the management cluster of its estate.
func (c Contents) Draft(from string, estate hosted.Estate) jobplan.Draft {
	draft := func(release *payload.Release) jobplan.Draft {
		return jobplan.NewHosted(from, release, estate.Namespace())
	}
	drafted := jobplan.Draft{}
	if c.release != nil {
		drafted = draft(c.release)
	}
	if c.site != nil {
		drafted = drafted.WithSite(draft(c.site))
	}
	return drafted
}

// WithoutJobs are the contents without the manifests of the Jobs: there can be thousands,
// and the draft has them.
func (c Contents) WithoutJobs() Contents {
	c.site = nil
	if c.release != nil {
		release := *c.release
		release.Jobs, release.Supporting = nil, nil
		c.release = &release
	}
	return c
}

// Foresee returns the built-in checks that compare the release with the cluster, and those
// of their permissions that depend on the release.
func (c Contents) Foresee(client dynamic.Interface) ([]check.Check, access.Needs) {
	if c.release == nil {
		return nil, access.Needs{}
	}
	checks := []check.Check{adminack.Ahead(c.release.AdminGates)}
	if len(c.release.Definitions) > 0 {
		checks = append([]check.Check{definition.Check(client, c.release.Definitions)}, checks...)
	}
	needs := definition.ListNeeds(c.release.Definitions)
	if len(c.release.ImageStreams) > 0 {
		streams := imagestream.Check(client, c.release.ImageStreams)
		checks, needs = append(checks, streams), needs.And(check.Reads([]check.Check{streams}))
	}
	return checks, needs
}
