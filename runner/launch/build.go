package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
)

// Check is one Job that is ready to be created.
type Check struct {
	// Name is "<Component>.<JobName>" in CamelCase, unique in its plan. The
	// findings of the Job have the part before the dot in common.
	Name string
	// Component is as the release spells it, File the manifest's name.
	Component, File string
	// Framed is true when the author promised a result in the SDK's form.
	Framed bool
	// Serial is true when the author wants it to run alone among the serial
	// checks of its component: annotation preflight.openshift.io/serial: "true"
	// of the Job. What is not serial runs beside it.
	Serial bool
	Job    *batchv1.Job

	// needs are the supporting objects that must be there first, by the names
	// of the copies.
	needs []reference
}

// Prefix is what the names of the check's own findings begin with, before a
// dot.
func (c Check) Prefix() string {
	prefix, _, _ := strings.Cut(c.Name, ".")
	return prefix
}

// Plan is what a run is going to create.
type Plan struct {
	Run Run
	// Checks are in the order of the manifests in the release.
	Checks []Check
	// Supporting are the temporary copies that the checks need, bindings last.
	Supporting []payload.Object
	// Refused has one finding for each Job that may not run.
	Refused []finding.Finding
}

const (
	// minTTL keeps a finished Job for whoever has yet to read it, also after a
	// runner was killed. It is the last net under Cleanup.
	minTTL = time.Hour
	// margin lets the runner see the end of a run's time before the Job
	// controller deletes the pods, and with them the evidence.
	margin = time.Minute
	// backoffLimit is for authors who chose none: Kubernetes' own 6 takes more
	// than ten minutes, which is longer than a run.
	backoffLimit = 2
	// maxGrace is how long a pod may take to end after SIGTERM, in seconds:
	// Kubernetes' own default, and less than a run takes to clean up.
	maxGrace = 30
)

// Build makes the plan for a release. It is pure, and the same input gives the
// same plan. Jobs that break a rule, or need a supporting object that does, are
// in Plan.Refused and not in Plan.Checks. A supporting object that no check
// needs is left out.
func Build(run Run, release *payload.Release) Plan {
	b := builder{
		run: run, images: map[string]bool{}, catalog: newCatalog(run, release.Supporting),
		names: map[string]int{}, jobs: map[reference]string{},
	}
	if slices.Contains(release.Previous, run.From) {
		b.path = run.From + "," + run.To
	}
	for _, image := range release.Images {
		b.images[image] = true
	}
	plan := Plan{Run: run}
	for _, manifest := range release.Jobs {
		check, faults := b.check(manifest)
		if len(faults) > 0 {
			plan.Refused = append(plan.Refused, refusal(check, manifest.Job, faults))
			continue
		}
		plan.Checks = append(plan.Checks, check)
	}
	for _, ref := range b.catalog.references() {
		plan.Supporting = append(plan.Supporting, b.catalog.entries[ref].object)
	}
	plan.prune()
	return plan
}

type builder struct {
	run     Run
	images  map[string]bool
	catalog catalog
	// path is how the update goes, empty where that is not known: only a
	// release that names the cluster's version is reached without another
	// between them.
	path string
	// names counts the checks of a name, jobs has the file of each Job.
	names map[string]int
	jobs  map[reference]string
}

// check makes the check of one manifest. Its name is there also when it has
// faults.
func (b builder) check(manifest payload.Job) (Check, []fault) {
	job := manifest.Job
	check := Check{
		Name: b.uniqueName(manifest), Component: manifest.Component, File: manifest.File,
		Framed: job.Annotations[annotationResult] == resultFramed,
		Serial: job.Annotations[annotationSerial] == serialTrue,
	}
	faults := jobFaults(job, b.images)
	ref := reference{"Job", job.Namespace, job.Name}
	if first, ok := b.jobs[ref]; ok {
		faults = append(faults, fault{ruleManifest, "metadata.name", "the release has it twice, first in " + first})
	}
	b.jobs[ref] = manifest.File
	faults = located(faults, manifest.Lines)

	check.Job = b.job(manifest)
	check.Job.Annotations[AnnotationCheck] = check.Name
	for _, need := range b.catalog.closure(b.catalog.follow(job.Namespace, &check.Job.Spec.Template.Spec)) {
		entry := b.catalog.entries[need]
		for _, f := range located(entry.faults, entry.lines) {
			f.path = fmt.Sprintf("%s (%s): %s", need, entry.file, f.path)
			faults = append(faults, f)
		}
		check.needs = append(check.needs, reference{need.kind, need.namespace, b.run.suffixed(need.name)})
	}
	return check, faults
}

