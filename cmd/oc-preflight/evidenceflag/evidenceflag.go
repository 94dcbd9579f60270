// Package evidenceflag answers: which statements about updates of other clusters are chosen on the command line?
//
// [Flags] are those of a command that judges clusters; [Source] and [FailAt] add one of them to another command.
package evidenceflag

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/evidence"
	"github.com/openshift/update-preflight/runner/fleet/evidencesource"
	"github.com/openshift/update-preflight/runner/fleet/hub"
)

// Flags are the flags about what other clusters state about an update.
type Flags struct {
	source, failAt string
	keys, like     []string
}

// Source adds --evidence to a command; where is what a source may be.
func Source(c *cobra.Command, source *string, where string) {
	c.Flags().StringVar(source, "evidence", "", "Source of what clusters state about their updates after them: "+where+".")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswerByContent}, "evidence")
}

// FailAt adds --evidence-fail to a command.
func FailAt(c *cobra.Command, threshold *string, of string) {
	c.Flags().StringVar(threshold, "evidence-fail", "", "N/M: block where at least N "+of+", and that share of them, regressed by the same finding. Default: regressions only warn.")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer}, "evidence-fail")
}

// Add adds the flags to a command that judges; where is what a source may be.
func (f *Flags) Add(c *cobra.Command, where string) {
	Source(c, &f.source, where)
	FailAt(c, &f.failAt, "clusters like this one")
	c.Flags().StringArrayVar(&f.keys, "evidence-key", nil, "File ID.pub with the public key of the cluster with that ID, or directory of them. With it, a statement counts only if the key of its cluster signed it. May be repeated.")
	c.Flags().StringSliceVar(&f.like, "evidence-like", nil, "What clusters have in common that are like this one: "+fields(evidence.Fields())+". Default: "+fields(evidence.DefaultLike())+".")
	option.Declare(c.Flags(), option.Option{Group: option.Judgement, Effect: option.OnAnswer}, "evidence-like")
	option.Declare(c.Flags(), option.Option{Group: option.Trust, Effect: option.OnAnswerByContent}, "evidence-key")
}

func fields(all []evidence.Field) string {
	names := make([]string, 0, len(all))
	for _, each := range all {
		names = append(names, string(each))
	}
	return strings.Join(names, ", ")
}

// settings are those of the flags.
func (f *Flags) settings() (evidence.Settings, error) {
	var made evidence.Settings
	var err error
	if len(f.like) > 0 {
		if made.Like, err = evidence.ParseFields(f.like); err != nil {
			return made, fmt.Errorf("--evidence-like: %w", err)
		}
	}
	made.Now = time.Now()
	made.FailAt, err = Threshold(f.failAt)
	return made, err
}

// Threshold reads a value of --evidence-fail; the zero value for an empty one.
func Threshold(text string) (evidence.Threshold, error) {
	if text == "" {
		return evidence.Threshold{}, nil
	}
	made, err := evidence.ParseThreshold(text)
	if err != nil {
		return made, fmt.Errorf("--evidence-fail: %w", err)
	}
	return made, nil
}

// Set reads the statements for the judgement of one cluster, which has the ConfigMap of a source; nil without a source.
func (f *Flags) Set(ctx context.Context, client *cli.Client, reached *cluster.Cluster) (*evidence.Set, error) {
	source, err := f.parse()
	if err != nil || source == (evidencesource.Source{}) {
		return nil, err
	}
	if source.OnHub() {
		return nil, exitcode.BadUsage(errors.New("--evidence hub: the hub is another cluster than the one that is judged; ask it with \"fleet evidence --evidence hub\""))
	}
	return f.read(ctx, client, source, reached)
}

// SetOfFleet reads the statements for the judgement of many clusters; nil without a source. The cluster of the connection
// has the ConfigMap of a source, or is the hub.
func (f *Flags) SetOfFleet(ctx context.Context, client *cli.Client) (*evidence.Set, error) {
	source, err := f.parse()
	if err != nil || source == (evidencesource.Source{}) {
		return nil, err
	}
	if !source.OnCluster() {
		return f.read(ctx, client, source, nil)
	}
	reached, err := client.Connect()
	if err != nil {
		return nil, err
	}
	made, err := f.read(ctx, client, source, reached)
	if _, missing := errors.AsType[*access.MissingError](err); missing {
		roles := "auth fleet-evidence" // not those of the command, which are for each cluster that is judged
		if !source.OnHub() {
			roles += " --evidence " + f.source
		}
		return nil, fmt.Errorf("--evidence %s: have an administrator of the current cluster apply the roles that %q prints: %v", f.source, roles, err) //nolint:errorlint // as a missing permission, it would get the roles of the command
	}
	return made, err
}

// CheckKept refuses a source for results that are kept for a later call: the statements of a cluster may change until
// then, while the content of a directory is part of the question.
func (f *Flags) CheckKept() error {
	source, err := f.parse()
	if err == nil && source.OnCluster() {
		return exitcode.BadUsage(fmt.Errorf("--evidence %s: with --results, the source is a directory, whose content is compared", f.source))
	}
	return err
}

// parse reads the source; the zero value for none.
func (f *Flags) parse() (evidencesource.Source, error) {
	if f.source == "" {
		return evidencesource.Source{}, nil
	}
	source, err := evidencesource.Parse(f.source)
	if err != nil {
		return source, exitcode.BadUsage(fmt.Errorf("--evidence: %w", err))
	}
	return source, nil
}

// read reads a source; a directory needs no cluster.
func (f *Flags) read(ctx context.Context, client *cli.Client, source evidencesource.Source, reached *cluster.Cluster) (*evidence.Set, error) {
	settings, err := f.settings()
	if err != nil {
		return nil, exitcode.BadUsage(err)
	}
	keys, err := f.readKeys(ctx)
	if err != nil {
		return nil, exitcode.BadUsage(err)
	}
	if source.OnCluster() {
		if err := client.Review(ctx, reached, source.Needs(hub.Query{})); err != nil {
			return nil, err
		}
	}
	items, err := source.Read(ctx, reached, hub.Query{})
	if err != nil {
		return nil, fmt.Errorf("--evidence: %w", err)
	}
	return &evidence.Set{Known: evidence.Collect(items, keys), Settings: settings}, nil
}

func (f *Flags) readKeys(ctx context.Context) (evidence.Keys, error) {
	if len(f.keys) == 0 {
		return nil, nil
	}
	keys, err := hub.ReadKeys(ctx, f.keys...)
	if err != nil {
		return nil, fmt.Errorf("--evidence-key: %w", err)
	}
	return keys.OfStatements(), nil
}
