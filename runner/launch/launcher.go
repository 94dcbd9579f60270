// Package launch answers: how are the objects of a plan created in this cluster?
//
// [New] returns a [Launcher]. Validate sends every object of a plan as a dry run before the first is created, Prepare
// creates the temporary copies of the supporting objects, and Start creates one Job, which End deletes again. [Explain]
// returns the finding for a check that could not be started.
//
// Existing objects are adopted if their content, regardless of their labels, equals the plan. Any other object with a
// planned name results in a finding for the checks that need it, and is not deleted by that runner.
package launch

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/alteration"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/launch/writeguard"
	"github.com/openshift/update-preflight/runner/payload"
)

// Launcher creates the objects of runs in one cluster. Its methods may be called concurrently.
type Launcher struct {
	objects *inventory.Objects
	// starting bounds the Jobs that are created concurrently: thousands of
	// concurrent requests would use memory without being faster.
	starting chan struct{}
}

// New returns a Launcher of objects.
func New(objects *inventory.Objects) *Launcher {
	return &Launcher{objects: objects, starting: make(chan struct{}, inventory.MaxParallel)}
}

// UID returns the UID of the Job of a check that this Launcher has created, or
// adopted after comparing it with the plan; empty before. Another Job of that name is
// not the run's.
func (l *Launcher) UID(check jobplan.Check) types.UID {
	k, err := inventory.KindOf(check.Job)
	if err != nil {
		return ""
	}
	uid, _ := l.objects.Created.UID(check.Job.Labels[label.Run], k.Object(check.Job))
	return uid
}

var reasonForeignObject = finding.NewReason("ForeignObject", finding.Explanation{
	Meaning: "An object of the check already exists with the same name but different content, so the check does not " +
		"run. The run does not delete the object.",
	Cause:  "Another client created or changed the object, or another version of this tool created it.",
	Remedy: "Find out who created the object, delete it, then run the preflight again.",
})

var (
	// errVanished means that an existing object of the name was deleted before it was read.
	errVanished = errors.New("an object with that name existed and has just been deleted")
	// errTerminating means that the object of the run is being deleted.
	errTerminating = errors.New("this run had already created it, and it is being deleted")
)

// foreignError means that an existing object of a planned name is not the planned one.
type foreignError struct {
	kind   inventory.Kind
	object inventory.Reference
	// differs is the first field that differs, with its value.
	differs string
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s exists and does not belong to this run: %s", e.object, e.differs)
}

// finding is Unknown: the check did not run.
func (e *foreignError) finding(text string) finding.Finding {
	resource := e.kind.Resource.GroupResource().String()
	return finding.Unknown(reasonForeignObject, "%s", text).
		Remedy("Find out who created the %s, delete it, then run the preflight again.", e.object.Kind).
		Do(finding.Read("oc get %s %s -o yaml --show-managed-fields", resource, e.object.Name).Namespaced(e.object.Namespace),
			finding.Delete("oc delete %s %s", resource, e.object.Name).Namespaced(e.object.Namespace), finding.Retry(""))
}

// alteredError means that admission changes a planned object.
type alteredError struct {
	object  inventory.Reference
	differs string
}

func (e *alteredError) Error() string {
	return fmt.Sprintf("a mutating webhook or policy of the cluster changes %s: %s", e.object, e.differs)
}

// rejectAltered returns an alteredError for an object that admission changed in what it does.
func rejectAltered(planned, created payload.Object) error {
	differs, err := alteration.Of(planned, created)
	return compared(planned, differs, err)
}

func compared(planned payload.Object, differs string, err error) error {
	if err != nil || differs == "" {
		return err
	}
	return &alteredError{object: inventory.ReferenceTo(planned), differs: differs}
}

// orAdopt returns the UID of the existing object if it is the planned one, and
// otherwise the error of the request to create it. Admission precedes the check for
// an existing object: a quota may be used up by the object itself.
func (l *Launcher) orAdopt(ctx context.Context, k inventory.Kind, object payload.Object, rejection error) (types.UID, error) {
	if retry.Temporary(rejection) {
		return "", rejection
	}
	uid, err := l.adopt(ctx, k, object)
	_, isForeign := errors.AsType[*foreignError](err)
	if err == nil || isForeign || retry.Temporary(err) && !errors.Is(err, errVanished) || apierrors.IsAlreadyExists(rejection) {
		return uid, err
	}
	return "", rejection
}

