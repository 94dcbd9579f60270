package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/payload"
)

// newNamespace is deleted after the test.
func newNamespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	namespace, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "jobs-", Labels: labels},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.CoreV1().Namespaces().Delete(context.Background(), namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return namespace.Name
}

// newPlan has as many checks, which promise a result.
func newPlan(t *testing.T, namespace string, checks int, change func(*batchv1.Job)) launch.Plan {
	t.Helper()
	const image = "quay.io/openshift/etcd@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	release := &payload.Release{Images: map[string]string{"etcd": image}}
	for i := range checks {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("check-%d", i), Namespace: namespace, Annotations: map[string]string{"preflight.openshift.io/result": "framed"},
		}}
		job.Spec.Template.Spec = corev1.PodSpec{
			Containers: []corev1.Container{{Name: "check", Image: image}}, AutomountServiceAccountToken: new(false),
		}
		if change != nil {
			change(job)
		}
		release.Jobs = append(release.Jobs, payload.Job{File: "0000_12_etcd.yaml", Component: "etcd", Job: job})
	}
	run := launch.Run{ID: uuid.NewString(), StartTime: time.Now(), Deadline: time.Now().Add(time.Hour)}
	draft := launch.NewDraft(run.From, release)
	plan := draft.Bind(run)
	if len(draft.Refused) > 0 {
		t.Fatal(draft.Refused)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if left, err := launch.New(api).Cleanup(ctx, run.ID); err != nil {
			t.Errorf("left %v: %v", left, err)
		}
	})
	return plan
}

// collect asks all sources of a plan.
func collect(ctx context.Context, t *testing.T, plan launch.Plan, options jobs.Options) collector.Collection {
	t.Helper()
	sources, err := jobs.Sources(ctx, api, launch.New(api), plan, options)
	if err != nil {
		t.Fatal(err)
	}
	return collector.Collect(ctx, sources, func(collector.Source, []finding.Finding) {})
}

// sandglass is a context whose time is up when a test says so.
type sandglass struct {
	context.Context
	done chan struct{}
	end  func()
}

func newSandglass(t *testing.T) sandglass {
	t.Helper()
	done := make(chan struct{})
	return sandglass{t.Context(), done, sync.OnceFunc(func() { close(done) })}
}

func (s sandglass) Done() <-chan struct{} { return s.done }

func (s sandglass) Err() error {
	select {
	case <-s.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// endWhen ends the time once a check waits for that.
func (s sandglass) endWhen(words string) func(jobs.Status) {
	return func(status jobs.Status) {
		if strings.Contains(status.Detail, words) {
			s.end()
		}
	}
}

// kubelet has the pods of a run go through what a node would have them go
// through, until the test ends.
type kubelet struct {
	t    *testing.T
	plan launch.Plan
	end  func(pod *corev1.Pod) corev1.ContainerStateTerminated

	mutex sync.Mutex
	// atWork are the pods at work now, most is how many there were at most.
	atWork map[string]bool
	most   int
}

func startKubelet(t *testing.T, plan launch.Plan, end func(*corev1.Pod) corev1.ContainerStateTerminated) *kubelet {
	t.Helper()
	k := &kubelet{t: t, plan: plan, end: end, atWork: map[string]bool{}}
	watch, err := api.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{LabelSelector: label.Run + "=" + plan.Run.ID})
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	t.Cleanup(func() {
		watch.Stop()
		done.Wait()
	})
	done.Go(func() {
		for event := range watch.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				k.step(pod.DeepCopy())
			}
		}
	})
	return k
}

// step does what comes next for a pod.
func (k *kubelet) step(pod *corev1.Pod) {
	status := corev1.ContainerStatus{Name: "check"}
	switch {
	case pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil:
		k.note(func() { k.atWork[pod.Name] = true })
		pod.Status.Phase = corev1.PodRunning
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
	case pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil:
		end := k.end(pod)
		k.note(func() { delete(k.atWork, pod.Name) })
		pod.Status.Phase = corev1.PodSucceeded
		if end.ExitCode != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		end.FinishedAt = metav1.Now()
		status.State.Terminated = &end
	default:
		return
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	_, err := api.CoreV1().Pods(pod.Namespace).UpdateStatus(k.t.Context(), pod, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && k.t.Context().Err() == nil {
		k.t.Error(err)
	}
}

func (k *kubelet) note(change func()) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	change()
	k.most = max(k.most, len(k.atWork))
}

// saying ends a container with a result of this run.
func saying(t *testing.T, plan launch.Plan, code int32, f preflight.Finding) func(*corev1.Pod) corev1.ContainerStateTerminated {
	t.Helper()
	message := frameOf(t, preflight.Result{State: preflight.StateFinal, RunID: plan.Run.ID, Findings: []preflight.Finding{f}})
	return func(*corev1.Pod) corev1.ContainerStateTerminated {
		return corev1.ContainerStateTerminated{ExitCode: code, Message: message}
	}
}

func TestEveryJobIsHeardWithNoMoreThanThatAtOneTime(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 6, nil)
	node := startKubelet(t, plan, saying(t, plan, 0, said("Quorum", preflight.Pass)))
	told := map[string][]jobs.State{}
	got := collect(t.Context(), t, plan, jobs.Options{Parallelism: 2, Progress: func(status jobs.Status) {
		if states := told[status.Check]; len(states) == 0 || states[len(states)-1] != status.State {
			told[status.Check] = append(told[status.Check], status.State)
		}
	}})
	want := slices.Repeat([]string{"Etcd.Quorum Pass(Because)"}, 6)
	if diff := cmp.Diff(want, answers(got.Findings)); diff != "" || len(got.Missing) > 0 {
		t.Errorf("missing %v, answers (-want, +got):\n%s", got.Missing, diff)
	}
	if node.most > 2 {
		t.Errorf("%d pods were at work at one time, at most 2 may be", node.most)
	}
	for check, states := range told {
		if states[0] != jobs.Queued || states[1] != jobs.Waiting || states[len(states)-1] != jobs.Done {
			t.Errorf("%s went through %v", check, states)
		}
	}
	if len(told) != 6 {
		t.Errorf("progress was told of %d checks", len(told))
	}
}

