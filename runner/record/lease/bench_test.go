package lease_test

import (
	"context"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/test/transport"
)

// BenchmarkRecord records 5,000 incompressible results of 4 KiB one by one.
func BenchmarkRecord(b *testing.B) {
	const checks = 5000
	results := make([]record.Result, checks)
	for i := range results {
		results[i] = incompressible(i, 4096)
	}
	var requests atomic.Int64
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.Func(func(r *http.Request) (*http.Response, error) {
			requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	client, err := kubernetes.NewForConfig(counted)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	for b.Loop() {
		before := heap()
		requests.Store(0)
		held, err := newRuns(client).Begin(ctx, newIntent(), "bench")
		if err != nil {
			b.Fatal(err)
		}
		_, release := held.Hold(ctx)
		for _, result := range results {
			held.Put(result)
		}
		if err := held.Detach(ctx); err != nil {
			b.Fatal(err)
		}
		release()
		b.ReportMetric(float64(requests.Load()), "requests/op")
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-held")
		runtime.KeepAlive(held)
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func BenchmarkPut(b *testing.B) {
	held, err := newRuns(api).Begin(context.Background(), newIntent(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	result := aResult("Etcd.Disk")
	for b.Loop() {
		held.Put(result)
	}
}
