package scale_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

// components returns the names of the components of the cluster, by program.
func components() map[string]string {
	return map[string]string{
		"kube-apiserver": "API server", "server": "etcd", "kube-controller-manager": "controllers", "kube-scheduler": "scheduler", "kwok": "kwok",
	}
}

// cpuTimes returns the CPU time of each component of the cluster so far.
func (e *environment) cpuTimes() map[string]time.Duration {
	e.tb.Helper()
	processes, err := procfs.AllProcs()
	if err != nil {
		e.tb.Fatal(err)
	}
	times := map[string]time.Duration{}
	for _, process := range processes {
		arguments, _ := process.CmdLine() // fails if the process has ended
		if len(arguments) == 0 {
			continue
		}
		name := components()[filepath.Base(arguments[0])]
		ofCluster := func(argument string) bool { return strings.Contains(argument, e.Dir) }
		if name != "" && slices.ContainsFunc(arguments, ofCluster) {
			times[name] += cpuTime(e.tb, process)
		}
	}
	return times
}

// cpuTime returns the user and system time of a process.
func cpuTime(tb testing.TB, process procfs.Proc) time.Duration {
	tb.Helper()
	stat, err := process.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second))
}

// peakOf returns the peak memory of a process so far, in MiB, or 0 if it has ended.
func peakOf(pid int) float64 {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0
	}
	return float64(status.VmHWM) / (1 << 20)
}

// watchMemory polls the peak memory of a process until the returned function is called,
// which returns it, in MiB. The rusage of a process is not usable, since it includes the
// memory of its parent at the fork.
func watchMemory(pid int) func() float64 {
	done, peak := make(chan struct{}), make(chan float64)
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		largest := 0.0
		for {
			select {
			case <-ticker.C:
				largest = max(largest, peakOf(pid))
			case <-done:
				peak <- largest
				return
			}
		}
	}()
	return func() float64 {
		close(done)
		return <-peak
	}
}
