package decide_test

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// objects are those of a resource.
type objects struct {
	count int
	at    func(int) runtime.Object
}

// BenchmarkDrainPlan rehearses the drains of a large cluster, and measures what the program takes. Its API server
// responds like a real one: in pages, in protobuf to clients that accept it, and compressed.
func BenchmarkDrainPlan(b *testing.B) {
	program := filepath.Join(b.TempDir(), "oc-preflight")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, "..").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	server := httptest.NewServer(&lists{largeCluster()})
	b.Cleanup(server.Close)
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	content := fmt.Sprintf(
		`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`,
		server.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		command := exec.CommandContext(b.Context(), program, "drain-plan", "-o", "json", "--quiet")
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "GOGC=") // as a user calls it: the suite sets it
		out, err := command.CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		var plan struct {
			Outcome string `json:"outcome"`
		}
		if err := json.Unmarshal(out, &plan); err != nil || plan.Outcome != "Clear" {
			b.Fatalf("%v: %s", err, out)
		}
		if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			// The server has less memory than the program, which would have its peak otherwise.
			b.ReportMetric(float64(usage.Maxrss)/(1<<10), "MiB-peak")
			b.ReportMetric((command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds(), "s-CPU")
		}
	}
}

// lists is an API server that reads only: it has the objects by resource, and no others.
type lists struct{ byResource map[string]objects }

func (l *lists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		_, _ = io.WriteString(w, `{"major":"1","minor":"32","gitVersion":"v1.32.5"}`)
		return
	}
	group, resource, name := divide(r.URL.Path)
	found := l.byResource[resource]
	var body []byte
	var err error
	kind := "application/json"
	accepted := r.Header.Get("Accept")
	switch {
	case name != "" && found.count == 1:
		body, err = json.Marshal(found.at(0))
	case name != "":
		http.NotFound(w, r)
		return
	case strings.Contains(accepted, "as=PartialObjectMetadataList"):
		body, err = found.json(r, metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadataList"})
	case !strings.Contains(group, "openshift.io") && strings.Contains(accepted, runtime.ContentTypeProtobuf):
		kind = runtime.ContentTypeProtobuf
		body, err = found.protobuf(r)
	default:
		body, err = found.json(r, metav1.TypeMeta{})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	write(w, r, body)
}

// divide is what a path names: /api/v1/RESOURCE/NAME or /apis/GROUP/VERSION/RESOURCE/NAME.
func divide(of string) (group, resource, name string) {
	parts := strings.Split(strings.Trim(path.Clean(of), "/"), "/")
	if parts[0] == "apis" && len(parts) > 1 {
		group, parts = parts[1], parts[1:]
	}
	parts = append(parts, "", "", "", "")
	return group, parts[2], parts[3]
}

// write compresses a large response, as an API server does (k8s.io/apiserver
// pkg/endpoints/handlers/responsewriters).
func write(w http.ResponseWriter, r *http.Request, body []byte) {
	if len(body) < 128<<10 || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	compressed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err == nil {
		_, _ = compressed.Write(body)
		_ = compressed.Close()
	}
}

// page is the part of the objects that a request is for, and the metadata of its list.
func (o objects) page(r *http.Request) ([]runtime.Object, metav1.ListMeta) {
	from, _ := strconv.Atoi(r.URL.Query().Get("continue")) // empty for the first
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	to := min(o.count, from+cmp.Or(limit, o.count))
	meta := metav1.ListMeta{ResourceVersion: "184467"}
	if to < o.count {
		meta.Continue = strconv.Itoa(to)
	}
	page := make([]runtime.Object, 0, to-from)
	for at := from; at < to; at++ {
		page = append(page, o.at(at))
	}
	return page, meta
}

// json is a page as a list of this kind; where it is empty, of the kind of the objects.
func (o objects) json(r *http.Request, kind metav1.TypeMeta) ([]byte, error) {
	page, meta := o.page(r)
	if kind.Kind == "" {
		kind = listKind(page)
	}
	return json.Marshal(map[string]any{"apiVersion": kind.APIVersion, "kind": kind.Kind, "metadata": meta, "items": page})
}

// protobuf is a page as Kubernetes encodes lists: each has its metadata as field 1, and its items as field 2.
func (o objects) protobuf(r *http.Request) ([]byte, error) {
	page, meta := o.page(r)
	encoded, err := meta.Marshal()
	if err != nil {
		return nil, err
	}
	list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), encoded)
	for _, each := range page {
		message, ok := each.(interface{ Marshal() ([]byte, error) })
		if !ok {
			return nil, fmt.Errorf("%T has no encoding in protobuf", each)
		}
		if encoded, err = message.Marshal(); err != nil {
			return nil, err
		}
		list = protowire.AppendBytes(protowire.AppendTag(list, 2, protowire.BytesType), encoded)
	}
	kind := listKind(page)
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind}, Raw: list}
	encoded, err = envelope.Marshal()
	return append([]byte("k8s\x00"), encoded...), err
}

// listKind is the kind of a list of objects; that of Kubernetes where there is none.
func listKind(of []runtime.Object) metav1.TypeMeta {
	if len(of) == 0 {
		return metav1.TypeMeta{APIVersion: "v1", Kind: "List"}
	}
	kind := of[0].GetObjectKind().GroupVersionKind()
	if known, _, err := scheme.Scheme.ObjectKinds(of[0]); err == nil {
		kind = known[0]
	}
	return metav1.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind + "List"}
}
