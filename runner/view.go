package runner

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/verdict"
)

// view is the cluster as a run finds it, for one target or many.
type view struct {
	cluster  *cluster.Cluster
	options  Options
	progress *serial
	// start is by the cluster's clock, as all times of a report are.
	start    time.Time
	snapshot *snapshot.Cluster
	version  *configv1.ClusterVersion
	about    report.Cluster
	// accepted are all acceptances, whether or not they hold.
	accepted []acceptance.Acceptance
	// hop is nil for an update from the present release.
	hop *hop
	// shared are the results of a path; nil for a run without a path.
	shared *sharedResults
}

// remaining is how much time the run has.
func (v view) remaining() time.Duration { return v.deadline().Sub(v.cluster.Now()) }

func (v view) deadline() time.Time { return v.start.Add(v.options.Timeout) }

// accounts are the acceptances that hold for a target of that version.
func (v view) accounts(version string) acceptance.Account {
	return acceptance.Judge(v.accepted, acceptance.Scope{Target: version, Cluster: v.about.ID, Now: v.start})
}

// kind is that of the update to a version; empty for a version that cannot be
// compared.
func (v view) kind(version string) string { return update.KindOf(v.from(), version) }

// from is the version that the update starts from.
func (v view) from() string {
	if v.hop != nil {
		return v.hop.before().Version
	}
	return v.about.Version
}

// subject is what built-in checks are run on; the error is about versions that
// cannot be compared.
func (v view) subject(version string) (check.Subject, error) {
	requested, err := update.Parse(v.from(), version)
	return check.Subject{Cluster: v.snapshot, Update: requested, Now: v.start, Later: v.hop != nil}, err
}

// policy is what the administrator decided about a target of that version.
func (v view) policy(version string) verdict.Policy {
	return verdict.Policy{Accepted: v.accounts(version).Accepted(), Force: v.options.Force, Provisional: v.hop != nil}
}
