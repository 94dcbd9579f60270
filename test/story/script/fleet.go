package script

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/story"
	"github.com/openshift/update-preflight/test/story/terminal"
)

// Fleet is the story of a fleet, on a terminal that has its kubeconfig.
type Fleet struct {
	*terminal.Terminal

	fleet story.Fleet
}

// OpenFleet starts the clusters of the fleet, prepares the story on them, and makes the terminal that of the
// fleet. What it returns besides stops what runs, also after an error.
func OpenFleet(ctx context.Context, t *terminal.Terminal) (opened *Fleet, stop func(context.Context) error, err error) {
	t.Step("starting five Kubernetes clusters with simulated nodes, and a Prometheus as their monitoring")
	fleet, stop, err := story.StartFleet(ctx, t.Directory, t.Step)
	if err != nil {
		return nil, stop, err
	}
	if err := story.PrepareFleet(ctx, &fleet, t.Directory, t.Step); err != nil {
		return nil, stop, err
	}
	kubeconfig, err := fleet.Kubeconfig(t.Directory)
	t.Cluster = &cluster.Cluster{Dir: t.Directory, Kubeconfig: kubeconfig}
	return &Fleet{t, fleet}, stop, err
}

// Update shows the table of five clusters of which none is ready, the remedies of its causes, the table
// after them, and how the regression of one cluster of the first wave closes the gate to the second, and blocks its clusters.
func (f *Fleet) Update(ctx context.Context) error {
	for _, part := range []func(context.Context) error{f.survey, f.follow, f.check, f.wave, f.judge, f.gate} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	f.Show("\n")
	f.Step("done: one table with four causes and a cluster that does not answer, Ready after the remedies, and a regression in the " +
		"first wave that closes the gate to the second")
	return nil
}

// command is a command about clusters of the fleet.
func command(verb, contexts string, more ...string) []string {
	return append([]string{"oc-preflight", "fleet", verb, "--contexts", contexts, "--to", story.To}, more...)
}

func (f *Fleet) survey(ctx context.Context) error {
	if err := f.fleet.Clusters[story.FleetAway].Crash(ctx, "kube-apiserver"); err != nil {
		return err
	}
	f.Title("Which of the five clusters may be updated, and what keeps the others from it?")
	return f.Run(ctx, exit.Blocked, command("targets", "edge-*")...)
}

func (f *Fleet) follow(ctx context.Context) error {
	f.Title("The administrator follows the remedies of the table, one command for each cause")
	for _, remedy := range story.FleetRemedies() {
		f.Show("# " + remedy.Why + "\n")
		if err := f.Run(ctx, exit.Ready, remedy.Command...); err != nil {
			return err
		}
	}
	f.Step("starting the API server of " + story.FleetAway + ", and marking the change in " + story.FleetOverrides +
		" as processed, in place of CVO")
	if err := openshift.Observe(ctx, f.fleet.Clusters[story.FleetOverrides].Config); err != nil {
		return err
	}
	return f.fleet.Clusters[story.FleetAway].Revive(ctx, "kube-apiserver")
}

func (f *Fleet) check(ctx context.Context) error {
	f.Title("The checks of the release run in all clusters, and the risk of " + story.FleetRisk + " is accepted for the fleet")
	return f.Run(ctx, exit.Ready, command("run", "edge-*", "--accept", story.Risk)...)
}

// firstWave are the clusters that are updated first.
func firstWave() []string { return []string{story.FleetAck, story.FleetOverrides} }

func (f *Fleet) wave(ctx context.Context) error {
	first := firstWave()
	f.Title("May the second wave start?")
	if err := f.tabulate(ctx, exit.Ready, first); err != nil {
		return err
	}
	if err := f.decide(ctx, exit.Undecided); err != nil {
		return err
	}
	f.Step("reporting that the first wave has run " + story.To +
		" for an hour, in place of CVO, and moving the baselines of the preflights before that")
	for _, name := range first {
		if err := f.fleet.Update(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// gate shows that the cluster that regressed counts as failed.
func (f *Fleet) gate(ctx context.Context) error {
	f.Title("May the second wave start now? The cluster that regressed has failed")
	if err := f.tabulate(ctx, exit.Undecided, firstWave()); err != nil { // nothing is left to evaluate
		return err
	}
	if err := f.decide(ctx, exit.Blocked); err != nil {
		return err
	}
	return f.decide(ctx, exit.Ready, "--max-failed", "1")
}

// table is the file with the table of a wave.
func (f *Fleet) table() string { return filepath.Join(f.Directory, "wave.json") }

// tabulate shows the clusters of a wave, which must have this result, and writes their table.
func (f *Fleet) tabulate(ctx context.Context, code int, wave []string) error {
	return f.Run(ctx, code, command("targets", strings.Join(wave, ","), "--report", "json="+f.table())...)
}

// decide shows the gate after a wave, which must have this result.
func (f *Fleet) decide(ctx context.Context, code int, more ...string) error {
	return f.Run(ctx, code, append([]string{"oc-preflight", "fleet", "gate", "--to", story.To, "--table", f.table()}, more...)...)
}

func (f *Fleet) judge(ctx context.Context) error {
	f.Title("Was the update good for all else than operators and nodes?")
	for _, name := range firstWave() {
		code, decision := exit.Ready, "Good"
		if name == story.FleetOverrides {
			code, decision = exit.Blocked, "Regressed"
		}
		if err := f.RunLines(ctx, code, decision, after("--context", name)...); err != nil {
			return err
		}
	}
	return nil
}
