package drain

import (
	"context"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/test/drain/lab"
)

// watched is the objects of all clusters, by watches, and when those of each have changed.
type watched struct {
	pods, nodes, budgets, replicaSets, statefulSets, daemonSets, jobs, quotas cache.Indexer

	mutex    sync.Mutex
	clusters map[string]*changes
	// calm is when a request for the queues of the scheduler began whose answer was that it has no pod to try.
	calm time.Time
}

// changes are those of a cluster.
type changes struct {
	// version counts the changes of pods, budgets and nodes; changed is when an object has changed, also of
	// others, and at when one has or the scheduler has tried a pod again.
	version     int
	changed, at time.Time
	// wake receives a value after a change.
	wake chan struct{}
}

// byCluster is the index of the objects of a cluster.
const byCluster = "cluster"

// watch starts the watches.
func (o *Oracle) watch(ctx context.Context) *watched {
	w := &watched{clusters: map[string]*changes{}}
	factory := informers.NewSharedInformerFactory(o.Clients, 0)
	counted := func(informer cache.SharedIndexInformer, counts int) cache.Indexer {
		seen := func(object any) { w.seen(object, counts) }
		updated := func(before, object any) {
			if retried(before, object) {
				w.tried(object)
				return
			}
			seen(object)
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: seen, DeleteFunc: seen, UpdateFunc: updated})
		if err == nil {
			err = informer.AddIndexers(cache.Indexers{byCluster: func(object any) ([]string, error) { return []string{clusterOf(object)}, nil }})
		}
		if err != nil {
			panic(err) // it has not started
		}
		return informer.GetIndexer()
	}
	w.pods = counted(factory.Core().V1().Pods().Informer(), 1)
	w.nodes = counted(factory.Core().V1().Nodes().Informer(), 1)
	w.budgets = counted(factory.Policy().V1().PodDisruptionBudgets().Informer(), 1)
	w.replicaSets = counted(factory.Apps().V1().ReplicaSets().Informer(), 0)
	w.statefulSets = counted(factory.Apps().V1().StatefulSets().Informer(), 0)
	w.daemonSets = counted(factory.Apps().V1().DaemonSets().Informer(), 0)
	w.jobs = counted(factory.Batch().V1().Jobs().Informer(), 0)
	w.quotas = counted(factory.Core().V1().ResourceQuotas().Informer(), 0)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go o.observe(ctx, w)
	return w
}

// observe reads the queues of the scheduler until the end of the context.
func (o *Oracle) observe(ctx context.Context, w *watched) {
	pause := time.NewTicker(calmInterval)
	defer pause.Stop()
	for ctx.Err() == nil {
		began := time.Now()
		if queues, err := o.plane.Unscheduled(ctx); err == nil && queues["active"] == 0 {
			w.mutex.Lock()
			w.calm = began
			w.mutex.Unlock()
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// clusterOf is the namespace of the cluster of an object.
func clusterOf(object any) string {
	if deleted, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = deleted.Obj
	}
	of, ok := object.(metav1.Object)
	if !ok {
		return ""
	}
	if name := of.GetLabels()[lab.ClusterLabel]; name != "" {
		return name
	}
	return of.GetNamespace()
}

// retried reports whether a pod is as before but for the message of the scheduler, which counts the nodes of
// all clusters.
func retried(before, object any) bool {
	old, isPod := before.(*corev1.Pod)
	pod, isStill := object.(*corev1.Pod)
	if !isPod || !isStill || pod.Spec.NodeName != "" {
		return false
	}
	return equality.Semantic.DeepEqual(withoutMessage(old), withoutMessage(pod))
}

func withoutMessage(pod *corev1.Pod) *corev1.Pod {
	found := pod.DeepCopy()
	found.ResourceVersion, found.ManagedFields = "", nil
	for i := range found.Status.Conditions {
		found.Status.Conditions[i].Message = ""
	}
	return found
}

func (w *watched) seen(object any, counts int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	of := w.of(clusterOf(object))
	of.version += counts
	of.at, of.changed = time.Now(), time.Now()
	of.notify()
}

// tried notes that the scheduler has tried a pod again, which follows a change of its cluster, or later one of
// another cluster.
func (w *watched) tried(object any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	of := w.of(clusterOf(object))
	if time.Since(of.changed) < busiest {
		of.at = time.Now()
	}
	of.notify()
}

func (of *changes) notify() {
	select {
	case of.wake <- struct{}{}:
	default: // it has one
	}
}

// of are the changes of a cluster; the mutex is held.
func (w *watched) of(cluster string) *changes {
	found := w.clusters[cluster]
	if found == nil {
		found = &changes{changed: time.Now(), at: time.Now(), wake: make(chan struct{}, 1)}
		w.clusters[cluster] = found
	}
	return found
}

// state is the version of a cluster, when it has changed, and when the scheduler was calm.
func (w *watched) state(cluster string) (version int, at, calm time.Time) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	of := w.of(cluster)
	return of.version, of.at, w.calm
}

// pause waits for a change of a cluster, at most for a time.
func (w *watched) pause(ctx context.Context, cluster string, most time.Duration) error {
	w.mutex.Lock()
	wake := w.of(cluster).wake
	w.mutex.Unlock()
	end := time.NewTimer(most)
	defer end.Stop()
	select {
	case <-wake:
	case <-end.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// read is the cluster as it is now. The objects are shared, and must not be changed.
func (t *Trial) read() lab.Cluster {
	name, w := t.Created.Namespace, t.watched
	return lab.Cluster{
		Namespace: name, Pools: t.Created.Pools,
		Nodes: all[corev1.Node](w.nodes, name), Pods: all[corev1.Pod](w.pods, name), Budgets: all[policyv1.PodDisruptionBudget](w.budgets, name),
		ReplicaSets: all[appsv1.ReplicaSet](w.replicaSets, name), StatefulSets: all[appsv1.StatefulSet](w.statefulSets, name),
		DaemonSets: all[appsv1.DaemonSet](w.daemonSets, name), Jobs: all[batchv1.Job](w.jobs, name),
		Quotas: all[corev1.ResourceQuota](w.quotas, name),
	}
}

// all are the objects of a cluster, sorted by name.
func all[T any, P interface {
	*T
	metav1.Object
}](of cache.Indexer, cluster string) []T {
	objects, err := of.ByIndex(byCluster, cluster)
	if err != nil {
		panic(err) // the index exists
	}
	var found []P
	for _, object := range objects {
		if typed, ok := object.(P); ok {
			found = append(found, typed)
		}
	}
	slices.SortFunc(found, func(a, b P) int {
		if a.GetName() < b.GetName() {
			return -1
		}
		return 1
	})
	values := make([]T, 0, len(found))
	for _, each := range found {
		values = append(values, *each)
	}
	return values
}
