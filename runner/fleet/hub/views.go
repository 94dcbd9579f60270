package hub

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

const (
	viewGroup = "view.open-cluster-management.io"
	// conditionProcessing of a ManagedClusterView is True while its result is that of the last
	// attempt. A failed attempt keeps the result of an earlier one (pkg/klusterlet/view of
	// stolostron/multicloud-operators-foundation).
	conditionProcessing = "Processing"
	// VerdictKey is the key of a signed verdict in the ConfigMap of a ManagedClusterView.
	VerdictKey = "verdict.dsse.json"
)

type clusterView struct {
	Status struct {
		Conditions []metav1.Condition `json:"conditions,omitempty"`
		Result     map[string]any     `json:"result,omitempty"`
	} `json:"status"`
}

// views adds what the ManagedClusterViews with Label have. A hub that does not serve them has none.
func (r reader) views(ctx context.Context, to map[string][]reported) error {
	resource := schema.GroupVersionResource{Group: viewGroup, Version: "v1beta1", Resource: "managedclusterviews"}
	err := r.each(ctx, resource, "", metav1.ListOptions{LabelSelector: Label}, func(object unstructured.Unstructured) error {
		status, _, _ := unstructured.NestedMap(object.Object, "status")
		var view clusterView
		if err := into(map[string]any{"status": status}, &view); err != nil {
			return fmt.Errorf("the ManagedClusterView %s/%s cannot be read: %w", object.GetNamespace(), object.GetName(), err)
		}
		made := viewOf(view)
		made.created, made.source = object.GetCreationTimestamp().Time, "ManagedClusterView "+object.GetName()
		to[object.GetNamespace()] = append(to[object.GetNamespace()], made)
		return nil
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// viewOf is the report in the result of a view: an UpdatePreflight, or a ConfigMap with a signed verdict.
func viewOf(view clusterView) reported {
	processing := meta.FindStatusCondition(view.Status.Conditions, conditionProcessing)
	if processing == nil {
		return reported{problem: problemf("NoAnswer", "the cluster has not answered the ManagedClusterView")}
	}
	if processing.Status != metav1.ConditionTrue {
		return reported{problem: problemf("NoAnswer", "the cluster could not read the object of the ManagedClusterView%s", because(processing))}
	}
	result := unstructured.Unstructured{Object: view.Status.Result}
	made := reported{name: result.GetName()}
	switch result.GetKind() {
	case objectKind:
		var object v1alpha1.UpdatePreflight
		if err := into(view.Status.Result, &object); err != nil {
			made.problem = problemf("NotReadable", "the UpdatePreflight in the result of the ManagedClusterView cannot be read")
			return made
		}
		made.values = valuesOf(object.Status)
	case "ConfigMap":
		text, _, err := unstructured.NestedString(view.Status.Result, "data", VerdictKey)
		if err != nil || text == "" {
			made.problem = problemf("NotReadable", "the ConfigMap of the ManagedClusterView has no %s", VerdictKey)
		}
		made.values.attestation, made.name = text, ""
		made.signedOnly = true
	default:
		made.problem = problemf("NotReadable", "the ManagedClusterView reads neither an UpdatePreflight nor a ConfigMap")
	}
	return made
}

func valuesOf(status v1alpha1.UpdatePreflightStatus) values {
	made := values{
		phase: string(status.Phase), decision: status.Decision, causes: status.Causes, attestation: status.Attestation,
		validUntil: timeOf(status.ValidUntil), reportTime: timeOf(status.ReportTime),
	}
	if status.Target != nil {
		made.version, made.image = status.Target.Version, status.Target.Image
	}
	if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil {
		made.message = ready.Message
	}
	if updated := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionUpdated); updated != nil {
		made.updated, made.updatedSince = string(updated.Status), timeOf(&updated.LastTransitionTime)
		made.updatedReason, made.updatedMessage = updated.Reason, updated.Message
	}
	if after := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAfterUpdate); after != nil {
		made.after, made.afterSince = string(after.Status), timeOf(&after.LastTransitionTime)
		made.afterReason, made.afterMessage = after.Reason, after.Message
	}
	return made
}

func timeOf(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return words.Time(at.Time)
}
