package jobs_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/transport"
)

// silentWatch makes the first watch on a resource return no events, until its
// resourceVersion expires.
type silentWatch struct {
	first *watch.FakeWatcher
	once  sync.Once
}

func silence(s *simulation, resource string) *silentWatch {
	d := &silentWatch{first: watch.NewFake()}
	s.client.PrependWatchReactor(resource, func(clienttesting.Action) (bool, watch.Interface, error) {
		first := false
		d.once.Do(func() { first = true })
		return first, d.first, nil
	})
	return d
}

// expire ends the watch like an API server after a compaction.
func (d *silentWatch) expire() {
	d.first.Error(&apierrors.NewResourceExpired("too old resource version").ErrStatus)
}

func TestChangesDuringInterruptedWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		silent string
		// existing is true when the Job exists before the watch.
		existing  bool
		lifecycle func(s *simulation, job *batchv1.Job)
		times     int
		// lists of the silent resource are requested at first and when its watch has ended.
		// Further ones are for a pod that a finished Job should have.
		lists int
	}{
		"CreatedAndDeleted": {
			reason: "a created Job that was never observed and is deleted is missing from the list",
			silent: "jobs", times: 2, lists: 2, lifecycle: removedOnce,
		},
		"Deleted": {
			reason: "an observed Job that is deleted is missing from the list",
			silent: "jobs", times: 1, lists: 2, existing: true, lifecycle: removedOnce,
		},
		"PodEnded": {
			reason: "the end of a pod is observed late",
			silent: "pods", times: 1, lists: 2, lifecycle: passes,
		},
		"PodGone": {
			reason: "the result of a pod that was created and deleted is lost",
			silent: "pods", times: 2, lists: 4, lifecycle: func(s *simulation, job *batchv1.Job) {
				if s.createdJobs(job) > 1 {
					passes(s, job)
					return
				}
				pod := s.pod(job, running)
				s.finish(job)
				s.check(s.client.CoreV1().Pods(pod.Namespace).Delete(s.ctx, pod.Name, metav1.DeleteOptions{}))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t.Context(), t, tc.lifecycle, checks("etcd", 1)...)
				if tc.existing {
					if err := s.create(t.Context(), s.plan.Checks[0]); err != nil {
						t.Fatal(err)
					}
				}
				silent := silence(s, tc.silent)
				s.alive.Go(func() {
					if s.pass(30 * time.Second) {
						silent.expire()
					}
				})
				got := s.collect(jobs.Options{})
				if diff := cmp.Diff([]string{passed}, got); diff != "" {
					t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
				}
				if len(s.started) != tc.times {
					t.Errorf("%s: want it started %d times, got %v", tc.reason, tc.times, s.started)
				}
				if lists := s.lists(tc.silent); lists != tc.lists {
					t.Errorf("%s: %s were listed %d times, want %d: nothing is polled", tc.reason, tc.silent, lists, tc.lists)
				}
			})
		})
	}
}

// lists counts the requests that listed a resource.
func (s *simulation) lists(resource string) int {
	count := 0
	for _, action := range s.client.Actions() {
		if action.Matches("list", resource) {
			count++
		}
	}
	return count
}

// removedOnce is a lifecycle in which another client deletes the first Job.
func removedOnce(s *simulation, job *batchv1.Job) {
	if s.createdJobs(job) > 1 {
		passes(s, job)
		return
	}
	if s.pass(10 * time.Second) {
		s.check(s.remove(s.ctx, job))
	}
}

// A cache of the API server may lack the Jobs that this run has just created.
func TestListsAreMostRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t.Context(), t, passes, checks("etcd", 1)...)
		lists := 0
		s.client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if list, ok := action.(clienttesting.ListActionImpl); ok && action.GetResource().Resource != "events" && s.ctx.Err() == nil {
				lists++
				if options := list.ListOptions; options.ResourceVersion != "" || options.ResourceVersionMatch != "" {
					t.Errorf("%s listed at version %q", action.GetResource().Resource, options.ResourceVersion)
				}
			}
			return false, nil, nil
		})
		s.collect(jobs.Options{})
		if lists == 0 {
			t.Error("no list was requested")
		}
	})
}

