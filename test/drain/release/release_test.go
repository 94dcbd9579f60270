// Package release_test answers: is the rehearsal of drains right for many clusters, and others each day?
//
// -seed 100 -clusters 200 drains those of a day again, or others.
package release_test

import (
	"strconv"
	"testing"
	"time"

	testcluster "github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/drain"
)

var oracle *drain.Oracle

func TestMain(m *testing.M) {
	testcluster.Main(m, func(c *testcluster.Cluster) { oracle = drain.On(c) }, drain.Options()...)
}

// TestManyClusters drains clusters whose first seed is that of the day. Some are large.
func TestManyClusters(t *testing.T) {
	const clusters, places = 200, 1000
	day, err := strconv.ParseUint(time.Now().UTC().Format("20060102"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("-seed %d -clusters %d", day*places, clusters)
	drain.Expect(t, oracle, drain.Seeds(day*places, clusters)...)
}
