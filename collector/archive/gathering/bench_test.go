package gathering_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/archive/gathering"
	"github.com/openshift/update-preflight/collector/archive/writing"
	"github.com/openshift/update-preflight/collector/cluster"
)

// The environment of a process that gathers the pods of a server into a file, to measure its memory alone.
const serverVariable, redactVariable = "GATHER_FROM", "GATHER_REDACTED"

func TestMain(m *testing.M) {
	url := os.Getenv(serverVariable)
	if url == "" {
		os.Exit(m.Run())
	}
	err := gatherPods(context.Background(), url, os.Getenv(redactVariable) != "")
	status, statusErr := os.ReadFile("/proc/self/status") // its usage by the system has that of its parent
	if err := errors.Join(err, statusErr); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(status) // the parent sees that it is torn
}

func gatherPods(ctx context.Context, url string, redact bool) error {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	c, connectErr := cluster.Connect(&rest.Config{Host: url}, "test")
	into, err := writing.Create(filepath.Join(dir, "x.tar.gz"), time.Now())
	if err := errors.Join(connectErr, err); err != nil {
		return err
	}
	reads := []access.Request{list("pods")}
	_, err = gathering.Gather(ctx, c, gathering.Options{Reads: reads, Redact: redact, Step: func(string) {}}, into)
	if err == nil {
		_, err = into.Commit()
	}
	return errors.Join(err, into.Close(), os.RemoveAll(dir))
}

// realistic are pods of about 8 KB each, of which a third is which fields were written.
func realistic(count int) []object {
	var pods []object
	for i := range count {
		var containers []any
		for j := range 2 {
			container := map[string]any{
				"name": fmt.Sprintf("c%d", j), "image": "registry.corp.test/shop/cart@sha256:" + strings.Repeat("0", 64),
				"resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "64Mi"}},
			}
			var variables []any
			for k := range 15 {
				variables = append(variables, map[string]any{"name": fmt.Sprintf("VARIABLE_%d", k), "value": strings.Repeat("v", 40)})
			}
			container["env"] = variables
			containers = append(containers, container)
		}
		fields := map[string]any{"f:status": map[string]any{"f:conditions": strings.Repeat("x", 2500)}}
		pods = append(pods, object{namespace: fmt.Sprintf("ns-%04d", i/20), name: fmt.Sprintf("cart-%05d", i), more: map[string]any{
			"metadata": map[string]any{
				"name": fmt.Sprintf("cart-%05d", i), "namespace": fmt.Sprintf("ns-%04d", i/20),
				"labels":        map[string]any{"app": "cart", "pod-template-hash": "5d4f8c7b9"},
				"annotations":   map[string]any{"k8s.ovn.org/pod-networks": strings.Repeat("n", 500)},
				"managedFields": []any{map[string]any{"manager": "kubelet", "fieldsV1": fields}},
			},
			"spec":   map[string]any{"nodeName": fmt.Sprintf("node-%03d", i%250), "containers": containers},
			"status": map[string]any{"phase": "Running", "podIP": fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)},
		}})
	}
	return pods
}

// BenchmarkMemory measures the peak of the memory of a process that gathers 5 000 pods.
func BenchmarkMemory(b *testing.B) {
	const pods = 5000
	for name, each := range map[string]struct {
		redacted string
		paged    bool
	}{"Pages": {paged: true}, "Redacted": {redacted: "yes", paged: true}, "OnePage": {}} {
		b.Run(name, func(b *testing.B) {
			served := httptest.NewServer(server{pageBound: 500, whole: !each.paged, objects: map[string][]object{"pods": realistic(pods)}})
			b.Cleanup(served.Close)
			for b.Loop() {
				process := exec.CommandContext(b.Context(), os.Args[0])
				process.Env = append(os.Environ(), serverVariable+"="+served.URL, redactVariable+"="+each.redacted)
				out, err := process.CombinedOutput()
				_, peak, _ := strings.Cut(string(out), "VmHWM:")
				var kilobytes float64
				if _, scanErr := fmt.Sscan(peak, &kilobytes); errors.Join(err, scanErr) != nil {
					b.Fatalf("%v, %v: %s", err, scanErr, out)
				}
				b.ReportMetric(kilobytes/1024, "peak-MiB")
			}
		})
	}
}
