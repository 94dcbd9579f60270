package projection

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// history is that of the previous status with the verdict of the target, valid or not, as
// the newest: one per digest. A verdict with other acceptances, or from before the request,
// does not belong to the object.
func (p projected) history() []v1alpha1.Verdict {
	history := slices.Clone(p.object.Status.History)
	if p.observed.Verdict != nil && terms(*p.observed.Verdict, p.object) == "" && !p.before() {
		completed, _ := time.Parse(time.RFC3339, p.observed.Verdict.Run.CompletionTime) // before has parsed it
		last := v1alpha1.Verdict{
			Release: *p.release(), Run: words.Cut(p.observed.Verdict.Run.ID, maxID), Decision: string(p.observed.Verdict.Verdict.Decision),
			CompletionTime: metav1.Time{Time: completed},
		}
		digest := p.observed.Target.Digest()
		history = slices.DeleteFunc(history, func(v v1alpha1.Verdict) bool { return update.Release{Image: v.Image}.Digest() == digest })
		history = append(history, last)
	}
	slices.SortStableFunc(history, func(a, b v1alpha1.Verdict) int { return b.CompletionTime.Compare(a.CompletionTime.Time) })
	return history[:min(len(history), v1alpha1.MaxHistory)]
}
