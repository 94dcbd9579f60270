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

// components are the processes of the cluster, by the name of their program.
func components() map[string]string {
	return map[string]string{
		"kube-apiserver": "API server", "server": "etcd", "kube-controller-manager": "controllers", "kube-scheduler": "scheduler", "kwok": "kwok",
	}
}

// work is how much CPU time each component of the cluster has had so far.
func (p *place) work() map[string]time.Duration {
	p.tb.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		p.tb.Fatal(err)
	}
	had := map[string]time.Duration{}
	for _, process := range processes {
		line, _ := os.ReadFile(filepath.Join(process, "cmdline")) // of a process that may have ended
		arguments := strings.Split(string(line), "\x00")
		name := components()[filepath.Base(arguments[0])]
		if name != "" && bytes.Contains(line, []byte(p.Dir)) {
			had[name] += cpuTime(p.tb, process)
		}
	}
	return had
}

// cpuTime is that of a process, in its own code and the kernel's.
func cpuTime(tb testing.TB, process string) time.Duration {
	tb.Helper()
	stat, err := os.ReadFile(filepath.Join(process, "stat"))
	if err != nil {
		tb.Fatal(err)
	}
	// The name of the program, in parentheses, may hold anything.
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		tb.Fatal(err)
	}
	kernel, err := strconv.Atoi(fields[12])
	if err != nil {
		tb.Fatal(err)
	}
	return time.Duration(user+kernel) * ticks
}

// peakOf is the most memory that a process has had so far, in MiB; 0 of one that
// is gone.
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

// watchMemory looks at the memory of a process until the returned function is
// called, which says how much there was at most, in MiB. The rusage of a process
// has the memory of the one that started it in it.
func watchMemory(pid int) func() float64 {
	done, peak := make(chan struct{}), make(chan float64)
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		most := 0.0
		for {
			select {
			case <-ticker.C:
				most = max(most, peakOf(pid))
			case <-done:
				peak <- most
				return
			}
		}
	}()
	return func() float64 {
		close(done)
		return <-peak
	}
}
