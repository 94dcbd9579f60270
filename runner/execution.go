package runner

import (
	"time"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/runner/inventory"
	"github.com/openshift/update-preflight/runner/jobplan"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/lease"
	"github.com/openshift/update-preflight/runner/writeguard"
)

// execution is the sixth stage: one run with its ID, whose checks are running.
type execution struct {
	manifests
	sources []collector.Source
	// id and started name the run; deadline is when its time is up.
	id                string
	started, deadline time.Time
	// planned has the Jobs of the run; no checks where none of the release is to run.
	planned jobplan.Plan
	// expected has the names of the checks of the release that are to report.
	expected map[string]bool
	// launcher creates the objects of the run and deletes them.
	launcher *launch.Launcher
	objects  *inventory.Objects
	readOnly *writeguard.Guard
	// results are known already; those of an earlier run where reused has its ID.
	results results
	reused  reuse
	// records and record are where the run is recorded, held by this process.
	records *lease.Runs
	record  *lease.Held
}

// launchRun is what the objects of the run are named and labelled by.
func (e execution) launchRun() jobplan.Run {
	return jobplan.Run{ID: e.id, From: e.about.Version, Target: e.target, StartTime: e.started, Deadline: e.deadline, ToolVersion: e.options.ToolVersion}
}