// adopt returns the UID of the existing object of the name if it is the planned one
// and is not being deleted. An object that differs from the plan is the planned one
// if admission makes the same of the plan.
func (l *Launcher) adopt(ctx context.Context, k inventory.Kind, object payload.Object) (types.UID, error) {
	found, err := l.objects.Get(ctx, k, object)
	switch {
	case apierrors.IsNotFound(err):
		return "", retry.Mark(errVanished)
	case err != nil:
		return "", err
	case found.GetLabels()[label.Run] == object.GetLabels()[label.Run] && found.GetDeletionTimestamp() != nil:
		return "", errTerminating
	}
	differs, err := alteration.Difference(object, found)
	if err != nil {
		return "", err
	}
	if differs != "" {
		equal, err := l.equalsAdmitted(ctx, k, object, found)
		switch {
		case err != nil:
			return "", err
		case !equal:
			l.objects.Foreign.Add(object.GetLabels()[label.Run], k.Object(object), found.GetUID())
			return "", &foreignError{kind: k, object: inventory.ReferenceTo(object), differs: differs}
		}
	}
	differs, err = alteration.OfExisting(object, found)
	return found.GetUID(), compared(object, differs, err)
}

// equalsAdmitted is true for an existing object that equals what the API server makes
// of the planned one, by a dry run under another name. It is false if the dry run is
// rejected.
func (l *Launcher) equalsAdmitted(ctx context.Context, k inventory.Kind, object, found payload.Object) (bool, error) {
	probe, ok := object.DeepCopyObject().(payload.Object)
	if !ok {
		return false, fmt.Errorf("unexpected %T", object)
	}
	probe.SetName("preflight-planned-" + label.Suffix(object.GetLabels()[label.Run]))
	admitted, err := l.objects.Post(ctx, k, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return false, onlyTemporary(err) // for any other error, the object is not provably the planned one
	}
	differs, err := alteration.Difference(admitted, found)
	return differs == "", err
}

// onlyTemporary is nil for an error that a retry cannot help.
func onlyTemporary(err error) error {
	if retry.Temporary(err) {
		return err
	}
	return nil
}

// Resume finds the objects of the plan that another runner of the run has created,
// with one list per kind, so that Validate, Guard and Prepare send no request for
// each. Objects that differ from the plan are not adopted. The plan must have the
// copies of CopyAccounts, or their objects are not found. Resume is optional: without
// it, each existing object is read and compared when it is needed.
func (l *Launcher) Resume(ctx context.Context, plan jobplan.Plan) error {
	planned, err := objectsOf(plan)
	if err != nil {
		return err
	}
	var requests []func() error
	for _, k := range l.objects.Kinds() {
		if k.Name != inventory.PodKind {
			requests = append(requests, func() error { return l.resumeKind(ctx, k, plan.Run.ID, planned) })
		}
	}
	if err := errors.Join(inventory.Concurrently(requests)...); err != nil {
		return fmt.Errorf("could not list the objects of run %s: %w", plan.Run.ID, err)
	}
	return nil
}

func objectsOf(p jobplan.Plan) (map[preflight.Object]payload.Object, error) {
	all, err := writeguard.Objects(p)
	if err != nil {
		return nil, err
	}
	all = append(all, p.Supporting...)
	for _, check := range p.Checks {
		all = append(all, check.Job)
	}
	planned := make(map[preflight.Object]payload.Object, len(all))
	for _, object := range all {
		k, err := inventory.KindOf(object)
		if err != nil {
			return nil, err
		}
		planned[k.Object(object)] = object
	}
	return planned, nil
}

