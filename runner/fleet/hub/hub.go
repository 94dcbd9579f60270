// Package hub answers: what do the clusters of an Open Cluster Management (OCM) hub report about an update?
//
// [Read] returns a [Member] for each cluster of a Placement: a row for a table of package fleet, and the progress of
// its update for a gate of package wave. It only reads objects of the hub, and uses no credentials of managed clusters:
// ManagedClusters, PlacementDecisions, the feedback of the ManifestWorks that deliver an UpdatePreflight to the
// clusters, and ManagedClusterViews.
//
// The hub keeps the last values of a cluster that does not answer. They never count: a cluster is Unreachable unless
// the condition ManagedClusterConditionAvailable is True, and a report counts for [MaxAge] after its own time. A
// verdict that is signed with the key of its cluster counts for the period that it contains; if keys are provided, no
// other verdict counts.
package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/runner/fleet/wave"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// MaxAge is how long a report of a cluster counts after its own time. The controller updates this time at least every
// half hour, and its clock may be an hour behind.
const MaxAge = 90 * time.Minute

// Query asks a hub.
type Query struct {
	// Placement selects the clusters; the zero value selects all.
	Placement types.NamespacedName
	// Group is the name of a decision group of the Placement; empty for all.
	Group string
	// To is the version of the release; empty for the newest that each cluster was asked about.
	To string
	// Keys are the public keys of the clusters; the zero value accepts verdicts that are not signed.
	Keys Keys
}

// Member is one cluster of a hub.
type Member struct {
	Row fleet.Row
	// Update is how far the update to the version of the query is.
	Update wave.Progress
}

// Fleet has the reports of the clusters of a hub.
type Fleet struct {
	Members []Member
	// Incomplete is why clusters that do not answer may be missing; empty if none is.
	Incomplete string
	// Notices are further remarks about the clusters.
	Notices []string
}

// Rows are the rows of all members.
func (f Fleet) Rows() []fleet.Row {
	rows := make([]fleet.Row, 0, len(f.Members))
	for _, member := range f.Members {
		rows = append(rows, member.Row)
	}
	return rows
}

// Wave are the updates of all members.
func (f Fleet) Wave() []wave.Progress {
	clusters := make([]wave.Progress, 0, len(f.Members))
	for _, member := range f.Members {
		clusters = append(clusters, member.Update)
	}
	return clusters
}

// Needs are the permissions for a query. Permissions for the reports of the clusters are optional: without them, the
// reports are unknown. Permissions for the clusters are required.
func (q Query) Needs() access.Needs {
	needs := access.Needs{
		Required: []access.Request{{Verb: "list", Group: clusterGroup, Resource: "managedclusters"}},
		Optional: []access.Request{
			{Verb: "list", Group: workGroup, Resource: "manifestworkreplicasets", Namespace: q.Placement.Namespace},
			{Verb: "list", Group: workGroup, Resource: "manifestworks"},
			{Verb: "list", Group: viewGroup, Resource: "managedclusterviews"},
		},
	}
	if q.Placement.Name != "" {
		return needs.And(PlacementNeeds(q.Placement))
	}
	return needs
}

// PlacementNeeds are the permissions to read which clusters a Placement selects; with the zero value,
// any Placement.
func PlacementNeeds(placement types.NamespacedName) access.Needs {
	return access.Needs{Required: []access.Request{
		{Verb: "get", Group: clusterGroup, Resource: "placements", Namespace: placement.Namespace, Name: placement.Name},
		{Verb: "list", Group: clusterGroup, Resource: "placementdecisions", Namespace: placement.Namespace},
	}}
}

// RequestNeeds are the permissions to apply the object that [Request] returns in the namespace of a Placement, and to
// delete it; without a namespace, in any.
func RequestNeeds(namespace string) access.Needs {
	like := access.Request{Group: workGroup, Resource: "manifestworkreplicasets", Namespace: namespace}
	return access.Needs{Required: access.Verbs(like, "create", "delete", "get", "patch")}
}

// Read reads the hub. now is the time by the clock of the hub. An error means that the hub could
// not be read; a cluster that does not answer is a row.
func Read(ctx context.Context, hub *cluster.Cluster, query Query) (Fleet, error) {
	reader := reader{hub.Dynamic}
	managed, err := reader.managed(ctx)
	if err != nil {
		return Fleet{}, err
	}
	placed, incomplete, err := reader.placed(ctx, query)
	if err != nil {
		return Fleet{}, err
	}
	reports, err := reader.reports(ctx, query)
	if err != nil {
		return Fleet{}, err
	}
	made := query.members(managed, placed, reports, hub.Now())
	if made.Incomplete = incomplete; incomplete != "" {
		made.Notices = append(made.Notices, incomplete)
	}
	if len(reports.unread) > 0 {
		made.Notices = append(made.Notices, fmt.Sprintf("%s of the hub were not read: the user may not list them; have an administrator "+
			"apply the roles that this prints: %s", strings.Join(reports.unread, " and "), reports.roles().Command))
	}
	return made, nil
}

