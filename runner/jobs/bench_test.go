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
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/test/transport"
)

// BenchmarkJobs runs checks against a stateless API server, over HTTP, with objects
// of realistic size and results of 4 KiB. "kept" is the heap per Job when all checks
// are complete, including findings and plan; "peak" is the maximum.
func BenchmarkJobs(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				runtime.GC()
				before := heap()
				plan := jobplan.Plan{Run: jobplan.Run{ID: runID}, Checks: checks("etcd", n)}
				server := &stateless{streams: map[string]chan watchEvent{"jobs": make(chan watchEvent, 1024), "pods": make(chan watchEvent, 1024)}}
				config := &rest.Config{
					Host: "http://localhost", QPS: -1, Transport: transport.Func(server.serve),
					ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
				}
				client, err := kubernetes.NewForConfig(config)
				if err != nil {
					b.Fatal(err)
				}
				sources, err := jobs.Sources(b.Context(), client, launch.New(inventory.New(client, metadata.NewForConfigOrDie(config))), plan,
					jobs.Options{})
				if err != nil {
					b.Fatal(err)
				}
				peak, completed := uint64(0), 0
				got := collector.Collect(b.Context(), sources, func(collector.Source, []finding.Finding) {
					if completed++; completed%100 == 0 {
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

// heap is the allocated memory, including garbage.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// stateless is an API server that sends all watch events of a Job when it is
// created.
type stateless struct {
	streams map[string]chan watchEvent
}

// watchEvent is an event of a watch, and a function to call once it was sent.
type watchEvent struct {
	kind   string
	object apiruntime.Object
	then   func()
}

// stream sends events until ctx is done.
func (f *stateless) stream(ctx context.Context, resource string, to *io.PipeWriter) error {
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

func (f *stateless) serve(r *http.Request) (*http.Response, error) {
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
		response.StatusCode = http.StatusBadRequest // the client lists instead
		response.Body = io.NopCloser(strings.NewReader("{}"))
	case r.URL.Query().Get("watch") != "":
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(f.stream(r.Context(), resource, writer)) }()
		response.Body = reader
	default:
		kind := map[string]string{"jobs": "JobList", "pods": "PodList", "events": "EventList"}[resource]
		version := map[bool]string{true: "batch/v1", false: "v1"}[resource == "jobs"]
		response.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`,
			kind, version)))
	}
	return response, nil
}

// run sends all events of a Job, and returns the created Job.
func (f *stateless) run(job *batchv1.Job) ([]byte, error) {
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
			Labels:          map[string]string{label.Run: runID, batchv1.JobNameLabel: job.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager:  "kubelet",
				FieldsV1: metav1.NewFieldsV1(`{"f:status":"` + strings.Repeat("x", 6<<10) + `"}`),
			}},
		},
		Spec: job.Spec.Template.Spec,
	}
	done := job.DeepCopy()
	done.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	ended := pod.DeepCopy()
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "check", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: string(result)},
	}}}
	f.streams["jobs"] <- watchEvent{kind: "ADDED", object: job}
	f.streams["pods"] <- watchEvent{kind: "ADDED", object: pod}
	f.streams["pods"] <- watchEvent{
		kind: "MODIFIED", object: ended,
		then: func() { f.streams["jobs"] <- watchEvent{kind: "MODIFIED", object: done} },
	}
	return body, nil
}

// result is a result of about 4 KiB that does not compress.
func result(job *batchv1.Job) ([]byte, error) {
	noise := make([]byte, 1800)
	if _, err := rand.Read(noise); err != nil {
		return nil, err
	}
	return preflight.Result{
		State: preflight.StateFinal, RunID: job.Labels[label.Run],
		Findings: []preflight.Finding{{
			Name: "Quorum", Outcome: preflight.Pass, Reason: "Because",
			Evidence: map[string]string{"noise": hex.EncodeToString(noise)[:1800], "more": hex.EncodeToString(noise)[1800:]},
		}},
	}.Frame(4096)
}
