//go:build faults

// Package faults_test answers: does a run survive whatever happens around it?
//
// Everything is real: the cluster, its node, the pods, the program, and what is
// done to them. A fault is survived when the verdict is the same as without it,
// or Undecided with the cause where the evidence is truly gone; no check has run
// twice whose evidence was not lost; and nothing is left behind.
package faults_test

import (
	"testing"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/zoo"
)

// local is a cluster that no other package has to live in.
var (
	local *cluster.Cluster
	house *zoo.Zoo
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local, house = c, zoo.At(c) })
}
