package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
	"github.com/openshift/update-preflight/runner/rehearsal/merge"
	"github.com/openshift/update-preflight/runner/rehearsal/podtemplate"
)

// state is the state of knowledge about a write.
type state string

const (
	// accepted is a write that the API server accepts.
	accepted state = "accepted"
	// unchanged is an object that CVO does not write: it has what its manifest states, or is only created.
	unchanged state = "unchanged"
	// leftOut is a manifest that CVO does not apply to this cluster.
	leftOut state = "left out"
	// refused is a write at which CVO would be stuck.
	refused state = "refused"
	// newKind and newNamespace are of what the target brings, of which the API server cannot be asked before.
	newKind      state = "of new kinds"
	newNamespace state = "in new namespaces"
	// notAsked is a write of which the answer is not known.
	notAsked state = "not asked"
)

// write is one write of the update, and what the API server answers.
type write struct {
	manifest payload.Definition
	// verb is create, update or delete.
	verb  string
	state state
	// answer has what refuses the write, or keeps it from being asked.
	answer dryrun.Answer
	// before and after are the templates of a workload in the cluster, and as it would be stored; nil where it has none.
	before, after *podtemplate.Template
	// selector selects the pods of the workload.
	selector map[string]string
}

// object is the object of the write.
func (w write) object() finding.Object {
	return finding.Object{
		APIVersion: w.manifest.Kind.GroupVersion().String(), Kind: w.manifest.Kind.Kind,
		Namespace: w.manifest.Namespace, Name: w.manifest.Name,
	}
}

func (w write) with(known state) write {
	w.state = known
	return w
}

// unknown is the write with why its answer is not known, as a clause.
func (w write) unknown(why error) write {
	w.state, w.answer = notAsked, dryrun.Answer{Outcome: dryrun.NotAsked, Message: why.Error()}
	return w
}

// answered is the write with the answer of the API server, given as the error of the request.
func (w write) answered(err error) write {
	w.answer = dryrun.AnswerOf(err)
	w.state = stateOf(w.answer)
	return w
}

// stateOf is the state of what has this answer. Which account the operator of the target has, and which rights, is not known for certain:
// what authorization refuses is none of the update.
func stateOf(answer dryrun.Answer) state {
	switch {
	case answer.Outcome == dryrun.Accepted:
		return accepted
	case answer.Outcome == dryrun.Refused && answer.Kind != dryrun.KindRBAC:
		return refused
	}
	return notAsked
}

// stuck is the write at which CVO waits by its own rules.
func (w write) stuck(message string) write {
	w.state, w.answer = refused, dryrun.Answer{Outcome: dryrun.Refused, By: operator, Message: message}
	return w
}

// operator is the reason why CVO does not send a write.
const operator = "the cluster-version operator"

// writer asks for CVO's writes, as CVO.
type writer struct {
	client *dryrun.Client
	kinds  kinds
	proxy  merge.Proxy
	// owner is the UID of ClusterVersion; empty for none.
	owner types.UID
}

// own makes ClusterVersion the owner of an object, unless its manifest has another one, as CVO does before it applies a manifest
// (pkg/cvo/cvo.go, ownerReferenceModifier).
func (a *writer) own(required *unstructured.Unstructured) {
	if a.owner == "" {
		return
	}
	own := configv1.GroupVersion.WithKind("ClusterVersion")
	others := slices.DeleteFunc(required.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == own.Kind })
	if len(others) == 0 {
		others = []metav1.OwnerReference{{APIVersion: own.GroupVersion().String(), Kind: own.Kind, Name: "version", UID: a.owner}}
		if required.GetAnnotations()["release.openshift.io/create-only"] != "true" {
			others[0].Controller = new(true)
		}
	}
	required.SetOwnerReferences(others)
}

// ask returns the outcome for one manifest.
func (a *writer) ask(ctx context.Context, manifest payload.Definition) write {
	w := write{manifest: manifest, verb: "create"}
	required, err := manifest.Object()
	if err != nil {
		return w.unknown(err)
	}
	resource, namespaced, err := a.kinds.resourceOf(required.GroupVersionKind())
	switch {
	case err != nil && a.kinds.brought[required.GroupVersionKind()] && !manifest.Deleted:
		return w.with(newKind)
	case err != nil && manifest.IfPresent:
		return w.with(leftOut)
	case err != nil:
		return w.unknown(err)
	}
	if !namespaced {
		required.SetNamespace("")
	}
	a.own(required)
	if err := merge.Inject(required, a.proxy); err != nil {
		return w.stuck(err.Error())
	}
	return a.write(ctx, w, resource, required)
}

