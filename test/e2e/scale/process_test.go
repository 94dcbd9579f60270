package scale_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ticks is the unit of /proc/PID/stat on every Linux that Go runs on (USER_HZ).
const ticks = time.Second / 100

// components returns the names of the components of the cluster, by program.
func components() map[string]string {
	return map[string]string{
		"kube-apiserver": "API server", "server": "etcd", "kube-controller-manager": "controllers", "kube-scheduler": "scheduler", "kwok": "kwok",
	}
}

// cpuTimes returns the CPU time of each component of the cluster so far.
func (e *environment) cpuTimes() map[string]time.Duration {
	e.tb.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		e.tb.Fatal(err)
	}
	times := map[string]time.Duration{}
	for _, process := range processes {
		line, _ := os.ReadFile(filepath.Join(process, "cmdline")) // fails if the process has ended
		arguments := strings.Split(string(line), "\x00")
		name := components()[filepath.Base(arguments[0])]
		if name != "" && bytes.Contains(line, []byte(e.Dir)) {
			times[name] += cpuTime(e.tb, process)
		}
	}
	return times
}

// cpuTime returns the user and system time of a process.
func cpuTime(tb testing.TB, process string) time.Duration {
	tb.Helper()
	stat, err := os.ReadFile(filepath.Join(process, "stat"))
	if err != nil {
		tb.Fatal(err)
	}
	// The name of the program, in parentheses, may contain any character.
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		tb.Fatal(err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		tb.Fatal(err)
	}
	return time.Duration(user+system) * ticks
}

// peakOf returns the peak memory of a process so far, in MiB, or 0 if it has ended.
func peakOf(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	match := regexp.MustCompile(`VmHWM:\s*([0-9]+) kB`).FindSubmatch(status)
	if match == nil {
		return 0
	}
	kilobytes, _ := strconv.Atoi(string(match[1])) // digits only
	return float64(kilobytes) / 1024
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