func (q Query) members(managed map[string]managedCluster, placed map[string]string, reports reports, now time.Time) Fleet {
	var made Fleet
	shared := sharedIDs(managed)
	if q.Placement.Name == "" {
		placed = map[string]string{}
		for name := range managed {
			placed[name] = ""
		}
	}
	for name, group := range placed {
		if q.Group != "" && group != q.Group {
			continue
		}
		of, known := managed[name]
		if !known {
			of = managedCluster{name: name, absent: "the Placement selects a cluster that is not on this hub"}
		}
		of.shared = shared[strings.ToLower(of.id)]
		about := q.about(name, reports)
		member := Member{Row: q.row(of, about, now), Update: q.update(of, about, now)}
		if q.To != "" {
			member.Row.Update = stated(member.Update)
		}
		made.Members = append(made.Members, member)
		if of.local && len(placed) > 1 {
			made.Notices = append(made.Notices, fmt.Sprintf(
				"%s is the hub itself: update it separately, because its own update stops the controller that "+
					"updates clusters", name))
		}
	}
	slices.SortFunc(made.Members, func(a, b Member) int { return strings.Compare(a.Row.Cluster.Name, b.Row.Cluster.Name) })
	switch {
	case q.Keys.empty():
		made.Notices = append(made.Notices, "the verdicts are not verified: the public keys of the clusters were not provided")
	case q.Keys.notice != "":
		made.Notices = append(made.Notices, q.Keys.notice)
	}
	return made
}

// sharedIDs are the IDs, in lower case, that more than one cluster claims: a cluster may claim any, in any case
// of its letters.
func sharedIDs(managed map[string]managedCluster) map[string]bool {
	shared, seen := map[string]bool{}, map[string]bool{}
	for _, each := range managed {
		if id := strings.ToLower(each.id); id != "" {
			shared[id], seen[id] = shared[id] || seen[id], true
		}
	}
	return shared
}

// errNoPlacement is the error for a Placement that does not exist.
func errNoPlacement(name types.NamespacedName) error {
	return input.Errorf("the Placement %s does not exist in the namespace %s of this hub", name.Name, name.Namespace)
}

var errNotHub = errors.New("this cluster is not an Open Cluster Management hub: it does not serve ManagedClusters")

func (q Query) update(of managedCluster, report reported, now time.Time) wave.Progress {
	made := wave.Progress{Name: of.name, Stage: wave.Silent}
	switch {
	case of.absent+of.silent != "":
		made.Message = cmp.Or(of.absent, of.silent)
		return made
	case report.problem != nil:
		made.Message = report.problem.message
		return made
	case report.signedOnly:
		made.Message = "a signed verdict does not contain whether the cluster was updated: the controller does"
		return made
	}
	if problem := q.current(of, report, now); problem != nil {
		made.Message = problem.message
		return made
	}
	values := report.values
	made.Since, _ = time.Parse(time.RFC3339, values.updatedSince)
	made.Stage, made.Message = wave.StageOf(values.updated, values.updatedReason), values.updatedMessage
	made.Judgement = &wave.Judgement{Status: values.after, Message: cmp.Or(values.afterMessage, values.afterReason)}
	made.Judgement.Since, _ = time.Parse(time.RFC3339, values.afterSince)
	switch made.Stage {
	case wave.Outstanding:
		made.Message, made.Since = values.message, time.Time{}
	case wave.Updated:
		made.Message = ""
	case wave.Updating, wave.Broken, wave.Silent:
	}
	return made
}

func stated(of wave.Progress) *fleet.Update {
	made := &fleet.Update{Stage: string(of.Stage), Message: of.Message}
	if !of.Since.IsZero() {
		made.Since = words.Time(of.Since)
	}
	if of.Judgement != nil {
		made.Judgement = &fleet.Judgement{Status: of.Judgement.Status, Since: words.Time(of.Judgement.Since), Message: of.Judgement.Message}
	}
	return made
}

// maxLabel is the length of a value of a label, which OCM makes of a namespace and a name.
const maxLabel = 63

// Request returns the object of the hub that requests a preflight of the update to a version in the clusters of a
// Placement: a ManifestWorkReplicaSet that delivers an UpdatePreflight with these accepted findings to each cluster,
// and returns its verdict. It returns an error for names with which OCM cannot label its ManifestWorks.
func Request(version string, placement types.NamespacedName, accepted []string) (workv1alpha1.ManifestWorkReplicaSet, error) {
	name := ObjectName(version)
	if !regexp.MustCompile(`^fleet-[a-z0-9][a-z0-9.-]*[a-z0-9]$`).MatchString(name) {
		return workv1alpha1.ManifestWorkReplicaSet{}, input.Errorf("%q is not a version", version)
	}
	if len(placement.Namespace)+1+len(name) > maxLabel {
		return workv1alpha1.ManifestWorkReplicaSet{}, input.Errorf(
			"the namespace %s and the name %s are too long: together they may have at most %d characters", placement.Namespace, name, maxLabel-1)
	}
	object := map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": v1alpha1.Kind, "metadata": map[string]any{"name": name},
		"spec": v1alpha1.UpdatePreflightSpec{
			Target:           v1alpha1.Target{Version: version},
			AcceptedFindings: slices.Compact(slices.Sorted(slices.Values(accepted))),
		},
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

const (
	viewGroup = "view.open-cluster-management.io"
	// conditionProcessing of a ManagedClusterView is True while its result comes from the last attempt. A failed
	// attempt keeps the result of an earlier one (pkg/klusterlet/view of stolostron/multicloud-operators-foundation).
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