// maxConflicts bounds the writes of an object that others write at the same time.
const maxConflicts = 3

// write does with an object what CVO does: it reads, merges and updates it, or creates or deletes it.
func (a *writer) write(ctx context.Context, w write, resource schema.GroupVersionResource, required *unstructured.Unstructured) write {
	for range maxConflicts {
		existing, err := a.client.Get(ctx, resource, required.GetNamespace(), required.GetName())
		switch {
		case apierrors.IsNotFound(err):
			return a.create(ctx, w, resource, required)
		case err != nil:
			return w.answered(err)
		case w.manifest.Deleted:
			return a.delete(ctx, w, resource, existing)
		}
		w.verb = "update"
		w = w.about(existing)
		merged, changed := merge.Of(required, existing)
		if waitsFor(existing) {
			return w.stuck("the object is being deleted, and the update waits until it is gone")
		}
		if !changed || isOperator(w.manifest.Kind) {
			return w.with(unchanged)
		}
		stored, err := a.client.Update(ctx, resource, merged)
		if w = w.answered(err).stored(stored); !apierrors.IsConflict(err) {
			return w
		}
	}
	return w
}

func (a *writer) create(ctx context.Context, w write, resource schema.GroupVersionResource, required *unstructured.Unstructured) write {
	switch {
	case w.manifest.IfPresent:
		return w.with(leftOut)
	case w.manifest.Deleted:
		return w.with(unchanged)
	}
	stored, err := a.client.Create(ctx, resource, required)
	return w.answered(err).stored(stored)
}

func (a *writer) delete(ctx context.Context, w write, resource schema.GroupVersionResource, existing *unstructured.Unstructured) write {
	w.verb = "delete"
	if existing.GetDeletionTimestamp() != nil {
		return w.with(unchanged)
	}
	return w.answered(a.client.Delete(ctx, resource, existing.GetNamespace(), existing.GetName()))
}

// about adds what the pods of an existing workload are like.
func (w write) about(existing *unstructured.Unstructured) write {
	if template, ok, err := podtemplate.Of(existing); ok && err == nil {
		w.before = &template
	}
	w.selector, _, _ = unstructured.NestedStringMap(existing.Object, "spec", "selector", "matchLabels") // none for other kinds
	return w
}

// stored adds the template of a workload that makes pods, as it would be stored.
func (w write) stored(object *unstructured.Unstructured) write {
	if object == nil || w.state != accepted {
		return w
	}
	replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if template, ok, malformed := podtemplate.Of(object); ok && malformed == nil && (err != nil || !found || replicas > 0) {
		w.after = &template
	}
	return w
}

// waitsFor reports whether CVO waits until the object is gone (lib/resourcebuilder/apps.go, checkDeploymentHealth and
// checkDaemonSetHealth); others it writes, and creates them again when they are gone.
func waitsFor(existing *unstructured.Unstructured) bool {
	kind := existing.GroupVersionKind()
	isWorkload := kind == appsv1.SchemeGroupVersion.WithKind("Deployment") || kind == appsv1.SchemeGroupVersion.WithKind("DaemonSet")
	return isWorkload && existing.GetDeletionTimestamp() != nil
}

// isOperator is true for ClusterOperators, of which CVO only creates those that do not exist (pkg/cvo/internal/operatorstatus.go).
func isOperator(kind schema.GroupVersionKind) bool {
	return kind.Group == configv1.GroupName && kind.Kind == "ClusterOperator"
}

// describe is the write in words, such as: update Deployment x in namespace y.
func (w write) describe() string {
	text := fmt.Sprintf("%s %s %s", w.verb, w.manifest.Kind.Kind, w.manifest.Name)
	if w.manifest.Namespace != "" {
		text += " in namespace " + w.manifest.Namespace
	}
	return text
}

