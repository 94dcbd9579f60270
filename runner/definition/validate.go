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
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// probe is the label and the field of the status that simulated writes add.
const probe = "preflight.openshift.io/probe"

// rules validate objects of one version of a definition (apiextensions-apiserver
// pkg/apiserver/customresource_handler.go).
type rules struct {
	group, version string
	structural     *structuralschema.Structural
	// schema validates whole objects, status the status of an object; status is nil
	// without a subresource for it, or without a schema for it.
	schema, status validation.SchemaValidator
	cel            *cel.Validator
	// preserve is true when unknown fields are not pruned; subresource when there is a subresource for the status.
	preserve, subresource bool
}

// newRules compiles the rules of a version; nil where the version has no schema.
func newRules(crd *apiextensions.CustomResourceDefinition, version string) (*rules, error) {
	found, err := apiextensions.GetSchemaForVersion(crd, version)
	if err != nil || found == nil || found.OpenAPIV3Schema == nil {
		return nil, err
	}
	schema := found.OpenAPIV3Schema.DeepCopy()
	r := &rules{group: crd.Spec.Group, version: version, preserve: crd.Spec.PreserveUnknownFields != nil && *crd.Spec.PreserveUnknownFields}
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of version %s of the target is not structural: %w", version, err)
	}
	r.structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(r.structural); err != nil {
		return nil, fmt.Errorf("the defaults of version %s of the target cannot be pruned: %w", version, err)
	}
	r.cel = cel.NewValidator(r.structural, true, celconfig.PerCallLimit)
	if r.schema, _, err = validation.NewSchemaValidator(schema); err != nil {
		return nil, err
	}
	return r, r.addStatus(crd, schema)
}

// addStatus compiles the rules of the subresource for the status.
func (r *rules) addStatus(crd *apiextensions.CustomResourceDefinition, schema *apiextensions.JSONSchemaProps) error {
	subresources, err := apiextensions.GetSubresourcesForVersion(crd, r.version)
	if err != nil || subresources == nil || subresources.Status == nil {
		return err
	}
	r.subresource = true
	if status, ok := schema.Properties["status"]; ok {
		r.status, _, err = validation.NewSchemaValidator(&status)
	}
	return err
}

// judgement states how the rules treat one stored object.
type judgement struct {
	// errs are the rules that the object violates; none for a valid object.
	errs field.ErrorList
	// refused is the write that the API server rejects, "" for an object whose violations are all tolerated.
	refused string
}

// evaluate validates an object that was read, and modifies it. A valid object has no errors, and no write of it is
// simulated.
func (r *rules) evaluate(ctx context.Context, object *unstructured.Unstructured) judgement {
	r.load(object)
	errs := r.validate(ctx, object.Object)
	if len(errs) == 0 {
		return judgement{}
	}
	if refused := r.writeLabel(ctx, object); len(refused) > 0 {
		return judgement{errs: refused, refused: "any field"}
	}
	if refused := r.writeStatus(ctx, object); len(refused) > 0 {
		return judgement{errs: refused, refused: "the status"}
	}
	return judgement{errs: errs}
}

// load changes an object as the API server does when it reads it from storage.
func (r *rules) load(object *unstructured.Unstructured) {
	object.SetAPIVersion(r.group + "/" + r.version)
	if !r.preserve {
		pruning.Prune(object.Object, r.structural, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, r.structural)
	}
	defaulting.Default(object.Object, r.structural)
}

// validate applies all rules without ratcheting, as for an object that does not change.
func (r *rules) validate(ctx context.Context, object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, r.schema)
	errs = append(errs, objectmeta.Validate(ctx, nil, object, r.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, r.structural, object)...)
	return r.withExpressions(ctx, errs, object, object)
}

// writeLabel returns why the API server rejects another label of the object.
func (r *rules) writeLabel(ctx context.Context, stored *unstructured.Unstructured) field.ErrorList {
	written := stored.DeepCopy()
	labels := written.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[probe] = "true"
	written.SetLabels(labels)
	return r.update(ctx, written.Object, stored.Object)
}

// writeStatus returns why the API server rejects a change of the status. An object
// without a status is not written: the first status may have all its fields.
func (r *rules) writeStatus(ctx context.Context, stored *unstructured.Unstructured) field.ErrorList {
	written := stored.DeepCopy()
	status, ok := written.Object["status"].(map[string]any)
	if !ok {
		return nil
	}
	status[probe] = "true"
	if r.subresource {
		return r.updateStatus(ctx, written.Object, stored.Object)
	}
	return r.update(ctx, written.Object, stored.Object)
}

