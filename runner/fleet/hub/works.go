package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/dynamic"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

const (
	workGroup = "work.open-cluster-management.io"
	// Label marks the objects of the hub by which it asks about an update: ManifestWorkReplicaSets,
	// and ManagedClusterViews.
	Label = "preflight.openshift.io/fleet"
	// labelReplicaSet of a ManifestWork has the namespace and the name of its ManifestWorkReplicaSet
	// (pkg/work/hub/controllers/manifestworkreplicasetcontroller of OCM).
	labelReplicaSet = workGroup + "/manifestworkreplicaset"
	// conditionFeedback of a manifest is whether its feedback could be read.
	conditionFeedback = "StatusFeedbackSynced"
)

// maxReplicaSets bounds the selector of ManifestWorks.
const maxReplicaSets = 50

type reports struct {
	// of are by the name of the cluster, the newest request first.
	of map[string][]reported
	// unread are the kinds of objects with reports that the user may not list.
	unread []string
	// user is the name of that user; empty where it is unknown.
	user string
}

// roles prints the roles for a query, bound to the user who lacks them.
func (r reports) roles() finding.Action {
	if subject := access.Subject(r.user); subject != "" {
		return finding.OnThisMachine("oc preflight auth fleet-hub --bind %s", subject)
	}
	return finding.OnThisMachine("oc preflight auth fleet-hub")
}

func (r reader) reports(ctx context.Context, query Query) (reports, error) {
	found := reports{of: map[string][]reported{}}
	for _, source := range []struct {
		kind string
		read func() error
	}{
		{"ManifestWorks", func() error { return r.asked(ctx, query, found.of) }},
		{"ManagedClusterViews", func() error { return r.views(ctx, found.of) }},
	} {
		switch err := source.read(); {
		case apierrors.IsForbidden(err):
			found.unread, found.user = append(found.unread, source.kind), access.Refused(err)
		case err != nil:
			return reports{}, err
		}
	}
	for name := range found.of {
		slices.SortStableFunc(found.of[name], func(a, b reported) int { return b.created.Compare(a.created) })
	}
	return found, nil
}

// asked adds what the ManifestWorks have by which the hub asks about updates.
func (r reader) asked(ctx context.Context, query Query, to map[string][]reported) error {
	sets, err := r.replicaSets(ctx, query)
	if err != nil || len(sets) == 0 {
		return err
	}
	return r.works(ctx, sets, to)
}

// replicaSets are the values of labelReplicaSet of the ManifestWorks to read.
func (r reader) replicaSets(ctx context.Context, query Query) ([]string, error) {
	names := map[string]bool{}
	options := metav1.ListOptions{LabelSelector: Label}
	err := r.each(ctx, workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets"), query.Placement.Namespace, options,
		func(object unstructured.Unstructured) error {
			names[object.GetNamespace()+"."+object.GetName()] = true
			return nil
		})
	if err == nil && len(names) > maxReplicaSets {
		err = fmt.Errorf("the hub has more than %d ManifestWorkReplicaSets with the label %s: delete the ones for past "+
			"updates", maxReplicaSets, Label)
	}
	return slices.Sorted(maps.Keys(names)), err
}

// works adds what the ManifestWorks of these ManifestWorkReplicaSets have.
func (r reader) works(ctx context.Context, sets []string, to map[string][]reported) error {
	requirement, err := labels.NewRequirement(labelReplicaSet, selection.In, sets)
	if err != nil {
		return fmt.Errorf("OCM cannot label the ManifestWorks of a ManifestWorkReplicaSet because of its name: %w", err)
	}
	options := metav1.ListOptions{LabelSelector: labels.NewSelector().Add(*requirement).String()}
	return r.each(ctx, workv1.GroupVersion.WithResource("manifestworks"), "", options, func(object unstructured.Unstructured) error {
		status, _, _ := unstructured.NestedMap(object.Object, "status")
		var typed workv1.ManifestWorkStatus
		if err := into(status, &typed); err != nil {
			return fmt.Errorf("the ManifestWork %s/%s cannot be read: %w", object.GetNamespace(), object.GetName(), err)
		}
		made := workOf(typed, object.GetGeneration())
		made.created, made.source = object.GetCreationTimestamp().Time, "ManifestWork "+object.GetName()
		to[object.GetNamespace()] = append(to[object.GetNamespace()], made)
		return nil
	})
}

