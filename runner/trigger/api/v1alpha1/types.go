package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdatePreflight is the preflight of one update of this cluster, or of a hosted cluster that it manages.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Hosted Cluster",type=string,JSONPath=`.spec.hostedCluster.name`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target.version`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.status.decision`
// +kubebuilder:printcolumn:name="Blocking",type=string,JSONPath=`.status.blocking`
// +kubebuilder:printcolumn:name="Valid Until",type=string,JSONPath=`.status.validUntil`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name has at most 63 characters"
type UpdatePreflight struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec UpdatePreflightSpec `json:"spec"`
	// +optional
	Status UpdatePreflightStatus `json:"status,omitempty"`
}

// UpdatePreflightList is a list of UpdatePreflights.
//
// +kubebuilder:object:root=true
type UpdatePreflightList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []UpdatePreflight `json:"items"`
}

// UpdatePreflightSpec is the request of a preflight.
//
// +kubebuilder:validation:XValidation:rule="has(self.hostedCluster) == has(oldSelf.hostedCluster)",message="the hosted
// cluster is immutable: create another UpdatePreflight"
type UpdatePreflightSpec struct {
	// hostedCluster names the HostedCluster (HyperShift) to update; without it, the update is that
	// of this cluster. It is immutable.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the hosted cluster is immutable: create another UpdatePreflight"
	HostedCluster *HostedCluster `json:"hostedCluster,omitempty"`
	// target selects the release. It is immutable: another release is another object.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the target is immutable: create another UpdatePreflight"
	Target Target `json:"target"`
	// when is the time of the preflight. Without it, the preflight runs at once.
	//
	// +optional
	When *When `json:"when,omitempty"`
	// acceptedFindings are the names of the findings that do not block this update. A name
	// begins with a capital letter, and has only letters, digits, dots and dashes. Gates and
	// findings about the trust in the release cannot be accepted.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9.-]*$`
	AcceptedFindings []string `json:"acceptedFindings,omitempty"`
	// images is how thoroughly the images of the release are checked: check reads their
	// manifests, check-blobs their layers too; pull has nodes pull the images of the checks,
	// pull-all all images; off checks none.
	//
	// +optional
	// +default="check"
	// +kubebuilder:validation:Enum=check;check-blobs;pull;pull-all;off
	Images string `json:"images,omitempty"`
}

