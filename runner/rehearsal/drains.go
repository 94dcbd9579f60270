package rehearsal

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/drain/recreation"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
	"github.com/openshift/update-preflight/runner/rehearsal/podtemplate"
)

// Asks has the rehearsal of drains ask the API server about the pods that controllers make in place of those that are evicted; nil where
// nothing is rehearsed. logger receives each difference from the model. Each rehearsal has a guard of its own, which is
// deleted at its end.
func Asks(cluster *cluster.Cluster, mode Mode, logger *slog.Logger) *recreation.Asks {
	if mode == Off {
		return nil
	}
	return &recreation.Asks{
		Ask: func(ctx context.Context, controllers []finding.Object) (map[finding.Object]recreation.Said, error) {
			return Rehearsal{Cluster: cluster, Mode: mode, Run: uuid.NewString()}.pods(ctx, controllers)
		},
		Differs: func(difference string) {
			logger.Info("the model of admission differs from the API server", "difference", difference)
		},
	}
}

// pods asks about the next pod of each controller. What has no answer is not in the result.
func (r Rehearsal) pods(ctx context.Context, controllers []finding.Object) (map[finding.Object]recreation.Said, error) {
	if len(controllers) == 0 && !r.Cluster.Fixed() {
		return nil, nil //nolint:nilnil // Without a question there are no answers.
	}
	begun, err := r.begin(ctx)
	if err != nil {
		begun.end(ctx)
		return nil, fmt.Errorf("not rehearsed: %w", err)
	}
	var mutex sync.Mutex
	answers := map[finding.Object]recreation.Said{}
	r.again(ctx, len(controllers), func(int) bool { return true }, func(ctx context.Context, i int) {
		if said, ok := next(ctx, begun.client, controllers[i]); ok {
			mutex.Lock()
			defer mutex.Unlock()
			answers[controllers[i]] = said
		}
	})
	for _, each := range begun.end(ctx) {
		if each.Inconclusive() {
			return nil, fmt.Errorf("not rehearsed: %s", each.Message)
		}
	}
	return answers, ctx.Err()
}

// next asks about the next pod of one controller, whose template is read whole.
func next(ctx context.Context, client *dryrun.Client, of finding.Object) (recreation.Said, bool) {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
	controller, err := client.Get(ctx, resource, of.Namespace, of.Name)
	if err != nil {
		return recreation.Said{}, false
	}
	template, ok, err := podtemplate.Of(controller)
	if !ok || err != nil {
		return recreation.Said{}, false
	}
	by, err := client.As(template.User())
	if err != nil {
		return recreation.Said{}, false
	}
	sent, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template.Pod())
	if err != nil {
		return recreation.Said{}, false
	}
	admitted, err := by.Create(ctx, workloadPods(), &unstructured.Unstructured{Object: sent})
	if dryrun.AnswerOf(err).Temporary {
		admitted, err = by.Create(ctx, workloadPods(), &unstructured.Unstructured{Object: sent})
	}
	answer := dryrun.AnswerOf(err)
	if answer.Outcome == dryrun.Refused {
		return recreation.Said{By: answer.By, Why: answer.Message, Full: strings.Contains(answer.Message, "exceeded quota: ") && answer.Kind == dryrun.KindQuota}, true
	}
	pod := &corev1.Pod{}
	if answer.Outcome != dryrun.Accepted || runtime.DefaultUnstructuredConverter.FromUnstructured(admitted.Object, pod) != nil {
		return recreation.Said{}, false
	}
	return recreation.Said{Admitted: pod}, true
}
