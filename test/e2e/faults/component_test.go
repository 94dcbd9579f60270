package faults_test

import (
	"testing"
	"time"
)

// componentFaults kill a component of the cluster while one check runs and another has
// not started.
func componentFaults() []fault {
	var all []fault
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd"} {
		all = append(all, crash(component+" killed and restarted", component, 0))
	}
	// With its start this is longer than the duration of the Lease of the run, ten seconds.
	return append(all, crash("kube-apiserver down for 10 s", "kube-apiserver", 10*time.Second))
}

// crash returns a fault that kills a component and restarts it after the downtime. The run
// must not end before.
func crash(name, component string, downtime time.Duration) fault {
	return fault{
		name: name, onPods: true, args: []string{"--parallelism", "1"},
		during: whenFirstRuns(func(t *testing.T, _ environment, run proxiedRun) {
			t.Helper()
			if err := local.Crash(t.Context(), component); err != nil {
				t.Fatal(err)
			}
			select {
			case <-time.After(downtime):
			case <-run.Ended():
				t.Errorf("the run ended while %s was down", component)
			}
			if err := local.Revive(t.Context(), component); err != nil {
				t.Fatal(err)
			}
		}),
	}
}