// resumeKind adopts the existing objects of one kind that equal the planned ones. A
// page is dropped when it has been compared, since whole objects are large.
func (l *Launcher) resumeKind(ctx context.Context, k inventory.Kind, runID string, planned map[preflight.Object]payload.Object) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return l.objects.WholePage(ctx, k, options)
	})
	pages.PageBufferSize = 0
	err := retry.Do(ctx, func(ctx context.Context) error {
		return pages.EachListItem(ctx, inventory.OfRun(runID), func(item runtime.Object) error {
			found, ok := item.(payload.Object)
			if !ok {
				return fmt.Errorf("unexpected %T", item)
			}
			name := k.Object(found)
			object := planned[name]
			if object == nil || found.GetDeletionTimestamp() != nil {
				return nil
			}
			differs, err := alteration.Difference(object, found)
			if err == nil && differs == "" {
				l.objects.Created.Add(runID, name, found.GetUID())
				l.objects.Present.Add(runID, name, found.GetUID())
			}
			return err
		})
	})
	if errors.Is(err, inventory.ErrUnseen) {
		return nil
	}
	return err
}

// Prepare creates the supporting objects of the plan. Objects that a killed
// runner of the same run has created are adopted if they equal the plan. The error names every object
// that could not be created.
func (l *Launcher) Prepare(ctx context.Context, plan jobplan.Plan) error {
	// The API server rejects a binding from most users unless its role exists.
	var roles, bindings []payload.Object
	for _, object := range plan.Supporting {
		if inventory.IsBinding(inventory.ReferenceTo(object).Kind) {
			bindings = append(bindings, object)
			continue
		}
		roles = append(roles, object)
	}
	return errors.Join(l.createAll(ctx, roles), l.createAll(ctx, bindings))
}

func (l *Launcher) createAll(ctx context.Context, objects []payload.Object) error {
	requests := make([]func() error, len(objects))
	for i, object := range objects {
		requests[i] = func() error { return l.Create(ctx, object) }
	}
	return errors.Join(inventory.Concurrently(requests)...)
}

// Start creates the Job of one check, or adopts the one that this run has already
// created, if it equals the plan. It retries, until ctx is done, while the API server is unreachable or
// overloaded. Explain converts its errors into findings.
func (l *Launcher) Start(ctx context.Context, check jobplan.Check) error {
	select {
	case l.starting <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("could not create %s: %w", inventory.ReferenceTo(check.Job), ctx.Err())
	}
	defer func() { <-l.starting }()
	l.objects.Forget(check.Job)
	return l.Create(ctx, check.Job)
}

// Create creates one object, or adopts an existing object of the same name if it equals the planned one. It retries
// like Start.
func (l *Launcher) Create(ctx context.Context, object payload.Object) error {
	k, err := inventory.KindOf(object)
	if err != nil {
		return err
	}
	if l.objects.IsPresent(k, object) {
		return nil
	}
	uid, err := retry.Get(ctx, func(ctx context.Context) (types.UID, error) {
		created, err := l.objects.Post(ctx, k, object, metav1.CreateOptions{})
		if err != nil {
			return l.orAdopt(ctx, k, object, err)
		}
		return created.GetUID(), rejectAltered(object, created)
	})
	if altered, ok := errors.AsType[*alteredError](err); ok && uid != "" {
		return errors.Join(altered, l.objects.Remove(ctx, k, object, uid, inventory.Foreground()))
	}
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		return foreign
	}
	if err != nil {
		return fmt.Errorf("could not create %s: %w", inventory.ReferenceTo(object), err)
	}
	l.objects.Created.Add(object.GetLabels()[label.Run], k.Object(object), uid)
	return nil
}

// End deletes the Job of one check that this Launcher has created or adopted, with
// its pods: the Job exists until they are gone, which End does not wait for. No error
// means that the Job is gone or terminating. It retries like Start.
func (l *Launcher) End(ctx context.Context, check jobplan.Check) error {
	k, err := inventory.KindOf(check.Job)
	if err != nil {
		return err
	}
	l.objects.Forget(check.Job)
	uid := l.UID(check)
	if uid == "" {
		return nil
	}
	if err := l.objects.Remove(ctx, k, check.Job, uid, inventory.Foreground()); err != nil {
		return err
	}
	l.objects.Ended.Add(check.Job.Labels[label.Run], k.Object(check.Job), uid)
	return nil
}
