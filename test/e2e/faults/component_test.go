//go:build faults

package faults_test

import (
	"testing"
	"time"
)

// componentFaults kill what the cluster is made of, while one check runs and
// another has not begun.
func componentFaults() []fault {
	var all []fault
	for _, component := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd"} {
		all = append(all, crash(component+" killed and restarted", component, 0))
	}
	// Longer than the duration of a Lease that is not renewed.
	return append(all, crash("kube-apiserver gone for 15 s", "kube-apiserver", 15*time.Second))
}

func crash(name, component string, gone time.Duration) fault {
	return fault{name: name, args: []string{"--parallelism", "1"}, during: whenFirstRuns(func(t *testing.T, _ scene, w work) {
		t.Helper()
		if err := local.Crash(t.Context(), component); err != nil {
			t.Fatal(err)
		}
		select {
		case <-time.After(gone):
		case <-w.ended:
			t.Errorf("the program did not wait for %s", component)
		}
		if err := local.Revive(t.Context(), component); err != nil {
			t.Fatal(err)
		}
	})}
}
