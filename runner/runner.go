// Package runner answers: is it safe to update this cluster to that release?
//
// [Run] is the whole preflight, in stages. Each stage takes the value of the one
// before it and returns its own; no stage changes what an earlier one returned:
//
//	observe ─▶ verify ─▶ read ─▶ draft ─▶ join ─▶ execute ─▶ conclude
//	cluster    proof     manifests plan     run     findings   report
//
// [RunPath] runs these stages for each update of a path. [Checks] ends after the draft,
// [Targets] judges every update that the cluster
// knows without reading a release. The other functions are about runs that are
// recorded: [Attach] and [Cancel].
//
// The command line calls this package, and so may the cluster-version operator
// (CVO) or a controller: it reads no environment and no flags, writes to no
// stream and exits no process.
package runner

import (
	"context"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
)

// Run makes the preflight of one target.
//
// An error without a report means that there is no verdict: a *BadInputError for
// a request that cannot be met, any other error when something could not be
// reached or read; nothing is left in the cluster then. Everything that is wrong
// with the release or the cluster is a finding of the report. An error with a
// report names what could not be deleted.
//
// A run is recorded in the cluster. Where a run of the same release and selection
// is in progress, Run waits for its result, and continues it when the process
// that held it is gone. Where the checks of a complete run all passed and still
// hold (package fingerprint), their results are reused and everything else is
// checked again.
//
// Canceling ctx ends the run early with what is known by then. The objects that
// it created are deleted nevertheless, unless Options.OnInterrupt decides
// otherwise.
func Run(ctx context.Context, cluster *cluster.Cluster, target Target, options Options) (report.Report, error) {
	decided, _, err := conduct(ctx, cluster, request{target: target, options: options, needs: options.readingNeeds()})
	return decided, err
}

// conduct makes the preflight that is requested, and returns what the release contains.
func conduct(ctx context.Context, cluster *cluster.Cluster, r request) (report.Report, contents, error) {
	observed, err := observe(ctx, cluster, r)
	if err != nil {
		return report.Report{}, unread{}, err
	}
	limited, cancel := context.WithTimeout(ctx, observed.remaining())
	defer cancel()
	verified, err := verify(limited, observed)
	if err != nil {
		return report.Report{}, unread{}, err
	}
	manifests, err := read(limited, verified)
	if err != nil {
		return report.Report{}, unread{}, err
	}
	plan, err := draft(limited, withSite(limited, manifests))
	if err != nil {
		return report.Report{}, unread{}, err
	}
	run, err := join(limited, plan)
	if err != nil {
		return report.Report{}, unread{}, err
	}
	decided, err := run.conduct(ctx, limited)
	return decided, plan.contents, err
}
