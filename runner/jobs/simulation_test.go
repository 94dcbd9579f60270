package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
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
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// simulation is a cluster with simulated time, for tests over minutes. It must run
// in a bubble of testing/synctest.
type simulation struct {
	t      *testing.T
	cancel func()
	client *fake.Clientset
	plan   jobplan.Plan
	// lifecycle simulates a Job from its creation on.
	lifecycle func(s *simulation, job *batchv1.Job)
	ctx       context.Context

	mutex sync.Mutex
	alive sync.WaitGroup
	// start is when the simulation started.
	start time.Time
	// started and ended are the checks, in the order of the calls.
	started, ended []string
	// open is the number of Jobs whose containers have not ended, most its maximum; together is the maximum of
	// serial ones.
	open           map[string]jobplan.Check
	most, together int
	// created counts the Jobs of a name.
	created map[string]int
	// uids are those of the Jobs created last, by name.
	uids map[string]types.UID
	// done is when each check had its findings.
	done map[string]time.Duration
	last map[string]jobs.Status
}

// newSimulation simulates these checks. Those of component "serial" run one at a
// time.
func newSimulation(ctx context.Context, t *testing.T, lifecycle func(*simulation, *batchv1.Job), checks ...jobplan.Check) *simulation {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	return &simulation{
		t: t, ctx: ctx, cancel: cancel, client: fake.NewClientset(), lifecycle: lifecycle, start: time.Now(),
		plan: jobplan.Plan{Run: jobplan.Run{ID: runID}, Checks: checks},
		open: map[string]jobplan.Check{}, created: map[string]int{}, uids: map[string]types.UID{}, done: map[string]time.Duration{},
		last: map[string]jobs.Status{},
	}
}

// checks returns n checks of a component.
func checks(component string, n int) []jobplan.Check {
	var all []jobplan.Check
	for i := range n {
		check := aCheck()
		check.Component, check.Serial, check.Framed = component, component == "serial", true
		check.Job.Name = fmt.Sprintf("%s-%d", component, i)
		check.Name = fmt.Sprintf("Etcd.%s-%d", component, i)
		all = append(all, check)
	}
	return all
}

// Start creates a Job like launch.Launcher.
func (s *simulation) Start(ctx context.Context, check jobplan.Check) error {
	s.mutex.Lock()
	s.started = append(s.started, check.Job.Name)
	s.mutex.Unlock()
	return s.create(ctx, check)
}

// create creates a Job and starts its lifecycle.
func (s *simulation) create(ctx context.Context, check jobplan.Check) error {
	job := check.Job.DeepCopy()
	job.UID = types.UID(uuid.NewString())
	s.mutex.Lock()
	s.open[job.Name] = check
	s.created[job.Name]++
	s.uids[job.Name] = job.UID
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
	s.alive.Go(func() { s.lifecycle(s, created.DeepCopy()) })
	return nil
}

// UID is that of the Job which was created last, like that of launch.Launcher.
func (s *simulation) UID(check jobplan.Check) types.UID {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.uids[check.Job.Name]
}

// End deletes a Job like launch.Launcher.
func (s *simulation) End(ctx context.Context, check jobplan.Check) error {
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

// pass waits. It returns false when the test is over.
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
func (s *simulation) pod(job *batchv1.Job, changes ...func(*diagnosis.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: job.Name + "-" + string(job.UID[:5]), Namespace: job.Namespace, UID: types.UID(uuid.NewString()),
		Labels:          map[string]string{label.Run: runID, batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}},
	}}
	pod.Spec.NodeName = "node-1"
	for _, change := range changes {
		change(&diagnosis.Pod{Pod: pod})
	}
	created, err := s.client.CoreV1().Pods(job.Namespace).Create(s.ctx, pod, metav1.CreateOptions{})
	s.check(err)
	return created
}

// update replaces the status of a pod.
func (s *simulation) update(pod *corev1.Pod, changes ...func(*diagnosis.Pod)) {
	pod = pod.DeepCopy()
	pod.Status.ContainerStatuses, pod.Status.Conditions = nil, nil
	for _, change := range changes {
		change(&diagnosis.Pod{Pod: pod})
	}
	_, err := s.client.CoreV1().Pods(pod.Namespace).UpdateStatus(s.ctx, pod, metav1.UpdateOptions{})
	s.check(err)
}

// finish sets the condition Complete of a Job.
func (s *simulation) finish(job *batchv1.Job) {
	s.close(job)
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	_, err := s.client.BatchV1().Jobs(job.Namespace).UpdateStatus(s.ctx, job, metav1.UpdateOptions{})
	s.check(err)
}

// check reports an error, unless the test is over or the object was deleted.
func (s *simulation) check(err error) {
	if err != nil && !apierrors.IsNotFound(err) && s.ctx.Err() == nil {
		s.t.Error(err)
	}
}

// passes is the lifecycle of a Job that passes after a second, and is complete after
// four more.
func passes(s *simulation, job *batchv1.Job) {
	pod := s.pod(job, running)
	if !s.pass(time.Second) {
		return
	}
	s.close(job)
	s.update(pod, ended(0, frame(s.t, preflight.StateFinal, reported("Quorum", preflight.Pass))))
	if s.pass(4 * time.Second) {
		s.finish(job)
	}
}

// collect collects all sources.
func (s *simulation) collect(options jobs.Options) []string {
	s.t.Helper()
	defer s.alive.Wait()
	defer s.cancel()
	options.Progress = func(status jobs.Status) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.last[status.Check] = status
		if status.State == diagnosis.Done {
			s.done[status.Check] = time.Since(s.start)
		}
	}
	sources, err := jobs.Sources(s.ctx, s.client, s, s.plan, options)
	if err != nil {
		s.t.Fatal(err)
	}
	// The fake API server has no resource versions: what changes between a list and its
	// watch is lost.
	synctest.Wait()
	return outcomes(collector.Collect(s.ctx, sources, func(collector.Source, []finding.Finding) {}).Findings)
}

// times is how often a check was started.
func (s *simulation) times(name string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.started), func(started string) bool { return started != name }))
}

// createdJobs is how many Jobs of the name have been created.
func (s *simulation) createdJobs(job *batchv1.Job) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.created[job.Name]
}
