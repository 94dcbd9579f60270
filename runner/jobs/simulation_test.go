package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch"
)

// simulation is a cluster in which time passes as fast as it can: it is for
// what takes minutes. Run it in a bubble of testing/synctest.
type simulation struct {
	t      *testing.T
	cancel func()
	client *fake.Clientset
	plan   launch.Plan
	// life is what becomes of a Job, from its creation on.
	life func(s *simulation, job *batchv1.Job)
	ctx  context.Context

	mutex sync.Mutex
	alive sync.WaitGroup
	// began is when the simulation did.
	began time.Time
	// started and ended are the checks, in the order of the calls.
	started, ended []string
	// open are the Jobs that are not finished, most how many there were at most;
	// together are the serial ones of a component.
	open           map[string]launch.Check
	most, together int
	// born counts the Jobs of a name.
	born map[string]int
	// done is when each check was answered.
	done map[string]time.Duration
	last map[string]jobs.Status
}

// newSimulation has these checks, by their names. Those of component "serial"
// run one at a time.
func newSimulation(ctx context.Context, t *testing.T, life func(*simulation, *batchv1.Job), checks ...launch.Check) *simulation {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	return &simulation{
		t: t, ctx: ctx, cancel: cancel, client: fake.NewClientset(), life: life, began: time.Now(), plan: launch.Plan{Run: launch.Run{ID: runID}, Checks: checks},
		open: map[string]launch.Check{}, born: map[string]int{}, done: map[string]time.Duration{}, last: map[string]jobs.Status{},
	}
}

// checks are n of a component.
func checks(component string, n int) []launch.Check {
	var all []launch.Check
	for i := range n {
		check := aCheck()
		check.Component, check.Serial, check.Framed = component, component == "serial", true
		check.Job.Name = fmt.Sprintf("%s-%d", component, i)
		check.Name = fmt.Sprintf("Etcd.%s-%d", component, i)
		all = append(all, check)
	}
	return all
}

// Start implements what launch.Launcher does.
func (s *simulation) Start(ctx context.Context, check launch.Check) error {
	s.mutex.Lock()
	s.started = append(s.started, check.Job.Name)
	s.mutex.Unlock()
	return s.create(ctx, check)
}

// create has a Job begin its life.
func (s *simulation) create(ctx context.Context, check launch.Check) error {
	job := check.Job.DeepCopy()
	job.UID = types.UID(uuid.NewString())
	s.mutex.Lock()
	s.open[job.Name] = check
	s.born[job.Name]++
	s.most = max(s.most, len(s.open))
	serial := 0
	for _, open := range s.open {
		if open.Serial {
			serial++
		}
	}
	s.together = max(s.together, serial)
	s.mutex.Unlock()
	created, err := s.client.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	s.alive.Go(func() { s.life(s, created.DeepCopy()) })
	return nil
}

// End implements what launch.Launcher does.
func (s *simulation) End(ctx context.Context, check launch.Check) error {
	s.mutex.Lock()
	s.ended = append(s.ended, check.Job.Name)
	s.mutex.Unlock()
	return s.remove(ctx, check.Job)
}

func (s *simulation) remove(ctx context.Context, job *batchv1.Job) error {
	pods := s.client.CoreV1().Pods(job.Namespace)
	listed, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, pod := range listed.Items {
		if pod.Labels[batchv1.JobNameLabel] == job.Name {
			err = errors.Join(err, pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}))
		}
	}
	s.close(job)
	return errors.Join(err, s.client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{}))
}

func (s *simulation) close(job *batchv1.Job) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.open, job.Name)
}

// pass lets time pass. It is false when the test is over.
func (s *simulation) pass(long time.Duration) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// pod creates the pod of a Job.
func (s *simulation) pod(job *batchv1.Job, changes ...func(*jobs.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: job.Name + "-" + string(job.UID[:5]), Namespace: job.Namespace, UID: types.UID(uuid.NewString()),
		Labels: map[string]string{label.Run: runID, batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID)},
	}}
	pod.Spec.NodeName = "node-1"
	for _, change := range changes {
		change(&jobs.Pod{Pod: pod})
	}
	created, err := s.client.CoreV1().Pods(job.Namespace).Create(s.ctx, pod, metav1.CreateOptions{})
	s.check(err)
	return created
}

// turn changes a pod.
func (s *simulation) turn(pod *corev1.Pod, changes ...func(*jobs.Pod)) {
	pod = pod.DeepCopy()
	pod.Status.ContainerStatuses, pod.Status.Conditions = nil, nil
	for _, change := range changes {
		change(&jobs.Pod{Pod: pod})
	}
	_, err := s.client.CoreV1().Pods(pod.Namespace).UpdateStatus(s.ctx, pod, metav1.UpdateOptions{})
	s.check(err)
}

// finish has a Job say that it is complete.
func (s *simulation) finish(job *batchv1.Job) {
	s.close(job)
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	_, err := s.client.BatchV1().Jobs(job.Namespace).UpdateStatus(s.ctx, job, metav1.UpdateOptions{})
	s.check(err)
}

// check takes note of an error, unless the test is over or the Job is.
func (s *simulation) check(err error) {
	if err != nil && !apierrors.IsNotFound(err) && s.ctx.Err() == nil {
		s.t.Error(err)
	}
}

// passes is the life of a Job that passes after a second, and takes four more to
// say that it is complete.
func passes(s *simulation, job *batchv1.Job) {
	pod := s.pod(job, running)
	if !s.pass(time.Second) {
		return
	}
	s.turn(pod, ended(0, frame(s.t, preflight.StateFinal, said("Quorum", preflight.Pass))))
	if s.pass(4 * time.Second) {
		s.finish(job)
	}
}

// collect asks all checks, and is over when they have answered.
func (s *simulation) collect(options jobs.Options) []string {
	s.t.Helper()
	defer s.alive.Wait()
	defer s.cancel()
	options.Progress = func(status jobs.Status) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.last[status.Check] = status
		if status.State == jobs.Done {
			s.done[status.Check] = time.Since(s.began)
		}
	}
	sources, err := jobs.Sources(s.ctx, s.client, s, s.plan, options)
	if err != nil {
		s.t.Fatal(err)
	}
	return answers(collector.Collect(s.ctx, sources, func(collector.Source, []finding.Finding) {}).Findings)
}

// times is how often a check was started.
func (s *simulation) times(name string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.started), func(started string) bool { return started != name }))
}

// lives is how many Jobs of the name there have been.
func (s *simulation) lives(job *batchv1.Job) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.born[job.Name]
}
