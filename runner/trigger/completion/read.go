package completion

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// Read is the state of a cluster with that ClusterVersion. What could not be read, and what an archive lacks,
// is in it. The NodePools of a hosted cluster are not among its objects, and its nodes are updated after its
// control plane, so such a cluster was not read.
func Read(ctx context.Context, present *snapshot.Cluster, version *configv1.ClusterVersion, now time.Time) Cluster {
	read := Cluster{Now: now, Version: version}
	ctx, gaps := gap.Track(ctx)
	topology, err := present.Topology(ctx)
	switch {
	case err != nil:
		read.Unread = fmt.Sprintf("could not read where the control plane runs: %v", err)
		return read
	case topology == snapshot.HyperShift:
		read.Unread = "the NodePools of a hosted cluster are in its management cluster, so it is unknown whether its nodes are updated"
		return read
	}
	var operatorsErr, poolsErr error
	read.Operators, operatorsErr = present.ClusterOperators(ctx)
	read.Pools, poolsErr = present.MachineConfigPools(ctx)
	err = errors.Join(operatorsErr, poolsErr, missing(gaps))
	if err == nil && (len(read.Operators) == 0 || len(read.Pools) == 0) {
		err = errors.New("there are none, which no OpenShift cluster is without")
	}
	if err != nil {
		read.Unread = "could not read the operators and pools of the cluster: " + err.Error()
	}
	return read
}

// missing is the error about what an archive lacks; nil where it lacks nothing.
func missing(gaps *gap.Log) error {
	var all []error
	for _, each := range gaps.All() {
		all = append(all, fmt.Errorf("the archive has %s", each))
	}
	return errors.Join(all...)
}
