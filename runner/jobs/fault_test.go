package jobs_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/launch"
)

// deafness has the first watch on a kind of object see nothing, until it is said
// to be too old.
type deafness struct {
	first *watch.FakeWatcher
	once  sync.Once
}

func deafen(s *simulation, resource string) *deafness {
	d := &deafness{first: watch.NewFake()}
	s.client.PrependWatchReactor(resource, func(clienttesting.Action) (bool, watch.Interface, error) {
		first := false
		d.once.Do(func() { first = true })
		return first, d.first, nil
	})
	return d
}

// tooOld ends the deaf watch as an API server does that has compacted.
func (d *deafness) tooOld() {
	d.first.Error(&apierrors.NewResourceExpired("too old resource version").ErrStatus)
}

func TestWhatHappensWhileTheWatchIsCut(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		deaf   string
		// there is true when the Job is there before anybody watches.
		there bool
		life  func(s *simulation, job *batchv1.Job)
		times int
	}{
		"ComeAndGone": {
			reason: "a Job that nobody ever saw, and that is deleted, is missed when all are listed",
			deaf:   "jobs", times: 2, life: removedOnce,
		},
		"Deleted": {
			reason: "so is one that was seen",
			deaf:   "jobs", times: 1, there: true, life: removedOnce,
		},
		"PodEnded": {
			reason: "what a pod has come to is seen late, and not lost",
			deaf:   "pods", times: 1, life: passes,
		},
		"PodGone": {
			reason: "a pod that has come and gone took its word along",
			deaf:   "pods", times: 2, life: func(s *simulation, job *batchv1.Job) {
				if s.lives(job) > 1 {
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
				s := newSimulation(t.Context(), t, tc.life, checks("etcd", 1)...)
				if tc.there {
					if err := s.create(t.Context(), s.plan.Checks[0]); err != nil {
						t.Fatal(err)
					}
				}
				deaf := deafen(s, tc.deaf)
				s.alive.Go(func() {
					if s.pass(30 * time.Second) {
						deaf.tooOld()
					}
				})
				got := s.collect(jobs.Options{})
				if diff := cmp.Diff([]string{passed}, got); diff != "" {
					t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
				}
				if len(s.started) != tc.times {
					t.Errorf("%s: want it started %d times, got %v", tc.reason, tc.times, s.started)
				}
				if took := s.done[s.plan.Checks[0].Name]; took > time.Minute {
					t.Errorf("%s: the answer came after %s", tc.reason, took)
				}
			})
		})
	}
}

// removedOnce is the life of a Job that somebody deletes the first time.
func removedOnce(s *simulation, job *batchv1.Job) {
	if s.lives(job) > 1 {
		passes(s, job)
		return
	}
	if s.pass(10 * time.Second) {
		s.check(s.remove(s.ctx, job))
	}
}

// A list is asked for as it is now: an API server's cache may lack what this run
// has just created.
func TestListsAreTheNewest(t *testing.T) {
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
			t.Error("nothing was listed")
		}
	})
}

// loggedBy is an API server whose requests for logs are answered by serve.
func loggedBy(t *testing.T, serve http.HandlerFunc) kubernetes.Interface {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.Transport, proxy.FlushInterval = transport, -1
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

func TestALogThatCannotBeReadAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		trouble func(http.ResponseWriter)
		framed  bool
		want    string
		reads   int32
	}{
		"KubeletRestarts": {
			reason: "an answer that depends on a log is worth a second try", framed: true, want: "Etcd.Quorum Warn(Because)", reads: 3,
			trouble: func(w http.ResponseWriter) { http.Error(w, "connect: connection refused", http.StatusBadGateway) },
		},
		"NoTime": {
			reason: "so it is when the API server has no time", framed: true, want: "Etcd.Quorum Warn(Because)", reads: 3,
			trouble: func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		},
		"NoLog": {
			reason: "what is not there is not asked for again", framed: true, want: "Etcd.Check0 Unknown(NoResult)", reads: 1,
			trouble: func(w http.ResponseWriter) { http.Error(w, "no such log", http.StatusNotFound) },
		},
		"AScript": {
			reason: "a script that passed needs no log, and one that warns has it read", want: "Etcd.Quorum Warn(Because)", reads: 3,
			trouble: func(w http.ResponseWriter) { http.Error(w, "later", http.StatusBadGateway) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := newPlan(t, newNamespace(t, nil), 1, func(job *batchv1.Job) {
				if !tc.framed {
					job.Annotations = nil
				}
			})
			text := frameOf(t, preflight.Result{State: preflight.StateFinal, RunID: plan.Run.ID, Findings: []preflight.Finding{said("Quorum", preflight.Warn)}})
			var reads atomic.Int32
			client := loggedBy(t, func(w http.ResponseWriter, _ *http.Request) {
				if reads.Add(1) <= 2 {
					tc.trouble(w)
					return
				}
				fmt.Fprint(w, text)
			})
			startKubelet(t, plan, func(*corev1.Pod) corev1.ContainerStateTerminated { return corev1.ContainerStateTerminated{} })
			sources, err := jobs.Sources(t.Context(), client, launch.New(api), plan, jobs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := collector.Collect(t.Context(), sources, func(collector.Source, []finding.Finding) {}).Findings
			if diff := cmp.Diff([]string{tc.want}, answers(got)); diff != "" || reads.Load() != tc.reads {
				t.Errorf("%s: read %d times, want %d (-want, +got):\n%s\n%+v", tc.reason, reads.Load(), tc.reads, diff, got)
			}
		})
	}
}

// A runner that leaves in the middle of reading must not leave an answer that it
// has not read.
func TestAnInterruptWhileReadingIsNoAnswer(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := loggedBy(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	startKubelet(t, plan, func(*corev1.Pod) corev1.ContainerStateTerminated { return corev1.ContainerStateTerminated{} })
	sources, err := jobs.Sources(ctx, client, launch.New(api), plan, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sources[0].Collect(ctx); err == nil || len(got) > 0 {
		t.Errorf("want no answer, got %v %v", answers(got), err)
	}
}

func TestRequestsPerJob(t *testing.T) {
	const n = 10
	plan := newPlan(t, newNamespace(t, nil), n, nil)
	var mutex sync.Mutex
	requests := map[string]int{}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	counting := rest.CopyConfig(config)
	counting.TLSClientConfig, counting.Transport = rest.TLSClientConfig{}, roundTripper(func(r *http.Request) (*http.Response, error) {
		mutex.Lock()
		requests[r.Method]++
		mutex.Unlock()
		return transport.RoundTrip(r)
	})
	client, err := kubernetes.NewForConfig(counting)
	if err != nil {
		t.Fatal(err)
	}
	startKubelet(t, plan, saying(t, plan, 0, said("Quorum", preflight.Pass)))
	launcher := launch.New(client)
	if findings, _ := launcher.Validate(t.Context(), plan); len(findings) > 0 {
		t.Fatal(findings)
	}
	sources, err := jobs.Sources(t.Context(), client, launcher, plan, jobs.Options{Parallelism: 3})
	if err != nil {
		t.Fatal(err)
	}
	got := answers(collector.Collect(t.Context(), sources, func(collector.Source, []finding.Finding) {}).Findings)
	if diff := cmp.Diff(slices.Repeat([]string{passed}, n), got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
	mutex.Lock()
	defer mutex.Unlock()
	// A dry run and a creation each; three watches, which may take a list too.
	if requests[http.MethodPost] != 2*n || requests[http.MethodGet] > 6 || len(requests) != 2 {
		t.Errorf("%d Jobs took these requests: %v", n, requests)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