// located says in which line of the file each fault is, where that is known.
func located(faults []fault, lines payload.Lines) []fault {
	found := slices.Clone(faults)
	for i := range found {
		if line := lines.Of(found[i].path); line > 0 {
			found[i].path += fmt.Sprintf(" (line %d)", line)
		}
	}
	return found
}

// uniqueName numbers the checks that would have the same name, in the order of
// the manifests.
func (b builder) uniqueName(manifest payload.Job) string {
	name := checkName(manifest.Component, manifest.Job.Name)
	b.names[name]++
	if n := b.names[name]; n > 1 {
		return name + "-" + strconv.Itoa(n)
	}
	return name
}

// job is the author's Job with what the run adds. What only a server may set,
// and the selector that goes with it, is left out.
func (b builder) job(manifest payload.Job) *batchv1.Job {
	author := manifest.Job
	job := &batchv1.Job{
		TypeMeta: typeMeta("batch/v1", "Job"),
		ObjectMeta: metav1.ObjectMeta{
			Name: b.run.suffixed(author.Name), Namespace: author.Namespace,
			Labels:      b.run.labels(author.Labels, manifest.Component),
			Annotations: b.run.annotations(author.Annotations, manifest.File),
		},
		Spec: *author.Spec.DeepCopy(),
	}
	job.Spec.Selector, job.Spec.ManualSelector = nil, nil
	template := &job.Spec.Template
	template.ObjectMeta = metav1.ObjectMeta{
		Labels:      b.run.labels(template.Labels, manifest.Component),
		Annotations: template.Annotations,
	}
	if template.Spec.RestartPolicy == "" {
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	b.bound(&job.Spec)
	b.equip(&template.Spec)
	return job
}

// bound sees to it that the Job ends, also when nobody is there to end it, is
// not retried in vain, and outlives its end.
func (b builder) bound(spec *batchv1.JobSpec) {
	limit := int64((b.run.Deadline.Sub(b.run.StartTime) + margin) / time.Second)
	if spec.ActiveDeadlineSeconds == nil || *spec.ActiveDeadlineSeconds > limit {
		spec.ActiveDeadlineSeconds = &limit
	}
	if grace := spec.Template.Spec.TerminationGracePeriodSeconds; grace != nil && *grace > maxGrace {
		spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(maxGrace))
	}
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

// equip gives all containers what the SDK reads, and has the kubelet keep what
// they say at their end.
func (b builder) equip(spec *corev1.PodSpec) {
	variables := b.environment(len(spec.Containers) + len(spec.InitContainers))
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			container := &containers[i]
			container.Env = override(container.Env, variables)
			container.TerminationMessagePath = corev1.TerminationMessagePathDefault
			container.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
	}
}

// environment is what the SDK reads. A kubelet keeps 4096 bytes of one
// container's message and 12288 of all of a pod's (pkg/kubelet/status,
// normalizeStatus); two containers more are allowed for, which admission may
// inject. The SDK takes no fewer than 512.
func (b builder) environment(containers int) []corev1.EnvVar {
	const perContainer, perPod, injected, least = 4096, 12288, 2, 512
	variables := []corev1.EnvVar{
		{Name: "PREFLIGHT_RUN_ID", Value: b.run.ID},
		{Name: "PREFLIGHT_CURRENT_VERSION", Value: b.run.From},
		{Name: "PREFLIGHT_TARGET_VERSION", Value: b.run.To},
		{Name: "PREFLIGHT_TARGET_IMAGE", Value: b.run.Image},
		{Name: "PREFLIGHT_DEADLINE", Value: b.run.Deadline.UTC().Format(time.RFC3339)},
		{Name: "PREFLIGHT_RESULT_BYTES", Value: strconv.Itoa(max(least, min(perContainer, perPod/(containers+injected))))},
	}
	if b.path != "" {
		variables = append(variables, corev1.EnvVar{Name: "PREFLIGHT_UPDATE_PATH", Value: b.path})
	}
	return variables
}

func override(author, ours []corev1.EnvVar) []corev1.EnvVar {
	taken := map[string]bool{}
	for _, variable := range ours {
		taken[variable.Name] = true
	}
	var variables []corev1.EnvVar
	for _, variable := range author {
		if !taken[variable.Name] {
			variables = append(variables, variable)
		}
	}
	return append(variables, ours...)
}

// prune drops the supporting objects that no check needs.
func (p *Plan) prune() {
	needed := map[reference]bool{}
	for _, check := range p.Checks {
		for _, ref := range check.needs {
			needed[ref] = true
		}
	}
	var kept []payload.Object
	for _, object := range p.Supporting {
		if object != nil && needed[referenceTo(object)] {
			kept = append(kept, object)
		}
	}
	p.Supporting = kept
}

func referenceTo(object payload.Object) reference {
	return reference{object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName()}
}
