package running

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/proof"
)

// Source are the flags that select a release, and how it is read.
type Source struct {
	Target flagset.Target
	Trust  flagset.Trust
	Pull   flagset.Pull
	Site   flagset.Site
	Images string
}

// Add adds the flags of a command that reads one release, and runs none of its checks.
func (f *Source) Add(c *cobra.Command) {
	f.Target.Add(c)
	f.Trust.Add(c)
	f.Pull.Add(c)
	f.Site.Add(c)
}

// AddImages adds --images to the command.
func (f *Source) AddImages(c *cobra.Command) {
	c.Flags().StringVar(&f.Images, "images", string(image.Manifests), "How to check the images: check requests their manifests from where nodes would pull them, check-blobs also their layers; pull has each node pull the images of the checks, pull-all all images; with off, Images is Unknown unless accepted.")
	option.Declare(c.Flags(), option.Option{Group: option.Jobs, Effect: option.OnAnswer}, "images")
	var modes []string
	for _, mode := range image.Modes() {
		modes = append(modes, string(mode))
	}
	completion.Fixed(c, "images", modes...)
}

// Options validates the flags, reads their files and those of the judgement, and returns the options of a run on the
// cluster.
func (f *Source) Options(ctx context.Context, client *cli.Client, reached *cluster.Cluster, judge flagset.Judge) (runner.Options, error) {
	if err := f.Target.Validate(); err != nil {
		return runner.Options{}, exitcode.BadUsage(err)
	}
	keyrings, stores, err := f.Trust.Read(ctx)
	if err != nil {
		return runner.Options{}, err
	}
	kept, err := f.Pull.Cache(client)
	if err != nil {
		return runner.Options{}, err
	}
	options, err := judge.Options(ctx, client, reached)
	if err != nil {
		return runner.Options{}, err
	}
	f.Trust.Identify(&options.Origin)
	options.Trust = proof.Trust{Keyrings: keyrings, Stores: stores, Repositories: f.Trust.Repositories}
	if f.Target.Force {
		options.Judgement.Force, options.Judgement.ForceReason, options.Judgement.ForcedBy = true, f.Target.ForceReason, access.User(ctx, reached.Kubernetes)
	}
	options.Access.Local, options.Access.Cache = flagset.Local(), kept
	options.Selection.Images = image.Mode(f.Images)
	if options.Selection.Site, err = f.Site.Sources(); err != nil {
		return runner.Options{}, exitcode.BadUsage(err)
	}
	return options, nil
}