type reported struct {
	values values
	// name of the UpdatePreflight; empty if unknown.
	name string
	// source is the object of the hub that has the report, and created its time of creation.
	source  string
	created time.Time
	// signedOnly is true where nothing but the signed verdict counts.
	signedOnly bool
	// problem is why the report does not count; nil where it does.
	problem *problem
}

// problem is why a report does not count.
type problem struct {
	reason, message string
	// actions are the steps of the remedy.
	actions []finding.Action
}

func problemf(reason, format string, args ...any) *problem {
	return &problem{reason: reason, message: fmt.Sprintf(format, args...)}
}

// workOf is the report in the feedback of a ManifestWork. If its conditions belong to another generation, the feedback
// belongs to another object.
func workOf(status workv1.ManifestWorkStatus, generation int64) reported {
	var made reported
	made.problem = unapplied(meta.FindStatusCondition(status.Conditions, workv1.WorkApplied), generation)
	at := slices.IndexFunc(status.ResourceStatus.Manifests, func(each workv1.ManifestCondition) bool {
		return each.ResourceMeta.Group == objectGroup && each.ResourceMeta.Kind == objectKind
	})
	if at < 0 {
		if made.problem == nil {
			made.problem = problemf("NoObject", "the ManifestWork contains no UpdatePreflight for the cluster")
		}
		return made
	}
	manifest := status.ResourceStatus.Manifests[at]
	made.name = manifest.ResourceMeta.Name
	made.values.set(manifest.StatusFeedbacks.Values)
	available := meta.FindStatusCondition(manifest.Conditions, workv1.ManifestAvailable)
	synced := meta.FindStatusCondition(manifest.Conditions, conditionFeedback)
	switch {
	case made.problem != nil:
	case available == nil || available.Status != metav1.ConditionTrue:
		made.problem = problemf("NotAvailable", "the UpdatePreflight does not exist in the cluster%s", because(available))
	case synced == nil || synced.Status != metav1.ConditionTrue:
		made.problem = problemf("NoFeedback", "the hub has no feedback about the UpdatePreflight%s", because(synced))
	}
	return made
}

func unapplied(applied *metav1.Condition, generation int64) *problem {
	switch {
	case applied == nil:
		return problemf("NotApplied", "the ManifestWork was never applied in the cluster")
	case applied.Status != metav1.ConditionTrue:
		return problemf("NotApplied", "the ManifestWork could not be applied in the cluster%s", because(applied))
	case applied.ObservedGeneration != generation:
		return problemf("NotApplied", "the current content of the ManifestWork has not been applied in the cluster yet")
	}
	return nil
}

// because is the message of a condition after a colon; empty without one.
func because(condition *metav1.Condition) string {
	if condition == nil || condition.Message == "" {
		return ""
	}
	return ": " + words.External(strings.TrimSuffix(condition.Message, "."))
}

const objectGroup, objectKind = v1alpha1.Group, v1alpha1.Kind

// values are the scalar values that a ManifestWork brings from the status of an UpdatePreflight.
type values struct {
	phase, decision, version, image, causes, message, validUntil, reportTime, attestation string
	updated, updatedSince, updatedReason, updatedMessage                                  string
	after, afterSince, afterReason, afterMessage                                          string
}

// Path is a feedback rule of a ManifestWork: the name of a value, and its JSON path.
type Path struct{ Name, Path string }

// Feedback are the feedback rules that the ManifestWork of an UpdatePreflight needs.
func Feedback() []Path {
	var paths []Path
	for _, each := range new(values).rules() {
		paths = append(paths, each.Path)
	}
	return paths
}

type rule struct {
	Path

	to *string
}

