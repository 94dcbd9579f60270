package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/payload"
)

// Check is one Job of a release that may run.
type Check struct {
	// Name is "<Component>.<JobName>" in CamelCase, unique in its release. The
	// findings of the Job have the part before the dot in common.
	Name string
	// Component is as the release spells it, File the manifest's name.
	Component, File string
	// Framed is true when the author promised a result in the SDK's form.
	Framed bool
	// Serial is true when the check must not run beside other serial checks of its
	// component: annotation preflight.openshift.io/serial: "true" of the Job.
	Serial bool
	// Job is the author's in a Draft, and ready to be created in a Plan.
	Job *batchv1.Job

	// needs are the supporting objects that must exist first.
	needs []reference
}

// Prefix is what the names of the check's own findings begin with, before a
// dot.
func (c Check) Prefix() string {
	prefix, _, _ := strings.Cut(c.Name, ".")
	return prefix
}

// Draft is what may be run of a release: named, and held against the policy for
// manifests. It is the same for every run.
type Draft struct {
	// Checks are in the order of the manifests in the release.
	Checks []Check
	// Refused has one finding for each Job that violates the policy.
	Refused []finding.Finding

	catalog catalog
	// path is the update path ("4.18.1,4.19.2"); empty where it is not known.
	path string
}

// Plan is what one run is going to create.
type Plan struct {
	Run Run
	// Checks are in the order of the draft.
	Checks []Check
	// Supporting are the temporary copies that the checks need, bindings last.
	Supporting []payload.Object
}

// NewDraft drafts the checks of a release for a cluster at the version from. It
// is pure, and the same input gives the same draft. Jobs that violate the policy,
// or need a supporting object that does, are in Refused and not in Checks.
func NewDraft(from string, release *payload.Release) Draft {
	b := builder{images: map[string]bool{}, catalog: newCatalog(release.Supporting), names: map[string]int{}, jobs: map[reference]string{}}
	for _, image := range release.Images {
		b.images[image] = true
	}
	draft := Draft{catalog: b.catalog}
	// Only a release that lists the cluster's version is reached in one hop.
	if slices.Contains(release.Previous, from) {
		draft.path = from + "," + release.Version
	}
	for _, manifest := range release.Jobs {
		check, faults := b.check(manifest)
		if len(faults) > 0 {
			draft.Refused = append(draft.Refused, refusal(check, manifest.Job, faults))
			continue
		}
		draft.Checks = append(draft.Checks, check)
	}
	return draft
}

// Bind makes the plan of one run: the names, labels and deadlines of its objects
// follow from the run. Supporting objects that no check needs are left out.
func (d Draft) Bind(run Run) Plan {
	b := binder{run: run, catalog: d.catalog, path: d.path}
	plan := Plan{Run: run, Checks: make([]Check, 0, len(d.Checks))}
	for _, check := range d.Checks {
		plan.Checks = append(plan.Checks, b.check(check))
	}
	for _, ref := range d.catalog.references() {
		plan.Supporting = append(plan.Supporting, b.supporting(d.catalog.entries[ref]))
	}
	plan.prune()
	return plan
}

// builder drafts checks.
type builder struct {
	images  map[string]bool
	catalog catalog
	// names counts the checks of a name, jobs has the file of each Job.
	names map[string]int
	jobs  map[reference]string
}

// check drafts the check of one manifest. Its name is there also when it
// violates the policy.
func (b builder) check(manifest payload.Job) (Check, []fault) {
	job := manifest.Job
	check := Check{
		Name: b.uniqueName(manifest), Component: manifest.Component, File: manifest.File,
		Framed: job.Annotations[annotationResult] == resultFramed,
		Serial: job.Annotations[annotationSerial] == serialTrue,
		Job:    job,
	}
	faults := jobFaults(job, b.images)
	ref := reference{"Job", job.Namespace, job.Name}
	if first, ok := b.jobs[ref]; ok {
		faults = append(faults, fault{ruleManifest, "metadata.name", "the release has it twice, first in " + first})
	}
	b.jobs[ref] = manifest.File
	faults = located(faults, manifest.Lines)

	check.needs = b.catalog.closure(b.catalog.referredBy(job))
	for _, need := range check.needs {
		entry := b.catalog.entries[need]
		for _, f := range located(entry.faults, entry.manifest.Lines) {
			f.path = fmt.Sprintf("%s (%s): %s", need, entry.manifest.File, f.path)
			faults = append(faults, f)
		}
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
