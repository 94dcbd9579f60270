package projection

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// afterUpdate is the condition of a judgement, without its times.
func afterUpdate(judged afterupdate.Report) metav1.Condition {
	status := metav1.ConditionUnknown
	switch judged.Decision {
	case afterupdate.Good:
		status = metav1.ConditionTrue
	case afterupdate.Regressed, afterupdate.RolledBack:
		status = metav1.ConditionFalse
	case afterupdate.Settling, afterupdate.Unfinished, afterupdate.Undecided:
	}
	return metav1.Condition{Type: v1alpha1.ConditionAfterUpdate, Status: status, Reason: string(judged.Decision), Message: judged.Message}
}

// judgement is the part of a status about a judgement; nil for none.
func (p projected) judgement() *v1alpha1.AfterUpdate {
	if p.observed.After == nil {
		return nil
	}
	judged := *p.observed.After
	var names []string
	for _, each := range judged.Regressions {
		names = append(names, words.Cut(each.Name, maxName))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	made := &v1alpha1.AfterUpdate{Run: words.Cut(judged.Update.Run, maxID), Decision: string(judged.Decision), Regressions: names}
	if more := len(names) - v1alpha1.MaxNames; more > 0 {
		made.Regressions, made.RegressionsOmitted = names[:v1alpha1.MaxNames], int32(more) //nolint:gosec // at most MaxListed
	}
	if len(p.observed.Statement) <= v1alpha1.MaxAttestation {
		made.Statement = p.observed.Statement
	}
	return made
}
