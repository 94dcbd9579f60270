package logs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/cmd/oc-preflight/logs"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/test/apiserver"
	"github.com/openshift/update-preflight/test/await"
)

const namespace = "openshift-etcd"

// cluster has the Job of a check, and the pods that a test adds.
type cluster struct {
	*apiserver.Server

	t      *testing.T
	client kubernetes.Interface
	job    *batchv1.Job
}

func newCluster(t *testing.T) cluster {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "quorum-1", Labels: map[string]string{label.Run: "one"},
		Annotations: map[string]string{label.AnnotationCheck: "Etcd.Quorum"},
	}}
	server := apiserver.Start(t, job)
	return cluster{Server: server, t: t, client: kubernetes.NewForConfigOrDie(server.Config()), job: job}
}

// pod adds a pod of the Job, created at that second, with these states of its containers, by name.
func (c cluster) pod(name string, second int64, states ...corev1.ContainerStatus) {
	c.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(second, 0), Labels: map[string]string{batchv1.JobNameLabel: c.job.Name},
	}}
	for _, state := range states {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: state.Name})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, state)
	}
	c.Add(c.t, pod)
}

func ended(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
}

func running(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func waiting(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name:  name,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}
}

// outputs collects what two goroutines write.
type outputs struct {
	mutex sync.Mutex
	text  strings.Builder
}

// Write implements io.Writer.
func (o *outputs) Write(data []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(data)
}

func (o *outputs) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

func TestFind(t *testing.T) {
	c := newCluster(t)
	for name, tc := range map[string]struct {
		reason, namespace, run, check string
		found                         bool
	}{
		"Check":     {reason: "the check of the run", run: "one", check: "Etcd.Quorum", found: true},
		"Namespace": {reason: "in its namespace", namespace: namespace, run: "one", check: "Etcd.Quorum", found: true},
		"Elsewhere": {reason: "of another namespace", namespace: "default", run: "one", check: "Etcd.Quorum"},
		"OtherRun":  {reason: "a check of the same name of another run", run: "two", check: "Etcd.Quorum"},
		"Prefix":    {reason: "a name is compared as a whole", run: "one", check: "Etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			job, err := logs.Find(t.Context(), c.client, tc.namespace, tc.run, tc.check)
			if err != nil || (job != nil) != tc.found {
				t.Errorf("%s: %v, %v; want one: %t", tc.reason, job, err, tc.found)
			}
		})
	}
	c.Deny(func(_ string, request apiserver.Request) bool { return request.Resource == "jobs" })
	if _, err := logs.Find(t.Context(), c.client, "", "one", "Etcd.Quorum"); err == nil ||
		!strings.Contains(err.Error(), "could not list the Jobs of run one") {
		t.Errorf("what may not be listed is not found: %v", err)
	}
}

func TestCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		build  func(c cluster)
		pods   int
		// lines is the output, and notes are the remarks about it.
		lines, notes string
	}{
		"None": {reason: "without pods nothing is written", build: func(cluster) {}},
		"One": {reason: "the output of the only container is not labeled", pods: 1, lines: "members: 3\nquorum: yes\n", build: func(c cluster) {
			c.pod("one", 1, ended("check"))
			c.Log(namespace, "one", "check", "members: 3\nquorum: yes")
		}},
		"Several": {
			reason: "the oldest pod is first, and each line has its pod and container", pods: 2,
			lines: "[older/check] a\n[newer/check] b\n", build: func(c cluster) {
				c.pod("newer", 2, ended("check"))
				c.pod("older", 1, ended("check"))
				c.Log(namespace, "newer", "check", "b\n")
				c.Log(namespace, "older", "check", "a\n")
			},
		},
		"Printable": {reason: "a check does not control the terminal", pods: 1, lines: "red\n", build: func(c cluster) {
			c.pod("one", 1, ended("check"))
			c.Log(namespace, "one", "check", "\x1b[31mred\x1b[0m\n")
		}},
		"Waiting": {
			reason: "why there is no output", pods: 1,
			notes: "[one/check] the container has not started: ImagePullBackOff: 429 from mirror\n", build: func(c cluster) {
				c.pod("one", 1, waiting("check", "ImagePullBackOff", "429 from mirror"))
			},
		},
		"Unknown": {reason: "a pod without a state", pods: 1, notes: "[one/check] the container has not started\n", build: func(c cluster) {
			c.pod("one", 1, corev1.ContainerStatus{Name: "check"})
		}},
		"OtherJob": {reason: "a pod of another Job is not of the check", build: func(c cluster) {
			c.Add(c.t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "other",
				Labels: map[string]string{batchv1.JobNameLabel: "other"},
			}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			tc.build(c)
			var lines, notes outputs
			pods, err := logs.Copy(t.Context(), c.client, c.job, logs.To(&lines, &notes))
			if err != nil || pods != tc.pods || lines.String() != tc.lines || notes.String() != tc.notes {
				t.Errorf("%s: %d pods, %v, lines %q, notes %q; want %d, %q, %q", tc.reason, pods, err, lines.String(), notes.String(), tc.pods,
					tc.lines, tc.notes)
			}
		})
	}
}

// A log that may not be read is an error with the container, and not an empty one.
func TestCopyOfARefusedLog(t *testing.T) {
	c := newCluster(t)
	c.pod("one", 1, ended("check"))
	c.Deny(func(_ string, request apiserver.Request) bool { return request.Subresource == "log" })
	var lines, notes outputs
	_, err := logs.Copy(t.Context(), c.client, c.job, logs.To(&lines, &notes))
	if err == nil || !strings.Contains(err.Error(), "could not read the log of container check in pod openshift-etcd/one") {
		t.Errorf("the error %v does not name the container", err)
	}
}

// Following ends with the Job, reads each log once, and shows the pods that are created meanwhile.
func TestFollow(t *testing.T) {
	c := newCluster(t)
	c.pod("one", 1, ended("check"))
	c.Log(namespace, "one", "check", "first\nunterminated")
	var lines, notes outputs
	done := make(chan error, 1)
	go func() {
		read, err := logs.Follow(t.Context(), c.client, c.job, logs.To(&lines, &notes))
		if read != 2 {
			t.Errorf("%d logs were read, want 2", read)
		}
		done <- err
	}()
	await.Until(t, "the first pod is read", func(context.Context) bool { return strings.Contains(lines.String(), "first") })
	c.Log(namespace, "two", "check", "second\n")
	c.pod("two", 2, waiting("check", "ContainerCreating", ""))
	await.Until(t, "the second pod waits", func(context.Context) bool { return strings.Contains(notes.String(), "ContainerCreating") })
	c.pod("two", 2, ended("check"))
	await.Until(t, "the second pod is read", func(context.Context) bool { return strings.Contains(lines.String(), "second") })
	finished := c.job.DeepCopy()
	finished.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	c.Add(t, finished)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := lines.String(); got != "[one/check] first\n[two/check] second\n[one/check] unterminated\n" {
		t.Errorf("%q: want each line once", got)
	}
}

// An interrupt ends the wait for a Job that does not end.
func TestFollowIsInterrupted(t *testing.T) {
	c := newCluster(t)
	c.pod("one", 1, running("check"))
	ctx, interrupt := context.WithCancel(t.Context())
	var lines, notes outputs
	done := make(chan error, 1)
	go func() {
		_, err := logs.Follow(ctx, c.client, c.job, logs.To(&lines, &notes))
		done <- err
	}()
	interrupt()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that of the interrupt", err)
	}
}