// withLogs returns a client of the API server whose log requests are handled by
// serve.
func withLogs(t *testing.T, serve http.HandlerFunc) kubernetes.Interface {
	t.Helper()
	proxy, err := cluster.ReverseProxy(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/log") {
			serve(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestLogReadIsRetried(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		fail   func(http.ResponseWriter)
		framed bool
		want   string
		reads  int32
	}{
		"KubeletRestarts": {
			reason: "a required log is read again", framed: true, want: "Etcd.Quorum Warn(Because)", reads: 3,
			fail: func(w http.ResponseWriter) { http.Error(w, "connect: connection refused", http.StatusBadGateway) },
		},
		"Overloaded": {
			reason: "a required log is read again after status 429", framed: true, want: "Etcd.Quorum Warn(Because)", reads: 3,
			fail: func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		},
		"NoLog": {
			reason: "a missing log is not read again", framed: true, want: "Etcd.Check0 Unknown(NoResult)", reads: 1,
			fail: func(w http.ResponseWriter) { http.Error(w, "no such log", http.StatusNotFound) },
		},
		"Script": {
			reason: "the log of a script that passed is read for warnings, but not required", want: "Etcd.Quorum Warn(Because)", reads: 3,
			fail: func(w http.ResponseWriter) { http.Error(w, "later", http.StatusBadGateway) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := newPlan(t, newNamespace(t, nil), 1, func(job *batchv1.Job) {
				if !tc.framed {
					job.Annotations = nil
				}
			})
			text := frameOf(t, preflight.Result{
				State: preflight.StateFinal, RunID: plan.Run.ID,
				Findings: []preflight.Finding{reported("Quorum", preflight.Warn)},
			})
			var reads atomic.Int32
			client := withLogs(t, func(w http.ResponseWriter, _ *http.Request) {
				if reads.Add(1) <= 2 {
					tc.fail(w)
					return
				}
				fmt.Fprint(w, text)
			})
			startKubelet(t, plan, func(*corev1.Pod) corev1.ContainerStateTerminated { return corev1.ContainerStateTerminated{} })
			sources, err := jobs.Sources(t.Context(), client, launch.New(inventory.New(api, objects)), plan, jobs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := collector.Collect(t.Context(), sources, func(collector.Source, []finding.Finding) {}).Findings
			if diff := cmp.Diff([]string{tc.want}, outcomes(got)); diff != "" || reads.Load() != tc.reads {
				t.Errorf("%s: read %d times, want %d (-want, +got):\n%s\n%+v", tc.reason, reads.Load(), tc.reads, diff, got)
			}
		})
	}
}

// A runner that is interrupted while it reads a log must not report findings.
func TestInterruptWhileReadingLog(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := withLogs(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	startKubelet(t, plan, func(*corev1.Pod) corev1.ContainerStateTerminated { return corev1.ContainerStateTerminated{} })
	sources, err := jobs.Sources(ctx, client, launch.New(inventory.New(api, objects)), plan, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sources[0].Collect(ctx); err == nil || len(got) > 0 {
		t.Errorf("want no findings, got %v %v", outcomes(got), err)
	}
}

func TestRequestsPerJob(t *testing.T) {
	const n = 10
	plan := newPlan(t, newNamespace(t, nil), n, nil)
	var mutex sync.Mutex
	requests := map[string]int{}
	next, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	counting := rest.CopyConfig(config)
	counting.TLSClientConfig, counting.Transport = rest.TLSClientConfig{}, transport.Func(func(r *http.Request) (*http.Response, error) {
		mutex.Lock()
		requests[r.Method]++
		mutex.Unlock()
		return next.RoundTrip(r)
	})
	client, err := kubernetes.NewForConfig(counting)
	if err != nil {
		t.Fatal(err)
	}
	counted, err := metadata.NewForConfig(counting)
	if err != nil {
		t.Fatal(err)
	}
	startKubelet(t, plan, exitingWith(t, plan, 0, reported("Quorum", preflight.Pass)))
	launcher := launch.New(inventory.New(client, counted))
	if findings, _ := launcher.Validate(t.Context(), plan); len(findings) > 0 {
		t.Fatal(findings)
	}
	sources, err := jobs.Sources(t.Context(), client, launcher, plan, jobs.Options{Parallelism: 3})
	if err != nil {
		t.Fatal(err)
	}
	got := outcomes(collector.Collect(t.Context(), sources, func(collector.Source, []finding.Finding) {}).Findings)
	if diff := cmp.Diff(slices.Repeat([]string{passed}, n), got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	mutex.Lock()
	defer mutex.Unlock()
	// A dry run and a creation each, and a dry run for the copy of their ServiceAccount,
	// which is read with the bindings; three watches, each possibly with a list; the quotas
	// and limit ranges of the namespace.
	if requests[http.MethodPost] != 2*n+1 || requests[http.MethodGet] > 3+6+2 || len(requests) != 2 {
		t.Errorf("%d Jobs took these requests: %v", n, requests)
	}
}
