package jobs_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
)

// BenchmarkJobs has checks answered by an API server that keeps nothing, over
// HTTP, with objects as big as they are on a cluster and 4 KiB of result each.
// "kept" is what the process holds for a Job when all are answered, findings and
// plan included; "peak" is the most that it held at one time.
func BenchmarkJobs(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				runtime.GC()
				before := heap()
				plan := launch.Plan{Run: launch.Run{ID: runID}, Checks: checks("etcd", n)}
				server := &forgetful{streams: map[string]chan told{"jobs": make(chan told, 1024), "pods": make(chan told, 1024)}}
				client, err := kubernetes.NewForConfig(&rest.Config{
					Host: "http://localhost", QPS: -1, Transport: roundTripper(server.serve),
					ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
				})
				if err != nil {
					b.Fatal(err)
				}
				sources, err := jobs.Sources(b.Context(), client, launch.New(client), plan, jobs.Options{})
				if err != nil {
					b.Fatal(err)
				}
				peak, answered := uint64(0), 0
				got := collector.Collect(b.Context(), sources, func(collector.Source, []finding.Finding) {
					if answered++; answered%100 == 0 {
						peak = max(peak, heap())
					}
				})
				if len(got.Findings) != n || got.Findings[0].Outcome != preflight.Pass {
					b.Fatalf("%d findings, the first is %+v", len(got.Findings), got.Findings[0])
				}
				runtime.GC()
				b.ReportMetric(float64(heap()-before)/float64(n), "kept-B/job")
				b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
				runtime.KeepAlive(sources)
			}
		})
	}
}

// heap is what is allocated, with what is not needed any more.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// forgetful is an API server that says what becomes of each Job as it is
// created.
type forgetful struct {
	streams map[string]chan told
}

// told is an event of a watch, and what is told once that was.
type told struct {
	kind   string
	object apiruntime.Object
	then   func()
}

// stream sends events as they come.
func (f *forgetful) stream(ctx context.Context, resource string, to *io.PipeWriter) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-f.streams[resource]:
			err := json.NewEncoder(to).Encode(map[string]any{"type": event.kind, "object": event.object})
			if err != nil {
				return err
			}
			if event.then != nil {
				event.then()
			}
		}
	}
}

func (f *forgetful) serve(r *http.Request) (*http.Response, error) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	switch {
	case r.Method == http.MethodPost:
		job := &batchv1.Job{}
		if err := json.NewDecoder(r.Body).Decode(job); err != nil {
			return nil, err
		}
		body, err := f.run(job)
		response.Body = io.NopCloser(bytes.NewReader(body))
		return response, err
	case r.URL.Query().Get("sendInitialEvents") != "":
		response.StatusCode = http.StatusBadRequest // it lists instead
		response.Body = io.NopCloser(strings.NewReader("{}"))
	case r.URL.Query().Get("watch") != "":
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(f.stream(r.Context(), resource, writer)) }()
		response.Body = reader
	default:
		kind := map[string]string{"jobs": "JobList", "pods": "PodList", "events": "EventList"}[resource]
		version := map[bool]string{true: "batch/v1", false: "v1"}[resource == "jobs"]
		response.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind, version)))
	}
	return response, nil
}

// run says all that becomes of a Job, and returns it as it was created.
func (f *forgetful) run(job *batchv1.Job) ([]byte, error) {
	job.UID, job.ResourceVersion = types.UID(uuid.NewString()), "2"
	body, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	result, err := result(job)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + "-abcde", Namespace: job.Namespace, UID: types.UID(uuid.NewString()), ResourceVersion: "3",
			Labels:        map[string]string{label.Run: runID, batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID)},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":"` + strings.Repeat("x", 6<<10) + `"}`)}},
		},
		Spec: job.Spec.Template.Spec,
	}
	done := job.DeepCopy()
	done.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	ended := pod.DeepCopy()
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "check", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: string(result)},
	}}}
	f.streams["jobs"] <- told{kind: "ADDED", object: job}
	f.streams["pods"] <- told{kind: "ADDED", object: pod}
	f.streams["pods"] <- told{kind: "MODIFIED", object: ended, then: func() { f.streams["jobs"] <- told{kind: "MODIFIED", object: done} }}
	return body, nil
}

// result is one of about 4 KiB that cannot be made shorter.
func result(job *batchv1.Job) ([]byte, error) {
	noise := make([]byte, 1800)
	if _, err := rand.Read(noise); err != nil {
		return nil, err
	}
	return preflight.Result{State: preflight.StateFinal, RunID: job.Labels[label.Run], Findings: []preflight.Finding{{Name: "Quorum", Outcome: preflight.Pass, Reason: "Because", Evidence: map[string]string{"noise": hex.EncodeToString(noise)[:1800], "more": hex.EncodeToString(noise)[1800:]}}}}.Frame(4096)
}
