package scale_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/metrics"
	"runtime/pprof"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	client "github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/test/cluster"
)

// BenchmarkProfile runs the preflight in this process, for pprof:
//
//	go test ./test/e2e/scale -run '^$' -bench Profile/N=1000 -benchtime 1x -cpuprofile cpu.out -memprofile allocs.out
//
// The profile of the largest live heap is in a file that the log names.
func BenchmarkProfile(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			e := start(b, cluster.ControllerRate(openshiftRate, openshiftBurst))
			e.publish(checks{count: n, duration: "1s"})
			for b.Loop() {
				done := make(chan struct{})
				peak := watchHeap(b, filepath.Join(os.TempDir(), fmt.Sprintf("scale-%d.heap", n)), done)
				took := e.inProcess(n)
				close(done)
				b.ReportMetric(<-peak, "MiB-heap")
				b.ReportMetric(took.Seconds(), "s-verdict")
			}
		})
	}
}

// inProcess runs n checks, and returns the time to the verdict.
func (e *environment) inProcess(n int) time.Duration {
	e.tb.Helper()
	config := rest.CopyConfig(e.Config)
	config.QPS, config.Impersonate.UserName = -1, admin
	find, err := monitoring.Querier{Config: config}.At(e.monitoring)
	if err != nil {
		e.tb.Fatal(err)
	}
	began := time.Now()
	connected, err := client.Connect(config, "profile")
	if err != nil {
		e.tb.Fatal(err)
	}
	_, err = runner.Run(e.tb.Context(), connected, runner.Target{Version: to}, runner.Options{
		Judgement: scene.Judgement{Monitoring: monitoring.New(find, monitoring.DefaultTimeout)},
		Limits:    runner.Limits{Parallelism: n, Timeout: time.Hour},
		Hooks:     runner.Hooks{ToolVersion: "profile"},
	})
	if err != nil {
		e.tb.Fatal(err)
	}
	return time.Since(began)
}

// watchHeap writes the profile of the largest live heap to path. When done is closed, it
// sends the size of that heap, in MiB.
func watchHeap(tb testing.TB, path string, done <-chan struct{}) <-chan float64 {
	tb.Helper()
	peak := make(chan float64, 1)
	go func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for largest := uint64(0); ; {
			select {
			case <-ticker.C:
			case <-done:
				peak <- float64(largest) / (1 << 20)
				return
			}
			metrics.Read(live)
			if now := live[0].Value.Uint64(); now > largest+largest/20 {
				largest = now
				writeHeap(tb, path)
			}
		}
	}()
	return peak
}

func writeHeap(tb testing.TB, path string) {
	tb.Helper()
	file, err := os.Create(path)
	if err != nil {
		tb.Error(err)
		return
	}
	defer file.Close() //nolint:errcheck // WriteHeapProfile returns write errors
	if err := pprof.WriteHeapProfile(file); err != nil {
		tb.Error(err)
	}
	tb.Logf("the largest heap so far is in %s", path)
}
