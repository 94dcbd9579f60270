package jobs_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
	"github.com/openshift/update-preflight/runner/launch/cleanup"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/test/cluster"
)

// phase is a state of a pod that lasts.
type phase struct {
	state func(*diagnosis.Pod)
	lasts time.Duration
}

// inPhases is the lifecycle of a Job whose pod has these states, then passes.
func inPhases(phases ...phase) func(*simulation, *batchv1.Job) {
	return func(s *simulation, job *batchv1.Job) {
		pod := s.pod(job, phases[0].state)
		for i, each := range phases {
			if i > 0 {
				s.update(pod, each.state)
			}
			if !s.pass(each.lasts) {
				return
			}
		}
		s.update(pod, ended(0, frame(s.t, preflight.StateFinal, reported("Quorum", preflight.Pass))))
		s.finish(job)
	}
}

// summaries are the waits with their durations.
func summaries(t *testing.T, waits []finding.Wait) []string {
	t.Helper()
	var all []string
	for _, wait := range waits {
		start, err := time.Parse(time.RFC3339, wait.StartTime)
		if err != nil {
			t.Error(err)
		}
		end, err := time.Parse(time.RFC3339, wait.EndTime)
		if err != nil {
			t.Error(err)
		}
		if len(wait.Message) > 256 {
			t.Errorf("a message has %d bytes", len(wait.Message))
		}
		all = append(all, fmt.Sprintf("%s %s", wait.Reason, end.Sub(start)))
	}
	return all
}

