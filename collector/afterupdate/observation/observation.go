// Package observation answers: what does a cluster show now about its last update?
//
// [Of] reads the observation of a scene, and [Observation.Sample] returns the sample that package afterupdate
// compares with the baseline.
package observation

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/sample"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/settling"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// Observation is a cluster at one time after its last update.
type Observation struct {
	Cluster report.Cluster
	// History is the history of ClusterVersion, newest entry first. Change is the last update in it; nil if there was
	// none.
	History []configv1.UpdateHistory
	Change  *settling.Change
	// State is compared with the baseline.
	State baseline.State

	rollout settling.Cluster
}

// Needs returns the permissions for an observation. If an optional one is missing, its objects are not read, and
// the update is never Good.
func Needs() access.Needs {
	return access.Needs{
		Required: []access.Request{{Verb: "get", Group: configv1.GroupName, Resource: "clusterversions", Name: "version"}},
		Optional: sample.Reads(),
	}
}

// Of reads the cluster of a scene. It limits the objects without a row in package baseline to the given kinds; nil
// means all. It returns an error only for ClusterVersion; other read failures are recorded in the State.
func Of(ctx context.Context, s scene.Scene, alerts *monitoring.Client, kinds map[baseline.Kind]bool) (Observation, error) {
	controlPlane, _ := s.Settings.Estate.ControlPlane()
	taken, err := sample.Look{Cluster: s.Snapshot, Hosted: controlPlane.State(), Monitoring: alerts, Now: s.Start, Kinds: kinds}.Take(ctx)
	if err != nil {
		return Observation{}, err
	}
	made := Observation{Cluster: s.About, History: s.Version.Status.History, State: taken}
	if change, found := settling.ChangeOf(made.History); found {
		made.Change, made.rollout.Change = &change, change
	}
	if err := made.readRollout(ctx, s); err != nil {
		made.lacks(baseline.MachineConfigPool, err.Error())
	}
	return made, nil
}

// lacks records why a kind was not read completely.
func (o *Observation) lacks(kind baseline.Kind, cause string) {
	if o.State.Unread == nil {
		o.State.Unread = map[baseline.Kind]string{}
	}
	if o.State.Unread[kind] == "" {
		o.State.Unread[kind] = cause
	}
}

// readRollout reads the parts of the rollout of an update. The rollout of a guest without its management cluster
// lacks the NodePools, and the State records that.
func (o *Observation) readRollout(ctx context.Context, s scene.Scene) error {
	topology, topologyErr := s.Snapshot.Topology(ctx)
	if topologyErr != nil {
		topologyErr = fmt.Errorf("where the control plane runs is unknown: %w", topologyErr)
	}
	var operatorsErr, poolsErr, nodesErr error
	o.rollout.Operators, operatorsErr = s.Snapshot.ClusterOperators(ctx)
	o.rollout.Nodes, nodesErr = s.Snapshot.Nodes(ctx)
	if topology != snapshot.HyperShift {
		o.rollout.Pools, poolsErr = s.Snapshot.MachineConfigPools(ctx)
	}
	controlPlane, _ := s.Settings.Estate.ControlPlane()
	o.rollout.Now, o.rollout.Hosted = s.Start, controlPlane.State()
	if err := errors.Join(operatorsErr, poolsErr, nodesErr, topologyErr); err != nil {
		return fmt.Errorf("could not read the parts of the rollout: %w", err)
	}
	if len(o.rollout.Operators) == 0 || len(o.rollout.Pools) == 0 && topology != snapshot.HyperShift {
		return errors.New("there are no ClusterOperators or no MachineConfigPools, although every OpenShift cluster has them")
	}
	return nil
}

// Sample is the observation as it is compared with a baseline; nil for none. hash replaces the names of users, as in
// a baseline that is redacted; nil for none.
func (o Observation) Sample(before *baseline.State, hash func(name string) string) afterupdate.Sample {
	made := afterupdate.Sample{State: o.State}
	if o.Change != nil {
		made.Progress = settling.Of(o.rollout, compared(before))
	}
	if hash != nil {
		made.State, made.Names = o.State.Redacted(hash), map[baseline.Key]baseline.Key{}
		made.State.Unread = o.State.Unread
		for key, object := range o.State.Objects {
			redacted := key.Redacted(hash)
			compared := made.State.Objects[redacted]
			compared.Problems = object.Problems // with the messages and nodes, which are not compared and not stored
			made.State.Objects[redacted], made.Names[redacted] = compared, key
		}
	}
	return made
}

func compared(before *baseline.State) baseline.State {
	if before == nil {
		return baseline.State{}
	}
	return *before
}