// pod is the next pod of a workload, and what the API server answers to its creation.
type pod struct {
	workload finding.Object
	template podtemplate.Template
	state    state
	answer   dryrun.Answer
	// changes are the changes by admission that do not apply to the running pods; constraint is a clause about a
	// different SecurityContextConstraints than the running pods have.
	changes    []podtemplate.Change
	constraint string
	// labels are the labels of the pod, which webhooks use for selection.
	labels map[string]string
}

// podAsker asks for the pods of templates, as the controllers that make them.
type podAsker struct {
	client *dryrun.Client
	// cluster reads the pods of today, as the user.
	cluster kubernetes.Interface
}

// remade reports whether the update makes other pods of a workload than it has.
func (w write) remade() bool {
	return w.after != nil && (w.before == nil || !equality.Semantic.DeepEqual(w.before.Pod().Spec, w.after.Pod().Spec) ||
		!equality.Semantic.DeepEqual(w.before.Pod().Annotations, w.after.Pod().Annotations) ||
		!equality.Semantic.DeepEqual(w.before.Pod().Labels, w.after.Pod().Labels))
}

// ask returns the outcome for the next pod of a workload that is written.
func (a *podAsker) ask(ctx context.Context, w write) pod {
	made := pod{workload: w.object(), template: *w.after}
	sent := w.after.Pod()
	made.labels = sent.Labels
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sent)
	if err != nil {
		return made.unknown(err)
	}
	client, err := a.client.As(w.after.User())
	if err != nil {
		return made.unknown(err)
	}
	admitted, err := client.Create(ctx, workloadPods(), &unstructured.Unstructured{Object: content})
	if err != nil {
		made.answer = dryrun.AnswerOf(err)
		made.state = stateOf(made.answer)
		return made
	}
	answer := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(admitted.Object, answer); err != nil {
		return made.unknown(err)
	}
	today, err := a.today(ctx, w)
	if err != nil {
		return made.unknown(err)
	}
	made.state, made.changes = accepted, podtemplate.Changes(sent, answer, today)
	if today != nil {
		before, after := podtemplate.Constraint(today.Pod), podtemplate.Constraint(answer)
		if before != after && before != "" {
			made.constraint = "SecurityContextConstraints " + after + " would be chosen for it; today it is " + before
		}
	}
	return made
}

func (p pod) unknown(why error) pod {
	p.state, p.answer = notAsked, dryrun.Answer{Outcome: dryrun.NotAsked, Message: why.Error()}
	return p
}

// mostPods bounds the pods among which the newest is compared: it has the present template, unless a rollout is in
// progress.
const mostPods = 100

// today is a running pod of a workload with its present template; nil where it has none.
func (a *podAsker) today(ctx context.Context, w write) (*podtemplate.Sample, error) {
	if w.before == nil || len(w.selector) == 0 {
		return nil, nil //nolint:nilnil // A workload without pods has no sample.
	}
	list, err := a.cluster.CoreV1().Pods(w.manifest.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set(w.selector).String(), FieldSelector: "status.phase=Running", Limit: mostPods,
	})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	newest := slices.MaxFunc(list.Items, func(x, y corev1.Pod) int { return x.CreationTimestamp.Compare(y.CreationTimestamp.Time) })
	return &podtemplate.Sample{Template: *w.before, Pod: &newest}, nil
}

// lacking returns an object that the pod refers to, that the update brings, and that the refusal names; empty if there is none. Its
// ServiceAccount, PriorityClass and RuntimeClass have to exist.
func (p pod) lacking(brings func(kind, namespace, name string) bool) string {
	spec := p.template.Pod().Spec
	needs := []finding.Object{
		{Kind: "ServiceAccount", Namespace: p.workload.Namespace, Name: spec.ServiceAccountName},
		{Kind: "PriorityClass", Name: spec.PriorityClassName},
	}
	if spec.RuntimeClassName != nil {
		needs = append(needs, finding.Object{Kind: "RuntimeClass", Name: *spec.RuntimeClassName})
	}
	for _, each := range needs {
		if brings(each.Kind, each.Namespace, each.Name) && strings.Contains(p.answer.Message, each.Name) {
			return each.Kind + " " + each.Name
		}
	}
	return ""
}