func TestWaitsOfChecks(t *testing.T) {
	creating := waiting("ContainerCreating", "")
	pulling := waiting("ErrImagePull", "429 Too Many Requests")
	var flapping []phase
	for range 4 {
		flapping = append(flapping, phase{unscheduled, 2 * time.Second}, phase{creating, 3 * time.Second})
	}
	for name, tc := range map[string]struct {
		reason      string
		phases      []phase
		checks      []jobplan.Check
		parallelism int
		deadline    time.Duration
		want        [][]string
	}{
		"None": {
			reason: "a wait of less than a second is not kept", phases: []phase{{creating, time.Second / 2}, {running, time.Second}},
			checks: checks("etcd", 1), want: [][]string{nil},
		},
		"Starting": {
			reason: "an image is pulled without an error", phases: []phase{{creating, 40 * time.Second}, {running, time.Second}},
			checks: checks("etcd", 1), want: [][]string{{"Starting 40s"}},
		},
		"Pull": {
			reason: "errors are waits of their own, however their messages change", checks: checks("etcd", 1),
			phases: []phase{
				{pulling, 10 * time.Second},
				{waiting("ImagePullBackOff", "Back-off: 429 Too Many Requests"), 10 * time.Second},
				{creating, 5 * time.Second},
				{running, time.Second},
			},
			want: [][]string{{"ImagePull 20s", "Starting 5s"}},
		},
		"Queued": {
			reason: "the parallelism allows one Job", phases: []phase{{running, 3 * time.Second}}, checks: checks("etcd", 3), parallelism: 1,
			want: [][]string{nil, {"Queued 3s"}, {"Queued 6s"}},
		},
		"Serial": {
			reason: "serial checks wait for each other", phases: []phase{{running, 3 * time.Second}}, checks: checks("serial", 2),
			want: [][]string{nil, {"Queued 3s"}},
		},
		"Bounded": {
			reason: "the last five are kept", phases: append(flapping, phase{running, time.Second}), checks: checks("etcd", 1),
			want: [][]string{{"Unscheduled 3s", "Unschedulable 2s", "Unscheduled 3s", "Unschedulable 2s", "Unscheduled 3s"}},
		},
		"Deadline": {
			reason: "a wait lasts until the deadline", phases: []phase{{unscheduled, time.Hour}}, checks: checks("etcd", 1),
			deadline: 30 * time.Second,
			want:     [][]string{{"Unschedulable 30s"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), stdcmp.Or(tc.deadline, time.Hour))
				defer cancel()
				s := newSimulation(ctx, t, inPhases(tc.phases...), tc.checks...)
				s.collect(jobs.Options{Parallelism: tc.parallelism})
				var got [][]string
				for _, check := range tc.checks {
					got = append(got, summaries(t, s.last[check.Name].Findings[0].Job.Waits))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// Tests of: runner/jobs/jobwatch

// newNamespace creates a namespace, which is deleted after the test.
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

// newPlan returns a plan with checks that promise a result.
func newPlan(t *testing.T, namespace string, checks int, change func(*batchv1.Job)) jobplan.Plan {
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
	run := jobplan.Run{ID: uuid.NewString(), StartTime: time.Now(), Deadline: time.Now().Add(time.Hour)}
	draft := jobplan.New(run.From, release)
	plan := draft.Bind(run)
	if len(draft.Refused) > 0 {
		t.Fatal(draft.Refused)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if left, err := cleanup.Run(ctx, inventory.New(api, objects), run.ID); err != nil {
			t.Errorf("left %v: %v", left, err)
		}
	})
	return plan
}

// collect collects all sources of a plan.
func collect(ctx context.Context, t *testing.T, plan jobplan.Plan, options jobs.Options) collector.Collection {
	t.Helper()
	sources, err := jobs.Sources(ctx, api, launch.New(inventory.New(api, objects)), plan, options)
	if err != nil {
		t.Fatal(err)
	}
	return collector.Collect(ctx, sources, func(collector.Source, []finding.Finding) {})
}

// manualDeadline is a context whose deadline a test triggers.
type manualDeadline struct {
	context.Context
	done chan struct{}
	end  func()
}

func newManualDeadline(t *testing.T) manualDeadline {
	t.Helper()
	done := make(chan struct{})
	return manualDeadline{t.Context(), done, sync.OnceFunc(func() { close(done) })}
}

func (s manualDeadline) Done() <-chan struct{} { return s.done }

func (s manualDeadline) Err() error {
	select {
	case <-s.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// endWhen triggers the deadline once the detail of a check contains words.
func (s manualDeadline) endWhen(words string) func(jobs.Status) {
	return func(status jobs.Status) {
		if strings.Contains(status.Detail, words) {
			s.end()
		}
	}
}

// kubelet runs the pods of a run like a node, until the test ends.
type kubelet struct {
	t    *testing.T
	plan jobplan.Plan
	end  func(pod *corev1.Pod) corev1.ContainerStateTerminated

	mutex sync.Mutex
	// running are the running pods, most is their maximum.
	running map[string]bool
	most    int
}

func startKubelet(t *testing.T, plan jobplan.Plan, end func(*corev1.Pod) corev1.ContainerStateTerminated) *kubelet {
	t.Helper()
	k := &kubelet{t: t, plan: plan, end: end, running: map[string]bool{}}
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

// step advances the status of a pod.
func (k *kubelet) step(pod *corev1.Pod) {
	status := corev1.ContainerStatus{Name: "check"}
	switch {
	case pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil:
		k.update(func() { k.running[pod.Name] = true })
		pod.Status.Phase = corev1.PodRunning
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
	case pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil:
		end := k.end(pod)
		k.update(func() { delete(k.running, pod.Name) })
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

func (k *kubelet) update(change func()) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	change()
	k.most = max(k.most, len(k.running))
}

// exitingWith terminates a container with a result of this run.
func exitingWith(t *testing.T, plan jobplan.Plan, code int32, f preflight.Finding) func(*corev1.Pod) corev1.ContainerStateTerminated {
	t.Helper()
	message := frameOf(t, preflight.Result{State: preflight.StateFinal, RunID: plan.Run.ID, Findings: []preflight.Finding{f}})
	return func(*corev1.Pod) corev1.ContainerStateTerminated {
		return corev1.ContainerStateTerminated{ExitCode: code, Message: message}
	}
}

func TestParallelismIsBounded(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 6, nil)
	node := startKubelet(t, plan, exitingWith(t, plan, 0, reported("Quorum", preflight.Pass)))
	states := map[string][]diagnosis.State{}
	got := collect(t.Context(), t, plan, jobs.Options{Parallelism: 2, Progress: func(status jobs.Status) {
		if known := states[status.Check]; len(known) == 0 || known[len(known)-1] != status.State {
			states[status.Check] = append(known, status.State)
		}
	}})
	want := slices.Repeat([]string{"Etcd.Quorum Pass(Because)"}, 6)
	if diff := cmp.Diff(want, outcomes(got.Findings)); diff != "" || len(got.Missing) > 0 {
		t.Errorf("missing %v, findings (-want, +got):\n%s", got.Missing, diff)
	}
	if node.most > 2 {
		t.Errorf("%d pods ran at one time, want at most 2", node.most)
	}
	for check, known := range states {
		if known[0] != diagnosis.Queued || known[1] != diagnosis.Waiting || known[len(known)-1] != diagnosis.Done {
			t.Errorf("%s had the states %v", check, known)
		}
	}
	if len(states) != 6 {
		t.Errorf("progress was reported for %d checks", len(states))
	}
}

func TestResumedRunnerReadsResults(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 1, nil)
	startKubelet(t, plan, exitingWith(t, plan, 3, reported("Alarm", preflight.Fail)))
	for range 2 {
		got := collect(t.Context(), t, plan, jobs.Options{})
		if diff := cmp.Diff([]string{"Etcd.Alarm Fail(Because)"}, outcomes(got.Findings)); diff != "" {
			t.Errorf("(-want, +got):\n%s", diff)
		}
	}
}

func TestScriptFails(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 1, func(job *batchv1.Job) {
		job.Annotations, job.Spec.BackoffLimit = nil, new(int32(0))
	})
	startKubelet(t, plan, func(*corev1.Pod) corev1.ContainerStateTerminated {
		return corev1.ContainerStateTerminated{ExitCode: 1, Message: "no quorum\n"}
	})
	got := collect(t.Context(), t, plan, jobs.Options{}).Findings
	if len(got) != 1 || got[0].Outcome != preflight.Fail || !strings.Contains(got[0].Message, "no quorum") {
		t.Errorf("want a failure with the last lines of the script, got %+v", got)
	}
	if job := got[0].Job; job == nil || job.ExitCode == nil || *job.ExitCode != 1 || job.Attempts != 1 {
		t.Errorf("the Job of the finding is %+v", job)
	}
}

func TestBlockedJobs(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		labels  map[string]string
		job     func(*batchv1.Job)
		prepare func(t *testing.T, namespace string)
		waits   bool // until the deadline
		want    string
		words   string
	}{
		"ServiceAccountMissing": {
			reason: "the only report is an event of the Job controller",
			job:    func(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "absent" },
			want:   "Etcd.Check0 Unknown(ServiceAccountMissing)", words: `serviceaccount "absent" not found`,
		},
		"PodSecurity": {
			reason: "the level of the namespace applies to the pods of a preflight",
			labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			want:   "Etcd.Check0 Unknown(PodSecurity)", words: "runAsNonRoot",
		},
		"Quota": {
			reason: "a quota may be freed until the deadline", waits: true,
			prepare: func(t *testing.T, namespace string) {
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
			reason: "the cluster has no node", waits: true,
			want: "Etcd.Check0 Unknown(NoSchedulableNode)", words: "the cluster has no node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t, tc.labels)
			if tc.prepare != nil {
				tc.prepare(t, namespace)
			}
			ctx, options := newManualDeadline(t), jobs.Options{}
			defer ctx.end()
			if tc.waits {
				options.Progress = ctx.endWhen(tc.words)
			}
			got := collect(ctx, t, newPlan(t, namespace, 1, tc.job), options).Findings
			if diff := cmp.Diff([]string{tc.want}, outcomes(got)); diff != "" || !strings.Contains(got[0].Message, tc.words) {
				t.Errorf("%s (-want, +got):\n%s\n%+v", tc.reason, diff, got)
			}
		})
	}
}

func TestInterruptedWatch(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 3, nil)
	proxied := newAPIProxy(t)
	sources, err := jobs.Sources(t.Context(), proxied.client, launch.New(inventory.New(api, objects)), plan,
		jobs.Options{Progress: func(status jobs.Status) {
			if strings.Contains(status.Detail, "its pod cannot be scheduled") {
				proxied.server.CloseClientConnections()
				proxied.once.Do(func() {
					// These changes happen while the watch is interrupted.
					startKubelet(t, plan, exitingWith(t, plan, 0, reported("Quorum", preflight.Pass)))
				})
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	got := collector.Collect(t.Context(), sources, func(collector.Source, []finding.Finding) {})
	want := slices.Repeat([]string{"Etcd.Quorum Pass(Because)"}, 3)
	if diff := cmp.Diff(want, outcomes(got.Findings)); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// apiProxy is a proxy of the API server whose connections a test can close.
type apiProxy struct {
	client kubernetes.Interface
	server *httptest.Server
	once   sync.Once
}

func newAPIProxy(t *testing.T) *apiProxy {
	t.Helper()
	proxy, err := cluster.ReverseProxy(config)
	if err != nil {
		t.Fatal(err)
	}
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &apiProxy{client: client, server: server}
}

// remove deletes a Job and its pods like another client.
func remove(t *testing.T, job *batchv1.Job) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := api.BatchV1().Jobs(job.Namespace).Delete(t.Context(), job.Name,
		metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Error(err)
	}
}

func TestDeletedJob(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		times  int
		want   string
	}{
		"Once":  {"a deleted Job is created once more", 1, "Etcd.Quorum Pass(Because)"},
		"Twice": {"a Job that is deleted twice is not created again", 2, "Etcd.Check0 Unknown(JobDeleted)"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := newPlan(t, newNamespace(t, nil), 1, nil)
			left := tc.times
			got := collect(t.Context(), t, plan, jobs.Options{Progress: func(status jobs.Status) {
				switch {
				case !strings.HasPrefix(status.Detail, "its pod cannot be scheduled"):
				case left > 0:
					left--
					remove(t, plan.Checks[0].Job)
				default:
					startKubelet(t, plan, exitingWith(t, plan, 0, reported("Quorum", preflight.Pass)))
				}
			}})
			if diff := cmp.Diff([]string{tc.want}, outcomes(got.Findings)); diff != "" {
				t.Errorf("%s (-want, +got):\n%s\n%+v", tc.reason, diff, got)
			}
			if job := got.Findings[0].Job; tc.times == 1 && (job == nil || job.Attempts != 1) {
				t.Errorf("a deleted Job must not count as an attempt: %+v", job)
			}
		})
	}
}

func TestDeadlineOfQueuedChecks(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 2, nil)
	ctx := newManualDeadline(t)
	defer ctx.end()
	got := collect(ctx, t, plan, jobs.Options{Parallelism: 1, Progress: ctx.endWhen("its pod cannot be scheduled")})
	var reasons []string
	for _, f := range got.Findings {
		reasons = append(reasons, f.Reason)
	}
	slices.Sort(reasons)
	if diff := cmp.Diff([]string{"NoSchedulableNode", "NotStarted"}, reasons); diff != "" {
		t.Errorf("(-want, +got):\n%s\n%+v", diff, got.Findings)
	}
}

func TestInterruptHasNoFindings(t *testing.T) {
	plan := newPlan(t, newNamespace(t, nil), 2, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := collect(ctx, t, plan, jobs.Options{Parallelism: 1, Progress: func(status jobs.Status) {
		if strings.Contains(status.Detail, "its pod cannot be scheduled") {
			cancel()
		}
	}})
	for _, f := range got.Findings {
		if f.Outcome != preflight.Unknown || f.Reason != "Interrupted" {
			t.Errorf("want Unknown(Interrupted), got %+v", f)
		}
	}
	if len(got.Findings) != 2 || len(got.Missing) != 2 {
		t.Errorf("want two missing checks, got %+v", got)
	}
}

type startFunc func(context.Context, jobplan.Check) error

func (f startFunc) Start(ctx context.Context, check jobplan.Check) error { return f(ctx, check) }
func (f startFunc) End(context.Context, jobplan.Check) error             { return nil }
func (f startFunc) UID(jobplan.Check) types.UID                          { return "" }

func TestJobCannotBeCreated(t *testing.T) {
	errQuota := errors.New(`jobs.batch "check-0" is forbidden: exceeded quota: full`)
	plan := newPlan(t, newNamespace(t, nil), 1, nil)
	start := startFunc(func(context.Context, jobplan.Check) error { return errQuota })
	sources, err := jobs.Sources(t.Context(), api, start, plan, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := sources[0].Collect(t.Context())
	if diff := cmp.Diff([]string{"Etcd.Check0 Unknown(QuotaExceeded)"}, outcomes(got)); diff != "" || err != nil {
		t.Errorf("error %v (-want, +got):\n%s", err, diff)
	}
	if sources[0].Name != "Etcd.Check0" || sources[0].Kind != finding.SourceJob {
		t.Errorf("the source has name %s and kind %s", sources[0].Name, sources[0].Kind)
	}
}

func TestMissingWatchPermission(t *testing.T) {
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = "unprivileged"
	client, err := kubernetes.NewForConfig(unprivileged)
	if err != nil {
		t.Fatal(err)
	}
	_, err = jobs.Sources(t.Context(), client, launch.New(inventory.New(client, objects)), newPlan(t, newNamespace(t, nil), 1, nil),
		jobs.Options{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("want Forbidden, got %v", err)
	}
}