func TestARunnerThatComesBackHearsWhatWasSaid(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 1, nil)
	startKubelet(t, plan, saying(t, plan, 3, said("Alarm", preflight.Fail)))
	for range 2 {
		got := collect(t.Context(), t, plan, jobs.Options{})
		if diff := cmp.Diff([]string{"Etcd.Alarm Fail(Because)"}, answers(got.Findings)); diff != "" {
			t.Errorf("(-want, +got):\n%s", diff)
		}
	}
}

func TestAScriptThatFailsIsTriedAgainAndThenFails(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 1, func(job *batchv1.Job) {
		job.Annotations, job.Spec.BackoffLimit = nil, new(int32(0))
	})
	startKubelet(t, plan, func(*corev1.Pod) corev1.ContainerStateTerminated {
		return corev1.ContainerStateTerminated{ExitCode: 1, Message: "no quorum\n"}
	})
	got := collect(t.Context(), t, plan, jobs.Options{}).Findings
	if len(got) != 1 || got[0].Outcome != preflight.Fail || !strings.Contains(got[0].Message, "no quorum") {
		t.Errorf("want the script's last words as a failure, got %+v", got)
	}
	if job := got[0].Job; job == nil || job.ExitCode == nil || *job.ExitCode != 1 || job.Attempts != 1 {
		t.Errorf("where it ran is not told: %+v", job)
	}
}

func TestWhatKeepsAJobFromRunning(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		labels   map[string]string
		job      func(*batchv1.Job)
		arrange  func(t *testing.T, namespace string)
		toTheEnd bool // there is hope as long as there is time
		want     string
		words    string
	}{
		"ServiceAccountMissing": {
			reason: "the Job controller's event is the only trace",
			job:    func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "absent" },
			want:   "Etcd.Check0 Unknown(ServiceAccountMissing)", words: `serviceaccount "absent" not found`,
		},
		"PodSecurity": {
			reason: "the namespace's level holds for our pods too",
			labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			want:   "Etcd.Check0 Unknown(PodSecurity)", words: "runAsNonRoot",
		},
		"Quota": {
			reason: "a quota may be freed while there is time", toTheEnd: true,
			arrange: func(t *testing.T, namespace string) {
				t.Helper()
				_, err := api.CoreV1().ResourceQuotas(namespace).Create(t.Context(), &corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Name: "full"},
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
			},
			want: "Etcd.Check0 Unknown(QuotaExceeded)", words: "full",
		},
		"Unschedulable": {
			reason: "there is no node", toTheEnd: true,
			want: "Etcd.Check0 Unknown(Unschedulable)", words: "no nodes available",
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t, tc.labels)
			if tc.arrange != nil {
				tc.arrange(t, namespace)
			}
			ctx, options := newSandglass(t), jobs.Options{}
			defer ctx.end()
			if tc.toTheEnd {
				options.Progress = ctx.endWhen(tc.words)
			}
			got := collect(ctx, t, newPlan(t, namespace, 1, tc.job), options).Findings
			if diff := cmp.Diff([]string{tc.want}, answers(got)); diff != "" || !strings.Contains(got[0].Message, tc.words) {
				t.Errorf("%s (-want, +got):\n%s\n%+v", tc.reason, diff, got)
			}
		})
	}
}