// HostedCluster names a HostedCluster of this management cluster.
type HostedCluster struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Target selects a release. Exactly one field is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.version), has(self.image), has(self.latest)].exists_one(set,
// set)",message="set exactly one of version, image and latest"
type Target struct {
	// version is that of an available or a conditional update of ClusterVersion.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	//
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`
	Version string `json:"version,omitempty"`
	// image is a pull spec by digest.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9.:/_-]*@sha256:[0-9a-f]{64}$`
	Image string `json:"image,omitempty"`
	// latest selects the newest available update at each time; it is true where it is set.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self",message="latest is true where it is set"
	Latest bool `json:"latest,omitempty"`
}

// When is the time of a preflight.
//
// +kubebuilder:validation:XValidation:rule="[has(self.at), has(self.window)].exists_one(set, set)",message="set exactly
// one of at and window"
type When struct {
	// at is the time from which the preflight runs.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// window is the time in which the preflight starts.
	//
	// +optional
	Window *Window `json:"window,omitempty"`
}

// WindowMode is how long a window without an end is open.
type WindowMode string

// The modes of a window are the two readings of upgradeAt of the managed upgrade operator.
const (
	// Document is the reading of its documentation: the window is open for 30 minutes.
	Document WindowMode = "Document"
	// Operator is the reading of its code: the window has no end.
	Operator WindowMode = "Operator"
)

// Window is a time in which a preflight starts. A run that has started in it may end later.
//
// +kubebuilder:validation:XValidation:rule="!has(self.end) || self.end > self.start",message="end must be after start"
// +kubebuilder:validation:XValidation:rule="!has(self.end) || self.mode == 'Document'",message="a window of mode Operator has no end"
type Window struct {
	// +required
	Start metav1.Time `json:"start"`
	// end excludes itself. Without it, the mode decides.
	//
	// +optional
	End *metav1.Time `json:"end,omitempty"`
	// mode is how long a window without an end is open: Document for 30 minutes, Operator
	// without limit.
	//
	// +optional
	// +default="Document"
	// +kubebuilder:validation:Enum=Document;Operator
	Mode WindowMode `json:"mode,omitempty"`
}

// Phase is the progress of an UpdatePreflight.
type Phase string

// The phases.
const (
	// New means that the target is not known yet.
	New Phase = "New"
	// Pending means that the preflight has not started.
	Pending Phase = "Pending"
	// Checking means that a run is in progress.
	Checking Phase = "Checking"
	// Ready, Blocked and Undecided are the decisions of a valid verdict.
	Ready     Phase = "Ready"
	Blocked   Phase = "Blocked"
	Undecided Phase = "Undecided"
	// Expired means that the verdict is no longer valid, or that the window has closed
	// without one.
	Expired Phase = "Expired"
)

// The types of the conditions. Reconciling and Stalled are those of kstatus, by which
// GitOps tools show progress and health.
const (
	// ConditionReady is True exactly while a valid verdict is Ready, False while it is
	// Blocked or Undecided, and Unknown without a valid verdict.
	ConditionReady = "Ready"
	// ConditionReconciling is True in the phases New, Pending and Checking.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True in the phases Blocked, Undecided and Expired: the verdict
	// does not become Ready without a change.
	ConditionStalled = "Stalled"
	// ConditionScheduledUpdate is set for an update that an UpgradeConfig schedules for the
	// managed-upgrade-operator: True if a valid verdict is Ready, False if it is not or will
	// not be there when the update starts, and Unknown before.
	ConditionScheduledUpdate = "ScheduledUpdate"
)

// The types of the conditions of the steps of a preflight, in their order. They are those
// of the verdict in status, and of the request.
const (
	// ConditionTargetKnown is False while spec.target selects no release.
	ConditionTargetKnown = "TargetKnown"
	// ConditionWindowOpen is True while the preflight may start by spec.when.
	ConditionWindowOpen = "WindowOpen"
	// ConditionReleaseVerified is True if the signature of the release was verified, and
	// Unknown without a valid verdict.
	ConditionReleaseVerified = "ReleaseVerified"
	// ConditionChecksReported is True if all expected checks reported, and Unknown without a
	// valid verdict.
	ConditionChecksReported = "ChecksReported"
)

// ConditionUpdated is set while the cluster runs the target, or updates to it: True when the
// update is complete, all pools that are not paused are updated, and the ClusterOperators are
// healthy; False before, and when that is no longer so; Unknown where it could not be read.
const ConditionUpdated = "Updated"

// The reasons of ConditionUpdated.
const (
	// ReasonUpdated is that of the status True.
	ReasonUpdated = "Updated"
	// ReasonUpdating means that the cluster-version operator updates, ReasonPoolsUpdating that
	// nodes are updated, and ReasonSettling that a ClusterOperator was not healthy lately, or
	// is rolling out.
	ReasonUpdating      = "Updating"
	ReasonPoolsUpdating = "PoolsUpdating"
	ReasonSettling      = "Settling"
	// ReasonUpdateFailing means that the cluster-version operator reports a failure,
	// ReasonPoolDegraded that a pool is degraded, and ReasonOperatorUnhealthy that a
	// ClusterOperator has not been healthy for long.
	ReasonUpdateFailing     = "UpdateFailing"
	ReasonPoolDegraded      = "PoolDegraded"
	ReasonOperatorUnhealthy = "OperatorUnhealthy"
	// ReasonNotRead is that of the status Unknown.
	ReasonNotRead = "NotRead"
)

// UpdateFailed reports whether a reason of ConditionUpdated means that the update has failed, or
// has left the cluster unhealthy.
func UpdateFailed(reason string) bool {
	return reason == ReasonUpdateFailing || reason == ReasonPoolDegraded || reason == ReasonOperatorUnhealthy
}

// ConditionAfterUpdate is set when the cluster runs the target, and a run has stored a baseline before: True where the
// update was good, False where something that was good before is bad, or where the update was undone, and Unknown before
// that is known. Its reason is the decision.
const ConditionAfterUpdate = "AfterUpdate"

// The limits of a status.
const (
	// MaxCauses bounds causes, and MaxAttestation the attestation, in bytes.
	MaxCauses      = 1024
	MaxAttestation = 32 << 10
	// MaxNames bounds each list of names.
	MaxNames = 16
	// MaxHistory bounds the history.
	MaxHistory = 10
)

// UpdatePreflightStatus is a projection of the recorded runs.
type UpdatePreflightStatus struct {
	// observedGeneration is metadata.generation of the spec that the status is of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=New;Pending;Checking;Ready;Blocked;Undecided;Expired
	Phase Phase `json:"phase,omitempty"`
	// target is the release that spec.target selects.
	//
	// +optional
	Target *Release `json:"target,omitempty"`
	// run is the ID of the run in progress, or else of the run with the valid verdict.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Run string `json:"run,omitempty"`
	// decision is that of the valid verdict; empty without one.
	//
	// +optional
	// +kubebuilder:validation:Enum=Ready;Blocked;Undecided
	Decision string `json:"decision,omitempty"`
	// blocking names the findings that block, sorted, at most 16.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	Blocking []string `json:"blocking,omitempty"`
	// blockingOmitted is how many more findings block.
	//
	// +optional
	BlockingOmitted int32 `json:"blockingOmitted,omitempty"`
	// undecided names the findings that are inconclusive, sorted, at most 16.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	Undecided []string `json:"undecided,omitempty"`
	// undecidedOmitted is how many more findings are inconclusive.
	//
	// +optional
	UndecidedOmitted int32 `json:"undecidedOmitted,omitempty"`
	// accepted names the findings that were accepted, sorted, at most 16.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	Accepted []string `json:"accepted,omitempty"`
	// acceptedOmitted is how many more findings were accepted.
	//
	// +optional
	AcceptedOmitted int32 `json:"acceptedOmitted,omitempty"`
	// validUntil is the end of the validity of the verdict, unless the cluster changes
	// before.
	//
	// +optional
	ValidUntil *metav1.Time `json:"validUntil,omitempty"`
	// causes are the first names of blocking, or else of undecided, separated by commas: a
	// feedback rule of Open Cluster Management takes no lists. Only UpdatePreflights of
	// administrators have it, and attestation and reportTime.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Causes string `json:"causes,omitempty"`
	// attestation is the valid verdict as a DSSE envelope in JSON, signed by the key of the
	// controller: "oc preflight verify-verdict" verifies it. It is empty where the controller
	// has no key, and without a valid verdict.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Attestation string `json:"attestation,omitempty"`
	// reportTime is a time at which the controller had this status: it is renewed at least
	// every half an hour, so that a reader of a copy knows whether the controller runs.
	//
	// +optional
	ReportTime *metav1.Time `json:"reportTime,omitempty"`
	// afterUpdate is the judgement of the update to the target, after it.
	//
	// +optional
	AfterUpdate *AfterUpdate `json:"afterUpdate,omitempty"`
	// conditions are Ready, Reconciling and Stalled; the steps TargetKnown, WindowOpen,
	// ReleaseVerified and ChecksReported; ScheduledUpdate for an update that an
	// UpgradeConfig schedules; and, while the cluster runs the target of an
	// administrator, or updates to it, Updated, and AfterUpdate when that is judged.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// history has the last verdict of each release that the target has selected, the
	// newest first.
	//
	// +optional
	// +listType=map
	// +listMapKey=image
	// +kubebuilder:validation:MaxItems=10
	History []Verdict `json:"history,omitempty"`
}

// AfterUpdate is whether an update was good, in comparison with the baseline that a run stored before it.
type AfterUpdate struct {
	// run is the ID of the run with the baseline.
	//
	// +required
	// +kubebuilder:validation:MaxLength=64
	Run string `json:"run"`
	// +required
	// +kubebuilder:validation:Enum=Good;Regressed;Settling;Unfinished;RolledBack;Undecided
	Decision string `json:"decision"`
	// regressions are the names of what is worse than before, sorted. regressionsOmitted is how many more there are.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	Regressions []string `json:"regressions,omitempty"`
	// +optional
	RegressionsOmitted int32 `json:"regressionsOmitted,omitempty"`
}

// Release is a release image.
type Release struct {
	// version is empty where only the image is known.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
	// image is the pull spec by digest.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`
}

// Verdict is the verdict of a run that has ended.
type Verdict struct {
	Release `json:",inline"`

	// run is the ID of the run.
	//
	// +required
	// +kubebuilder:validation:MaxLength=64
	Run string `json:"run"`
	// +required
	// +kubebuilder:validation:Enum=Ready;Blocked;Undecided
	Decision string `json:"decision"`
	// completionTime is the end of the run.
	//
	// +required
	CompletionTime metav1.Time `json:"completionTime"`
}
