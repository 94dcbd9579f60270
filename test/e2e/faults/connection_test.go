package faults_test

import (
	"testing"
	"time"

	"github.com/openshift/update-preflight/test/faults"
)

// firstRuns is what the program says once its slow check is at work.
const firstRuns = "Zoo.First: running"

// connectionFaults are those between the runner and its API server.
func connectionFaults() []fault {
	// at has something happen to the connections at the beginning, in the middle
	// and near the end of a run.
	at := func(happens func(*faults.Proxy)) func(*testing.T, scene, work) {
		return func(t *testing.T, _ scene, w work) {
			t.Helper()
			for _, sign := range []string{"validating", firstRuns, "deleting"} {
				w.until(t, sign)
				happens(w.proxy)
			}
		}
	}
	return []fault{
		{name: "watches cut", during: at((*faults.Proxy).CutWatches)},
		{name: "watches too old to go on (410 Gone)", during: at((*faults.Proxy).ExpireWatches)},
		{name: "all connections broken", during: at((*faults.Proxy).CutConnections)},
		{name: "every fourth request answered with 429", wrong: []faults.Fault{faults.Busy(4)}},
		{name: "every fourth request answered with 503", wrong: []faults.Fault{faults.Unavailable(4)}},
		{name: "every answer 300 ms late", wrong: []faults.Fault{faults.Slow(300 * time.Millisecond)}},
		{name: "each write lost once", wrong: []faults.Fault{faults.Lossy(faults.Before)}},
		{name: "the answer to each write lost once", wrong: []faults.Fault{faults.Lossy(faults.After)}},
	}
}