func (v *values) rules() []rule {
	condition := func(kind, field string) string { return `.status.conditions[?(@.type=="` + kind + `")].` + field }
	return []rule{
		{Path{"phase", ".status.phase"}, &v.phase},
		{Path{"decision", ".status.decision"}, &v.decision},
		{Path{"version", ".status.target.version"}, &v.version},
		{Path{"image", ".status.target.image"}, &v.image},
		{Path{"causes", ".status.causes"}, &v.causes},
		{Path{"message", condition(v1alpha1.ConditionReady, "message")}, &v.message},
		{Path{"validUntil", ".status.validUntil"}, &v.validUntil},
		{Path{"reportTime", ".status.reportTime"}, &v.reportTime},
		{Path{"attestation", ".status.attestation"}, &v.attestation},
		{Path{"updated", condition(v1alpha1.ConditionUpdated, "status")}, &v.updated},
		{Path{"updatedSince", condition(v1alpha1.ConditionUpdated, "lastTransitionTime")}, &v.updatedSince},
		{Path{"updatedReason", condition(v1alpha1.ConditionUpdated, "reason")}, &v.updatedReason},
		{Path{"updatedMessage", condition(v1alpha1.ConditionUpdated, "message")}, &v.updatedMessage},
		{Path{"afterUpdate", condition(v1alpha1.ConditionAfterUpdate, "status")}, &v.after},
		{Path{"afterUpdateSince", condition(v1alpha1.ConditionAfterUpdate, "lastTransitionTime")}, &v.afterSince},
		{Path{"afterUpdateReason", condition(v1alpha1.ConditionAfterUpdate, "reason")}, &v.afterReason},
		{Path{"afterUpdateMessage", condition(v1alpha1.ConditionAfterUpdate, "message")}, &v.afterMessage},
	}
}

// set takes the values of the feedback; others than strings and those with unknown names are ignored.
func (v *values) set(feedback []workv1.FeedbackValue) {
	known := map[string]*string{}
	for _, each := range v.rules() {
		known[each.Name] = each.to
	}
	for _, value := range feedback {
		if to := known[value.Name]; to != nil && value.Value.String != nil {
			*to = *value.Value.String
		}
	}
}

const clusterGroup = "cluster.open-cluster-management.io"

// The claims of a ManagedCluster that ACM's agent makes, and the label of the hub itself.
const (
	claimID      = "id.openshift.io"
	claimVersion = "version.openshift.io"
	labelLocal   = "local-cluster"
)

type managedCluster struct {
	name, id string
	// version is the newest that the cluster has completed, as of the last time that it answered.
	version string
	labels  map[string]string
	local   bool
	// absent is why there is no cluster, and silent why it does not answer; empty for neither.
	absent, silent string
	// clock is why the times of the cluster cannot be compared; empty where they can.
	clock  string
	shared bool
}

func clusterOf(object clusterv1.ManagedCluster) managedCluster {
	of := managedCluster{name: object.Name, labels: object.Labels, local: object.Labels[labelLocal] == "true"}
	for _, claim := range object.Status.ClusterClaims {
		switch claim.Name {
		case claimID:
			of.id = claim.Value
		case claimVersion:
			of.version = claim.Value
		}
	}
	conditions := object.Status.Conditions
	available := meta.FindStatusCondition(conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case !object.DeletionTimestamp.IsZero():
		of.absent = "the cluster is being removed from the hub"
	case !meta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionHubAccepted):
		of.absent = "the hub has not accepted the cluster"
	case !meta.IsStatusConditionTrue(conditions, clusterv1.ManagedClusterConditionJoined):
		of.absent = "the cluster has not joined the hub"
	case available == nil:
		of.silent = "the cluster has never answered the hub"
	case available.Status != metav1.ConditionTrue:
		of.silent = fmt.Sprintf("the cluster has not answered the hub since %s (%s): the hub's data about it is older",
			words.Time(available.LastTransitionTime.Time), words.External(available.Reason))
	}
	if meta.IsStatusConditionFalse(conditions, clusterv1.ManagedClusterConditionClockSynced) {
		of.clock = "the clock of the cluster differs from the hub's, so it is unknown whether its verdict is still valid"
	}
	return of
}

type reader struct{ client dynamic.Interface }

