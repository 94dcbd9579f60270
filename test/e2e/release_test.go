package e2e_test

import (
	"testing"

	"github.com/openshift/update-preflight/test/zoo"
)

// Short names for the releases of the zoo.
const (
	to           = zoo.To
	zooNamespace = zoo.Namespace
	zooImage     = zoo.Source
	missingImage = zoo.MissingImage
)

type (
	animal = zoo.Animal
	world  = zoo.World
)

// testCluster builds the releases and runs programs on the cluster.
var testCluster *zoo.Zoo

// publish builds and signs a release with one Job for each animal, and makes the cluster
// offer it.
func publish(tb testing.TB, animals map[string]animal) *world {
	tb.Helper()
	return testCluster.Publish(tb, animals)
}
