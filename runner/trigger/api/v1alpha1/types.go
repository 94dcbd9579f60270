package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UpdatePreflight is a preflight of one update, of this cluster or of a hosted cluster that it manages.
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name may have at most 63 characters"
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

// UpdatePreflightSpec describes the requested preflight.
//
// +kubebuilder:validation:XValidation:rule="has(self.hostedCluster) == has(oldSelf.hostedCluster)",message="the hosted cluster is immutable: create another UpdatePreflight"
type UpdatePreflightSpec struct {
	// hostedCluster names the HostedCluster (HyperShift) to update. If it is not set, this cluster is updated. It is
	// immutable.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the hosted cluster is immutable: create another UpdatePreflight"
	HostedCluster *HostedCluster `json:"hostedCluster,omitempty"`
	// target selects the release. It is immutable: create another UpdatePreflight for another release.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the target is immutable: create another UpdatePreflight"
	Target Target `json:"target"`
	// when is the time of the preflight. If it is not set, the preflight runs immediately.
	//
	// +optional
	When *When `json:"when,omitempty"`
	// acceptedFindings lists the names of findings that must not block this update. A name begins with a capital letter
	// and contains only letters, digits, dots and dashes. Gates and findings about the trust in the release cannot be
	// accepted.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9.-]*$`
	AcceptedFindings []string `json:"acceptedFindings,omitempty"`
	// images sets how thoroughly the images of the release are checked: check reads their manifests, and check-blobs
	// also looks up their layers; pull makes nodes pull the images of the checks, and pull-all all images; off checks
	// none.
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

// Target selects a release. Exactly one field must be set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.version), has(self.image), has(self.latest)].exists_one(set, set)",message="set exactly one of version, image and latest"
type Target struct {
	// version is the version of an available or conditional update of ClusterVersion.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`
	Version string `json:"version,omitempty"`
	// image is a pull spec by digest.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9.:/_-]*@sha256:[0-9a-f]{64}$`
	Image string `json:"image,omitempty"`
	// latest always selects the newest available update. If it is set, it must be true.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self",message="latest must be true if it is set"
	Latest bool `json:"latest,omitempty"`
}

// When is the time of a preflight.
//
// +kubebuilder:validation:XValidation:rule="[has(self.at), has(self.window)].exists_one(set, set)",message="set exactly one of at and window"
type When struct {
	// at is the earliest time at which the preflight runs.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// window is the time window in which the preflight starts.
	//
	// +optional
	Window *Window `json:"window,omitempty"`
}

// WindowMode is how long a window without an end stays open.
type WindowMode string

// The modes of a window correspond to the two interpretations of upgradeAt of the managed upgrade operator.
const (
	// Document follows its documentation: the window is open for 30 minutes.
	Document WindowMode = "Document"
	// Operator follows its code: the window has no end.
	Operator WindowMode = "Operator"
)

// Window is a time window in which a preflight starts. A run that starts in the window may finish after it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.end) || self.end > self.start",message="end must be after start"
// +kubebuilder:validation:XValidation:rule="!has(self.end) || self.mode == 'Document'",message="a window of mode Operator has no end"
type Window struct {
	// +required
	Start metav1.Time `json:"start"`
	// end is exclusive. If it is not set, mode determines how long the window stays open.
	//
	// +optional
	End *metav1.Time `json:"end,omitempty"`
	// mode is how long a window without an end stays open: Document for 30 minutes, Operator without limit.
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
	// Expired means that the verdict is no longer valid, or that the window closed without a verdict.
	Expired Phase = "Expired"
)

// The types of the conditions. Reconciling and Stalled follow kstatus, which GitOps tools use to show progress and
// health.
const (
	// ConditionReady is True exactly while a valid verdict is Ready, False while it is Blocked or Undecided, and
	// Unknown without a valid verdict.
	ConditionReady = "Ready"
	// ConditionReconciling is True in the phases New, Pending and Checking.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True in the phases Blocked, Undecided and Expired: the verdict does not become Ready without
	// a change.
	ConditionStalled = "Stalled"
	// ConditionScheduledUpdate is set for an update that an UpgradeConfig schedules for the managed-upgrade-operator:
	// True if a valid verdict is Ready, False if it is not or will not be there when the update starts, and Unknown
	// before.
	ConditionScheduledUpdate = "ScheduledUpdate"
)

// The types of the conditions for the steps of a preflight, in order. They describe the verdict in the status and the
// request.
const (
	// ConditionTargetKnown is False while spec.target selects no release.
	ConditionTargetKnown = "TargetKnown"
	// ConditionWindowOpen is True while spec.when allows the preflight to start.
	ConditionWindowOpen = "WindowOpen"
	// ConditionReleaseVerified is True if the signature of the release was verified, and
	// Unknown without a valid verdict.
	ConditionReleaseVerified = "ReleaseVerified"
	// ConditionChecksReported is True if all expected checks reported, and Unknown without a
	// valid verdict.
	ConditionChecksReported = "ChecksReported"
)

// ConditionUpdated is set while the cluster runs the target, or is updating to it: True when the update is complete,
// all pools that are not paused are updated, and the ClusterOperators are healthy; False before, and when this is no
// longer the case; Unknown if it could not be read.
const ConditionUpdated = "Updated"

// The reasons of ConditionUpdated.
const (
	// ReasonUpdated is the reason of the status True.
	ReasonUpdated = "Updated"
	// ReasonUpdating means that the cluster-version operator is updating the cluster, ReasonPoolsUpdating that nodes
	// are being updated, and ReasonSettling that a ClusterOperator was unhealthy recently, or is rolling out.
	ReasonUpdating      = "Updating"
	ReasonPoolsUpdating = "PoolsUpdating"
	ReasonSettling      = "Settling"
	// ReasonUpdateFailing means that the cluster-version operator reports a failure, ReasonPoolDegraded that a pool is
	// degraded, and ReasonOperatorUnhealthy that a ClusterOperator has been unhealthy for too long.
	ReasonUpdateFailing     = "UpdateFailing"
	ReasonPoolDegraded      = "PoolDegraded"
	ReasonOperatorUnhealthy = "OperatorUnhealthy"
	// ReasonNotRead is the reason of the status Unknown.
	ReasonNotRead = "NotRead"
)

// UpdateFailed reports whether a reason of ConditionUpdated means that the update failed, or left the cluster
// unhealthy.
func UpdateFailed(reason string) bool {
	return reason == ReasonUpdateFailing || reason == ReasonPoolDegraded || reason == ReasonOperatorUnhealthy
}

// ConditionAfterUpdate is set when the cluster runs the target and a run stored a baseline before: True if the update
// was good, False if something that was good before is bad, or if the update was rolled back, and Unknown until this is
// known. Its reason is the decision.
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
	// observedGeneration is the metadata.generation of the spec that this status describes.
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
	// decision is the decision of the valid verdict. It is empty without a valid verdict.
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
	// blockingOmitted is the number of further findings that block.
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
	// undecidedOmitted is the number of further findings that are inconclusive.
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
	// acceptedOmitted is the number of further findings that were accepted.
	//
	// +optional
	AcceptedOmitted int32 `json:"acceptedOmitted,omitempty"`
	// validUntil is when the verdict expires, unless the cluster changes earlier.
	//
	// +optional
	ValidUntil *metav1.Time `json:"validUntil,omitempty"`
	// causes contains the first names of blocking, or else of undecided, separated by commas, because feedback rules of
	// Open Cluster Management do not support lists. Only UpdatePreflights of administrators have causes, attestation
	// and reportTime.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Causes string `json:"causes,omitempty"`
	// attestation is the valid verdict as a DSSE envelope in JSON, signed with the key of the controller. "oc preflight
	// verify-verdict" verifies it. It is empty if the controller has no key, and without a valid verdict.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Attestation string `json:"attestation,omitempty"`
	// reportTime is when the controller last confirmed this status. It is renewed at least every half hour, so that a
	// reader of a copy knows whether the controller is running.
	//
	// +optional
	ReportTime *metav1.Time `json:"reportTime,omitempty"`
	// afterUpdate is the judgement of the update to the target, once the update has completed.
	//
	// +optional
	AfterUpdate *AfterUpdate `json:"afterUpdate,omitempty"`
	// conditions are Ready, Reconciling and Stalled; the steps TargetKnown, WindowOpen, ReleaseVerified and
	// ChecksReported; ScheduledUpdate for an update that an UpgradeConfig schedules; and, while the cluster runs the
	// target of an administrator or is updating to it, Updated, and AfterUpdate once the update is evaluated.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// history contains the last verdict of each release that the target has selected, newest first.
	//
	// +optional
	// +listType=map
	// +listMapKey=image
	// +kubebuilder:validation:MaxItems=10
	History []Verdict `json:"history,omitempty"`
}

// AfterUpdate is whether an update was good, compared with the baseline that a run stored before it.
type AfterUpdate struct {
	// run is the ID of the run with the baseline.
	//
	// +required
	// +kubebuilder:validation:MaxLength=64
	Run string `json:"run"`
	// +required
	// +kubebuilder:validation:Enum=Good;Regressed;Settling;Unfinished;RolledBack;Undecided
	Decision string `json:"decision"`
	// regressions names everything that is worse than before, sorted. regressionsOmitted is the number of further
	// regressions.
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
	// version is empty if only the image is known.
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
