// Package faults_test answers: does a run survive faults of its environment?
//
// The cluster, the program and the faults are real. Pods have containers where the fault
// concerns them or their node; what else a run survives depends on the API server alone, and
// its pods are on a simulated node. A run survives a fault if its verdict is the same as
// without the fault, or Undecided with the reason if the evidence was removed; no check runs
// twice unless its evidence was lost; and the run leaves no objects but its record.
package faults_test

import (
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/zoo"
)

// local is a cluster of this package only; testCluster makes the releases for it.
var (
	local       *cluster.Cluster
	testCluster *zoo.Zoo
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local, testCluster = c, zoo.At(c) }, cluster.Exclusive())
}
