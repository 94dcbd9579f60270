package definition_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/payload"
)

const (
	benchDefinitions = 150
	benchObjects     = 50_000
	benchFields      = 10
)

// wide is a schema of ten nested fields, with rules and defaults.
func wide(minimum int) string {
	var fields []string
	for i := range benchFields {
		fields = append(fields, fmt.Sprintf("f%d: {type: object, properties: {name: {type: string, maxLength: 63, pattern: '^[a-z]+$'}, "+
			"count: {type: integer, minimum: %d, default: 9}, "+
			"items: {type: array, maxItems: 10, items: {type: object, properties: {k: {type: string, maxLength: 20}}}}}}", i, minimum))
	}
	return "{type: object, x-kubernetes-validations: [{rule: \"!has(self.f0.name) || self.f0.name != 'x'\"}], properties: {" +
		strings.Join(fields, ", ") + "}}"
}

// stub is an API server with 150 definitions, whose schemas the target changes, and
// 50 000 objects of about 700 bytes and 80 values. It measures the heap with each page.
type stub struct {
	manifest, object string
	peak             uint64
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, name, found := strings.Cut(r.URL.Path, "/customresourcedefinitions/")
	if found {
		plural, _, _ := strings.Cut(name, ".")
		text := strings.ReplaceAll(s.manifest, "PLURAL", plural)
		fmt.Fprint(w, strings.Replace(text, `"metadata":{`, `"metadata":{"resourceVersion":"1",`, 1))
		return
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s.peak = max(s.peak, memory.HeapAlloc)
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	start, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	end := min(start+limit, benchObjects/benchDefinitions)
	next := ""
	if end < benchObjects/benchDefinitions {
		next = strconv.Itoa(end)
	}
	items := strings.TrimSuffix(strings.Repeat(s.object+",", end-start), ",")
	fmt.Fprintf(w, `{"apiVersion":"bench.example.com/v1","kind":"List","metadata":{"continue":%q},"items":[%s]}`, next, items)
}

// BenchmarkCheck validates 50 000 objects of 150 definitions under changed schemas. It
// reports the time, and the peak of the heap with the server's responses.
func BenchmarkCheck(b *testing.B) {
	s, definitions := newStub(b)
	web := httptest.NewServer(s)
	defer web.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: web.URL, QPS: -1})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		findings, err := definition.Check(client, definitions).Run(b.Context(), check.Subject{Now: time.Now()})
		if err != nil || len(findings) != 1 || findings[0].Outcome != "Pass" {
			b.Fatalf("%v: %d findings: %.500s", err, len(findings), texts(findings))
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s-check")
	b.ReportMetric(float64(s.peak)/(1<<20), "MiB-peak")
}

func newStub(b *testing.B) (*stub, []payload.Definition) {
	b.Helper()
	present := strings.ReplaceAll(crd("PLURAL", "", version("v1", wide(0), true, true)), group, "bench.example.com")
	target := strings.ReplaceAll(crd("PLURAL", "", version("v1", wide(1), true, true)), group, "bench.example.com")
	manifest, err := yaml.YAMLToJSON([]byte(present))
	if err != nil {
		b.Fatal(err)
	}
	spec := map[string]any{}
	for i := range benchFields {
		spec[fmt.Sprintf("f%d", i)] = map[string]any{"name": "abcdef", "items": []any{map[string]any{"k": "v"}, map[string]any{"k": "w"}}}
	}
	object, err := json.Marshal(map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "PLURAL", "metadata": map[string]any{"name": "o", "namespace": "default"}, "spec": spec,
	})
	if err != nil {
		b.Fatal(err)
	}
	var definitions []payload.Definition
	for i := range benchDefinitions {
		plural := fmt.Sprintf("bench%d", i)
		definitions = append(definitions, payload.Definition{
			Name: plural + ".bench.example.com", Manifest: []byte(strings.ReplaceAll(target, "PLURAL", plural)),
		})
	}
	return &stub{manifest: string(manifest), object: string(object)}, definitions
}
