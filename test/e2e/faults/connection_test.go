//go:build faults

package faults_test

import (
	"testing"
	"time"

	"github.com/openshift/update-preflight/test/faults"
)

// connectionFaults are those between the runner and its API server.
func connectionFaults() []fault {
	return []fault{
		disturbed("watches cut", (*faults.Proxy).CutWatches),
		disturbed("watches too old to go on (410 Gone)", (*faults.Proxy).ExpireWatches),
		disturbed("all connections broken", (*faults.Proxy).CutConnections),
		{name: "every fourth request answered with 429", wrong: []faults.Fault{faults.Busy(4)}},
		{name: "every fourth request answered with 503", wrong: []faults.Fault{faults.Unavailable(4)}},
		{name: "every answer 300 ms late", wrong: []faults.Fault{faults.Slow(300 * time.Millisecond)}},
		{name: "each write lost once", wrong: []faults.Fault{faults.Lossy(faults.Before)}},
		{name: "the answer to each write lost once", wrong: []faults.Fault{faults.Lossy(faults.After)}},
	}
}

// disturbed has something happen to the connections at the beginning of a run, in
// the middle, and near the end.
func disturbed(name string, happens func(*faults.Proxy)) fault {
	at := func(sign string) func(*testing.T, scene, work) {
		return func(t *testing.T, _ scene, w work) {
			t.Helper()
			w.until(t, sign)
			happens(w.proxy)
		}
	}
	return fault{
		name: name, after: at("deleting"),
		during: func(t *testing.T, s scene, w work) {
			t.Helper()
			at("validating")(t, s, w)
			at("Zoo.First: running")(t, s, w)
		},
	}
}
