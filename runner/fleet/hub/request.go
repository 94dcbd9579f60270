package hub

import (
	"encoding/json"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// maxLabel is the length of a value of a label, which OCM makes of a namespace and a name.
const maxLabel = 63

// Request is the object of the hub that asks the clusters of a Placement about the update to a
// version: a ManifestWorkReplicaSet that brings an UpdatePreflight with these accepted findings to
// each, and its verdict back. Names by which OCM cannot label its ManifestWorks are an error.
func Request(version string, placement types.NamespacedName, accepted []string) (workv1alpha1.ManifestWorkReplicaSet, error) {
	name := ObjectName(version)
	if !regexp.MustCompile(`^fleet-[a-z0-9][a-z0-9.-]*[a-z0-9]$`).MatchString(name) {
		return workv1alpha1.ManifestWorkReplicaSet{}, input.Errorf("%q is no version", version)
	}
	if len(placement.Namespace)+1+len(name) > maxLabel {
		return workv1alpha1.ManifestWorkReplicaSet{}, input.Errorf("the namespace %s and the name %s are too long: together they have at most %d characters", placement.Namespace, name, maxLabel-1)
	}
	object := map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind, "metadata": map[string]any{"name": name},
		"spec": v1alpha1.UpdatePreflightSpec{Target: v1alpha1.Target{Version: version}, AcceptedFindings: slices.Compact(slices.Sorted(slices.Values(accepted)))},
	}
	text, err := json.Marshal(object)
	if err != nil {
		return workv1alpha1.ManifestWorkReplicaSet{}, err
	}
	var paths []workv1.JsonPath
	for _, each := range Feedback() {
		paths = append(paths, workv1.JsonPath{Name: each.Name, Path: each.Path})
	}
	return workv1alpha1.ManifestWorkReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1alpha1.GroupVersion.String(), Kind: "ManifestWorkReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: placement.Namespace, Name: name, Labels: map[string]string{Label: ""}},
		Spec: workv1alpha1.ManifestWorkReplicaSetSpec{
			PlacementRefs: []workv1alpha1.LocalPlacementReference{{Name: placement.Name}},
			ManifestWorkTemplate: workv1.ManifestWorkSpec{
				Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: text}}}},
				ManifestConfigs: []workv1.ManifestConfigOption{{
					ResourceIdentifier: workv1.ResourceIdentifier{Group: v1alpha1.Group, Resource: v1alpha1.Resource, Name: name},
					FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: paths}},
				}},
			},
		},
	}, nil
}
