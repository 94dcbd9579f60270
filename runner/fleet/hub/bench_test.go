package hub_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner/fleet/hub"
)

// pages are the pages of a list, as an API server writes them.
type pages [][]byte

func newPages(tb testing.TB, objects []map[string]any) pages {
	tb.Helper()
	const size = 500 // as the limit of the requests
	made := pages{}
	for from := 0; from == 0 || from < len(objects); from += size {
		end := min(from+size, len(objects))
		meta := map[string]any{"resourceVersion": "1"}
		if end < len(objects) {
			meta["continue"] = strconv.Itoa(len(made) + 1)
		}
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "metadata": meta, "items": objects[from:end]})
		if err != nil {
			tb.Fatal(err)
		}
		made = append(made, text)
	}
	return made
}

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(p[number])
}

// largeHub is a hub with that many clusters, each with a signed verdict, and with their keys. It serves the lists
// that a hub reads: to create the objects takes longer than to read them.
func largeHub(b *testing.B, clusters int) (*cluster.Cluster, hub.Keys) {
	b.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	var managed, works []map[string]any
	pinned := map[string][]byte{}
	for i := range clusters {
		made := newSpoke(b, fmt.Sprintf("bench-%05d", i), i, now)
		made.key = newKey(b)
		pinned[made.id] = made.key.public
		decision := verdict.Ready
		if i%3 == 0 {
			made.blocked()
			decision = verdict.Blocked
		}
		made.sign(b, made.key, made.id, to, decision)
		made.manifest().StatusFeedbacks.Values = agent(b, made.object)
		managed = append(managed, map[string]any{
			"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": map[string]any{"name": made.name},
			"status": raw(b, &made.status),
		})
		works = append(works, map[string]any{
			"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
			"metadata": map[string]any{"namespace": made.name, "name": "target", "generation": 1}, "status": raw(b, made.work),
		})
	}
	served := http.NewServeMux()
	served.Handle("/apis/cluster.open-cluster-management.io/v1/managedclusters", newPages(b, managed))
	served.Handle("/apis/work.open-cluster-management.io/v1/manifestworks", newPages(b, works))
	served.Handle("/apis/work.open-cluster-management.io/v1alpha1/manifestworkreplicasets", newPages(b, []map[string]any{{
		"apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": "ManifestWorkReplicaSet",
		"metadata": map[string]any{"namespace": fleets, "name": "target"},
	}}))
	server := httptest.NewServer(served)
	b.Cleanup(server.Close)
	reached, err := cluster.Connect(&rest.Config{Host: server.URL, QPS: -1}, "test")
	if err != nil {
		b.Fatal(err)
	}
	keys, err := hub.PinKeys(pinned)
	if err != nil {
		b.Fatal(err)
	}
	return reached, keys
}

// BenchmarkRead reads 5 000 clusters, and verifies their signatures: at most 5 s.
func BenchmarkRead(b *testing.B) {
	const clusters = 5000
	reached, keys := largeHub(b, clusters)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		found, err := hub.Read(b.Context(), reached, hub.Query{To: to, Keys: keys})
		if err != nil || len(found.Members) != clusters || found.Members[1].Row.State != "Ready" {
			b.Fatal(len(found.Members), err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(found)
	}
	b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/(1<<20), "MiB-kept")
}