// update applies the rules with ratcheting (apiextensions-apiserver pkg/registry/customresource/strategy.go).
func (r *rules) update(ctx context.Context, written, stored map[string]any) field.ErrorList {
	correlated := r.correlate(written, stored)
	errs := validation.ValidateCustomResourceUpdate(nil, written, stored, r.schema, validation.WithRatcheting(correlated))
	errs = append(errs, objectmeta.Validate(ctx, nil, written, r.structural, false)...)
	errs = append(errs, r.lists(written, stored)...)
	return r.withExpressions(ctx, errs, written, stored, cel.WithRatcheting(correlated))
}

// updateStatus is update by the subresource (status_strategy.go beside it).
func (r *rules) updateStatus(ctx context.Context, written, stored map[string]any) field.ErrorList {
	correlated := r.correlate(written, stored)
	var errs field.ErrorList
	if r.status != nil {
		errs = validation.ValidateCustomResourceUpdate(field.NewPath("status"), written["status"], stored["status"], r.status,
			validation.WithRatcheting(correlated.Key("status")))
	}
	errs = append(errs, r.lists(written, stored)...)
	return r.withExpressions(ctx, errs, written, stored, cel.WithRatcheting(correlated))
}

func (r *rules) correlate(written, stored map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(written, stored, &model.Structural{Structural: r.structural})
}

// lists are the duplicates in lists that are sets or maps; they are tolerated where the stored object has some.
func (r *rules) lists(written, stored map[string]any) field.ErrorList {
	if len(listtype.ValidateListSetsAndMaps(nil, r.structural, stored)) > 0 {
		return nil
	}
	return listtype.ValidateListSetsAndMaps(nil, r.structural, written)
}

// withExpressions adds the violated expressions, which are evaluated only for objects
// that have the right types. The field that a simulated write adds is not reported.
func (r *rules) withExpressions(ctx context.Context, errs field.ErrorList, written, stored map[string]any,
	options ...cel.Option,
) field.ErrorList {
	errs = slices.DeleteFunc(errs, aboutProbe)
	if r.cel == nil || slices.ContainsFunc(errs, blocksExpressions) {
		return errs
	}
	violated, _ := r.cel.Validate(ctx, nil, r.structural, written, stored, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, slices.DeleteFunc(violated, aboutProbe)...)
}

// aboutProbe is true for an error that the added field causes, itself or as one more field of the status.
func aboutProbe(err *field.Error) bool {
	return strings.Contains(err.Field, probe) || err.Field == "status" && err.Type == field.ErrorTypeTooMany
}

// blocksExpressions is true for the errors after which the API server evaluates no expression.
func blocksExpressions(err *field.Error) bool {
	return slices.Contains([]field.ErrorType{
		field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
	}, err.Type)
}

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
		return t, errors.New("the target serves none of the current versions, and a webhook of the target converts the objects")
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

// safely calls evaluate, and returns an error if the validation panics: a panic in another goroutine would end the
// process.
func (r *rules) safely(ctx context.Context, object *unstructured.Unstructured) (judged judgement, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the validation of %s panicked: %v", objectName(object), cause)
		}
	}()
	return r.evaluate(ctx, object), nil
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
		found = append(found, finding.Fail(reasonObjectsRefused,
			"the API server rejects the next write of %d of %s of %s under the target's schema: %s",
			t.refused.count, words.Count(t.count, "object"), describe(c.target), words.ListOf(t.refused.examples, t.refused.count)).
			Named(nameSchema).About(t.refused.objects...).Observed(evidence).Do(finding.Change("oc edit %s", c.target.Name)))
	}
	if t.tolerated.count > 0 {
		found = append(found, finding.Warn(reasonObjectsInvalid,
			"%d of %s of %s are invalid under the target's schema; writes that do not change the invalid fields are "+
				"accepted: %s",
			t.tolerated.count, words.Count(t.count, "object"), describe(c.target), words.ListOf(t.tolerated.examples, t.tolerated.count)).
			Named(nameSchema).About(t.tolerated.objects...).Observed(evidence).Do(finding.Change("oc edit %s", c.target.Name)))
	}
	for _, version := range slices.Sorted(maps.Keys(t.managers)) {
		found = append(found, t.versionGone(c, version))
	}
	return found
}

// versionGone warns: managedFields record the last write of each manager, which may have moved to another version
// since.
func (t *tally) versionGone(c change, version string) finding.Finding {
	managers := slices.Sorted(maps.Keys(t.managers[version]))
	return finding.Warn(reasonServedVersionRemoved,
		"the target no longer serves version %s of %s, in which these clients last wrote objects: %s",
		version, describe(c.target), words.List(managers, mostNamed)).
		Named(nameServedVersions).About(object(c.target)).
		Do(finding.Read("oc get %s -A -o yaml --show-managed-fields", c.target.Name))
}
