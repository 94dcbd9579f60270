package foresee_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/definition"
	"github.com/openshift/update-preflight/runner/payload"
)

// The results of a change.
const (
	definitionRejected = "definition rejected"
	writeRejected      = "write rejected"
	tolerated          = "tolerated"
	accepted           = "accepted"
)

// trial is one change, its predicted and its real result.
type trial struct {
	name              string
	change            change
	predicted, actual string
	details           string
}

// TestPredictions compares predictions with the responses of the API server. For each change
// it applies the definition of the target, updates the stored object unchanged, with another
// label and with another status, and creates it again.
func TestPredictions(t *testing.T) {
	all := changes()
	trials := make([]*trial, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		trials = append(trials, &trial{name: name, change: all[name]})
	}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(12)
	for i, each := range trials {
		present, target := each.change.definitions(t, fmt.Sprintf("thing%dx", i))
		group.Go(func() error {
			if err := each.run(ctx, present, target); err != nil {
				return fmt.Errorf("%s: %w", each.name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	compare(t, trials)
}

// compare prints the table. It fails the test for a change with an unexpected result, for a
// false Fail, and below 99 % of correct predictions.
func compare(t *testing.T, trials []*trial) {
	t.Helper()
	var table strings.Builder
	counts, faults, correct := map[string]int{}, 0, 0
	for _, each := range trials {
		counts[fmt.Sprintf("%-20s %-20s", each.predicted, each.actual)]++
		if each.change.fault {
			faults++
		}
		if each.predicted == each.actual {
			correct++
		} else {
			fmt.Fprintf(&table, "not predicted: %s: %s, actual: %s: %s\n", each.name, each.predicted, each.actual, each.details)
		}
		if fails(each.predicted) && !fails(each.actual) {
			t.Errorf("%s: a false Fail: %s", each.name, each.details)
		}
		if each.change.fault == (each.actual == accepted) {
			t.Errorf("%s: the result of the API server is %q: %s", each.name, each.actual, each.details)
		}
	}
	for _, row := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&table, "%s %d\n", row, counts[row])
	}
	t.Logf("%d faults, %d clean; %d of %d predicted\n%-20s %-20s\n%s", faults, len(trials)-faults, correct, len(trials), "predicted", "actual",
		table.String())
	if faults < 40 || len(trials)-faults < 40 || correct*100 < len(trials)*99 {
		t.Errorf("%d of %d changes predicted, %d of them faults; want 99 %% of at least 40 faults and 40 clean changes", correct, len(trials),
			faults)
	}
}

// fails reports whether a result is a rejection.
func fails(result string) bool { return result == definitionRejected || result == writeRejected }

// run predicts the result of one change, then applies the change.
func (r *trial) run(ctx context.Context, present, target *apiextensionsv1.CustomResourceDefinition) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	objects := server.Dynamic.Resource(schema.GroupVersionResource{
		Group: present.Spec.Group, Version: "v1",
		Resource: present.Spec.Names.Plural,
	}).Namespace("default")
	if err := r.prepare(ctx, present, objects); err != nil {
		return err
	}
	manifest, err := yaml.Marshal(target)
	if err != nil {
		return err
	}
	findings, err := definition.Check(server.Dynamic, []payload.Definition{{Name: present.Name, Manifest: manifest}}).
		Run(ctx, check.Subject{Now: time.Now()})
	if err != nil {
		return err
	}
	r.predicted = predictionOf(findings)
	for _, f := range findings {
		r.details += " " + f.Name + ": " + f.Message
	}
	r.actual, err = r.apply(ctx, target, objects)
	return err
}

// predictionOf returns the worst result that the findings predict.
func predictionOf(findings []finding.Finding) string {
	result := accepted
	for _, f := range findings {
		switch {
		case f.Outcome == preflight.Unknown:
			return "inconclusive"
		case f.Outcome == preflight.Fail && f.Name != "CRDSchema":
			return definitionRejected
		case f.Outcome == preflight.Fail:
			result = writeRejected
		case f.Name == "CRDSchema" && result == accepted:
			result = tolerated
		}
	}
	return result
}

// prepare creates the present definition, its status, and the object.
func (r *trial) prepare(ctx context.Context, present *apiextensionsv1.CustomResourceDefinition, objects dynamic.ResourceInterface) error {
	if _, err := definitions().Create(ctx, asUnstructured(present), metav1.CreateOptions{}); err != nil {
		return err
	}
	var created *unstructured.Unstructured
	if err := eventually(ctx, func() (err error) {
		created, err = objects.Create(ctx, r.object(present, "it"), metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	if r.change.status != "" {
		created.Object["status"] = r.object(present, "it").Object["status"]
		if _, err := objects.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if len(r.change.stored) == 0 {
		return nil
	}
	patch := `{"status":{"storedVersions":["v1","` + strings.Join(r.change.stored, `","`) + `"]}}`
	_, err := definitions().Patch(ctx, present.Name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// apply applies the change, and returns its result.
func (r *trial) apply(ctx context.Context, target *apiextensionsv1.CustomResourceDefinition,
	objects dynamic.ResourceInterface,
) (string, error) {
	err := eventually(ctx, func() error {
		read, err := definitions().Get(ctx, target.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		read.Object["spec"] = asUnstructured(target).Object["spec"]
		_, err = definitions().Update(ctx, read, metav1.UpdateOptions{})
		return err
	})
	if rejects(err) {
		r.details += "; actual: " + err.Error()
		return definitionRejected, nil
	}
	if err != nil {
		return "", err
	}
	for _, write := range []func(context.Context, dynamic.ResourceInterface, *unstructured.Unstructured) error{
		unchanged, relabeled,
		restated,
	} {
		stored, err := r.served(ctx, objects)
		if err != nil {
			return "", err
		}
		if err := write(ctx, objects, stored); rejects(err) {
			r.details += "; actual: " + err.Error()
			return writeRejected, nil
		} else if err != nil {
			return "", err
		}
	}
	return r.recreate(ctx, target, objects)
}

// served returns the object once the API server serves it with the schema of the target,
// which has a default for the field "marker".
func (r *trial) served(ctx context.Context, objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
	var stored *unstructured.Unstructured
	err := eventually(ctx, func() (err error) {
		stored, err = objects.Get(ctx, "it", metav1.GetOptions{})
		if err == nil && stored.Object["marker"] == nil {
			err = apierrors.NewNotFound(schema.GroupResource{}, "marker")
		}
		return err
	})
	return stored, err
}

// unchanged updates the object as stored.
func unchanged(ctx context.Context, objects dynamic.ResourceInterface, stored *unstructured.Unstructured) error {
	_, err := objects.Update(ctx, stored, metav1.UpdateOptions{})
	return err
}

// relabeled updates the object with another label.
func relabeled(ctx context.Context, objects dynamic.ResourceInterface, stored *unstructured.Unstructured) error {
	stored.SetLabels(map[string]string{"another": "label"})
	_, err := objects.Update(ctx, stored, metav1.UpdateOptions{})
	return err
}

// restated changes the status if the object has one.
func restated(ctx context.Context, objects dynamic.ResourceInterface, stored *unstructured.Unstructured) error {
	status, ok := stored.Object["status"].(map[string]any)
	if !ok {
		return nil
	}
	status["note"] = "another"
	_, err := objects.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
	return err
}

// recreate creates the object again. An object that is only tolerated cannot be created.
func (r *trial) recreate(ctx context.Context, target *apiextensionsv1.CustomResourceDefinition,
	objects dynamic.ResourceInterface,
) (string, error) {
	if err := objects.Delete(ctx, "it", metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	copied := r.object(target, "it")
	created, err := objects.Create(ctx, copied, metav1.CreateOptions{})
	if err == nil && r.change.status != "" {
		created.Object["status"] = r.object(target, "it").Object["status"]
		_, err = objects.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	}
	switch {
	case rejects(err):
		return tolerated, nil
	case err != nil:
		return "", err
	}
	return accepted, nil
}

// object returns the object of the change.
func (r *trial) object(crd *apiextensionsv1.CustomResourceDefinition, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf("{apiVersion: %s/v1, kind: %s, metadata: {name: %s}, spec: %s}", crd.Spec.Group, crd.Spec.Names.Kind, name,
		or(r.change.spec, "{}"))
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		panic(err)
	}
	if r.change.status != "" {
		var status map[string]any
		if err := yaml.Unmarshal([]byte(r.change.status), &status); err != nil {
			panic(err)
		}
		object.Object["status"] = status
	}
	return object
}

// definitions returns the client of CustomResourceDefinitions.
func definitions() dynamic.ResourceInterface {
	return server.Dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
}

// asUnstructured converts a definition without its status.
func asUnstructured(crd *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		panic(err)
	}
	delete(object, "status")
	return &unstructured.Unstructured{Object: object}
}

// rejects reports whether an error is a rejection by the validation.
func rejects(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }

// eventually retries a request while the API server does not serve the resource, or reports a
// conflict.
func eventually(ctx context.Context, request func() error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		last = request()
		if apierrors.IsNotFound(last) || apierrors.IsConflict(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil && last != nil {
		return last
	}
	return err
}
