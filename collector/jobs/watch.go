package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/runner/launch"
)

// maxWarnings bounds the events that are kept for one Job.
const maxWarnings = 20

// follower keeps what one watch on Jobs, one on pods and one on warnings say
// about the Jobs of a run. The informers list again by themselves when a watch
// was cut, so nothing is missed but what came and went meanwhile.
type follower struct {
	mutex   sync.Mutex
	jobs    map[types.NamespacedName]*followed
	trouble string
	// refused is closed over by the watches: it takes the first error that no
	// waiting makes better.
	refused context.CancelCauseFunc
}

// followed is what is known about one Job.
type followed struct {
	job      *batchv1.Job
	deleted  bool
	pods     []Pod
	warnings []*corev1.Event
	// changed has a value when something changed since it was last read.
	changed chan struct{}
}

// follow starts the watches, and returns when they know what is there by now.
// They go on until ctx is done. A user who may not watch gets an error.
func follow(ctx context.Context, client kubernetes.Interface, plan launch.Plan) (*follower, error) {
	started, refused := context.WithCancelCause(ctx)
	f := &follower{jobs: map[types.NamespacedName]*followed{}, refused: refused}
	for _, check := range plan.Checks {
		f.jobs[types.NamespacedName{Namespace: check.Job.Namespace, Name: check.Job.Name}] = &followed{changed: make(chan struct{}, 1)}
	}
	ofRun := func(options *metav1.ListOptions) {
		options.LabelSelector = labels.Set{launch.LabelRun: plan.Run.ID}.String()
	}
	// Events have no labels, and cannot be selected by the prefix of a name.
	warnings := func(options *metav1.ListOptions) { options.FieldSelector = "type=" + corev1.EventTypeWarning }
	all := metav1.NamespaceAll

	var synced []cache.DoneChecker
	for _, watch := range []struct {
		what     string
		informer cache.SharedIndexInformer
		needed   bool
	}{
		{"Jobs", batchinformers.NewFilteredJobInformer(client, all, 0, nil, ofRun), true},
		{"pods", coreinformers.NewFilteredPodInformer(client, all, 0, nil, ofRun), true},
		{"events", coreinformers.NewFilteredEventInformer(client, all, 0, nil, warnings), false},
	} {
		handled, err := f.attach(watch.what, watch.informer)
		if err != nil {
			return nil, err
		}
		if watch.needed {
			synced = append(synced, handled)
		}
		go watch.informer.RunWithContext(ctx)
	}
	if !cache.WaitFor(started, "", synced...) {
		return nil, fmt.Errorf("could not watch the Jobs of the run: %w", context.Cause(started))
	}
	return f, nil
}

// attach has an informer tell f.
func (f *follower) attach(what string, informer cache.SharedIndexInformer) (cache.DoneChecker, error) {
	if err := informer.SetTransform(f.slim); err != nil {
		return nil, fmt.Errorf("could not set up the watch on %s: %w", what, err)
	}
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { f.fail(what, err) })
	if err != nil {
		return nil, fmt.Errorf("could not set up the watch on %s: %w", what, err)
	}
	handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    f.seen,
		UpdateFunc: func(_, object any) { f.seen(object) },
		DeleteFunc: f.gone,
	})
	if err != nil {
		return nil, fmt.Errorf("could not set up the watch on %s: %w", what, err)
	}
	return handled.HasSyncedChecker(), nil
}

// fail takes note of a watch that does not work.
func (f *follower) fail(what string, err error) {
	if what != "events" && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		f.refused(err)
	}
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.trouble = fmt.Sprintf("the watch on %s: %v", what, err)
}

// slim drops what nobody reads before it is kept: there may be many thousand
// events of others, and a thousand pods of ours.
func (f *follower) slim(object any) (any, error) {
	if item, ok := object.(metav1.Object); ok {
		item.SetManagedFields(nil)
	}
	event, ok := object.(*corev1.Event)
	if !ok {
		return object, nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.about(event) != nil {
		return event, nil
	}
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{
		Namespace: event.Namespace, Name: event.Name, UID: event.UID, ResourceVersion: event.ResourceVersion,
	}}, nil
}

// about finds the Job that an event is about. The names of pods are the Job's
// with a dash and five characters more.
func (f *follower) about(event *corev1.Event) *followed {
	name := event.InvolvedObject.Name
	if event.InvolvedObject.Kind == "Pod" {
		name = name[:max(0, strings.LastIndex(name, "-"))]
	}
	return f.jobs[types.NamespacedName{Namespace: event.InvolvedObject.Namespace, Name: name}]
}

// seen takes note of an object that is there.
func (f *follower) seen(object any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.trouble = ""
	switch object := object.(type) {
	case *batchv1.Job:
		if known := f.jobs[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}]; known != nil {
			known.job = object
			known.wake()
		}
	case *corev1.Pod:
		f.pod(Pod{Pod: object})
	case *corev1.Event:
		if known := f.about(object); known != nil {
			known.warn(object)
		}
	}
}

// gone takes note of an object that is not there any more, in its last state.
func (f *follower) gone(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch object := object.(type) {
	case *batchv1.Job:
		if known := f.jobs[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}]; known != nil {
			known.job, known.deleted = object, true
			known.wake()
		}
	case *corev1.Pod:
		f.pod(Pod{Pod: object, Gone: true})
	}
}

func (f *follower) pod(pod Pod) {
	known := f.jobs[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[batchv1.JobNameLabel]}]
	if known == nil {
		return
	}
	defer known.wake()
	for i := range known.pods {
		if known.pods[i].UID == pod.UID {
			known.pods[i] = pod
			return
		}
	}
	known.pods = append(known.pods, pod)
	slices.SortStableFunc(known.pods, func(a, b Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
}

func (k *followed) warn(event *corev1.Event) {
	k.warnings = slices.DeleteFunc(k.warnings, func(known *corev1.Event) bool { return known.UID == event.UID })
	k.warnings = append(k.warnings, event)
	k.warnings = k.warnings[max(0, len(k.warnings)-maxWarnings):]
	k.wake()
}

// wake has whoever follows this Job look again.
func (k *followed) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// observe is what is known about the Job of a check now, and what tells when
// there is more.
func (f *follower) observe(check launch.Check) (Observation, <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	known := f.jobs[types.NamespacedName{Namespace: check.Job.Namespace, Name: check.Job.Name}]
	return Observation{
		Check: check, Job: known.job, Deleted: known.deleted,
		Pods: slices.Clone(known.pods), Warnings: slices.Clone(known.warnings), Trouble: f.trouble,
	}, known.changed
}
