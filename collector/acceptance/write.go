package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/openshift/update-preflight/collector/words"
)

// Origin is the origin of the acceptances in ClusterVersion.
const Origin = "spec.desiredUpdate.acceptRisks"

// Kept is the result of a Change.
type Kept struct {
	// Risks are the names, in the order of ClusterVersion.
	Risks []string
	// Changed is false when nothing had to be written.
	Changed bool
	// Known are the risks of the updates that ClusterVersion lists, by name.
	Known []string
}

// NotKeptError is the error of a cluster that does not support accepted risks. Nothing was written.
type NotKeptError struct{ Cause string }

// Error implements error.
func (e *NotKeptError) Error() string {
	return fmt.Sprintf("ClusterVersion \"version\" does not support %s: %s; nothing was changed. "+
		"Accept the risks for each preflight instead, by name or in an acceptance file", Origin, e.Cause)
}

// Write changes which risks ClusterVersion accepts, and nothing else in
// spec.desiredUpdate, and verifies the result. A dry run comes first: where the
// feature gate ClusterUpdateAcceptRisks is off, the API server silently drops the
// field, and the remaining update may be invalid for CVO. The error of such a cluster
// is a *[NotKeptError]. A conflict with another writer is retried.
func Write(ctx context.Context, client dynamic.Interface, change Change) (Kept, error) {
	if len(change.Add) > 0 {
		if err := checkTopology(ctx, client); err != nil {
			return Kept{}, err
		}
	}
	versions := client.Resource(configv1.GroupVersion.WithResource("clusterversions"))
	var kept Kept
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var err error
		kept, err = write(ctx, versions, change)
		return err
	})
	if apierrors.IsConflict(err) {
		return kept, fmt.Errorf("ClusterVersion \"version\" was repeatedly changed while it was being written: %w", err)
	}
	return kept, err
}

// checkTopology returns an error for hosted clusters, where CVO refuses an update with
// accepted risks (cluster-version-operator pkg/cvo/cvo.go).
func checkTopology(ctx context.Context, client dynamic.Interface) error {
	infrastructures := client.Resource(configv1.GroupVersion.WithResource("infrastructures"))
	infrastructure, err := infrastructures.Get(ctx, "cluster", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("could not read Infrastructure \"cluster\": %w", err)
	}
	topology, _, err := unstructured.NestedString(infrastructure.Object, "status", "controlPlaneTopology")
	if err != nil {
		return fmt.Errorf("could not read Infrastructure \"cluster\": %w", err)
	}
	if topology == string(configv1.ExternalTopologyMode) {
		return &NotKeptError{Cause: "the cluster-version operator of a hosted cluster (HyperShift) refuses it"}
	}
	return nil
}

func write(ctx context.Context, versions dynamic.ResourceInterface, change Change) (Kept, error) {
	found, err := versions.Get(ctx, "version", metav1.GetOptions{})
	if err != nil {
		return Kept{}, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
	}
	present, err := acceptedIn(found)
	if err != nil {
		return Kept{}, err
	}
	known := knownRisks(found)
	wanted, err := change.apply(present)
	if err != nil || slices.Equal(wanted, present) {
		return Kept{Risks: present, Known: known}, err
	}
	patch, err := patchFor(found, wanted)
	if err != nil {
		return Kept{}, err
	}
	for _, dryRun := range [][]string{{metav1.DryRunAll}, change.DryRun} {
		options := metav1.PatchOptions{DryRun: dryRun}
		written, err := versions.Patch(ctx, "version", types.MergePatchType, patch, options)
		if err != nil {
			return Kept{}, fmt.Errorf("could not write %s of ClusterVersion \"version\": %w", Origin, err)
		}
		if err := compare(written, wanted); err != nil {
			return Kept{}, err
		}
	}
	return Kept{Risks: wanted, Changed: true, Known: known}, nil
}

// knownRisks are the names of the risks in status.conditionalUpdates and
// status.conditionalUpdateRisks. What cannot be read has none: the names only support a
// warning.
func knownRisks(clusterVersion *unstructured.Unstructured) []string {
	var status struct {
		Status configv1.ClusterVersionStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(clusterVersion.Object, &status); err != nil {
		return nil
	}
	var names []string
	for _, update := range status.Status.ConditionalUpdates {
		for _, risk := range update.Risks {
			names = append(names, risk.Name)
		}
	}
	for _, risk := range status.Status.ConditionalUpdateRisks {
		names = append(names, risk.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// acceptedIn are the names in ClusterVersion. The update is read untyped, so that
// fields unknown to this program are kept.
func acceptedIn(clusterVersion *unstructured.Unstructured) ([]string, error) {
	risks, _, err := unstructured.NestedSlice(clusterVersion.Object, "spec", "desiredUpdate", "acceptRisks")
	if err != nil {
		return nil, fmt.Errorf("could not read %s of ClusterVersion \"version\": %w", Origin, err)
	}
	names := []string{}
	for _, risk := range risks {
		fields, _ := risk.(map[string]any)
		name, ok := fields["name"].(string)
		if !ok {
			return nil, fmt.Errorf("could not read %s of ClusterVersion \"version\": an entry has no name", Origin)
		}
		names = append(names, name)
	}
	return names, nil
}

// patchFor sets the risks, unless ClusterVersion is changed meanwhile. The field must
// not be an empty list, and an empty update, which is invalid for CVO, is removed with
// the last risk (cluster-version-operator lib/validation).
func patchFor(found *unstructured.Unstructured, wanted []string) ([]byte, error) {
	var desired any = map[string]any{"acceptRisks": risks(wanted)}
	if len(wanted) == 0 && isEmptyBut(found, "acceptRisks") {
		desired = nil
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": found.GetResourceVersion()},
		"spec":     map[string]any{"desiredUpdate": desired},
	})
}

func risks(names []string) []configv1.AcceptRisk {
	var risks []configv1.AcceptRisk
	for _, name := range names {
		risks = append(risks, configv1.AcceptRisk{Name: name})
	}
	return risks
}

// isEmptyBut reports whether the desired update has no other field.
func isEmptyBut(clusterVersion *unstructured.Unstructured, field string) bool {
	desired, _, err := unstructured.NestedMap(clusterVersion.Object, "spec", "desiredUpdate")
	if err != nil {
		return false
	}
	for key, value := range desired {
		if key != field && value != "" && value != false && value != nil {
			return false
		}
	}
	return true
}

// compare returns an error unless the API server stored the wanted risks.
func compare(written *unstructured.Unstructured, wanted []string) error {
	got, err := acceptedIn(written)
	if err != nil {
		return err
	}
	switch {
	case slices.Equal(got, wanted):
		return nil
	case len(got) == 0:
		return &NotKeptError{Cause: "the API server drops the field, because the feature gate ClusterUpdateAcceptRisks is off on this cluster"}
	}
	return fmt.Errorf("the API server stored other accepted risks of ClusterVersion \"version\" than were written: %s", words.List(got, maxListed))
}
