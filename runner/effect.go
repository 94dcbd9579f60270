package runner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/runner/site"
)

// Effect is what another value of an option changes.
type Effect string

// The effects.
const (
	// OnAnswer means that a run with another value may find something else. It is part of
	// [Options.Coverage], so a result of the one run is none of the other.
	OnAnswer Effect = "answer"
	// OnJudgement means that the same findings are judged in another way. A process that uses the findings
	// of another run judges them by its own value.
	OnJudgement Effect = "judgement"
	// OnIntent means that the value is compared as a field of record.Intent.
	OnIntent Effect = "intent"
	// OnExecution means that what is found is the same, or inconclusive: the run is only made, kept or
	// shown in another way.
	OnExecution Effect = "execution"
)

// option is what is declared about an option.
type option struct {
	effect Effect
	// cover adds the value to a coverage; nil for an option whose value another one identifies, and
	// for effects other than OnAnswer.
	cover func(*selection.Coverage, Options)
}

// covered declares an option that is part of what a run covers.
func covered(cover func(*selection.Coverage, Options)) option {
	return option{effect: OnAnswer, cover: cover}
}

// identified declares an option that cannot be compared, and that a field of Origin identifies.
func identified() option { return option{effect: OnAnswer} }

// declared are the options by their path in Options. Those that are declared as covered are what a run
// covers.
func declared() map[string]option {
	return map[string]option{
		"Selection.Only":      covered(func(c *selection.Coverage, o Options) { c.Only = names(o.Selection.Only) }),
		"Selection.Skip":      covered(func(c *selection.Coverage, o Options) { c.Skip = names(o.Selection.Skip) }),
		"Selection.NoJobs":    covered(func(c *selection.Coverage, o Options) { c.NoJobs = o.Selection.NoJobs }),
		"Selection.Site":      covered(func(c *selection.Coverage, o Options) { c.Site = site.IDs(o.Selection.Site) }),
		"Selection.Images":    covered(func(c *selection.Coverage, o Options) { c.Images = string(cmp.Or(o.Selection.Images, image.Manifests)) }),
		"Selection.Rehearsal": covered(func(c *selection.Coverage, o Options) { c.Rehearsal = string(o.Selection.Rehearsal) }),

		"Trust.Keyrings":      identified(),
		"Trust.Stores":        identified(),
		"Trust.Repositories":  covered(func(c *selection.Coverage, o Options) { c.Repositories = names(o.Trust.Repositories) }),
		"Origin.Keyrings":     covered(func(c *selection.Coverage, o Options) { c.Keyrings = o.Origin.Keyrings }),
		"Origin.Stores":       covered(func(c *selection.Coverage, o Options) { c.Stores = o.Origin.Stores }),
		"Origin.Monitoring":   covered(func(c *selection.Coverage, o Options) { c.Monitoring = o.Origin.Monitoring }),
		"Origin.Dependencies": covered(func(c *selection.Coverage, o Options) { c.Dependencies = o.Origin.Dependencies }),

		"Judgement.Force":             {effect: OnJudgement},
		"Judgement.ForceReason":       {effect: OnJudgement},
		"Judgement.ForcedBy":          {effect: OnJudgement},
		"Judgement.Accepted":          {effect: OnJudgement},
		"Judgement.Accept":            {effect: OnJudgement},
		"Judgement.IgnoredAlerts":     covered(func(c *selection.Coverage, o Options) { c.IgnoredAlerts = names(o.Judgement.IgnoredAlerts) }),
		"Judgement.IgnoredNamespaces": covered(func(c *selection.Coverage, o Options) { c.IgnoredNamespaces = names(o.Judgement.IgnoredNamespaces) }),
		"Judgement.Fixed":             covered(func(c *selection.Coverage, o Options) { c.Fixed = o.Judgement.Fixed.String() }),
		"Judgement.Dependencies":      identified(),
		"Judgement.Monitoring":        identified(),

		"Estate": covered(func(c *selection.Coverage, o Options) { c.HostedCluster, c.NodePools = o.Estate.Selected() }),

		// What is read is identified by digests, and what cannot be read is inconclusive.
		"Access.Local.AuthFiles": {effect: OnExecution},
		"Access.Local.Transport": {effect: OnExecution},
		"Access.Cache":           {effect: OnExecution},
		// A run of a release that could not be read is not recorded.
		"Access.Partial": {effect: OnExecution},

		// A check that had too little time is inconclusive, and such a result is not used again.
		"Limits.Parallelism": {effect: OnExecution},
		"Limits.Timeout":     {effect: OnExecution},
		"Limits.Keep":        {effect: OnExecution},
		// It excludes the results of earlier runs, whatever they cover.
		"Limits.Rerun": {effect: OnExecution},

		// What is stored beside the record is none of its findings.
		"Baseline":      {effect: OnExecution},
		"Hooks.Sampler": {effect: OnExecution},

		"Hooks.Observer":    {effect: OnExecution},
		"Hooks.OnInterrupt": {effect: OnExecution},
		"Hooks.Logger":      {effect: OnExecution},
		"Hooks.Requester":   {effect: OnExecution},
		"Hooks.ToolVersion": {effect: OnIntent},
	}
}

// Effects are the effects of all options, by their path in Options, such as "Selection.Only".
func Effects() map[string]Effect {
	effects := map[string]Effect{}
	for path, each := range declared() {
		effects[path] = each.effect
	}
	return effects
}

// Asked is what a program that runs preflights with these options asks of a verdict. by names it, such as "the controller".
func (o Options) Asked(by string) selection.Asked {
	return selection.Asked{
		By: by, ToolVersion: o.Hooks.ToolVersion, Covers: o.covers(departure.Present(), ""), Narrowed: selection.Narrowed(o.Selection, o.Judgement),
	}
}

// Coverage is the text by which the record of a run from the present release states what
// the run covers. It is equal for options that select the same.
func (o Options) Coverage() string { return o.covers(departure.Present(), "").String() }

// covers is what a run covers of an update from that release. graph identifies where the risks of a later
// update of a path are read from.
func (o Options) covers(from departure.Departure, graph string) selection.Coverage {
	var made selection.Coverage
	for _, each := range declared() {
		if each.cover != nil {
			each.cover(&made, o)
		}
	}
	for _, each := range from.Path() {
		made.Path = append(made.Path, selection.Release{Version: each.Version, Image: each.Image})
		made.Graph = graph
	}
	return made
}

// Identity identifies values in any order, for an Origin, without stating them: they may have secrets. It is
// empty for none.
func Identity(values ...string) string {
	if len(values) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, value := range names(values) {
		fmt.Fprintf(sum, "%x\n", sha256.Sum256([]byte(value)))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// names are names, sorted, each once.
func names(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }

// GraphIdentity identifies where a graph is read from, by the content of files; empty for the update service
// of the cluster and its channel. Stored copies are of the same services.
func GraphIdentity(source graphsource.Request) string {
	if len(source.Channels)+len(source.Files)+len(source.Services) == 0 && source.Architecture == "" {
		return ""
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q\n", names(source.Channels), names(source.Services), source.Architecture)
	for _, file := range source.Files {
		fmt.Fprintf(sum, "%q %x\n", file.Name, sha256.Sum256(file.Content))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
