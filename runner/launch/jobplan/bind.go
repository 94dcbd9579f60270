package jobplan

import (
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/label"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/payload"
)

const (
	// minTTL keeps a finished Job until its result is read, also by the successor of
	// a killed runner. It deletes Jobs for which Cleanup is never called.
	minTTL = time.Hour
	// margin is the time between the deadline of the run and the deadline of its Jobs, at which the Job controller
	// deletes the pods: the runner reads their state before.
	margin = time.Minute
	// backoffLimit is the default: Kubernetes' default of 6 takes more than ten
	// minutes, which is longer than a run.
	backoffLimit = 2
	// MaxGrace bounds the termination grace period, in seconds: Kubernetes' default,
	// which is shorter than a Cleanup.
	MaxGrace = 30
	// maxTokenAge bounds the lifetime of a projected token, in seconds: Kubernetes'
	// default. The API server rejects a token when its pod is gone, but others that
	// trust the cluster's issuer accept it until it expires.
	maxTokenAge = 3600
	// VariableDeadline has the deadline of the run.
	VariableDeadline = "PREFLIGHT_DEADLINE"
)

// Bind returns the plan of one run, with the checks of its cluster: the names, labels and deadlines of its objects
// depend on the run. Supporting objects that no check needs are omitted.
func (d Draft) Bind(run Run) Plan {
	d = d.On(run.Side())
	plan := Plan{Run: run, Checks: make([]Check, 0, len(d.Checks))}
	for _, check := range d.Checks {
		plan.Checks = append(plan.Checks, binder{run: run, catalog: d.catalogOf(check), path: d.path}.check(check))
	}
	for _, catalog := range []catalog{d.catalog, d.management, d.siteCatalog} {
		b := binder{run: run, catalog: catalog, path: d.path}
		for _, ref := range catalog.references() {
			plan.Supporting = append(plan.Supporting, b.supporting(catalog.manifests[ref]))
		}
	}
	plan.prune()
	slices.SortFunc(plan.Supporting, func(a, b payload.Object) int {
		return inventory.CompareReferences(inventory.ReferenceTo(a), inventory.ReferenceTo(b))
	})
	return plan
}

type binder struct {
	run     Run
	catalog catalog
	path    string
}

func (b binder) check(drafted Check) Check {
	bound := drafted
	bound.Job = b.job(drafted)
	bound.Job.Annotations[label.AnnotationCheck] = drafted.Name
	b.rename(bound.Job.Namespace, &bound.Job.Spec.Template.Spec)
	bound.Needs = make([]inventory.Reference, 0, len(drafted.Needs))
	for _, need := range drafted.Needs {
		bound.Needs = append(bound.Needs, inventory.Refer(need.Kind, need.Namespace, b.run.Suffixed(need.Name)))
	}
	return bound
}

// rename replaces the references of a pod to objects of the release by those to
// their copies. Other names are kept: these objects must exist in the cluster.
func (b binder) rename(namespace string, spec *corev1.PodSpec) {
	spec.ServiceAccountName, spec.DeprecatedServiceAccount = accountName(*spec), ""
	eachReference(spec, func(kind string, name *string) {
		if b.catalog.manifests[inventory.Refer(kind, namespace, *name)] != nil {
			*name = b.run.Suffixed(*name)
		}
	})
}

// job is the author's Job with the fields of the run, without those that only the API server sets.
func (b binder) job(check Check) *batchv1.Job {
	author := check.Job
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Name: b.run.Suffixed(author.Name), Namespace: author.Namespace,
			Labels:      b.run.labels(check.Component),
			Annotations: b.run.annotations(check.File),
		},
		Spec: *author.Spec.DeepCopy(),
	}
	maps.Copy(job.Annotations, allowed(author.Annotations, jobAnnotations()))
	job.Spec.Selector, job.Spec.ManualSelector = nil, nil
	template := &job.Spec.Template
	template.ObjectMeta = metav1.ObjectMeta{
		Labels:      b.run.podLabels(check.Component),
		Annotations: allowed(template.Annotations, podAnnotations()),
	}
	if template.Spec.RestartPolicy == "" {
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	b.limit(&job.Spec)
	b.configure(&template.Spec)
	return job
}

// podAnnotations is the allow-list for the author's annotations of a pod template.
// Admission and the kubelet evaluate these when they admit the pod: the required SCC
// decides with which user the check runs, and the workload type on which CPUs. Others
// could act on more than the pod, such as
// cluster-autoscaler.kubernetes.io/safe-to-evict on its node.
func podAnnotations() []string {
	return []string{"openshift.io/required-scc", "target.workload.openshift.io/management"}
}

// jobAnnotations is the allow-list for the author's annotations of a Job: annotations of this project, on which no
// other component acts.
func jobAnnotations() []string { return []string{annotationResult, annotationSerial} }

// allowed are the author's annotations with these keys, nil if there are none.
func allowed(author map[string]string, keys []string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		value, ok := author[key]
		if !ok {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept
}

// limitPod bounds the time in which the pod terminates, and that for which its tokens are valid.
func limitPod(spec *corev1.PodSpec) {
	shorten(spec.TerminationGracePeriodSeconds, MaxGrace)
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.StartupProbe} {
			if probe != nil {
				shorten(probe.TerminationGracePeriodSeconds, MaxGrace)
			}
		}
	}
	for _, volume := range spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken != nil {
				shorten(source.ServiceAccountToken.ExpirationSeconds, maxTokenAge)
			}
		}
	}
}

// shorten bounds a time that is set.
func shorten(seconds *int64, most int64) {
	if seconds != nil {
		*seconds = min(*seconds, most)
	}
}

