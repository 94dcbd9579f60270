package definition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// maxManagers bounds the managers of a version that are kept.
const maxManagers = 100

// tally collects the violations of the objects of one definition.
type tally struct {
	// rules are nil where the target has the same.
	rules *rules
	gone  []string
	count int
	// refused are objects whose next write is rejected, tolerated those that are invalid.
	refused, tolerated invalid
	// managers of fields that wrote versions which go away, by version.
	managers map[string]map[string]bool
}

type invalid struct {
	count    int
	examples []string
	objects  []finding.Object
}

func (i *invalid) add(object *unstructured.Unstructured, text string) {
	i.count++
	if len(i.objects) < mostNamed {
		i.examples = append(i.examples, text)
		i.objects = append(i.objects, finding.Object{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		})
	}
}

// tally compiles the rules of the target for objects that are read in one version and
// validated under another one; without rules where those do not change.
func (c change) tally(version, under string) (*tally, error) {
	t := &tally{managers: map[string]map[string]bool{}}
	if version == under {
		changed, err := c.schemaChanged(version)
		if err != nil || !changed {
			return t, err
		}
	} else if strategy := c.to.Spec.Conversion; strategy != nil && strategy.Strategy == apiextensions.WebhookConverter {
		return t, errors.New("the target serves none of the present versions, and a webhook of the target converts the objects")
	}
	if under == "" {
		return t, nil // the target is invalid, which is reported
	}
	compiled, err := newRules(c.to, under)
	t.rules = compiled
	return t, err
}

// addPage validates objects, which it changes, as many at a time as there are processors.
func (t *tally) addPage(ctx context.Context, page []unstructured.Unstructured) error {
	judged := make([]judgement, len(page))
	if t.rules != nil {
		var group errgroup.Group
		group.SetLimit(runtime.GOMAXPROCS(0))
		for i := range page {
			group.Go(func() (err error) {
				judged[i], err = t.rules.safely(ctx, &page[i])
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	for i := range page {
		t.add(&page[i], judged[i])
	}
	return ctx.Err()
}

// safely is judge, with an error where the validation panics: a panic of another goroutine would end the process.
func (r *rules) safely(ctx context.Context, object *unstructured.Unstructured) (judged judgement, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the validation of %s panicked: %v", objectName(object), cause)
		}
	}()
	return r.judge(ctx, object), nil
}

func (t *tally) add(object *unstructured.Unstructured, judged judgement) {
	t.count++
	t.addManagers(object)
	if len(judged.errs) == 0 {
		return
	}
	text := fmt.Sprintf("%s: %s", objectName(object), words.Line(judged.errs[0].Error(), maxCause))
	if more := len(judged.errs) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if judged.refused != "" {
		t.refused.add(object, text+" (a write of "+judged.refused+" is rejected)")
		return
	}
	t.tolerated.add(object, text)
}

func (t *tally) addManagers(object *unstructured.Unstructured) {
	if len(t.gone) == 0 {
		return
	}
	for _, entry := range object.GetManagedFields() {
		_, version, _ := strings.Cut(entry.APIVersion, "/")
		if !slices.Contains(t.gone, version) {
			continue
		}
		if t.managers[version] == nil {
			t.managers[version] = map[string]bool{}
		}
		if len(t.managers[version]) < maxManagers {
			t.managers[version][words.Line(entry.Manager, maxCause)] = true
		}
	}
}

func (t *tally) findings(c change) []finding.Finding {
	var found []finding.Finding
	evidence := map[string]string{
		"objects": strconv.Itoa(t.count), "refused": strconv.Itoa(t.refused.count), "tolerated": strconv.Itoa(t.tolerated.count),
	}
	if t.refused.count > 0 {
		found = append(found, finding.Fail(reasonObjectsRefused, "the API server rejects the next write of %d of %s of %s under the schema of the target: %s",
			t.refused.count, words.Count(t.count, "object"), describe(c.target), words.ListOf(t.refused.examples, t.refused.count)).
			Named(nameSchema).About(t.refused.objects...).Observed(evidence).Do(finding.Change("oc edit %s", c.target.Name)))
	}
	if t.tolerated.count > 0 {
		found = append(found, finding.Warn(reasonObjectsInvalid,
			"%d of %s of %s are invalid under the schema of the target; writes that do not change the invalid fields are accepted: %s",
			t.tolerated.count, words.Count(t.count, "object"), describe(c.target), words.ListOf(t.tolerated.examples, t.tolerated.count)).
			Named(nameSchema).About(t.tolerated.objects...).Observed(evidence).Do(finding.Change("oc edit %s", c.target.Name)))
	}
	for _, version := range slices.Sorted(maps.Keys(t.managers)) {
		found = append(found, t.versionGone(c, version))
	}
	return found
}

// versionGone warns: managedFields are of the last write of each manager, which may
// have moved to another version since.
func (t *tally) versionGone(c change, version string) finding.Finding {
	managers := slices.Sorted(maps.Keys(t.managers[version]))
	return finding.Warn(reasonServedVersionRemoved, "the target no longer serves version %s of %s, in which these clients last wrote objects: %s",
		version, describe(c.target), words.List(managers, mostNamed)).
		Named(nameServedVersions).About(object(c.target)).
		Do(finding.Read("oc get %s -A -o yaml --show-managed-fields", c.target.Name))
}
