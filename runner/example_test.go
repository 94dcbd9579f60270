package runner_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/targets"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/selection"
	"github.com/openshift/update-preflight/test/openshift"
)

// exampleCluster is a cluster at 4.18.3 that knows the update to 4.19.0, and trusts no
// key: no release can be verified, so none of its checks is read or run.
func exampleCluster() *cluster.Cluster {
	state := openshift.State{Version: current, Image: digested("1"), Available: map[string]string{next: digested("2")}}
	if err := openshift.Apply(context.Background(), config, state); err != nil {
		panic(err)
	}
	connected, err := cluster.Connect(config, "example/1.0")
	if err != nil {
		panic(err)
	}
	return connected
}

// The verdict on one target, without the checks of the release.
func ExampleRun() {
	target := runner.Target{Version: "4.19.0"}
	decided, err := runner.Run(context.Background(), exampleCluster(), target, runner.Options{Selection: selection.Selection{NoJobs: true}})
	if err != nil {
		fmt.Println(err) // no verdict: the request is invalid, or the cluster cannot be read
		return
	}
	fmt.Println(decided.Verdict.Decision, decided.Target.Verified)
	for _, f := range decided.Findings {
		if f.Open() && f.Name == "ReleaseSignature" {
			fmt.Println(f.Name, f.Outcome, f.Reason)
		}
	}
	// Output:
	// Undecided false
	// ReleaseSignature Unknown NoKeys
}

// The checks that a release would run, and why they are unknown.
func ExampleChecks() {
	listing, err := runner.Checks(context.Background(), exampleCluster(), runner.Target{Latest: true}, runner.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(listing.Checks), listing.Verdict.Decision)
	// Output: 0 Undecided
}

// All updates of the cluster with their decision by gates, risks and health.
func Example_targets() {
	scene, err := scene.OpenSettled(context.Background(), exampleCluster(), scene.Settings{})
	if err != nil {
		fmt.Println(err)
		return
	}
	judged, err := targets.Judge(context.Background(), scene, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, target := range judged.Targets {
		fmt.Println(target.Version, target.UpdateKind, target.Verdict.Blocking)
	}
	// Output: 4.19.0 Minor []
}

// A run in progress is continued by its ID, or a prefix of it.
func ExampleAttach() {
	_, err := runner.Attach(context.Background(), exampleCluster(), "3b6f2c1e", graphsource.Request{}, runner.Options{})
	if unknown, ok := errors.AsType[*record.NotFoundError](err); ok {
		fmt.Println("unknown run", unknown.ID)
	}
	// Output: unknown run 3b6f2c1e
}