func TestAWatchThatIsCut(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 3, nil)
	front := newFront(t)
	sources, err := jobs.Sources(t.Context(), front.client, launch.New(api), plan, jobs.Options{Progress: func(status jobs.Status) {
		if strings.Contains(status.Detail, "no node takes its pod") {
			front.server.CloseClientConnections()
			front.once.Do(func() {
				// What happens from here on is not seen as it happens.
				startKubelet(t, plan, saying(t, plan, 0, said("Quorum", preflight.Pass)))
			})
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := collector.Collect(t.Context(), sources, func(collector.Source, []finding.Finding) {})
	want := slices.Repeat([]string{"Etcd.Quorum Pass(Because)"}, 3)
	if diff := cmp.Diff(want, answers(got.Findings)); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// front is a way to the API server that can be cut.
type front struct {
	client kubernetes.Interface
	server *httptest.Server
	once   sync.Once
}

func newFront(t *testing.T) *front {
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
	proxy.Transport, proxy.FlushInterval, proxy.ErrorLog = transport, -1, log.New(io.Discard, "", 0)
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &front{client: client, server: server}
}

// remove deletes a Job and its pods, as somebody else would.
func remove(t *testing.T, job *batchv1.Job) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := api.BatchV1().Jobs(job.Namespace).Delete(t.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Error(err)
	}
}

func TestAJobThatSomebodyDeletes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		times  int
		want   string
	}{
		"Once":  {"what it had to say is lost, so it is started once more", 1, "Etcd.Quorum Pass(Because)"},
		"Twice": {"somebody does not want it to run", 2, "Etcd.Check0 Unknown(JobDeleted)"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := newPlan(t, newNamespace(t, nil), 1, nil)
			left := tc.times
			got := collect(t.Context(), t, plan, jobs.Options{Progress: func(status jobs.Status) {
				switch {
				case !strings.HasPrefix(status.Detail, "no node takes its pod"):
				case left > 0:
					left--
					remove(t, plan.Checks[0].Job)
				default:
					startKubelet(t, plan, saying(t, plan, 0, said("Quorum", preflight.Pass)))
				}
			}})
			if diff := cmp.Diff([]string{tc.want}, answers(got.Findings)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s\n%+v", tc.reason, diff, got)
			}
			if job := got.Findings[0].Job; tc.times == 1 && (job == nil || job.Attempts != 1) {
				t.Errorf("that somebody deleted it is no attempt: %+v", job)
			}
		})
	}
}

func TestTheEndOfTimeAnswersForThoseInTheQueueToo(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 2, nil)
	ctx := newSandglass(t)
	defer ctx.end()
	got := collect(ctx, t, plan, jobs.Options{Parallelism: 1, Progress: ctx.endWhen("no node takes its pod")})
	var reasons []string
	for _, f := range got.Findings {
		reasons = append(reasons, f.Reason)
	}
	slices.Sort(reasons)
	if diff := cmp.Diff([]string{"NotStarted", "Unschedulable"}, reasons); diff != "" {
		t.Errorf("(-want, +got):\n%s\n%+v", diff, got.Findings)
	}
}

func TestAnInterruptIsNoAnswer(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 2, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := collect(ctx, t, plan, jobs.Options{Parallelism: 1, Progress: func(status jobs.Status) {
		if strings.Contains(status.Detail, "no node takes its pod") {
			cancel()
		}
	}})
	for _, f := range got.Findings {
		if f.Outcome != preflight.Unknown || f.Reason != "Interrupted" {
			t.Errorf("want Unknown(Interrupted), got %+v", f)
		}
	}
	if len(got.Findings) != 2 || len(got.Missing) != 2 {
		t.Errorf("want two checks that did not report, got %+v", got)
	}
}

type startFunc func(context.Context, launch.Check) error

func (f startFunc) Start(ctx context.Context, check launch.Check) error { return f(ctx, check) }
func (f startFunc) End(context.Context, launch.Check) error             { return nil }

func TestAJobThatCannotBeCreated(t *testing.T) {
	errQuota := errors.New(`jobs.batch "check-0" is forbidden: exceeded quota: full`)
	plan := newPlan(t, newNamespace(t, nil), 1, nil)
	start := startFunc(func(context.Context, launch.Check) error { return errQuota })
	sources, err := jobs.Sources(t.Context(), api, start, plan, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := sources[0].Collect(t.Context())
	if diff := cmp.Diff([]string{"Etcd.Check0 Unknown(QuotaExceeded)"}, answers(got)); diff != "" || err != nil {
		t.Errorf("error %v (-want, +got):\n%s", err, diff)
	}
	if sources[0].Name != "Etcd.Check0" || sources[0].Kind != finding.SourceJob {
		t.Errorf("the source is called %s of %s", sources[0].Name, sources[0].Kind)
	}
}

func TestWhoMayNotWatchIsToldAtOnce(t *testing.T) {
	nobody := rest.CopyConfig(config)
	nobody.Impersonate.UserName = "nobody"
	client, err := kubernetes.NewForConfig(nobody)
	if err != nil {
		t.Fatal(err)
	}
	_, err = jobs.Sources(t.Context(), client, launch.New(client), newPlan(t, newNamespace(t, nil), 1, nil), jobs.Options{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("want what is missing, got %v", err)
	}
}
