package command

import (
	"context"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/runs"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gate/adminack"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
)

// maxNames bounds the objects whose names are read for one completion.
const maxNames = 500

// recentRuns bounds the records that are read for one completion.
const recentRuns = 3

// addCompletions adds the completions of values of the cluster to all verbs: of arguments by verb, of flags by the
// kind of their values.
func addCompletions(c *cli.Client, root *cobra.Command) {
	arguments := map[string]cobra.CompletionFunc{
		"attach": completion.First(c, runIDs), "status": completion.First(c, runIDs), "cancel": completion.First(c, runIDs),
		"cleanup": completion.First(c, runIDs),
		"logs":    completion.First(c, runsAndChecks, checksOfRun), "diff": completion.First(c, runIDs, runIDs),
		"ack": completion.First(c, gates), "accept": completion.ListOf(c, risks),
	}
	values := map[option.Values]cobra.CompletionFunc{
		option.Updates: completion.Of(c, updateVersions), option.Channels: completion.Of(c, channels),
		option.Checks: completion.ListOf(c, knownChecks), option.Findings: completion.ListOf(c, acceptable),
		option.Pools: completion.Of(c, namesOf(machineconfigurationv1.GroupVersion.WithResource("machineconfigpools"))),
		option.Nodes: completion.Of(c, namesOf(corev1.SchemeGroupVersion.WithResource("nodes"))),
	}
	for _, verb := range root.Commands() {
		if complete, ok := arguments[verb.Name()]; ok {
			verb.ValidArgsFunction = complete
		}
		verb.Flags().VisitAll(func(flag *pflag.Flag) {
			if complete, ok := values[option.Of(flag).Values]; ok {
				_ = verb.RegisterFlagCompletionFunc(flag.Name, complete) // fails only for a flag that does not exist
			}
		})
	}
}

func clusterVersion(ctx context.Context, reached *cluster.Cluster) (*configv1.ClusterVersion, error) {
	return reached.OpenShift.ConfigV1().ClusterVersions().Get(ctx, "version", metav1.GetOptions{})
}

// updateVersions completes the versions of the available and the conditional updates.
func updateVersions(ctx context.Context, reached *cluster.Cluster, _ []string) ([]cobra.Completion, error) {
	version, err := clusterVersion(ctx, reached)
	if err != nil {
		return nil, err
	}
	var found []cobra.Completion
	for _, each := range version.Status.AvailableUpdates {
		found = append(found, cobra.CompletionWithDesc(each.Version, "available"))
	}
	for _, each := range version.Status.ConditionalUpdates {
		if !slices.Contains(found, cobra.CompletionWithDesc(each.Release.Version, "available")) {
			found = append(found, cobra.CompletionWithDesc(each.Release.Version, "conditional"))
		}
	}
	return found, nil
}

// namesOf completes the names of the objects of a resource of the cluster.
func namesOf(resource schema.GroupVersionResource) func(context.Context, *cluster.Cluster, []string) ([]cobra.Completion, error) {
	return func(ctx context.Context, reached *cluster.Cluster, _ []string) ([]cobra.Completion, error) {
		list, err := reached.Metadata.Resource(resource).List(ctx, metav1.ListOptions{Limit: maxNames})
		if err != nil {
			return nil, err
		}
		var found []cobra.Completion
		for i := range list.Items {
			found = append(found, list.Items[i].Name)
		}
		return found, nil
	}
}

// channels completes the channels that the current release is in.
func channels(ctx context.Context, reached *cluster.Cluster, _ []string) ([]cobra.Completion, error) {
	version, err := clusterVersion(ctx, reached)
	if err != nil {
		return nil, err
	}
	return version.Status.Desired.Channels, nil
}

// risks completes the names of the risks of the conditional updates.
func risks(ctx context.Context, reached *cluster.Cluster, _ []string) ([]cobra.Completion, error) {
	version, err := clusterVersion(ctx, reached)
	if err != nil {
		return nil, err
	}
	var found []cobra.Completion
	for _, update := range version.Status.ConditionalUpdates {
		for _, risk := range update.Risks {
			if !slices.Contains(found, risk.Name) {
				found = append(found, risk.Name)
			}
		}
	}
	return found, nil
}

// gates completes the names of the admin gates.
func gates(ctx context.Context, reached *cluster.Cluster, _ []string) ([]cobra.Completion, error) {
	return adminack.Names(ctx, reached.Kubernetes.CoreV1())
}

// runIDs completes the IDs of the recorded runs, the newest first.
func runIDs(ctx context.Context, reached *cluster.Cluster, _ []string) ([]cobra.Completion, error) {
	all, err := recordstore.New(reached.Kubernetes).List(ctx)
	if err != nil {
		return nil, err
	}
	var found []cobra.Completion
	for _, each := range all {
		state := string(each.Phase)
		if each.Decision != "" && each.Verified() == nil {
			state = each.Decision
		}
		found = append(found, cobra.CompletionWithDesc(each.ID, "to "+each.Target.Version+", "+state))
	}
	return found, nil
}

// runsAndChecks are the checks of the newest runs, and the runs.
func runsAndChecks(ctx context.Context, reached *cluster.Cluster, args []string) ([]cobra.Completion, error) {
	checks, err := recent(ctx, reached, func(run record.Record) []string { return run.Checks })
	if err != nil {
		return nil, err
	}
	ids, err := runIDs(ctx, reached, args)
	return append(checks, ids...), err
}

// checksOfRun are the checks of the run in the first argument.
func checksOfRun(ctx context.Context, reached *cluster.Cluster, args []string) ([]cobra.Completion, error) {
	run, err := recordstore.New(reached.Kubernetes).Get(ctx, runs.RunID(args[0]))
	return run.Checks, err
}

// recent collects the values of the newest records, without duplicates.
func recent(ctx context.Context, reached *cluster.Cluster, of func(record.Record) []string) ([]cobra.Completion, error) {
	records := recordstore.New(reached.Kubernetes)
	all, err := records.List(ctx)
	if err != nil {
		return nil, err
	}
	var found []cobra.Completion
	for _, each := range all[:min(len(all), recentRuns)] {
		run, err := records.Get(ctx, each.ID)
		if err != nil {
			return nil, err
		}
		for _, name := range of(run) {
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// knownChecks are the checks of the newest runs, and their components: the checks of a release
// that was not run are unknown without reading it.
func knownChecks(ctx context.Context, reached *cluster.Cluster, _ []string) ([]cobra.Completion, error) {
	return recent(ctx, reached, func(run record.Record) []string {
		names := slices.Clone(run.Checks)
		for _, check := range run.Checks {
			component, _, _ := strings.Cut(check, ".")
			names = append(names, component)
		}
		return names
	})
}

// acceptable are the risks of the updates, and the open findings of the checks of the
// newest runs.
func acceptable(ctx context.Context, reached *cluster.Cluster, args []string) ([]cobra.Completion, error) {
	found, err := risks(ctx, reached, args)
	if err != nil {
		return nil, err
	}
	open, err := recent(ctx, reached, func(run record.Record) []string {
		var decided report.Report
		for _, result := range run.Results {
			decided.Findings = append(decided.Findings, result.Findings...)
		}
		return decided.Acceptable()
	})
	return append(found, open...), err
}
