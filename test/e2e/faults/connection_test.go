package faults_test

import (
	"testing"
	"time"

	"github.com/openshift/update-preflight/test/faults"
)

// connectionFaults disturb the connection between the run and its API server. Those in which
// runs wait longest come first.
func connectionFaults() []fault {
	return []fault{
		{name: "each response to a read cut once", connection: []faults.Fault{faults.ShortReads()}},
		{name: "every fourth request answered with 503", connection: []faults.Fault{faults.Unavailable(4)}},
		{name: "every fourth request answered with 429", connection: []faults.Fault{faults.Busy(4)}},
		{name: "every response 300 ms late", connection: []faults.Fault{faults.Slow(300 * time.Millisecond)}},
		{name: "each write lost once", connection: []faults.Fault{faults.Lossy(faults.Before)}},
		{name: "the response to each write lost once", connection: []faults.Fault{faults.Lossy(faults.After)}},
		connectionFault("watches cut", (*faults.Proxy).CutWatches),
		connectionFault("watches too old to continue (410 Gone)", (*faults.Proxy).ExpireWatches),
		connectionFault("all connections broken", (*faults.Proxy).CutConnections),
	}
}

// connectionFault disturbs the connections at the beginning of a run, in the middle, and
// near the end.
func connectionFault(name string, disturb func(*faults.Proxy)) fault {
	at := func(output string) func(*testing.T, environment, proxiedRun) {
		return func(t *testing.T, _ environment, run proxiedRun) {
			t.Helper()
			run.AwaitOutput(t, output)
			disturb(run.proxy)
		}
	}
	return fault{
		name: name, after: at("deleting"),
		during: func(t *testing.T, e environment, run proxiedRun) {
			t.Helper()
			at("validating")(t, e, run)
			at("Zoo.First: running")(t, e, run)
		},
	}
}
