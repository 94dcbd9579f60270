package zoo

import (
	"context"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/test/cluster"
)

const (
	// simulated is the name of the node of StartNode, and the key of its taint.
	simulated = "simulated"
	// renewal is the time between two renewals of the Lease of a node, as of a kubelet.
	renewal = 10 * time.Second
	// retryInterval is the time until a failed request is repeated.
	retryInterval = 100 * time.Millisecond
)

// node simulates the kubelet of a node without containers.
type node struct {
	client kubernetes.Interface

	mutex sync.Mutex
	// pods that were observed.
	pods map[types.UID]bool
	// tasks are the pods that run, and the loops of the kubelet.
	tasks sync.WaitGroup
}

// StartNode adds a node to a cluster that runs the pods of simulated animals without
// containers: it reports their phases and results as a kubelet does. It is for tests of
// runs, to which pods are what the API server says of them. The node is deleted at the end
// of the test, or earlier by stop.
func StartNode(tb testing.TB, config *rest.Config) (stop func()) {
	tb.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	if err := cluster.CreateNode(ctx, client, simulated, corev1.Taint{Key: simulated, Effect: corev1.TaintEffectNoSchedule}); err != nil {
		cancel()
		tb.Fatal(err)
	}
	n := &node{client: client, pods: map[types.UID]bool{}}
	n.tasks.Go(func() { wait.UntilWithContext(ctx, n.renew, renewal) })
	n.tasks.Go(func() { n.watch(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		n.tasks.Wait()
		if err := client.CoreV1().Nodes().Delete(context.WithoutCancel(ctx), simulated, metav1.DeleteOptions{}); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(stop)
	return stop
}

// onSimulatedNode has the pod of a Job run on the node of StartNode.
func onSimulatedNode(job *batchv1.Job) {
	spec := &job.Spec.Template.Spec
	spec.NodeSelector = map[string]string{corev1.LabelHostname: simulated}
	spec.Tolerations = []corev1.Toleration{{Key: simulated, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
}

// renew renews the Lease of the node, without which the node controller would evict its
// pods. The next call repeats what has failed.
func (n *node) renew(ctx context.Context) {
	lease := applycoordinationv1.Lease(simulated, corev1.NamespaceNodeLease).WithSpec(applycoordinationv1.LeaseSpec().
		WithHolderIdentity(simulated).WithLeaseDurationSeconds(40).WithRenewTime(metav1.NowMicro()))
	_, _ = n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Apply(ctx, lease,
		metav1.ApplyOptions{FieldManager: simulated, Force: true})
}

// watch observes the pods that the scheduler has assigned to the node.
func (n *node) watch(ctx context.Context) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
			fields.OneTermEqualSelector("spec.nodeName", simulated)),
		ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { n.observe(ctx, object) },
			UpdateFunc: func(_, object any) { n.observe(ctx, object) },
		},
	})
	informer.RunWithContext(ctx)
}

// observe runs a new pod, and completes the deletion of a deleted one.
func (n *node) observe(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	if pod.DeletionTimestamp != nil {
		n.tasks.Go(func() { n.remove(ctx, pod) })
		return
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if !n.pods[pod.UID] {
		n.pods[pod.UID] = true
		n.tasks.Go(func() { n.run(ctx, pod) })
	}
}

// remove deletes the object of a pod whose containers have ended.
func (n *node) remove(ctx context.Context, pod *corev1.Pod) {
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	persist(ctx, func() error { return n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options) })
}

// run reports the phases of a pod whose check ends as its animal does.
func (n *node) run(ctx context.Context, pod *corev1.Pod) {
	started := metav1.Now()
	n.report(ctx, pod, corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started}, corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: started},
	})
	ended, err := n.await(ctx, pod)
	if err != nil {
		return // with the node
	}
	ended.StartedAt, ended.FinishedAt = started, metav1.Now()
	phase := corev1.PodSucceeded
	if ended.ExitCode != 0 {
		phase = corev1.PodFailed
	}
	n.report(ctx, pod, corev1.PodStatus{Phase: phase}, corev1.ContainerState{Terminated: ended})
}

// report writes a phase of a pod and the state of its container.
func (n *node) report(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus, state corev1.ContainerState) {
	container := pod.Spec.Containers[0]
	ready := corev1.ConditionFalse
	if state.Running != nil {
		ready = corev1.ConditionTrue
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: ready, LastTransitionTime: metav1.Now()})
	}
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container.Name, Image: container.Image, ImageID: container.Image, State: state, Ready: state.Running != nil,
		Started: new(state.Running != nil),
	}}
	patch := statusPatch(status)
	persist(ctx, func() error {
		_, err := n.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
			"status")
		return err
	})
}

// persist repeats a request until it succeeds, its object is gone, or ctx has ended.
func persist(ctx context.Context, request func() error) {
	_ = wait.PollUntilContextCancel(ctx, retryInterval, true, func(context.Context) (bool, error) {
		err := request()
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), nil
	})
}
