package rehearsal

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
	"github.com/openshift/update-preflight/runner/rehearsal/podtemplate"
)

// pod is the next pod of a workload, and what the API server answers to its creation.
type pod struct {
	workload finding.Object
	template podtemplate.Template
	state    state
	answer   dryrun.Answer
	// changes are what admission changes of it and not of the pods of today; constraint is another
	// SecurityContextConstraints than that of today, as a clause.
	changes    []podtemplate.Change
	constraint string
	// labels are those of the pod, by which webhooks select.
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

// ask is what becomes of the next pod of a workload that is written.
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

// mostPods bounds the pods of which the newest is compared: it is of the present template, unless a rollout is in progress.
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
