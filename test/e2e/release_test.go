package e2e_test

import (
	"testing"

	"github.com/openshift/update-preflight/test/zoo"
)

// What the tests of this package ask about.
const (
	to           = zoo.To
	zooNamespace = zoo.Namespace
	zooImage     = zoo.Source
	ghostImage   = zoo.Ghost
)

type (
	animal = zoo.Animal
	world  = zoo.World
)

// house makes the releases.
var house *zoo.Zoo

// publish builds and signs a release with one Job for each animal, and makes
// the cluster offer it.
func publish(tb testing.TB, animals map[string]animal) *world {
	tb.Helper()
	return house.Publish(tb, animals)
}
