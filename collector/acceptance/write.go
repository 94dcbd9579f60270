package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
)

// Origin is where ClusterVersion keeps acceptances.
const Origin = "spec.desiredUpdate.acceptRisks"

// Kept is what the server has after a Change.
type Kept struct {
	// Risks are the names, in the order of ClusterVersion.
	Risks []string
	// Changed is false where everything was as wanted before.
	Changed bool
}

// NotKeptError says that this cluster does not keep accepted risks, so that
// nothing was written.
type NotKeptError struct{ Cause string }

// Error implements error.
func (e *NotKeptError) Error() string {
	return fmt.Sprintf("ClusterVersion \"version\" does not take %s: %s; nothing was changed. "+
		"Accept the risks where you ask instead: oc preflight run --accept RISK,... or --accept-file FILE", Origin, e.Cause)
}

// Write changes which risks ClusterVersion accepts, leaves everything else in
// spec.desiredUpdate as it is, and returns what the server kept. It asks the
// server first whether it would keep them: where the feature gate
// ClusterUpdateAcceptRisks is off, the API server drops the field without a
// word, and what is left may be an update that CVO calls invalid. Such a
// cluster gives a *NotKeptError. A conflict with another writer is tried again.
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
		return kept, fmt.Errorf("ClusterVersion \"version\" is being changed by somebody else all the time: %w", err)
	}
	return kept, err
}

// checkTopology refuses hosted clusters, where CVO takes no update that names
// accepted risks, whatever the API server keeps (cluster-version-operator
// pkg/cvo/cvo.go).
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
	wanted, err := change.apply(present)
	if err != nil || slices.Equal(wanted, present) {
		return Kept{Risks: present}, err
	}
	patch, err := patchFor(found, wanted)
	if err != nil {
		return Kept{}, err
	}
	for _, options := range []metav1.PatchOptions{{DryRun: []string{metav1.DryRunAll}}, {}} {
		written, err := versions.Patch(ctx, "version", types.MergePatchType, patch, options)
		if err != nil {
			return Kept{}, fmt.Errorf("could not write %s of ClusterVersion \"version\": %w", Origin, err)
		}
		if err := compare(written, wanted); err != nil {
			return Kept{}, err
		}
	}
	return Kept{Risks: wanted, Changed: true}, nil
}

// acceptedIn are the names in ClusterVersion. The update is read as it is in
// the API, so that nothing which this program does not know gets lost.
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

// patchFor sets the risks, if nobody else writes meanwhile. The field may not be
// an empty list. An update of which nothing is left goes with the last risk: CVO
// calls an empty one invalid (cluster-version-operator lib/validation).
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

// isEmptyBut says whether the desired update has nothing but that field.
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

// compare says whether the server has what was wanted.
func compare(written *unstructured.Unstructured, wanted []string) error {
	got, err := acceptedIn(written)
	if err != nil {
		return err
	}
	switch {
	case slices.Equal(got, wanted):
		return nil
	case len(got) == 0:
		return &NotKeptError{Cause: "the API server drops the field, because the feature gate ClusterUpdateAcceptRisks is off in this cluster"}
	}
	return fmt.Errorf("the server has other accepted risks than were written to ClusterVersion \"version\": %s", strings.Join(got, ", "))
}