// limit bounds the duration of the Job, also without a runner, its retries, and its TTL.
func (b binder) limit(spec *batchv1.JobSpec) {
	limit := int64((b.run.Deadline.Sub(b.run.StartTime) + margin) / time.Second)
	if spec.ActiveDeadlineSeconds == nil || *spec.ActiveDeadlineSeconds > limit {
		spec.ActiveDeadlineSeconds = &limit
	}
	limitPod(&spec.Template.Spec)
	ttl := int32(minTTL / time.Second)
	if spec.TTLSecondsAfterFinished == nil || *spec.TTLSecondsAfterFinished < ttl {
		spec.TTLSecondsAfterFinished = &ttl
	}
	if spec.BackoffLimit == nil {
		limit := int32(backoffLimit)
		spec.BackoffLimit = &limit
	}
	if spec.PodFailurePolicy != nil || spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return
	}
	spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		},
		{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{preflight.ExitFail},
			},
		},
	}}
}

// configure sets the environment of the SDK in all containers, has the kubelet keep
// their termination messages, and keeps setuid programs from gaining privileges where
// the manifest does not state it.
func (b binder) configure(spec *corev1.PodSpec) {
	variables := b.environment(len(spec.Containers) + len(spec.InitContainers))
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			container := &containers[i]
			container.Env = override(container.Env, variables)
			if spec.OS == nil || spec.OS.Name != corev1.Windows { // which has no such field
				denyEscalation(container)
			}
			container.TerminationMessagePath = corev1.TerminationMessagePathDefault
			container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
	}
}

func denyEscalation(container *corev1.Container) {
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{}
	}
	if container.SecurityContext.AllowPrivilegeEscalation == nil {
		container.SecurityContext.AllowPrivilegeEscalation = new(false)
	}
}

// environment is the environment of the SDK. A kubelet keeps 4096 bytes of a
// container's termination message and 12288 bytes per pod (pkg/kubelet/status,
// normalizeStatus), which two containers share that admission may inject. The
// SDK's minimum is 512.
func (b binder) environment(containers int) []corev1.EnvVar {
	const perContainer, perPod, injected, least = 4096, 12288, 2, 512
	variables := []corev1.EnvVar{
		{Name: "PREFLIGHT_RUN_ID", Value: b.run.ID},
		{Name: "PREFLIGHT_CURRENT_VERSION", Value: b.run.From},
		{Name: "PREFLIGHT_TARGET_VERSION", Value: b.run.Target.Version},
		{Name: "PREFLIGHT_TARGET_IMAGE", Value: b.run.Target.Image},
		{Name: VariableDeadline, Value: words.Time(b.run.Deadline)},
		{Name: "PREFLIGHT_RESULT_BYTES", Value: strconv.Itoa(max(least, min(perContainer, perPod/(containers+injected))))},
	}
	if b.path != "" {
		variables = append(variables, corev1.EnvVar{Name: "PREFLIGHT_UPDATE_PATH", Value: b.path})
	}
	return variables
}

// override appends variables to the author's, and replaces variables of the same name.
func override(author, ours []corev1.EnvVar) []corev1.EnvVar {
	replaced := map[string]bool{}
	for _, variable := range ours {
		replaced[variable.Name] = true
	}
	var variables []corev1.EnvVar
	for _, variable := range author {
		if !replaced[variable.Name] {
			variables = append(variables, variable)
		}
	}
	return append(variables, ours...)
}

// supporting returns the temporary copy of a supporting object, without fields that
// only the API server sets, and with references to the other copies.
func (b binder) supporting(e *supportingManifest) payload.Object {
	switch object := e.manifest.Object.(type) {
	case *corev1.ServiceAccount:
		return &corev1.ServiceAccount{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: b.meta(e.manifest),
			ImagePullSecrets: object.ImagePullSecrets, AutomountServiceAccountToken: object.AutomountServiceAccountToken,
		}
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: b.meta(e.manifest),
			Data: object.Data, BinaryData: object.BinaryData,
		}
	case *rbacv1.Role:
		return &rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
			ObjectMeta: b.meta(e.manifest), Rules: object.Rules,
		}
	case *rbacv1.ClusterRole:
		return &rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: b.meta(e.manifest),
			Rules: object.Rules, AggregationRule: object.AggregationRule,
		}
	case *rbacv1.RoleBinding:
		return &rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: b.meta(e.manifest),
			Subjects: b.subjects(object.Subjects), RoleRef: b.role(object.RoleRef, object.Namespace),
		}
	case *rbacv1.ClusterRoleBinding:
		return &rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: b.meta(e.manifest),
			Subjects: b.subjects(object.Subjects), RoleRef: b.role(object.RoleRef, ""),
		}
	}
	return nil // rejected by the draft
}

func (b binder) meta(manifest payload.Supporting) metav1.ObjectMeta {
	object := manifest.Object
	return metav1.ObjectMeta{
		Name: b.run.Suffixed(object.GetName()), Namespace: object.GetNamespace(),
		Labels:      b.run.labels(manifest.Component),
		Annotations: b.run.annotations(manifest.File),
	}
}

// subjects returns the subjects of a binding, with the ServiceAccounts of the release replaced by their copies.
func (b binder) subjects(author []rbacv1.Subject) []rbacv1.Subject {
	bound := slices.Clone(author)
	for i := range bound {
		if b.catalog.manifests[AccountOfSubject(bound[i])] != nil {
			bound[i].Name = b.run.Suffixed(bound[i].Name)
		}
	}
	return bound
}

// role returns the role of a binding, or the copy of a role of the release.
func (b binder) role(author rbacv1.RoleRef, namespace string) rbacv1.RoleRef {
	if b.catalog.manifests[roleOf(author, namespace)] != nil {
		author.Name = b.run.Suffixed(author.Name)
	}
	return author
}