// pageSize bounds a page of a list; maxObjects bounds the pages of one.
const pageSize, maxObjects = 500, 50_000

func (r reader) each(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions,
	do func(unstructured.Unstructured) error,
) error {
	options.Limit = pageSize
	for read := 0; ; {
		page, err := r.client.Resource(resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("could not list the %s of the hub: %w", resource.Resource, err)
		}
		for _, object := range page.Items {
			if err := do(object); err != nil {
				return err
			}
		}
		if read += len(page.Items); read > maxObjects {
			return fmt.Errorf("the hub has more than %d %s", maxObjects, resource.Resource)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// into decodes an object. One that is not of its type is an error: the API server validates it.
func into(object map[string]any, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object, to)
}

func (r reader) managed(ctx context.Context) (map[string]managedCluster, error) {
	found := map[string]managedCluster{}
	err := r.each(ctx, clusterv1.GroupVersion.WithResource("managedclusters"), "", metav1.ListOptions{},
		func(object unstructured.Unstructured) error {
			var typed clusterv1.ManagedCluster
			if err := into(object.Object, &typed); err != nil {
				return fmt.Errorf("the ManagedCluster %s cannot be read: %w", object.GetName(), err)
			}
			found[typed.Name] = clusterOf(typed)
			return nil
		})
	if apierrors.IsNotFound(err) {
		return nil, errNotHub
	}
	return found, err
}

// placed are the clusters that the Placement of a query selects, each with its decision group; nil
// without a Placement. incomplete is why some may be missing.
func (r reader) placed(ctx context.Context, query Query) (placed map[string]string, incomplete string, err error) {
	placement := query.Placement
	if placement.Name == "" {
		return nil, "", nil
	}
	placements := r.client.Resource(clusterv1beta1.GroupVersion.WithResource("placements")).Namespace(placement.Namespace)
	object, err := placements.Get(ctx, placement.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", errNoPlacement(placement)
	}
	if err != nil {
		return nil, "", fmt.Errorf("could not read the Placement %s: %w", placement, err)
	}
	var typed clusterv1beta1.Placement
	if err := into(object.Object, &typed); err != nil {
		return nil, "", fmt.Errorf("the Placement %s cannot be read: %w", placement, err)
	}
	placed = map[string]string{}
	options := metav1.ListOptions{LabelSelector: clusterv1beta1.PlacementLabel + "=" + placement.Name}
	err = r.each(ctx, clusterv1beta1.GroupVersion.WithResource("placementdecisions"), placement.Namespace, options,
		func(object unstructured.Unstructured) error {
			var typed clusterv1beta1.PlacementDecision
			if err := into(object.Object, &typed); err != nil {
				return fmt.Errorf("the PlacementDecision %s cannot be read: %w", object.GetName(), err)
			}
			for _, decision := range typed.Status.Decisions {
				if name := strings.TrimSpace(decision.ClusterName); name != "" {
					placed[name] = typed.Labels[clusterv1beta1.DecisionGroupNameLabel]
				}
			}
			return nil
		})
	return placed, dropping(typed), err
}

// dropping is why a Placement drops the clusters that do not answer; empty where it keeps them. OCM
// taints such a cluster, and a Placement without a toleration does not select it.
func dropping(placement clusterv1beta1.Placement) string {
	for _, taint := range []string{clusterv1.ManagedClusterTaintUnreachable, clusterv1.ManagedClusterTaintUnavailable} {
		tolerated := slices.ContainsFunc(placement.Spec.Tolerations, func(each clusterv1beta1.Toleration) bool {
			all := each.Operator == clusterv1beta1.TolerationOpExists
			effective := each.TolerationSeconds == nil && (each.Effect == "" || each.Effect == clusterv1.TaintEffectNoSelect)
			return effective && (all && each.Key == "" || each.Key == taint && (all || each.Value == ""))
		})
		if !tolerated {
			return fmt.Sprintf("the Placement %s/%s drops clusters that do not answer: add a toleration of %s "+
				"(operator: Exists) to it",
				placement.Namespace, placement.Name, taint)
		}
	}
	return ""
}
